//! Do machine instructions mean what the processor makes of them? Random blocks run on this machine; then the same
//! blocks are read as machine code twice. `main` calls them, with comparisons behind each that fail if anything differs;
//! and a thread does, which knows little of what it loads, so that they are translated and the translation is run.
//!
//! Every general register, memory, and the flags that are defined are compared. `OVERTAKE_PROGRAMS` widens it.

#[path = "common/random.rs"]
mod random;

use overtake::engine;
use overtake::front::Unread;
use overtake::front::elf::{self, CodeFile};
use overtake::limits::Limits;
use overtake::model::{Atom, Expr, Instr, Program, Value};
use overtake::query::Model;
use overtake::semantics::tso::{self, Bound};
use overtake::semantics::{State, Step, sc};
use random::Random;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Blocks that share one program.
const BATCH: usize = 400;
/// Blocks that one thread goes through.
const TOGETHER: usize = 8;
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

    fn input(&mut self) -> (u64, Knowledge) {
        let number = self.number();
        match self.below(6) {
            0 | 1 => (number, Knowledge::Number),
            2 => (number, Knowledge::OneOfTwo(self.number())),
            3 => (number & 255, Knowledge::Byte),
            _ => (number, Knowledge::Nothing),
        }
    }
}

fn variable(name: &str, words: usize, data: &str) -> String {
    format!(
        ".data\n.balign 16\n.globl {name}\n.type {name},@object\n.size {name},{}\n{name}:\n{data}",
        8 * words
    )
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

/// How much of a number a thread knows that loads it.
#[derive(Clone, Copy, PartialEq)]
enum Knowledge {
    Number,
    OneOfTwo(u64),
    Byte,
    Nothing,
}

struct Block {
    number: u64,
    random: Random,
    text: String,
    /// The flags that are defined.
    defined: u8,
    labels: u32,
    /// What registers are at first, and what memory is.
    inputs: Vec<(u64, Knowledge)>,
    memory: Vec<(u64, Knowledge)>,
    /// Do others look at memory?
    shared: bool,
}

impl Block {
    fn new(number: u64) -> Block {
        let mut random = Random(number.wrapping_mul(0x1234_5678_9abc_def1));
        let mut numbers = |count| -> Vec<(u64, Knowledge)> { (0..count).map(|_| random.input()).collect() };
        let (inputs, memory) = (numbers(REGISTERS.len()), numbers(MEMORY));
        let mut text = String::new();
        for n in 0..VECTORS {
            let _ = writeln!(text, " movdqu mem_{number}+{}(%rip),%xmm{n}", 8 * (n % (MEMORY - 1)));
        }
        for (n, (value, known)) in inputs.iter().enumerate() {
            let _ = match known {
                Knowledge::Number => writeln!(text, " movabs ${},{}", *value as i64, register(n, 64)),
                _ => writeln!(text, " mov in_{number}+{}(%rip),{}", 8 * n, register(n, 64)),
            };
        }
        text += " test %rax,%rax\n";
        let shared = random.below(4) != 0;
        let mut block = Block { number, random, text, defined: ALL, labels: 0, inputs, memory, shared };
        for _ in 0..1 + block.random.below(8) {
            block.instruction();
        }
        block
    }

    /// The words that are more than their numbers to a thread, by the names of what they are in.
    fn unsure(&self) -> impl Iterator<Item = (&'static str, usize, Knowledge)> {
        let numbered = |name, all: &[(u64, Knowledge)]| -> Vec<(&'static str, usize, Knowledge)> {
            all.iter().enumerate().map(|(n, (_, known))| (name, n, *known)).collect()
        };
        let memory = if self.shared { &self.memory[..] } else { &[] };
        let all = numbered("in", &self.inputs).into_iter().chain(numbered("mem", memory));
        all.filter(|(_, _, known)| *known != Knowledge::Number)
    }

    /// Stores, once nothing looks any more, what makes the words unsure.
    fn confusion(&self) -> String {
        let mut text = String::new();
        for (name, n, known) in self.unsure() {
            let _ = match known {
                Knowledge::Number => Ok(()),
                Knowledge::OneOfTwo(other) => writeln!(text, " movabs ${},%rax", other as i64),
                Knowledge::Byte => writeln!(text, " movzbl noise(%rip),%eax"),
                Knowledge::Nothing => writeln!(text, " mov noise(%rip),%rax"),
            };
            let _ = writeln!(text, " mov %rax,{name}_{}+{}(%rip)", self.number, 8 * n);
        }
        text
    }

    /// The function, with something behind the block, and its memory.
    fn function(&self, behind: &str) -> String {
        let number = self.number;
        let words = |all: &[(u64, Knowledge)]| -> String {
            all.iter().map(|(value, _)| format!(" .quad {}\n", *value as i64)).collect()
        };
        format!(
            ".text\n.type block_{number},@function\nblock_{number}:\n push %rbx\n push %r12\n push %r13\n{}{}{behind} pop %r13\n pop %r12\n pop %rbx\n ret\n.size block_{number},.-block_{number}\n{}{}{}",
            self.text,
            record(number, self.defined),
            variable(&format!("in_{number}"), REGISTERS.len(), &words(&self.inputs)),
            variable(&format!("mem_{number}"), MEMORY, &words(&self.memory)),
            variable(&format!("out_{number}"), WORDS, &format!(" .skip {}\n", 8 * WORDS)),
        )
    }

    fn line(&mut self, line: String) {
        let _ = writeln!(self.text, " {line}");
    }

    fn register(&mut self, bits: u32) -> String {
        let n = self.random.below(REGISTERS.len());
        register(n, bits)
    }

    /// One that has no second byte, whatever else the instruction has.
    fn place(&mut self, bits: u32) -> String {
        let number = self.number;
        match self.random.below(7) {
            0 | 1 => format!("mem_{number}+{}(%rip)", self.random.below(8 * MEMORY - bits as usize / 8 + 1)),
            2 => {
                // Not rax, which others get their part of on the way. Where memory is differs from run to run, so no
                // register that is compared may know.
                let n = 1 + self.random.below(REGISTERS.len() - 1);
                let index = register(n, 64);
                let (mask, scale) =
                    self.random.pick(&[(24, 1), (3, 8), (6, 4), (12, 2), (7, 1), (7, 2), (1, 8)]);
                self.line(format!("lea mem_{number}(%rip),%r13\n and ${mask},{index}"));
                self.defined = ALL;
                format!("(%r13,{index},{scale})")
            }
            _ => self.register(bits),
        }
    }

    /// Memory may be changed in one step.
    fn lock(&mut self, place: &str) -> &'static str {
        if place.contains('(') && self.random.below(2) == 0 { "lock " } else { "" }
    }

    fn immediate(&mut self, bits: u32) -> i64 {
        let unused = 64 - bits.min(32);
        (self.random.number() as i64) << unused >> unused
    }

    fn instruction(&mut self) {
        let bits = self.random.pick(&[8, 16, 32, 32, 64, 64]);
        let (l, wide) = (letter(bits), bits.max(16));
        match self.random.below(34) {
            0..=4 => {
                let op = self.random.pick(&["add", "sub", "cmp", "and", "or", "xor", "test"]);
                let to = self.place(bits);
                let from = match self.random.below(3) {
                    0 => format!("${}", self.immediate(bits)),
                    _ => self.register(bits),
                };
                let lock = if matches!(op, "cmp" | "test") { "" } else { self.lock(&to) };
                self.line(format!("{lock}{op}{l} {from},{to}"));
                self.defined = ALL;
            }
            5 => {
                let op = self.random.pick(&["adc", "sbb"]);
                if self.defined & CARRY != 0 {
                    let at = self.random.below(8 * MEMORY - bits as usize / 8 + 1);
                    let (from, to) = match self.random.below(3) {
                        0 => (self.register(bits), format!("mem_{}+{at}(%rip)", self.number)),
                        1 => (format!("mem_{}+{at}(%rip)", self.number), self.register(bits)),
                        _ => (self.register(bits), self.register(bits)),
                    };
                    let lock = self.lock(&to);
                    self.line(format!("{lock}{op}{l} {from},{to}"));
                    self.defined = ALL;
                }
            }
            6 | 7 => {
                let op = self.random.pick(&["inc", "dec", "neg", "not"]);
                let to = self.place(bits);
                let lock = self.lock(&to);
                self.line(format!("{lock}{op}{l} {to}"));
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
                let lock = self.lock(&a);
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
            23 => {
                let from = match self.random.below(3) {
                    0 => format!("${}", self.immediate(32)),
                    _ => self.place(64),
                };
                self.line(format!("pushq {from}"));
                self.instruction();
                let to = self.place(64);
                self.line(format!("popq {to}"));
            }
            24 | 25 => self.jump(),
            26 | 27 => {
                let (a, b) = (self.place(bits), self.register(bits));
                let line = match self.random.below(3) {
                    0 => format!("mov{l} {a},{b}"),
                    1 => format!("mov{l} {b},{a}"),
                    _ => format!("mov{l} ${},{a}", self.immediate(bits)),
                };
                self.line(line);
            }
            28 => self.high_byte(),
            29 => {
                let op = self.random.pick(&["bt", "bts", "btr", "btc"]);
                let lock = if op != "bt" && self.random.below(2) == 0 { "lock " } else { "" };
                let l = letter(wide);
                if self.random.below(2) == 0 {
                    let number = self.random.below(wide as usize);
                    let at = self.random.below(8 * MEMORY - 7);
                    self.line(format!("{lock}{op}{l} ${number},mem_{}+{at}(%rip)", self.number));
                    self.defined = CARRY | self.defined & ZERO;
                } else {
                    let n = self.random.below(REGISTERS.len());
                    let (index, mask) = (register(n, wide), self.random.pick(&[1, 31, 96, 127]));
                    self.line(format!("and ${mask},{}", register(n, 64)));
                    self.line(format!("{lock}{op}{l} {index},mem_{}(%rip)", self.number));
                    self.defined = CARRY | ZERO;
                }
            }
            30 => {
                let op = self.random.pick(&["tzcnt", "lzcnt", "shld", "shrd"]);
                let long = bits.max(32);
                let (a, b) = (self.place(long), self.register(long));
                if op.ends_with("cnt") {
                    self.line(format!("{op}{} {a},{b}", letter(long)));
                    self.defined = CARRY | ZERO;
                } else {
                    let count = match self.random.below(2) {
                        0 => format!("${}", self.random.below(long as usize)),
                        _ => "%cl".to_string(),
                    };
                    // Its own flags are not covered.
                    self.line(format!("{op}{} {count},{b},{a}\n test %rax,%rax", letter(long)));
                    self.defined = ALL;
                }
            }
            31 => {
                let at = 8 * self.random.below(MEMORY);
                let place = format!("mem_{}+{at}(%rip)", self.number);
                if self.random.below(2) == 0 {
                    self.line(format!("mov {place},%rax\n mov %rax,%rdx\n shr $32,%rdx\n mov %eax,%eax"));
                    self.defined = 0;
                }
                self.line(format!("lock cmpxchg8b {place}"));
                self.defined |= ZERO;
            }
            32 => {
                let (step, most) = self.random.pick(&[("b", 7), ("w", 3), ("l", 3), ("q", 1)]);
                let op = self.random.pick(&["rep stos", "rep movs", "stos", "movs"]);
                for to in ["%rdi", "%rsi"] {
                    let at = self.random.below(17);
                    self.line(format!("lea mem_{}+{at}(%rip),{to}", self.number));
                }
                let times = self.random.below(most + 1);
                self.line(format!("mov ${times},%ecx\n {op}{step}"));
                // Where memory is differs from run to run.
                self.line(format!("lea mem_{}(%rip),%r13\n sub %r13,%rdi\n sub %r13,%rsi", self.number));
                self.defined = ALL;
            }
            _ => self.vector(),
        }
    }

    /// With the second byte of a register, which has no name beside the newer registers.
    fn high_byte(&mut self) {
        let high = self.random.pick(&["%ah", "%bh", "%ch", "%dh"]);
        let other = match self.random.below(3) {
            0 => format!("mem_{}+{}(%rip)", self.number, self.random.below(8 * MEMORY)),
            _ => self.random.pick(&["%al", "%bl", "%cl", "%dl", "%ah", "%bh", "%ch", "%dh"]).to_string(),
        };
        let op =
            self.random.pick(&["add", "sub", "xor", "cmp", "mov", "xchg", "xadd", "inc", "movz", "movs"]);
        match op {
            "inc" => {
                self.line(format!("incb {high}"));
                self.defined |= ALL & !CARRY;
            }
            "movz" | "movs" => {
                let to = self.random.pick(&["%eax", "%ebx", "%ecx", "%edx", "%esi", "%edi"]);
                self.line(format!("{op}bl {high},{to}"));
            }
            "mov" if self.random.below(2) == 0 => self.line(format!("movb {other},{high}")),
            _ => self.line(format!("{op}b {high},{other}")),
        }
        if matches!(op, "add" | "sub" | "xor" | "cmp" | "xadd") {
            self.defined = ALL;
        }
    }

    /// Over an instruction or two.
    fn jump(&mut self) {
        let (condition, flags) = self.random.pick(&CONDITIONS);
        self.labels += 1;
        let label = format!(".L{}_{}", self.number, self.labels);
        match self.random.below(6) {
            0 => {
                let narrow = self.random.pick(&["jrcxz", "jecxz"]);
                self.line(format!("and $1,%ecx\n {narrow} {label}"));
                self.defined = ALL;
            }
            _ if self.defined & flags == flags => self.line(format!("j{condition} {label}")),
            _ => return,
        }
        let before = self.defined;
        for _ in 0..1 + self.random.below(2) {
            self.instruction();
        }
        self.defined &= before;
        let _ = writeln!(self.text, "{label}:");
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
            "andps",
            "andnpd",
            "orps",
            "xorpd",
            "unpcklps",
            "unpckhps",
            "unpcklpd",
            "unpckhpd",
            "movups",
            "movapd",
            "in",
            "out",
            "part",
            "aligned",
        ]);
        let n = self.random.below(256);
        let word = 8 * self.random.below(MEMORY - 1);
        let memory = self.random.below(8 * (MEMORY - 2) + 1);
        let line = match op {
            "aligned" => {
                let at = 16 * self.random.below(MEMORY / 2);
                let op = self.random.pick(&[
                    "paddd",
                    "psubq",
                    "pand",
                    "pxor",
                    "pandn",
                    "pcmpeqw",
                    "pcmpgtd",
                    "pmuludq",
                    "punpckldq",
                    "punpckhqdq",
                    "movaps",
                    "lddqu",
                    "pshufd $27,",
                    "shufps $78,",
                    "andnps",
                    "unpckhps",
                ]);
                match self.random.below(4) {
                    0 => format!("movntdq %xmm{b},mem_{}+{at}(%rip)", self.number),
                    _ => format!("{op} mem_{}+{at}(%rip),%xmm{b}", self.number),
                }
            }
            "part" => {
                let op = self.random.pick(&["movd", "movq", "movss", "movsd", "movhps", "movlps"]);
                match self.random.below(2) {
                    0 => format!("{op} mem_{}+{memory}(%rip),%xmm{b}", self.number),
                    _ => format!("{op} %xmm{b},mem_{}+{memory}(%rip)", self.number),
                }
            }
            "pshufd" | "shufps" => format!("{op} ${n},%xmm{a},%xmm{b}"),
            "pslldq" | "psrldq" => format!("{op} ${},%xmm{b}", n % 20),
            "pslld" | "psrld" | "psrad" | "psllq" | "psrlq" => format!("{op} ${},%xmm{b}", n % 70),
            "load" => format!("movdqu mem_{}+{word}(%rip),%xmm{b}", self.number),
            "store" => format!("movdqu %xmm{b},mem_{}+{word}(%rip)", self.number),
            "in" if n < 128 => format!("movq {},%xmm{b}", self.register(64)),
            "in" => format!("movd {},%xmm{b}", self.register(32)),
            "out" if n < 128 => format!("movq %xmm{b},{}", self.register(64)),
            "out" => format!("movd %xmm{b},{}", self.register(32)),
            _ => format!("{op} %xmm{a},%xmm{b}"),
        };
        self.line(line);
    }
}

