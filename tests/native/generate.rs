//! Which snippets are tried? Random ones, each made from its number alone.
//!
//! Lines are proposed without much thought, and taken if `State` lets them stand behind those before them.
//! Numbers are mostly such that something happens at the edge of a width.

use super::common::random::Random;
use super::snippet::*;
use super::state::State;

impl Random {
    /// True once in so many times.
    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// The snippet with this number.
pub(crate) fn snippet(number: u64) -> Snippet {
    let mut random = Random(number);
    let arch = random.pick(&[Arch::X86, Arch::X86_64]);
    // Where numbers are small, results need not be cut to their width.
    let small = random.once_in(4);
    let mut maker = Maker { random, small, registers: vec![], indices: vec![] };
    let variables: Vec<Variable> = (0..2 + maker.random.below(4)).map(|_| maker.variable(arch)).collect();
    let pointer = maker.random.once_in(2).then(|| maker.random.below(variables.len()));
    let first = maker.first(arch, &variables);
    let flags = if small { 0 } else { maker.random.below(16) as u8 };
    let mut snippet = Snippet { arch, registers: first, flags, variables, pointer, units: vec![] };
    let wanted = if small { 1 + maker.random.below(6) } else { 2 + maker.random.below(24) };
    let mut state = State::first(&snippet);
    snippet.units = maker.units(&snippet, &mut state, wanted, 2);
    snippet
}

struct Maker {
    random: Random,
    small: bool,
    registers: Vec<usize>,
    /// Those that can be an index.
    indices: Vec<usize>,
}

impl Maker {
    fn variable(&mut self, arch: Arch) -> Variable {
        let widths: &[u32] = if arch == Arch::X86 { &[8, 16, 32] } else { &[8, 16, 32, 64] };
        let bits = self.random.pick(widths);
        let length = if self.random.once_in(2) { 1 } else { 2 + self.random.below(3) };
        let signed = !self.random.once_in(3);
        let typed = bits != 32 || length > 1 || !signed || self.random.once_in(2);
        let init = (0..length).map(|_| self.number(bits)).collect();
        Variable { bits, signed, init, typed }
    }

    fn first(&mut self, arch: Arch, variables: &[Variable]) -> Vec<(usize, First)> {
        let count = 3 + self.random.below(4);
        let mut registers = vec![0];
        while registers.len() < count {
            // Mostly those that have a second byte with a name.
            let most = if self.random.once_in(2) { 4 } else { arch.registers() };
            let reg = self.random.below(most);
            if !registers.contains(&reg) {
                registers.push(reg);
            }
        }
        registers.sort();
        self.indices = registers.iter().copied().filter(|reg| *reg != SP).collect();
        self.registers = registers.clone();
        let mut value = |_| match self.random.below(8) {
            0 => First::Address(self.random.below(variables.len())),
            1 | 2 => First::Number(0),
            _ => First::Number(self.number(arch.bits())),
        };
        registers.iter().map(|reg| (*reg, value(reg))).collect()
    }

    /// A number that can be written with so many bits.
    fn number(&mut self, bits: u32) -> i64 {
        let bit = 1i64 << self.random.below(bits as usize);
        let number = match self.random.below(if self.small { 2 } else { 10 }) {
            0 | 1 => self.random.below(9) as i64,
            2 => -1,
            3 => bit.wrapping_neg(),
            4 => bit.wrapping_sub(1),
            5 | 6 => bit,
            7 => i64::MAX >> (64 - bits),
            _ => self.random.next() as i64,
        };
        number << (64 - bits) >> (64 - bits)
    }

    /// A constant in an instruction of so many bits, where more than 32 are too many.
    fn constant(&mut self, bits: u32) -> Operand {
        let signed = self.number(bits.min(32));
        let mask = (1i64 << bits.min(32)) - 1;
        Operand::Number(if bits < 64 && self.random.once_in(3) { signed & mask } else { signed })
    }

    fn units(&mut self, snippet: &Snippet, state: &mut State, wanted: usize, nesting: usize) -> Vec<Unit> {
        let mut units = Vec::new();
        while units.len() < wanted {
            let mut after = state.clone();
            let proposed = if nesting > 0 && self.random.once_in(12) {
                let condition = (!self.random.once_in(6)).then(|| self.random.pick(&CONDITIONS));
                let (wanted, mut inside) = (1 + self.random.below(3), state.clone());
                vec![Unit::Skip(condition, self.units(snippet, &mut inside, wanted, nesting - 1))]
            } else {
                self.line(snippet)
            };
            if after.run(snippet, &proposed).is_some() {
                units.extend(proposed);
                *state = after;
            }
        }
        units
    }

