//! Do machine instructions mean what the processor makes of them? Random blocks run on this machine; then the same
//! blocks are read as machine code, with comparisons behind each that fail if anything differs.
//!
//! Every general register, memory, and the flags that are defined are compared. `OVERTAKE_PROGRAMS` widens it.

#[path = "common/random.rs"]
mod random;

use overtake::front::Unread;
use overtake::front::elf::{self, CodeFile};
use overtake::limits::Limits;
use overtake::model::Instr;
use random::Random;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Blocks that share one program.
const BATCH: u64 = 400;
const REGISTERS: [&str; 11] = ["ax", "bx", "cx", "dx", "si", "di", "8", "9", "10", "11", "12"];
const VECTORS: usize = 4;
const MEMORY: usize = 4;
/// Words that a block leaves behind: registers, vectors, memory, flags.
const WORDS: usize = REGISTERS.len() + 2 * VECTORS + MEMORY + 5;

const CARRY: u8 = 1;
const ZERO: u8 = 2;
const SIGN: u8 = 4;
const OVERFLOW: u8 = 8;
const PARITY: u8 = 16;
const ALL: u8 = 31;
const FLAGS: [(&str, u8); 5] = [("c", CARRY), ("z", ZERO), ("s", SIGN), ("o", OVERFLOW), ("p", PARITY)];

const CONDITIONS: [(&str, u8); 16] = [
    ("e", ZERO),
    ("ne", ZERO),
    ("b", CARRY),
    ("ae", CARRY),
    ("be", CARRY | ZERO),
    ("a", CARRY | ZERO),
    ("l", SIGN | OVERFLOW),
    ("ge", SIGN | OVERFLOW),
    ("le", SIGN | OVERFLOW | ZERO),
    ("g", SIGN | OVERFLOW | ZERO),
    ("s", SIGN),
    ("ns", SIGN),
    ("o", OVERFLOW),
    ("no", OVERFLOW),
    ("p", PARITY),
    ("np", PARITY),
];

impl Random {
    /// Mostly at the edge of something.
    fn number(&mut self) -> u64 {
        let bit = 1u64 << self.below(64);
        match self.below(8) {
            0 => self.below(5) as u64,
            1 => u64::MAX,
            2 => bit,
            3 => bit.wrapping_sub(1),
            4 => bit.wrapping_neg(),
            _ => self.next(),
        }
    }
}

fn register(n: usize, bits: u32) -> String {
    let name = REGISTERS[n];
    let numbered = name.starts_with(|c: char| c.is_ascii_digit());
    match (bits, numbered) {
        (64, _) => format!("%r{name}"),
        (32, false) => format!("%e{name}"),
        (32, true) => format!("%r{name}d"),
        (16, false) => format!("%{name}"),
        (16, true) => format!("%r{name}w"),
        (_, true) => format!("%r{name}b"),
        (_, false) if name.ends_with('x') => format!("%{}l", &name[..1]),
        _ => format!("%{name}l"),
    }
}

fn letter(bits: u32) -> char {
    match bits {
        8 => 'b',
        16 => 'w',
        32 => 'l',
        _ => 'q',
    }
}

struct Block {
    random: Random,
    text: String,
    /// The flags that are defined.
    defined: u8,
}

/// The block with this number: its text, and the flags that are defined behind it.
fn block(number: u64) -> (String, u8) {
    let mut random = Random(number.wrapping_mul(0x1234_5678_9abc_def1));
    let mut text = String::new();
    for n in 0..MEMORY {
        let _ = writeln!(text, " movabs ${},%rax\n mov %rax,mem+{}(%rip)", random.number() as i64, 8 * n);
    }
    for n in 0..VECTORS {
        let _ = writeln!(text, " movdqu mem+{}(%rip),%xmm{n}", 8 * (n % (MEMORY - 1)));
    }
    for n in 0..REGISTERS.len() {
        let _ = writeln!(text, " movabs ${},{}", random.number() as i64, register(n, 64));
    }
    text += " test %rax,%rax\n";
    let mut block = Block { random, text, defined: ALL };
    for _ in 0..1 + block.random.below(8) {
        block.instruction();
    }
    (block.text, block.defined)
}

impl Block {
    fn line(&mut self, line: String) {
        let _ = writeln!(self.text, " {line}");
    }

    fn register(&mut self, bits: u32) -> String {
        let n = self.random.below(REGISTERS.len());
        register(n, bits)
    }

    /// One that has no second byte, whatever else the instruction has.
    fn place(&mut self, bits: u32) -> String {
        match self.random.below(3) {
            0 => format!("mem+{}(%rip)", self.random.below(8 * MEMORY - bits as usize / 8 + 1)),
            _ => self.register(bits),
        }
    }