/// Writes down what the block leaves behind, flags first, since nothing else keeps them.
fn record(number: u64, defined: u8) -> String {
    let mut text = String::new();
    let flags = REGISTERS.len() + 2 * VECTORS + MEMORY;
    for (n, (name, flag)) in FLAGS.iter().enumerate() {
        if defined & flag != 0 {
            let _ = writeln!(text, " set{name} out_{number}+{}(%rip)", 8 * (flags + n));
        }
    }
    for n in 0..REGISTERS.len() {
        let _ = writeln!(text, " mov {},out_{number}+{}(%rip)", register(n, 64), 8 * n);
    }
    for n in 0..VECTORS {
        let _ = writeln!(text, " movdqu %xmm{n},out_{number}+{}(%rip)", 8 * (REGISTERS.len() + 2 * n));
    }
    for n in 0..MEMORY {
        let at = REGISTERS.len() + 2 * VECTORS + n;
        let _ =
            writeln!(text, " mov mem_{number}+{}(%rip),%rax\n mov %rax,out_{number}+{}(%rip)", 8 * n, 8 * at);
    }
    text
}

/// What a word is that a block leaves behind.
fn word(n: usize) -> String {
    let (registers, vectors) = (REGISTERS.len(), 2 * VECTORS);
    match n {
        n if n < registers => register(n, 64),
        n if n < registers + vectors => format!("%xmm{}, half {}", (n - registers) / 2, (n - registers) % 2),
        n if n < registers + vectors + MEMORY => format!("mem+{}", 8 * (n - registers - vectors)),
        n => format!("flag {}", FLAGS[n - registers - vectors - MEMORY].0),
    }
}