    /// A line, with one before it that its address may need.
    fn line(&mut self, snippet: &Snippet) -> Vec<Unit> {
        let widths: &[u32] =
            if snippet.arch == Arch::X86 { &[8, 16, 32, 32] } else { &[8, 16, 32, 32, 64, 64] };
        let bits = self.random.pick(widths);
        let mut before = Vec::new();
        let condition = self.random.pick(&CONDITIONS);
        let (op, bits, operands) = match self.random.below(26) {
            0..=3 => (Op::Mov, bits, self.mov(snippet, bits, &mut before)),
            4 | 5 => {
                let from = self.random.pick(&[8, 16, 32]);
                let signed = from == 32 || self.random.once_in(2);
                let to = self.reg(bits);
                (Op::Extend { signed, from }, bits, vec![to, self.either(snippet, from, &mut before)])
            }
            6 => (Op::Lea, bits, vec![self.reg(bits), Operand::Mem(self.sum(snippet))]),
            7 => (Op::Xchg, bits, vec![self.either(snippet, bits, &mut before), self.reg(bits)]),
            8 => (Op::Xadd, bits, vec![self.either(snippet, bits, &mut before), self.reg(bits)]),
            9 => (Op::Cmpxchg, bits, vec![self.either(snippet, bits, &mut before), self.reg(bits)]),
            10..=14 => {
                let op = self.random.pick(&["add", "sub", "and", "or", "xor", "cmp", "test"]);
                (Op::Two(op), bits, self.two(snippet, op, bits, &mut before))
            }
            15 => (Op::Imul, bits, vec![self.reg(bits), self.either(snippet, bits, &mut before)]),
            16 | 17 => {
                let op = self.random.pick(&["inc", "dec", "neg", "not"]);
                (Op::One(op), bits, vec![self.either(snippet, bits, &mut before)])
            }
            18..=21 => {
                let op = self.random.pick(&["shl", "sal", "shr", "sar"]);
                let mut operands = vec![self.either(snippet, bits, &mut before)];
                if !self.random.once_in(5) {
                    operands.push(Operand::Number(self.count(bits)));
                }
                (Op::Shift(op), bits, operands)
            }
            22 | 23 => {
                let op = self.random.pick(&["bt", "bts", "btr", "btc"]);
                let bits = bits.max(16);
                let to = self.either(snippet, bits, &mut before);
                let number = match to {
                    Operand::Reg(_) if self.random.once_in(2) => self.reg(bits),
                    _ => Operand::Number(self.count(bits)),
                };
                (Op::Bit(op), bits, vec![to, number])
            }
            24 if self.random.once_in(2) => {
                (Op::Set(condition), 8, vec![self.either(snippet, 8, &mut before)])
            }
            24 => {
                let bits = bits.max(16);
                let operands = vec![self.reg(bits), self.either(snippet, bits, &mut before)];
                (Op::MoveIf(condition), bits, operands)
            }
            _ => (Op::Still(self.random.pick(&["nop", "mfence", "lfence", "sfence", "pause"])), bits, vec![]),
        };
        let writes = match op {
            Op::Two(op) => !matches!(op, "cmp" | "test"),
            Op::Bit(op) => op != "bt",
            Op::Xchg | Op::Xadd | Op::Cmpxchg | Op::One(_) => true,
            _ => false,
        };
        let locked = writes && matches!(operands[0], Operand::Mem(_)) && self.random.once_in(2);
        let spelling = self.random.next();
        before.push(Line { op, locked, bits, operands, spelling });
        let is_missing = match op {
            Op::Extend { from, .. } => from >= bits,
            Op::Lea => bits < 32,
            Op::Imul => bits == 8,
            _ => false,
        };
        if is_missing { self.line(snippet) } else { before.into_iter().map(Unit::Do).collect() }
    }

    /// A number of a bit, or of places to shift by; some are too large on purpose.
    fn count(&mut self, bits: u32) -> i64 {
        match self.random.below(8) {
            0 | 1 => self.random.pick(&[0, 0, 32, 64, 128]),
            2 => self.random.pick(&[8, 9, 16, 17, 24, 31, 33, 63, 65, 96, 255]),
            3 => 30,
            _ => self.random.below(bits as usize) as i64,
        }
    }

