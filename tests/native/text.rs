//! How is a snippet written? As a litmus test in one of several ways, and for the assembler in exactly one.

use super::snippet::*;
use std::fmt::Write;

/// What is to be shown besides registers and variables, and the question.
pub(crate) struct Asked<'a> {
    pub flags: u8,
    pub condition: &'a str,
}

/// The snippet as a litmus test.
pub(crate) fn litmus(snippet: &Snippet, asked: &Asked) -> String {
    let (name, mut init) = (if snippet.arch == Arch::X86 { "X86" } else { "X86_64" }, String::new());
    for (v, variable) in snippet.variables.iter().enumerate() {
        let sign = if variable.signed { "" } else { "u" };
        let ty = if variable.typed { format!("{sign}int{}_t ", variable.bits) } else { String::new() };
        let values: Vec<String> = variable.init.iter().map(i64::to_string).collect();
        let _ = match &values[..] {
            [value] => write!(init, " {ty}v{v}={value};"),
            _ => write!(init, " {ty}v{v}[{}]={{{}}};", values.len(), values.join(",")),
        };
    }
    if let Some(var) = snippet.pointer {
        let _ = write!(init, " int *v{}=&v{var};", snippet.variables.len());
    }
    for (reg, first) in &snippet.registers {
        let register = register(snippet.arch, *reg);
        let _ = match first {
            First::Number(0) => Ok(()),
            First::Number(n) => write!(init, " 0:{register}={n};"),
            First::Address(var) => write!(init, " 0:{register}=v{var};"),
        };
    }
    for (flag, _) in FLAGS.iter().filter(|(_, bit)| snippet.flags & bit != 0) {
        let _ = write!(init, " 0:{flag}=1;");
    }
    let mut rows = Rows { snippet, text: String::new(), labels: 0 };
    rows.units(&snippet.units);
    let mut shown: String =
        snippet.registers.iter().map(|(reg, _)| format!("0:{};", register(snippet.arch, *reg))).collect();
    let variables = snippet.variables.len() + snippet.pointer.is_some() as usize;
    shown.extend((0..variables).map(|v| format!("v{v};")));
    let flags = FLAGS.iter().filter(|(_, bit)| asked.flags & bit != 0);
    shown.extend(flags.map(|(flag, _)| format!("0:{flag};")));
    format!("{name} T\n{{{init} }}\n P0 ;\n{}locations [{shown}]\n{}\n", rows.text, asked.condition)
}

/// A whole register, as final states show it.
pub(crate) fn register(arch: Arch, reg: usize) -> String {
    let name = Part { reg, bits: arch.bits(), high: false }.name();
    if arch == Arch::X86 { name.to_uppercase() } else { name }
}

struct Rows<'a> {
    snippet: &'a Snippet,
    text: String,
    labels: usize,
}

impl Rows<'_> {
    fn units(&mut self, units: &[Unit]) {
        for unit in units {
            match unit {
                Unit::Do(line) => {
                    let line = Spelling { snippet: self.snippet, line }.line();
                    let _ = writeln!(self.text, " {line} ;");
                }
                Unit::Skip(condition, body) => {
                    let label = self.labels;
                    self.labels += 1;
                    let jump = condition.map_or("jmp".to_string(), |(letters, _)| format!("j{letters}"));
                    let _ = writeln!(self.text, " {jump} L{label} ;");
                    self.units(body);
                    let _ = writeln!(self.text, " L{label}: ;");
                }
            }
        }
    }
}

struct Spelling<'a> {
    snippet: &'a Snippet,
    line: &'a Line,
}