fn called(name: &str, blocks: &[Block], end: &str) -> String {
    let calls: String = blocks.iter().map(|b| format!(" call block_{}\n", b.number)).collect();
    format!(
        ".text\n.globl {name}\n.type {name},@function\n{name}:\n sub $8,%rsp\n{calls}{end} add $8,%rsp\n xor %eax,%eax\n ret\n.size {name},.-{name}\n"
    )
}

/// All blocks as functions, each with something behind it, and a `main` that calls them.
fn program(blocks: &[Block], behind: impl Fn(usize) -> String) -> String {
    let functions: String = blocks.iter().enumerate().map(|(n, b)| b.function(&behind(n))).collect();
    format!("{functions}{}{STACK}", called("main", blocks, ""))
}

const STACK: &str = ".section .note.GNU-stack,\"\",@progbits\n";

/// Threads of some blocks each, which store to what they have loaded, so that it is not known.
fn threads(blocks: &[Block]) -> String {
    let mut text: String = blocks.iter().map(|b| b.function("")).collect();
    // Its square is as good as any number, as far as anybody can tell.
    let noise = " mov noise(%rip),%rax\n mov noise(%rip),%rdx\n imul %rdx,%rax\n bswap %rax\n add $12345,%rax\n mov %rax,noise(%rip)\n";
    for (n, some) in blocks.chunks(TOGETHER).enumerate() {
        let confusion: String = some.iter().map(Block::confusion).collect();
        text += &called(&format!("thread_{n}"), some, &(noise.to_string() + &confusion));
    }
    text + &variable("noise", 1, " .quad 3\n") + STACK
}