    fn immediate(&mut self, bits: u32) -> i64 {
        let unused = 64 - bits.min(32);
        (self.random.number() as i64) << unused >> unused
    }

    fn instruction(&mut self) {
        let bits = self.random.pick(&[8, 16, 32, 32, 64, 64]);
        let (l, wide) = (letter(bits), bits.max(16));
        match self.random.below(24) {
            0..=4 => {
                let op = self.random.pick(&["add", "sub", "cmp", "and", "or", "xor", "test"]);
                let to = self.place(bits);
                let from = match self.random.below(3) {
                    0 => format!("${}", self.immediate(bits)),
                    _ => self.register(bits),
                };
                let lock =
                    to.starts_with("mem") && !matches!(op, "cmp" | "test") && self.random.below(2) == 0;
                let lock = if lock { "lock " } else { "" };
                self.line(format!("{lock}{op}{l} {from},{to}"));
                self.defined = ALL;
            }
            5 => {
                let op = self.random.pick(&["adc", "sbb"]);
                if self.defined & CARRY != 0 {
                    let (from, to) = (self.register(bits), self.place(bits));
                    self.line(format!("{op}{l} {from},{to}"));
                    self.defined = ALL;
                }
            }
            6 | 7 => {
                let op = self.random.pick(&["inc", "dec", "neg", "not"]);
                let to = self.place(bits);
                self.line(format!("{op}{l} {to}"));
                match op {
                    "inc" | "dec" => self.defined |= ALL & !CARRY,
                    "neg" => self.defined = ALL,
                    _ => {}
                }
            }
            8..=10 => self.shift(bits),
            11 => {
                let (from, to) = (self.place(wide), self.register(wide));
                self.line(format!("imul{} {from},{to}", letter(wide)));
                self.defined = CARRY | OVERFLOW;
            }
            12 => {
                let op = self.random.pick(&["mul", "imul"]);
                let from = self.place(bits);
                self.line(format!("{op}{l} {from}"));
                self.defined = CARRY | OVERFLOW;
            }
            13 => self.divide(bits),
            14 => {
                let op = self.random.pick(&["bt", "bts", "btr", "btc"]);
                let to = self.register(wide);
                let number = match self.random.below(2) {
                    0 => format!("${}", self.random.below(wide as usize)),
                    _ => self.register(wide),
                };
                self.line(format!("{op}{} {number},{to}", letter(wide)));
                self.defined = CARRY | self.defined & ZERO;
            }
            15 => {
                let op = self.random.pick(&["bsf", "bsr", "popcnt"]);
                let (from, to) = (self.register(wide), self.register(wide));
                self.line(format!("or{} $64,{from}\n {op}{} {from},{to}", letter(wide), letter(wide)));
                self.defined = if op == "popcnt" { ALL } else { ZERO };
            }
            16 => {
                let (a, b) = (self.place(bits), self.register(bits));
                self.line(format!("xchg{l} {b},{a}"));
            }
            17 => {
                let op = self.random.pick(&["xadd", "cmpxchg"]);
                let (b, a) = (self.register(bits), self.place(bits));
                let lock = if a.starts_with("mem") && self.random.below(2) == 0 { "lock " } else { "" };
                if self.random.below(2) == 0 {
                    // Half of them find what they expect.
                    self.line(format!("mov{l} {a},{}", register(0, bits)));
                }
                self.line(format!("{lock}{op}{l} {b},{a}"));
                self.defined = ALL;
            }
            18 => {
                let (condition, flags) = self.random.pick(&CONDITIONS);
                if self.defined & flags == flags {
                    let to = self.place(8);
                    self.line(format!("set{condition} {to}"));
                }
            }
            19 => {
                let (condition, flags) = self.random.pick(&CONDITIONS);
                if self.defined & flags == flags {
                    let (from, to) = (self.place(wide), self.register(wide));
                    self.line(format!("cmov{condition}{} {from},{to}", letter(wide)));
                }
            }
            20 => {
                let from = self.random.pick(&[8, 16]);
                let op = self.random.pick(&["movz", "movs"]);
                let to = self.random.pick(&[32, 64]);
                let (a, b) = (self.place(from), self.register(to));
                self.line(format!("{op}{}{} {a},{b}", letter(from), letter(to)));
            }
            21 => {
                let (a, b, c) = (self.register(64), self.register(64), self.register(wide));
                let scale = self.random.pick(&[1, 2, 4, 8]);
                let offset = self.immediate(32);
                self.line(format!("lea{} {offset}({a},{b},{scale}),{c}", letter(wide)));
            }
            22 => {
                let op = self.random.pick(&[
                    "cltd",
                    "cqto",
                    "cltq",
                    "cwtl",
                    "cbtw",
                    "cwtd",
                    "bswap %ebx",
                    "bswap %r9",
                ]);
                self.line(op.to_string());
            }
            _ => self.vector(),
        }
    }

