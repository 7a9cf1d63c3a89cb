//! Which snippets may be compared with the processor?
//!
//! What the processor leaves open must not be looked at: flags that an instruction leaves undefined, and
//! numbers made from addresses, since addresses are others here and there. `State` keeps track of both, and
//! refuses lines that would look.

use super::snippet::*;

/// What can be said of a value before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Some number.
    Data,
    /// This number.
    Number(i64),
    /// So many bytes behind the beginning of a variable.
    Pointer(usize, i64),
    /// A number or an address, depending on the way.
    Either,
}

impl Known {
    fn is_number(self) -> bool {
        matches!(self, Known::Data | Known::Number(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub registers: [Known; 16],
    /// What the pointer variable holds.
    pub pointer: Known,
    /// Flags that have a value.
    pub defined: u8,
}

impl Snippet {
    /// What is known at the end; `None` if the snippet looks at something that is left open.
    pub(crate) fn end(&self) -> Option<State> {
        let mut state = State::first(self);
        state.run(self, &self.units)?;
        Some(state)
    }
}

impl State {
    pub(crate) fn first(snippet: &Snippet) -> State {
        let mut registers = [Known::Either; 16];
        for (reg, first) in &snippet.registers {
            registers[*reg] = match first {
                First::Number(n) => Known::Number(*n),
                First::Address(var) => Known::Pointer(*var, 0),
            };
        }
        let pointer = snippet.pointer.map_or(Known::Either, |var| Known::Pointer(var, 0));
        State { registers, pointer, defined: ALL }
    }

    pub(crate) fn run(&mut self, snippet: &Snippet, units: &[Unit]) -> Option<()> {
        units.iter().try_for_each(|unit| match unit {
            Unit::Do(line) => self.step(snippet, line),
            Unit::Skip(condition, body) => {
                self.looks_at(condition.map_or(0, |(_, flags)| flags))?;
                let before = self.clone();
                self.run(snippet, body)?;
                self.or(&before);
                Some(())
            }
        })
    }

    /// What is known if it came from here or from there.
    fn or(&mut self, other: &State) {
        let join = |a: Known, b: Known| match (a, b) {
            _ if a == b => a,
            _ if a.is_number() && b.is_number() => Known::Data,
            _ => Known::Either,
        };
        for (a, b) in self.registers.iter_mut().zip(other.registers) {
            *a = join(*a, b);
        }
        self.pointer = join(self.pointer, other.pointer);
        self.defined &= other.defined;
    }

    fn looks_at(&self, flags: u8) -> Option<()> {
        (flags & !self.defined == 0).then_some(())
    }

    fn step(&mut self, snippet: &Snippet, line: &Line) -> Option<()> {
        can_be_encoded(snippet.arch, line)?;
        match self.moves_addresses(snippet, line) {
            Some(done) => done,
            None => self.computes(snippet, line),
        }?;
        self.flags(line)
    }

    /// Lines that may have addresses in them; `None` if this is none of those.
    fn moves_addresses(&mut self, snippet: &Snippet, line: &Line) -> Option<Option<()>> {
        let whole = |part: &Part| part.bits >= 32;
        let size = |known: Known| match known {
            Known::Number(n) if line.bits == 32 => Known::Number(n & 0xffff_ffff),
            other => other,
        };
        match (line.op, &line.operands[..]) {
            (Op::Mov, [Operand::Reg(to), from]) if whole(to) => {
                let value = match from {
                    Operand::Number(n) => Known::Number(*n),
                    Operand::Address(var) => Known::Pointer(*var, 0),
                    Operand::Reg(from) => self.registers[from.reg],
                    Operand::Mem(place) => match self.target(snippet, place, line.bits) {
                        None => return Some(None),
                        Some(Target::Pointer) => self.pointer,
                        Some(Target::Data) => Known::Data,
                    },
                };
                self.registers[to.reg] = size(value);
                Some(Some(()))
            }
            (Op::Mov, [Operand::Mem(place), Operand::Reg(from)]) if whole(from) => {
                let value = self.registers[from.reg];
                Some(match self.target(snippet, place, line.bits) {
                    Some(Target::Pointer) if matches!(value, Known::Pointer(..)) => {
                        self.pointer = value;
                        Some(())
                    }
                    Some(Target::Data) if value.is_number() => Some(()),
                    _ => None,
                })
            }
            (Op::Xchg, [Operand::Reg(a), Operand::Reg(b)]) if whole(a) => {
                let (x, y) = (size(self.registers[a.reg]), size(self.registers[b.reg]));
                (self.registers[a.reg], self.registers[b.reg]) = (y, x);
                Some(Some(()))
            }
            (Op::Lea, [Operand::Reg(to), Operand::Mem(place)]) => {
                let place = self.place(snippet, place).map(|known| match known {
                    Known::Pointer(var, offset) if !snippet.contains(var, offset) => None,
                    known => Some(known),
                });
                Some(place.flatten().map(|known| self.registers[to.reg] = size(known)))
            }
            (Op::Two(op @ ("add" | "sub")), [Operand::Reg(to), Operand::Number(n)]) if whole(to) => {
                let Known::Pointer(var, offset) = self.registers[to.reg] else { return None };
                let offset = if op == "add" { offset + n } else { offset - n };
                self.registers[to.reg] = Known::Pointer(var, offset);
                Some(snippet.contains(var, offset).then_some(()))
            }
            (Op::Two("cmp"), [Operand::Reg(a), Operand::Reg(b)]) if whole(a) => {
                match (self.registers[a.reg], self.registers[b.reg]) {
                    (Known::Pointer(v, _), Known::Pointer(w, _)) => Some((v == w).then_some(())),
                    _ => None,
                }
            }
            (Op::MoveIf((_, flags)), [Operand::Reg(to), Operand::Reg(from)]) if whole(to) => {
                let (a, b) = (self.registers[to.reg], self.registers[from.reg]);
                self.registers[to.reg] = match (a, b) {
                    (Known::Pointer(..), _) | (_, Known::Pointer(..)) => Known::Either,
                    (Known::Either, _) | (_, Known::Either) => return Some(None),
                    _ => Known::Data,
                };
                Some(self.looks_at(flags))
            }
            _ => None,
        }
    }

    /// Lines that compute with numbers and nothing else.
    fn computes(&mut self, snippet: &Snippet, line: &Line) -> Option<()> {
        if line.op == Op::Cmpxchg {
            self.registers[0].is_number().then_some(())?;
        }
        for (n, operand) in line.operands.iter().enumerate() {
            let bits = match line.op {
                Op::Extend { from, .. } if n == 1 => from,
                _ => line.bits,
            };
            let fits = match operand {
                Operand::Number(_) => true,
                Operand::Address(_) => false,
                Operand::Mem(place) => self.target(snippet, place, bits) == Some(Target::Data),
                // What is written in full need not be a number before.
                Operand::Reg(part) => {
                    let writes = n == 0 && part.bits >= 32;
                    self.registers[part.reg].is_number() || writes && matches!(line.op, Op::Extend { .. })
                }
            };
            fits.then_some(())?;
        }
        let written = match line.op {
            Op::Two("cmp" | "test") | Op::Bit("bt") | Op::Still(_) => 0,
            Op::Xchg | Op::Xadd => 2,
            _ => 1,
        };
        for operand in line.operands.iter().take(written) {
            if let Operand::Reg(part) = operand {
                self.registers[part.reg] = Known::Data;
            }
        }
        if line.op == Op::Cmpxchg {
            self.registers[0] = Known::Data;
        }
        Some(())
    }

    fn flags(&mut self, line: &Line) -> Option<()> {
        let (defined, undefined) = match line.op {
            Op::Set((_, flags)) | Op::MoveIf((_, flags)) => {
                self.looks_at(flags)?;
                (0, 0)
            }
            Op::Two(_) | Op::Xadd | Op::Cmpxchg | Op::One("neg") => (ALL, 0),
            Op::One("inc" | "dec") => (ALL - CARRY, 0),
            Op::Imul => (CARRY | OVERFLOW, ZERO | SIGN),
            Op::Bit(_) => (CARRY, SIGN | OVERFLOW),
            Op::Shift(op) => {
                let count = match line.operands.get(1) {
                    Some(Operand::Number(count)) => *count & if line.bits == 64 { 63 } else { 31 },
                    _ => 1,
                };
                match count {
                    0 => (0, 0),
                    1 => (ALL, 0),
                    _ if count < i64::from(line.bits) || op == "sar" => (ALL, OVERFLOW),
                    _ => (ALL, OVERFLOW | CARRY),
                }
            }
            _ => (0, 0),
        };
        self.defined = (self.defined | defined) & !undefined;
        Some(())
    }

    /// The sum that a place is.
    fn place(&self, snippet: &Snippet, place: &Place) -> Option<Known> {
        let narrow = snippet.arch == Arch::X86 || place.parts().any(|p| p.bits == 32);
        let mut var = place.var;
        let mut offset = Some(place.offset);
        for (part, factor) in place.base.map(|p| (p, 1)).into_iter().chain(place.index) {
            match self.registers[part.reg] {
                Known::Number(n) => offset = offset.map(|o| o.wrapping_add(n.wrapping_mul(factor))),
                Known::Data => offset = None,
                Known::Pointer(v, o) if factor == 1 && var.is_none() => {
                    var = Some(v);
                    offset = offset.map(|sum| sum.wrapping_add(o));
                }
                Known::Pointer(..) | Known::Either => return None,
            }
        }
        match (var, offset) {
            (None, Some(offset)) if narrow => Some(Known::Number(offset & 0xffff_ffff)),
            (None, Some(offset)) => Some(Known::Number(offset)),
            (None, None) => Some(Known::Data),
            (Some(var), Some(offset)) if narrow => Some(Known::Pointer(var, i64::from(offset as i32))),
            (Some(var), offset) => Some(Known::Pointer(var, offset?)),
        }
    }

    /// What an access of this width hits, if that is one element.
    fn target(&self, snippet: &Snippet, place: &Place, bits: u32) -> Option<Target> {
        let Known::Pointer(var, offset) = self.place(snippet, place)? else { return None };
        let own = snippet.bits(var);
        let fits = own == bits && offset % i64::from(own / 8) == 0 && snippet.contains(var, offset);
        let target = if var == snippet.variables.len() { Target::Pointer } else { Target::Data };
        fits.then_some(target)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Data,
    /// The pointer variable, which comes after all others.
    Pointer,
}

impl Snippet {
    fn bits(&self, var: usize) -> u32 {
        self.variables.get(var).map_or(self.arch.bits(), |v| v.bits)
    }

    /// Is there an element that begins so many bytes behind the beginning?
    fn contains(&self, var: usize, offset: i64) -> bool {
        let bytes = i64::from(self.bits(var) / 8);
        let elements = self.variables.get(var).map_or(1, |v| v.init.len()) as i64;
        offset >= 0 && offset % bytes == 0 && offset / bytes < elements
    }
}

/// Does the processor have this?
fn can_be_encoded(arch: Arch, line: &Line) -> Option<()> {
    let mut parts: Vec<Part> = Vec::new();
    for operand in &line.operands {
        match operand {
            Operand::Reg(part) => parts.push(*part),
            Operand::Mem(place) => {
                // A prefix makes all of them 32 bits wide.
                let widths: Vec<u32> = place.parts().map(|p| p.bits).collect();
                let no_index = place.index.is_some_and(|(p, _)| p.reg == SP);
                if no_index || widths.iter().any(|w| *w != widths[0]) {
                    return None;
                }
                parts.extend(place.parts().map(|p| Part { bits: 32, ..p }));
            }
            Operand::Number(_) | Operand::Address(_) => {}
        }
    }
    let fits = match arch {
        Arch::X86 => line.bits <= 32 && parts.iter().all(|p| !p.is_new()),
        Arch::X86_64 => {
            let high = parts.iter().any(|p| p.high);
            !high || line.bits < 64 && parts.iter().all(|p| !p.is_new())
        }
    };
    fits.then_some(())
}