fn gcc(arguments: &[&str], source: &Path, to: &Path) -> Option<()> {
    let output = Command::new("gcc").args(arguments).arg(source).arg("-o").arg(to).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// What every block leaves behind on this processor.
fn native(blocks: &[Block], folder: &Path) -> Option<Vec<Vec<u64>>> {
    let (source, binary) = (folder.join("native.s"), folder.join("native"));
    let write = |n: usize| {
        let out = format!("out_{}(%rip)", blocks[n].number);
        format!(" mov $1,%edi\n lea {out},%rsi\n mov ${},%edx\n call write@PLT\n", 8 * WORDS)
    };
    std::fs::write(&source, program(blocks, write)).expect("it can be written");
    gcc(&[], &source, &binary)?;
    let output = Command::new(&binary).stdin(Stdio::null()).output().expect("it starts");
    assert!(output.status.success(), "the blocks end with {}", output.status);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("a word has eight bytes"));
    let words: Vec<u64> = output.stdout.chunks(8).map(word).collect();
    assert_eq!(words.len(), WORDS * blocks.len(), "every block leaves its words");
    Some(words.chunks(WORDS).map(<[u64]>::to_vec).collect())
}

fn read(object: &Path, options: &elf::Options) -> Result<Program, String> {
    let bytes = std::fs::read(object).expect("the compiler has written it");
    let files = [CodeFile { name: "read.o", bytes: &bytes }];
    match elf::read(&files, options, &Limits::default()) {
        Err(Unread::Wrong(wrong)) => Err(wrong[0].message.clone()),
        Err(Unread::Limit(limit)) => Err(format!("{limit:?}")),
        Ok(input) => Ok(input.program),
    }
}

