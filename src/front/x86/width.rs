//! How wide is an instruction, and does it make sense? A look at its operands before any memory is laid out.
//!
//! The width comes from the mnemonic, else from a register, else it is that of the place in memory, else it
//! is 32 bits. Whatever the processor could not do, or `lower` could not express, is reported here, so that
//! `lower` cannot fail.

use super::mnemonics::{Bit, Op, Two};
use super::operands::{Instruction, Mem, Operand};
use super::value::fits;
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::model::Value;

/// The width of whatever nothing tells the width of.
pub(crate) const DEFAULT_BITS: u32 = 32;

/// How wide memory is, as far as it is known, for a front end that finds that out from the instructions.
pub(crate) trait Widths {
    type Symbol: Copy;
    /// What to write where the width of an operand cannot be told.
    const UNCLEAR: &'static str;

    /// Bits of the place that a symbol stands for, if they are known.
    fn bits(&self, symbol: Self::Symbol) -> Option<u32>;

    /// An instruction accesses so many bits.
    fn access(
        &mut self,
        mem: &Mem<Self::Symbol>,
        bits: u32,
        at: Span,
        problems: &mut Problems,
    ) -> Result<(), Reported>;
}

/// Is the instruction as wide as it is, whatever the widths of locations are?
pub(crate) fn tells_width<S>(i: &Instruction<S>) -> bool {
    let tells = |n: usize| match &i.operands.get(n) {
        Some((Operand::Reg(_), _)) => true,
        Some((Operand::Mem(mem), _)) => mem.bits.is_some(),
        _ => false,
    };
    match i.op {
        Op::Extend { from, .. } => from.is_some() || tells(1),
        Op::Set(_) => true,
        Op::Shift(_) => i.bits.is_some() || tells(0),
        _ => i.bits.is_some() || tells(0) || tells(1),
    }
}

/// Refuses what the processor would not take, and what `lower` has no steps for.
pub(crate) fn check<S>(i: &Instruction<S>, problems: &mut Problems) -> Result<(), Reported> {
    use Operand::{AddressOf, Const, Label, Mem, Reg};
    let mut refuse = |at: Span, why: String| Err(problems.report(Problem::error(why).at(at)));
    let places: Vec<Span> = i.operands.iter().filter(|(o, _)| matches!(o, Mem(_))).map(|(_, s)| *s).collect();
    if let [_, second, ..] = places[..] {
        return refuse(second, format!("`{}` cannot access memory twice", i.mnemonic));
    }
    let Some((destination, at)) = i.operands.first() else { return Ok(()) };
    let only_read = matches!(i.op, Op::Two(Two::Cmp | Two::Test) | Op::Bit(Bit::Keep));
    match destination {
        Label(_) => return Ok(()),
        Const(_) | AddressOf(_) if only_read => {
            return refuse(*at, format!("the destination of `{}` is a register or memory", i.mnemonic));
        }
        Const(_) | AddressOf(_) => return refuse(*at, "a constant cannot be written".to_string()),
        Mem(_) if matches!(i.op, Op::Lea | Op::MoveIf(_) | Op::Multiply | Op::Extend { .. }) => {
            return refuse(*at, format!("the destination of `{}` is a register", i.mnemonic));
        }
        Reg(_) | Mem(_) => {}
    }
    let Some((source, at)) = i.operands.get(1) else { return Ok(()) };
    match (i.op, source) {
        (Op::Lea, Mem(mem)) if mem.bits.is_none() => Ok(()),
        (Op::Lea, _) => refuse(*at, "the source of an LEA is a place in memory".to_string()),
        (Op::Xchg | Op::Xadd | Op::Cmpxchg, Reg(_)) => Ok(()),
        (Op::Xchg | Op::Xadd | Op::Cmpxchg, _) => {
            refuse(*at, format!("the second operand of `{}` is a register", i.mnemonic))
        }
        (Op::Extend { .. } | Op::MoveIf(_) | Op::Multiply, Const(_) | AddressOf(_)) => {
            refuse(*at, format!("the source of `{}` is a register or memory", i.mnemonic))
        }
        (Op::Shift(_), Const(_)) => Ok(()),
        (Op::Shift(_), _) => refuse(*at, "only shifts by a constant are supported".to_string()),
        (Op::Bit(_), Const(_)) => Ok(()),
        (Op::Bit(_), Reg(_)) if places.is_empty() => Ok(()),
        (Op::Bit(_), _) => {
            refuse(*at, format!("`{}` on memory is supported with a constant bit number alone", i.mnemonic))
        }
        _ => Ok(()),
    }
}