impl Spelling<'_> {
    /// One of several ways, by the n-th bit of the spelling.
    fn way(&self, n: u32) -> bool {
        self.line.spelling >> n & 1 == 1
    }

    fn line(&self) -> String {
        let Line { op, locked, operands, .. } = self.line;
        let is_intel = self.snippet.arch == Arch::X86;
        let mnemonic = format!("{}{}", if *locked { "lock " } else { "" }, self.mnemonic(*op));
        let mnemonic = if is_intel && self.way(1) { mnemonic.to_uppercase() } else { mnemonic };
        let mut written: Vec<String> = operands.iter().map(|o| self.operand(o)).collect();
        if !is_intel {
            written.reverse();
        }
        format!("{mnemonic} {}", written.join(",")).trim_end().to_string()
    }

    fn mnemonic(&self, op: Op) -> String {
        let bits = self.line.bits;
        let is_left_out = self.width_is_told() && self.way(0);
        match op {
            Op::Extend { signed, .. } if is_left_out => format!("mov{}x", if signed { 's' } else { 'z' }),
            Op::Extend { from, .. } => format!("{}{}{}", stem(op), suffix(from), suffix(bits)),
            Op::Set(_) | Op::Still(_) => stem(op),
            _ if is_left_out => stem(op),
            _ => format!("{}{}", stem(op), suffix(bits)),
        }
    }

    /// Do operands tell how wide the instruction is, or what it extends?
    fn width_is_told(&self) -> bool {
        let telling = match self.line.op {
            Op::Shift(_) => &self.line.operands[..1],
            Op::Extend { .. } => &self.line.operands[1..],
            _ => &self.line.operands[..],
        };
        telling.iter().any(|operand| match operand {
            Operand::Reg(_) => true,
            Operand::Mem(place) => self.says_width() || self.type_tells(place),
            Operand::Number(_) | Operand::Address(_) => false,
        })
    }

    /// Is the width written before places in memory?
    fn says_width(&self) -> bool {
        self.snippet.arch == Arch::X86 && self.line.op != Op::Lea && self.way(5)
    }

    /// A named variable has its width, whatever else is in the address.
    fn type_tells(&self, place: &Place) -> bool {
        place.var.is_some_and(|var| self.snippet.variables.get(var).is_some_and(|v| v.typed))
    }

    fn operand(&self, operand: &Operand) -> String {
        let is_intel = self.snippet.arch == Arch::X86;
        match operand {
            Operand::Number(n) if *n > 9 && self.way(2) => format!("$0x{n:x}"),
            Operand::Number(n) => format!("${n}"),
            Operand::Address(var) => format!("$v{var}"),
            Operand::Reg(part) if is_intel => part.name().to_uppercase(),
            Operand::Reg(part) => format!("%{}", part.name()),
            Operand::Mem(place) if is_intel => {
                let mut sum: Vec<String> = place.var.map(|v| format!("v{v}")).into_iter().collect();
                sum.extend(place.base.map(|p| p.name().to_uppercase()));
                let times = |(p, f): (Part, i64)| format!("{}*{f}", p.name().to_uppercase());
                sum.extend(place.index.map(times));
                if self.way(3) {
                    sum.reverse();
                }
                let mut sum = sum.join("+");
                if place.offset != 0 {
                    let sign = if place.offset < 0 || sum.is_empty() { "" } else { "+" };
                    let _ = write!(sum, "{sign}{}", place.offset);
                }
                let bits = match self.line.op {
                    Op::Extend { from, .. } => from,
                    _ => self.line.bits,
                };
                let word = match bits {
                    _ if !self.says_width() => "",
                    8 => "BYTE PTR ",
                    16 => "word ptr ",
                    _ => "DWORD ",
                };
                format!("{word}[{sum}]")
            }
            Operand::Mem(place) => {
                let mut text = place.var.map_or(String::new(), |v| format!("v{v}"));
                if place.offset != 0 {
                    let sign = if place.offset > 0 && place.var.is_some() { "+" } else { "" };
                    let _ = write!(text, "{sign}{}", place.offset);
                }
                match (place.is_direct(), self.way(3) || place.var.is_none(), self.way(4)) {
                    (true, true, _) => text = format!("({text})"),
                    (true, _, true) => text += "(%rip)",
                    (true, ..) => {}
                    _ => text += &registers(place),
                }
                text
            }
        }
    }
}

fn suffix(bits: u32) -> &'static str {
    match bits {
        8 => "b",
        16 => "w",
        32 => "l",
        _ => "q",
    }
}

fn stem(op: Op) -> String {
    match op {
        Op::Mov => "mov".to_string(),
        Op::Extend { signed: true, .. } => "movs".to_string(),
        Op::Extend { signed: false, .. } => "movz".to_string(),
        Op::Lea => "lea".to_string(),
        Op::Xchg => "xchg".to_string(),
        Op::Xadd => "xadd".to_string(),
        Op::Cmpxchg => "cmpxchg".to_string(),
        Op::Imul => "imul".to_string(),
        Op::Two(word) | Op::One(word) | Op::Shift(word) | Op::Bit(word) | Op::Still(word) => word.to_string(),
        Op::Set((letters, _)) => format!("set{letters}"),
        Op::MoveIf((letters, _)) => format!("cmov{letters}"),
    }
}

/// The registers of an address, in AT&T's parentheses.
fn registers(place: &Place) -> String {
    let base = place.base.map_or(String::new(), |p| format!("%{}", p.name()));
    match place.index {
        Some((part, factor)) => format!("({base},%{},{factor})", part.name()),
        None => format!("({base})"),
    }
}

/// The snippet's instructions for the assembler. Names begin with the prefix.
pub(crate) fn assembly(snippet: &Snippet, prefix: &str) -> String {
    let mut text = String::new();
    assemble(&snippet.units, prefix, &mut 0, &mut text);
    text
}

fn assemble(units: &[Unit], prefix: &str, labels: &mut usize, text: &mut String) {
    for unit in units {
        match unit {
            Unit::Do(line) => {
                let _ = writeln!(text, " {}", assembly_line(line, prefix));
            }
            Unit::Skip(condition, body) => {
                let label = *labels;
                *labels += 1;
                let letters = condition.map_or("mp", |(letters, _)| letters);
                let _ = writeln!(text, " j{letters} {prefix}L{label}");
                assemble(body, prefix, labels, text);
                let _ = writeln!(text, "{prefix}L{label}:");
            }
        }
    }
}

fn assembly_line(line: &Line, prefix: &str) -> String {
    let suffix = match line.op {
        Op::Extend { from, .. } => format!("{}{}", suffix(from), suffix(line.bits)),
        Op::Set(_) | Op::Still(_) => String::new(),
        _ => suffix(line.bits).to_string(),
    };
    let operand = |operand: &Operand| match operand {
        Operand::Number(n) => format!("${n}"),
        Operand::Address(var) => format!("${prefix}v{var}"),
        Operand::Reg(part) => format!("%{}", part.name()),
        Operand::Mem(place) => {
            let name = place.var.map_or(String::new(), |v| format!("{prefix}v{v}+"));
            let registers = if place.is_direct() { String::new() } else { registers(place) };
            format!("{name}{}{registers}", place.offset)
        }
    };
    let operands: Vec<String> = line.operands.iter().rev().map(operand).collect();
    let lock = if line.locked { "lock " } else { "" };
    format!("{lock}{}{suffix} {}", stem(line.op), operands.join(","))
}
