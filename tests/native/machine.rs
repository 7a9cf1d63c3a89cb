//! What does the processor of this machine do? Snippets are assembled into one program without a library,
//! which runs them one after the other and writes down what they left behind.

use super::snippet::*;
use super::text::assembly;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the data of the snippets lies: the same address in every program.
const DATA: u64 = 0x1234_5000;
/// Registers, flags, and this many bytes for each variable.
const REGISTERS: usize = 16 * 8;
const VARIABLES: usize = REGISTERS + 8;
const VARIABLE: usize = 32;
/// At most five variables and the pointer.
const BLOCK: usize = VARIABLES + 6 * VARIABLE;

/// What a snippet left behind.
pub(crate) struct Left {
    bytes: Vec<u8>,
    /// Where its variables lie.
    begin: u64,
}

impl Left {
    fn number(&self, at: usize, bits: u32) -> u64 {
        let bytes = &self.bytes[at..at + bits as usize / 8];
        bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }

    pub(crate) fn register(&self, reg: usize, bits: u32) -> u64 {
        self.number(reg * 8, bits)
    }

    pub(crate) fn flag(&self, n: usize) -> u64 {
        self.number(REGISTERS + n, 8)
    }

    pub(crate) fn element(&self, var: usize, element: usize, bits: u32) -> u64 {
        self.number(VARIABLES + var * VARIABLE + element * bits as usize / 8, bits)
    }

    /// The variable that lies at an address, and how far behind its beginning the address is.
    pub(crate) fn variable_at(&self, address: u64) -> Option<(usize, u64)> {
        let offset = address.checked_sub(self.begin).filter(|o| *o < (BLOCK - VARIABLES) as u64)?;
        Some((offset as usize / VARIABLE, offset % VARIABLE as u64))
    }
}

/// Runs snippets for one processor; an `Err` says why that is impossible here.
pub(crate) fn run(snippets: &[&Snippet], arch: Arch) -> Result<Vec<Left>, String> {
    let file = |extension: &str| {
        let name = format!("native-{}-{:?}.{extension}", std::process::id(), arch);
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
    };
    let (source, object, program) = (file("s"), file("o"), file("elf"));
    let made = make(snippets, arch, &source, &object, &program);
    let output = made.and_then(|()| {
        let run = Command::new(&program).stdin(Stdio::null()).output();
        run.map_err(|e| format!("a program for {arch:?} does not start: {e}"))
    });
    for path in [&source, &object, &program] {
        let _ = std::fs::remove_file(path);
    }
    let output = output?;
    assert!(output.status.success(), "the snippets end with {}", output.status);
    assert_eq!(output.stdout.len(), BLOCK * snippets.len(), "every snippet leaves a block");
    let begin = |n: usize| DATA + (n * BLOCK + VARIABLES) as u64;
    let blocks = output.stdout.chunks(BLOCK).enumerate();
    Ok(blocks.map(|(n, bytes)| Left { bytes: bytes.to_vec(), begin: begin(n) }).collect())
}

fn make(
    snippets: &[&Snippet],
    arch: Arch,
    source: &PathBuf,
    object: &PathBuf,
    program: &PathBuf,
) -> Result<(), String> {
    std::fs::write(source, text(snippets, arch)).expect("the folder for tests can be written");
    let (kind, emulation) = if arch == Arch::X86 { ("--32", "elf_i386") } else { ("--64", "elf_x86_64") };
    let data = format!("-Tdata={DATA:#x}");
    call(Command::new("as").args([kind, "-o"]).args([object, source]))?;
    call(Command::new("ld").args(["-m", emulation, &data, "-o"]).args([program, object]))
}

/// A tool that is there has to succeed.
fn call(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{:?} does not start: {e}", command.get_program()))?;
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// All snippets as one program.
fn text(snippets: &[&Snippet], arch: Arch) -> String {
    let (mut code, mut data) = (String::new(), ".data\nbegin:\n".to_string());
    for (n, snippet) in snippets.iter().enumerate() {
        let prefix = format!("s{n}_");
        code += &run_one(snippet, &prefix);
        data += &block(snippet, &prefix);
    }
    let length = BLOCK * snippets.len();
    let end = match arch {
        Arch::X86 => format!(
            " movl $4,%eax\n movl $1,%ebx\n movl $begin,%ecx\n movl ${length},%edx\n int $0x80\n movl $1,%eax\n movl $0,%ebx\n int $0x80\n"
        ),
        Arch::X86_64 => format!(
            " movl $1,%eax\n movl $1,%edi\n movl $begin,%esi\n movl ${length},%edx\n syscall\n movl $60,%eax\n movl $0,%edi\n syscall\n"
        ),
    };
    format!("{data}.bss\nstack: .quad 0\n.text\n.globl _start\n_start:\n{code}{end}")
}

/// The snippet between its first values and a record of its last.
fn run_one(snippet: &Snippet, prefix: &str) -> String {
    let bits = snippet.arch.bits();
    let (mov, letter) = if bits == 32 { ("movl", 'l') } else { ("movq", 'q') };
    let stack = Part { reg: SP, bits, high: false }.name();
    // Where the processor has the flags.
    let place = [(ZERO, 6), (SIGN, 7), (CARRY, 0), (OVERFLOW, 11)];
    let flags: u32 = place.iter().map(|(flag, at)| ((snippet.flags & flag != 0) as u32) << at).sum();
    let mut text = format!(" {mov} %{stack},stack\n push{letter} ${flags}\n popf{letter}\n");
    for (reg, first) in &snippet.registers {
        let name = Part { reg: *reg, bits, high: false }.name();
        let _ = match first {
            First::Number(n) => writeln!(text, " {mov} ${n},%{name}"),
            First::Address(var) => writeln!(text, " {mov} ${prefix}v{var},%{name}"),
        };
    }
    text += &assembly(snippet, prefix);
    // Moves and these leave flags as they are.
    for (n, set) in ["setz", "sets", "setc", "seto"].iter().enumerate() {
        let _ = writeln!(text, " {set} {prefix}block+{}", REGISTERS + n);
    }
    for (reg, _) in &snippet.registers {
        let name = Part { reg: *reg, bits, high: false }.name();
        let _ = writeln!(text, " {mov} %{name},{prefix}block+{}", reg * 8);
    }
    text + &format!(" {mov} stack,%{stack}\n")
}

/// Room for what a snippet leaves behind, and its variables.
fn block(snippet: &Snippet, prefix: &str) -> String {
    let mut text = format!("{prefix}block: .skip {VARIABLES}\n");
    for (v, variable) in snippet.variables.iter().enumerate() {
        let values: Vec<String> = variable.init.iter().map(i64::to_string).collect();
        let _ = writeln!(text, "{prefix}v{v}: {} {}", word(variable.bits), values.join(","));
        let _ = writeln!(text, " .skip {}", VARIABLE - variable.bits as usize / 8 * values.len());
    }
    let own = snippet.variables.len();
    if let Some(var) = snippet.pointer {
        let _ = writeln!(text, "{prefix}v{own}: {} {prefix}v{var}", word(snippet.arch.bits()));
        let _ = writeln!(text, " .skip {}", VARIABLE - snippet.arch.bits() as usize / 8);
    }
    let used = own + snippet.pointer.is_some() as usize;
    text + &format!(" .skip {}\n", (6 - used) * VARIABLE)
}

fn word(bits: u32) -> &'static str {
    match bits {
        8 => ".byte",
        16 => ".short",
        32 => ".long",
        _ => ".quad",
    }
}