/// What fails in the program, with the places.
fn failing(program: &Program) -> Vec<String> {
    let edges = program.threads().iter().flat_map(|t| t.edges());
    let failing = edges.filter(|(_, e)| matches!(e.instr, Instr::Assert(_)));
    let place = |line| program.code(line).map_or("?".to_string(), |c| format!("{c:?}"));
    failing.map(|(_, e)| format!("{}: {}", e.text, place(e.line))).collect()
}

/// What `main` does differently when it is read.
fn differing_alone(blocks: &[Block], left: &[Vec<u64>], folder: &Path) -> Vec<String> {
    let (source, object) = (folder.join("read.s"), folder.join("read.o"));
    let compare = |n: usize| {
        let mut text = String::new();
        for (w, word) in left[n].iter().enumerate() {
            let _ = writeln!(
                text,
                " movabs ${},%rax\n cmp %rax,out_{}+{}(%rip)\n je 1f\n call abort@PLT\n1:",
                *word as i64,
                blocks[n].number,
                8 * w
            );
        }
        text
    };
    std::fs::write(&source, program(blocks, compare)).expect("it can be written");
    gcc(&["-c"], &source, &object).expect("there was a compiler before");
    read(&object, &elf::Options::default()).map_or_else(|why| vec![why], |program| failing(&program))
}