    fn mov(&mut self, snippet: &Snippet, bits: u32, before: &mut Vec<Line>) -> Vec<Operand> {
        let to = if self.random.once_in(3) { self.memory(snippet, bits, before) } else { self.reg(bits) };
        let from = match (&to, self.random.below(4)) {
            (Operand::Reg(_), 0) => self.memory(snippet, bits, before),
            (Operand::Reg(_), 1) if bits >= 32 && self.random.once_in(2) => {
                Operand::Address(self.random.below(snippet.variables.len()))
            }
            (Operand::Reg(_), 1) => Operand::Number(self.number(bits)),
            (_, 0 | 1) => self.constant(bits),
            _ => self.reg(bits),
        };
        vec![to, from]
    }

    fn two(&mut self, snippet: &Snippet, op: &str, bits: u32, before: &mut Vec<Line>) -> Vec<Operand> {
        let to = self.either(snippet, bits, before);
        let from = match (&to, self.random.below(3)) {
            (_, 0) => self.constant(bits),
            // `test` has no form that reads memory second, and no two operands are both in memory.
            (Operand::Reg(_), 1) if op != "test" => self.memory(snippet, bits, before),
            _ => self.reg(bits),
        };
        vec![to, from]
    }

    fn reg(&mut self, bits: u32) -> Operand {
        Operand::Reg(self.part(bits))
    }

    fn part(&mut self, bits: u32) -> Part {
        let reg = self.random.pick(&self.registers);
        Part { reg, bits, high: bits == 8 && reg < 4 && self.random.once_in(3) }
    }

    fn either(&mut self, snippet: &Snippet, bits: u32, before: &mut Vec<Line>) -> Operand {
        if self.random.once_in(2) { self.memory(snippet, bits, before) } else { self.reg(bits) }
    }

    /// An address that may or may not be one.
    fn sum(&mut self, snippet: &Snippet) -> Place {
        let bits = self.address_bits(snippet.arch);
        let var = self.random.once_in(2).then(|| self.random.below(snippet.variables.len()));
        let base = self.random.once_in(2).then(|| Part { high: false, ..self.part(bits) });
        let index = self.random.once_in(2).then(|| {
            let factor = self.random.pick(&[1, 2, 4, 8]);
            self.index(bits, factor)
        });
        let offset = if self.random.once_in(2) { self.number(8) } else { 0 };
        let offset = if var.is_none() && base.is_none() && index.is_none() { 8 } else { offset };
        Place { var, offset, base, index }
    }

    fn index(&mut self, bits: u32, factor: i64) -> (Part, i64) {
        (Part { reg: self.random.pick(&self.indices), bits, high: false }, factor)
    }

    fn address_bits(&mut self, arch: Arch) -> u32 {
        if arch == Arch::X86 || self.random.once_in(6) { 32 } else { 64 }
    }

    /// An element of a variable of this width, if there is one: by its name, with an index, or through a
    /// pointer.
    fn memory(&mut self, snippet: &Snippet, bits: u32, before: &mut Vec<Line>) -> Operand {
        let pointer = snippet.pointer.map(|_| (snippet.variables.len(), snippet.arch.bits(), 1));
        let variables = snippet.variables.iter().enumerate().map(|(i, v)| (i, v.bits, v.init.len()));
        let fitting: Vec<_> = variables.chain(pointer).filter(|(_, b, _)| *b == bits).collect();
        if fitting.is_empty() {
            return self.reg(bits);
        }
        let (var, _, length) = self.random.pick(&fitting);
        let bytes = i64::from(bits / 8);
        let offset = self.random.below(length) as i64 * bytes;
        let width = self.address_bits(snippet.arch);
        let place = match self.random.below(4) {
            0 | 1 => Place { var: Some(var), offset, ..Place::default() },
            2 => {
                // The register holds a part of the offset; the rest stands beside the name.
                let factor = self.random.pick(&[1, 2, 4, 8, bytes]);
                let (part, factor) = self.index(width, factor);
                let times = self.random.below(5) as i64 - 1;
                before.push(self.moves(part, Operand::Number(times)));
                let offset = offset - times * factor;
                let is_base = factor == 1 && self.random.once_in(2);
                let (base, index) = if is_base { (Some(part), None) } else { (None, Some((part, factor))) };
                Place { var: Some(var), offset, base, index }
            }
            _ => {
                let part = Part { reg: self.random.pick(&self.registers), bits: width, high: false };
                if self.random.once_in(2) {
                    before.push(self.moves(part, Operand::Address(var)));
                }
                Place { var: None, offset, base: Some(part), index: None }
            }
        };
        Operand::Mem(place)
    }

    fn moves(&mut self, to: Part, value: Operand) -> Line {
        let spelling = self.random.next();
        Line { op: Op::Mov, locked: false, bits: to.bits, operands: vec![Operand::Reg(to), value], spelling }
    }
}