/// Settles how wide a sensible instruction is, and tells of its accesses.
pub(crate) fn settle<W: Widths>(
    i: &mut Instruction<W::Symbol>,
    memory: &mut W,
    problems: &mut Problems,
) -> Result<(), Reported> {
    let from = match i.op {
        Op::Jump(_) | Op::Fence | Op::Partial(_) | Op::Nop | Op::Ret => return Ok(()),
        Op::Extend { signed, from } => {
            let from = match from.or(width_of(&i.operands[1].0, memory)) {
                Some(from) => from,
                None => return Err(problems.report(unclear(i).help(W::UNCLEAR))),
            };
            i.op = Op::Extend { signed, from: Some(from) };
            Some(from)
        }
        _ => None,
    };
    let bits = match i.op {
        Op::Set(_) => 8,
        Op::Extend { .. } | Op::Shift(_) | Op::Lea => {
            i.bits.or(width_of(&i.operands[0].0, memory)).unwrap_or(DEFAULT_BITS)
        }
        _ => {
            let registers = i.operands.iter().find(|(o, _)| matches!(o, Operand::Reg(_)));
            let other = || i.operands.iter().find_map(|(o, _)| width_of(o, memory));
            i.bits.or(registers.and_then(|(o, _)| width_of(o, memory))).or_else(other).unwrap_or(DEFAULT_BITS)
        }
    };
    i.bits = Some(bits);
    for (place, (operand, span)) in i.operands.iter().enumerate() {
        let bits = if place == 1 { from.unwrap_or(bits) } else { bits };
        let is_count = place == 1 && matches!(i.op, Op::Shift(_) | Op::Bit(_));
        match operand {
            Operand::Const(value) if is_count && !(0..=Value::from(u8::MAX)).contains(value) => {
                let message = format!("{value} is no number of a bit, and none of places to shift by");
                return Err(problems.report(Problem::error(message).at(*span)));
            }
            Operand::Const(_) if is_count => {}
            Operand::Const(value) if !fits(*value, bits) => {
                let message = format!("{value} does not fit into {bits} bits");
                return Err(problems.report(Problem::error(message).at(*span)));
            }
            Operand::AddressOf(_) if bits < 32 => {
                let message = format!("an address does not fit into {bits} bits");
                return Err(problems.report(Problem::error(message).at(*span)));
            }
            Operand::Reg(part) if part.bits != bits => {
                let message = format!("this register has {} bits, and the instruction {bits}", part.bits);
                return Err(problems.report(Problem::error(message).at(*span)));
            }
            Operand::Mem(mem) if i.op != Op::Lea => {
                if let Some(own) = mem.bits.filter(|own| *own != bits) {
                    let message = format!("this place has {own} bits, and the instruction {bits}");
                    return Err(problems.report(Problem::error(message).at(*span)));
                }
                memory.access(mem, bits, *span, problems)?;
            }
            _ => {}
        }
    }
    if matches!(i.op, Op::Multiply | Op::MoveIf(_) | Op::Bit(_)) && bits == 8 {
        let message = format!("there is no `{}` of 8 bits", i.mnemonic);
        return Err(problems.report(Problem::error(message).at(i.span)));
    }
    if i.op == Op::Lea && bits < 32 {
        return Err(problems.report(Problem::error("an address has at least 32 bits").at(i.span)));
    }
    Ok(())
}

fn unclear<S>(i: &Instruction<S>) -> Problem {
    let message = format!("how wide the source of `{}` is cannot be told", i.mnemonic);
    Problem::error(message).at(i.operands[1].1)
}

fn width_of<W: Widths>(operand: &Operand<W::Symbol>, memory: &W) -> Option<u32> {
    match operand {
        Operand::Reg(part) => Some(part.bits),
        Operand::Mem(mem) => mem.bits.or_else(|| memory.bits(mem.symbol?)),
        Operand::Const(_) | Operand::AddressOf(_) | Operand::Label(_) => None,
    }
}