/// What threads do differently when they are translated.
fn differing_in_threads(blocks: &[Block], left: &[Vec<u64>], folder: &Path) -> Vec<String> {
    let (source, object) = (folder.join("threads.s"), folder.join("threads.o"));
    std::fs::write(&source, threads(blocks)).expect("it can be written");
    gcc(&["-c"], &source, &object).expect("there was a compiler before");
    let chunks = blocks.chunks(TOGETHER).zip(left.chunks(TOGETHER)).enumerate();
    chunks.flat_map(|(n, (blocks, left))| differing_in_thread(n, blocks, left, &object)).collect()
}

fn differing_in_thread(n: usize, blocks: &[Block], left: &[Vec<u64>], object: &Path) -> Vec<String> {
    let mut options =
        elf::Options { threads: vec![(format!("thread_{n}"), None)], ..elf::Options::default() };
    for block in blocks {
        options.exists.extend((0..WORDS).map(|w| format!("out_{}[{w}]:8", block.number)));
    }
    for block in blocks {
        options.exists.extend(block.unsure().map(|(name, w, _)| format!("{name}_{}[{w}]:8", block.number)));
    }
    options.exists.push("noise[0]:8".to_string());
    let program = match read(object, &options) {
        Ok(program) => program,
        Err(why) => return vec![why],
    };
    let wanted: Vec<Value> = left.iter().flatten().map(|word| *word as Value).collect();
    let observed = program.properties()[..wanted.len()].iter().map(|property| match &property.pred {
        Expr::Atom(atom) => atom.clone(),
        other => panic!("a word is not one cell: {other:?}"),
    });
    let observed: Vec<Atom> = observed.collect();
    let differences = |how: &str, found: &[Value]| -> Vec<String> {
        let pairs = wanted.iter().zip(found).enumerate().filter(|(_, (wanted, found))| wanted != found);
        let tell = |(n, (wanted, found)): (usize, (&Value, &Value))| {
            let (block, name) = (blocks[n / WORDS].number, word(n % WORDS));
            format!("block {block}: {name} is {found:#x} {how}, not {wanted:#x}")
        };
        pairs.map(tell).collect()
    };
    let mut random = Random(blocks[0].number);
    let mut wrong = Vec::new();
    let in_order = |state: &State| sc::steps(&program, state);
    let delayed = |state: &State| tso::steps(&program, state, Bound::Unbounded).0;
    match run(&program, &observed, &mut random, in_order) {
        Ok(found) => wrong.extend(differences("in the translation", &found)),
        Err(why) => wrong.push(why),
    }
    match run(&program, &observed, &mut random, delayed) {
        Ok(found) => wrong.extend(differences("with a buffer", &found)),
        Err(why) => wrong.push(why),
    }
    let options = engine::Options { model: Model::Sc, ..engine::Options::default() };
    let outcomes = engine::outcomes(&program, &observed, &options, &Limits::default());
    match outcomes.states {
        Ok(states) if states.len() == 1 && !outcomes.goes_wrong => {
            states.iter().for_each(|found| wrong.extend(differences("in all runs", found)));
        }
        other => wrong.push(format!("there is not one outcome: {other:?}")),
    }
    wrong
}