    fn shift(&mut self, bits: u32) {
        let op = self.random.pick(&["shl", "shr", "sar", "rol", "ror"]);
        let to = self.place(bits);
        let l = letter(bits);
        let rotates = op.starts_with('r');
        if self.random.below(3) == 0 {
            self.line(format!("{op}{l} %cl,{to}"));
            self.defined &= if rotates { ALL & !CARRY & !OVERFLOW } else { ZERO | SIGN | PARITY };
            return;
        }
        let count = 1 + self.random.below(bits as usize - 1);
        self.line(format!("{op}{l} ${count},{to}"));
        let overflow = if count == 1 { OVERFLOW } else { 0 };
        self.defined = match rotates {
            true => self.defined & !OVERFLOW | CARRY | overflow,
            false => ALL & !OVERFLOW | overflow,
        };
    }

    fn divide(&mut self, bits: u32) {
        let divisor = register(1, bits);
        let l = letter(bits);
        self.line(format!("or{l} $1,{divisor}"));
        if self.random.below(2) == 0 {
            self.line(if bits == 8 { "movzbl %al,%eax".to_string() } else { "xor %edx,%edx".to_string() });
            self.line(format!("div{l} {divisor}"));
        } else {
            self.line(format!("and{l} $63,{divisor}\n shr{l} $2,{}", register(0, bits)));
            self.line(match bits {
                8 => "cbtw".to_string(),
                16 => "cwtd".to_string(),
                32 => "cltd".to_string(),
                _ => "cqto".to_string(),
            });
            self.line(format!("idiv{l} {divisor}"));
        }
        self.defined = 0;
    }

    fn vector(&mut self) {
        let (a, b) = (self.random.below(VECTORS), self.random.below(VECTORS));
        let op = self.random.pick(&[
            "paddb",
            "paddw",
            "paddd",
            "paddq",
            "psubb",
            "psubw",
            "psubd",
            "psubq",
            "pand",
            "por",
            "pxor",
            "pandn",
            "pcmpeqb",
            "pcmpeqw",
            "pcmpeqd",
            "pcmpgtd",
            "pmuludq",
            "punpckldq",
            "punpckhdq",
            "punpcklqdq",
            "punpckhqdq",
            "movdqa",
            "movq",
            "movsd",
            "movss",
            "movhlps",
            "movlhps",
            "pshufd",
            "shufps",
            "pslldq",
            "psrldq",
            "pslld",
            "psrld",
            "psrad",
            "psllq",
            "psrlq",
            "load",
            "store",
            "in",
            "out",
        ]);
        let n = self.random.below(256);
        let memory = 8 * self.random.below(MEMORY - 1);
        let line = match op {
            "pshufd" | "shufps" => format!("{op} ${n},%xmm{a},%xmm{b}"),
            "pslldq" | "psrldq" => format!("{op} ${},%xmm{b}", n % 20),
            "pslld" | "psrld" | "psrad" | "psllq" | "psrlq" => format!("{op} ${},%xmm{b}", n % 70),
            "load" => format!("movdqu mem+{memory}(%rip),%xmm{b}"),
            "store" => format!("movdqu %xmm{b},mem+{memory}(%rip)"),
            "in" => format!("movq {},%xmm{b}", self.register(64)),
            "out" => format!("movd %xmm{b},{}", self.register(32)),
            _ => format!("{op} %xmm{a},%xmm{b}"),
        };
        self.line(line);
    }
}

/// Writes down what the block leaves behind, flags first, since nothing else keeps them.
fn record(defined: u8) -> String {
    let mut text = String::new();
    let flags = REGISTERS.len() + 2 * VECTORS + MEMORY;
    for (n, (name, flag)) in FLAGS.iter().enumerate() {
        if defined & flag != 0 {
            let _ = writeln!(text, " set{name} out+{}(%rip)", 8 * (flags + n));
        }
    }
    for n in 0..REGISTERS.len() {
        let _ = writeln!(text, " mov {},out+{}(%rip)", register(n, 64), 8 * n);
    }
    for n in 0..VECTORS {
        let _ = writeln!(text, " movdqu %xmm{n},out+{}(%rip)", 8 * (REGISTERS.len() + 2 * n));
    }
    for n in 0..MEMORY {
        let at = REGISTERS.len() + 2 * VECTORS + n;
        let _ = writeln!(text, " mov mem+{}(%rip),%rax\n mov %rax,out+{}(%rip)", 8 * n, 8 * at);
    }
    text
}

/// All blocks as functions, each with something behind it, and a `main` that calls them.
fn program(numbers: &[u64], behind: impl Fn(usize) -> String, end: &str) -> String {
    let mut text = String::from(".text\n");
    let mut calls = String::new();
    for (n, number) in numbers.iter().enumerate() {
        let (code, defined) = block(*number);
        let clear: String = (0..WORDS).map(|w| format!(" movq $0,out+{}(%rip)\n", 8 * w)).collect();
        let _ = writeln!(
            text,
            ".globl block_{number}\n.type block_{number},@function\nblock_{number}:\n push %rbx\n push %r12\n{clear}{code}{}{}\n pop %r12\n pop %rbx\n ret\n.size block_{number},.-block_{number}",
            record(defined),
            behind(n)
        );
        let _ = writeln!(calls, " call block_{number}");
    }
    let room = 8 * WORDS;
    format!(
        "{text}.globl main\n.type main,@function\nmain:\n sub $8,%rsp\n{calls}{end} add $8,%rsp\n xor %eax,%eax\n ret\n.size main,.-main\n.bss\n.balign 16\nmem: .skip {}\nout: .skip {room}\n.section .note.GNU-stack,\"\",@progbits\n",
        8 * MEMORY
    )
}

fn gcc(arguments: &[&str], source: &Path, to: &Path) -> Option<()> {
    let output = Command::new("gcc").args(arguments).arg(source).arg("-o").arg(to).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// What every block leaves behind on this processor.
fn native(numbers: &[u64], folder: &Path) -> Option<Vec<Vec<u64>>> {
    let (source, binary) = (folder.join("native.s"), folder.join("native"));
    let write = |_| format!(" mov $1,%edi\n lea out(%rip),%rsi\n mov ${},%edx\n call write@PLT\n", 8 * WORDS);
    std::fs::write(&source, program(numbers, write, "")).expect("it can be written");
    gcc(&[], &source, &binary)?;
    let output = Command::new(&binary).stdin(Stdio::null()).output().expect("it starts");
    assert!(output.status.success(), "the blocks end with {}", output.status);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("a word has eight bytes"));
    let words: Vec<u64> = output.stdout.chunks(8).map(word).collect();
    assert_eq!(words.len(), WORDS * numbers.len(), "every block leaves its words");
    Some(words.chunks(WORDS).map(<[u64]>::to_vec).collect())
}

/// The blocks that mean something else when they are read.
fn differing(numbers: &[u64], left: &[Vec<u64>], folder: &Path) -> Vec<String> {
    let (source, object) = (folder.join("read.s"), folder.join("read.o"));
    let compare = |n: usize| {
        let mut text = String::new();
        for (w, word) in left[n].iter().enumerate() {
            let _ = writeln!(
                text,
                " movabs ${},%rax\n cmp %rax,out+{}(%rip)\n je 1f\n call abort@PLT\n1:",
                *word as i64,
                8 * w
            );
        }
        text
    };
    std::fs::write(&source, program(numbers, compare, "")).expect("it can be written");
    gcc(&["-c"], &source, &object).expect("there was a compiler before");
    let bytes = std::fs::read(&object).expect("the compiler has written it");
    let files = [CodeFile { name: "read.o", bytes: &bytes }];
    match elf::read(&files, &elf::Options::default(), &Limits::default()) {
        Err(Unread::Wrong(wrong)) => vec![wrong[0].message.clone()],
        Err(Unread::Limit(limit)) => vec![format!("{limit:?}")],
        Ok(input) => {
            let program = &input.program;
            let edges = program.threads().iter().flat_map(|t| t.edges());
            let failing = edges.filter(|(_, e)| matches!(e.instr, Instr::Assert(_)));
            let place = |line| program.code(line).map_or("?".to_string(), |c| format!("{c:?}"));
            failing.map(|(_, e)| format!("{}: {}", e.text, place(e.line))).collect()
        }
    }
}

#[test]
fn blocks_do_what_the_processor_does() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return;
    }
    let wanted: u64 = std::env::var("OVERTAKE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(800);
    let folder = std::env::temp_dir().join(format!("overtake-machine-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    let first: u64 = std::env::var("OVERTAKE_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let numbers: Vec<u64> = (first..first + wanted).collect();
    for batch in numbers.chunks(BATCH as usize) {
        let Some(left) = native(batch, &folder) else {
            let _ = writeln!(std::io::stderr(), "skipped: no block was run, there is no gcc");
            return;
        };
        let wrong = differing(batch, &left, &folder);
        if !wrong.is_empty() {
            // One by one, so that the least is shown.
            for (number, left) in batch.iter().zip(&left) {
                let wrong = differing(&[*number], std::slice::from_ref(left), &folder);
                assert!(wrong.is_empty(), "block {number}:\n{}\n{}", block(*number).0, wrong.join("\n"));
            }
            panic!("{}", wrong.join("\n"));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}