/// What the cells hold at the end of some run of the plain machine.
fn run(
    program: &Program,
    observed: &[Atom],
    random: &mut Random,
    steps: impl Fn(&State) -> Vec<Step>,
) -> Result<Vec<Value>, String> {
    let mut state = State::initial(program);
    loop {
        let next = steps(&state);
        if let Some(Step { event, .. }) = next.iter().find(|step| step.event.trap.is_some()) {
            let thread = program.thread(event.thread());
            let edge = thread.edge(event.edge);
            return Err(format!("{:?}: {} at {:?}", event.trap, edge.text, program.code(edge.line)));
        }
        match next.is_empty() {
            false => state = next[random.below(next.len())].state.clone(),
            true => break,
        }
    }
    let ended = program.thread_ids().all(|t| state.at[t.index()] == program.thread(t).end());
    assert!(ended, "the run stops on its way");
    let cell = |atom: &Atom| match atom {
        Atom::Mem(cell) => state.memory[cell.index()],
        other => panic!("{other:?} is no cell"),
    };
    Ok(observed.iter().map(cell).collect())
}

type Differing = fn(&[Block], &[Vec<u64>], &Path) -> Vec<String>;

fn all_blocks(name: &str, usual: u64, differing: Differing) {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return;
    }
    let wanted: u64 = std::env::var("OVERTAKE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let folder = std::env::temp_dir().join(format!("overtake-machine-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    let first: u64 = std::env::var("OVERTAKE_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let numbers: Vec<u64> = (first..first + wanted).collect();
    for batch in numbers.chunks(BATCH) {
        let blocks: Vec<Block> = batch.iter().map(|number| Block::new(*number)).collect();
        let Some(left) = native(&blocks, &folder) else {
            let _ = writeln!(std::io::stderr(), "skipped: no block was run, there is no gcc");
            return;
        };
        let wrong = differing(&blocks, &left, &folder);
        if !wrong.is_empty() {
            // One by one, so that the least is shown.
            for (block, left) in blocks.chunks(1).zip(left.chunks(1)) {
                let wrong = differing(block, left, &folder);
                let Block { number, text, .. } = &block[0];
                assert!(wrong.is_empty(), "block {number}:\n{text}\n{}", wrong.join("\n"));
            }
            panic!("{}", wrong.join("\n"));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn blocks_do_what_the_processor_does() {
    all_blocks("alone", 800, differing_alone);
}

#[test]
fn translated_blocks_do_what_the_processor_does() {
    all_blocks("threads", 200, differing_in_threads);
}
