//! What do vector instructions do? Copies, and whole-number arithmetic in lanes, on registers of two halves.

use super::lift::Lift;
use super::ops::*;
use super::refusal::Result;
use crate::model::BinOp;
use iced_x86::{Mnemonic, OpKind};

/// Both halves of 16 bytes.
type Halves = [VarExpr; 2];

pub(super) fn lift(lift: &mut Lift) -> Result<()> {
    use Mnemonic as M;
    match lift.i.mnemonic() {
        M::Movaps
        | M::Movups
        | M::Movapd
        | M::Movupd
        | M::Movdqa
        | M::Movdqu
        | M::Movntdq
        | M::Movntps
        | M::Lddqu => {
            let value = read(lift, 1)?;
            write(lift, 0, value)
        }
        M::Movq | M::Movd | M::Movsd | M::Movss => scalar(lift),
        M::Movhps | M::Movhpd => half(lift, 1),
        M::Movlps | M::Movlpd => half(lift, 0),
        M::Movhlps => merge(lift, |to, from| [from[1].clone(), to[1].clone()]),
        M::Movlhps => merge(lift, |to, from| [to[0].clone(), from[0].clone()]),
        M::Pxor | M::Xorps | M::Xorpd if same(lift) => write(lift, 0, [constant(0), constant(0)]),
        M::Pcmpeqd | M::Pcmpeqb | M::Pcmpeqw if same(lift) => {
            write(lift, 0, [constant(u64::MAX), constant(u64::MAX)])
        }
        M::Pxor | M::Xorps | M::Xorpd => each(lift, 64, xor),
        M::Por | M::Orps | M::Orpd => each(lift, 64, or),
        M::Pand | M::Andps | M::Andpd => each(lift, 64, and),
        M::Pandn | M::Andnps | M::Andnpd => each(lift, 64, |a, b| and(not(a), b)),
        M::Paddb => each(lift, 8, add),
        M::Paddw => each(lift, 16, add),
        M::Paddd => each(lift, 32, add),
        M::Paddq => each(lift, 64, add),
        M::Psubb => each(lift, 8, sub),
        M::Psubw => each(lift, 16, sub),
        M::Psubd => each(lift, 32, sub),
        M::Psubq => each(lift, 64, sub),
        M::Pcmpeqb => each(lift, 8, |a, b| sub(constant(0), eq(a, b))),
        M::Pcmpeqw => each(lift, 16, |a, b| sub(constant(0), eq(a, b))),
        M::Pcmpeqd => each(lift, 32, |a, b| sub(constant(0), eq(a, b))),
        M::Pcmpgtd => {
            each(lift, 32, |a, b| sub(constant(0), binary(BinOp::Gt, signed(a, 32), signed(b, 32))))
        }
        M::Pmuludq => each(lift, 64, |a, b| binary(BinOp::Mul, cut(a, 32), cut(b, 32))),
        M::Punpcklqdq | M::Unpcklpd => merge(lift, |to, from| [to[0].clone(), from[0].clone()]),
        M::Punpckhqdq | M::Unpckhpd => merge(lift, |to, from| [to[1].clone(), from[1].clone()]),
        M::Punpckldq | M::Unpcklps => merge(lift, |to, from| interleave(&to[0], &from[0])),
        M::Punpckhdq | M::Unpckhps => merge(lift, |to, from| interleave(&to[1], &from[1])),
        M::Pshufd => {
            let order = lift.i.immediate(2);
            let from = read(lift, 1)?;
            let from = kept(lift, from);
            write(lift, 0, shuffled(&from, &from, order))
        }
        M::Shufps => {
            let order = lift.i.immediate(2);
            merge(lift, |to, from| shuffled(to, from, order))
        }
        M::Pslldq | M::Psrldq => {
            let count = 8 * lift.i.immediate(1);
            let left = lift.i.mnemonic() == M::Pslldq;
            let old = read(lift, 0)?;
            write(lift, 0, if left { moved_up(&old, count) } else { moved_down(&old, count) })
        }
        M::Pslld | M::Psrld | M::Psllq | M::Psrlq | M::Psrad if lift.i.op_kind(1) == OpKind::Immediate8 => {
            let (count, which) = (lift.i.immediate(1), lift.i.mnemonic());
            let bits = if matches!(which, M::Psllq | M::Psrlq) { 64 } else { 32 };
            let old = read(lift, 0)?;
            let places = constant(count);
            let gone = count >= u64::from(bits);
            let lane = |a: VarExpr| match which {
                M::Psrad => binary(BinOp::Shr, signed(a, 32), constant(count.min(31))),
                _ if gone => constant(0),
                M::Pslld | M::Psllq => shl(a, places.clone()),
                _ => shr(a, places.clone(), bits),
            };
            let new = old.map(|half| lanes(bits, |n| lane(at(&half, n, bits))));
            write(lift, 0, new)
        }
        _ => Err(lift.uncovered()),
    }
}

fn register(lift: &Lift, operand: u32) -> Option<u8> {
    let register = lift.i.op_register(operand);
    (lift.i.op_kind(operand) == OpKind::Register && register.is_xmm()).then(|| register.number() as u8)
}

fn same(lift: &Lift) -> bool {
    register(lift, 0).is_some() && register(lift, 0) == register(lift, 1)
}

fn halves(number: u8) -> Halves {
    [var(Var::Xmm(number, 0)), var(Var::Xmm(number, 1))]
}

fn read(lift: &mut Lift, operand: u32) -> Result<Halves> {
    if let Some(number) = register(lift, operand) {
        return Ok(halves(number));
    }
    if !lift.is_memory(operand) || lift.bits(operand) != 128 {
        return Err(lift.uncovered());
    }
    lift.segment()?;
    let at = lift.address();
    let halves = [lift.temp(), lift.temp()];
    lift.halves(&at, |n, addr| MicroOp::Load { dst: halves[n], addr, bytes: 8 });
    Ok(halves.map(var))
}

fn write(lift: &mut Lift, operand: u32, value: Halves) -> Result<()> {
    let [low, high] = value;
    match register(lift, operand) {
        Some(number) => {
            let (a, b) = (lift.temp(), lift.temp());
            lift.set(a, low);
            lift.set(b, high);
            lift.set(Var::Xmm(number, 0), var(a));
            lift.set(Var::Xmm(number, 1), var(b));
        }
        None if lift.is_memory(operand) => {
            lift.segment()?;
            let at = lift.address();
            let value = [low, high];
            lift.halves(&at, |n, addr| MicroOp::Store { addr, value: value[n].clone(), bytes: 8 });
        }
        None => return Err(lift.uncovered()),
    }
    Ok(())
}

fn kept(lift: &mut Lift, value: Halves) -> Halves {
    value.map(|half| {
        let temp = lift.temp();
        lift.set(temp, half);
        var(temp)
    })
}

/// Moves of 4 or 8 bytes, between vector registers, general ones and memory.
fn scalar(lift: &mut Lift) -> Result<()> {
    use Mnemonic as M;
    let bytes: u8 = if matches!(lift.i.mnemonic(), M::Movd | M::Movss) { 4 } else { 8 };
    // With a general register of 64 bits, `movd` is a `movq`.
    let wide = (0..2).any(|n| lift.i.op_kind(n) == OpKind::Register && lift.i.op_register(n).is_gpr64());
    let bytes = if wide { 8 } else { bytes };
    let merges = matches!(lift.i.mnemonic(), M::Movsd | M::Movss);
    let value = match register(lift, 1) {
        Some(from) => cut(var(Var::Xmm(from, 0)), 8 * bytes),
        None if lift.is_memory(1) => {
            lift.segment()?;
            lift.load(lift.address(), bytes)
        }
        None => cut(var(Var::Gpr(lift.i.op_register(1).full_register().number() as u8)), 8 * bytes),
    };
    match register(lift, 0) {
        Some(to) if merges && register(lift, 1).is_some() => {
            let old = var(Var::Xmm(to, 0));
            let low = if bytes == 8 { value } else { or(and(old, constant(!mask(32))), value) };
            lift.set(Var::Xmm(to, 0), low);
        }
        Some(to) => {
            lift.set(Var::Xmm(to, 0), value);
            lift.set(Var::Xmm(to, 1), constant(0));
        }
        None if lift.is_memory(0) => {
            lift.segment()?;
            lift.store(lift.address(), value, bytes);
        }
        None => lift.set(Var::Gpr(lift.i.op_register(0).full_register().number() as u8), value),
    }
    Ok(())
}

/// Moves between memory and one half.
fn half(lift: &mut Lift, which: u8) -> Result<()> {
    lift.segment()?;
    match (register(lift, 0), register(lift, 1)) {
        (Some(to), None) => {
            let value = lift.load(lift.address(), 8);
            lift.set(Var::Xmm(to, which), value);
        }
        (None, Some(from)) => lift.store(lift.address(), var(Var::Xmm(from, which)), 8),
        _ => return Err(lift.uncovered()),
    }
    Ok(())
}

fn merge(lift: &mut Lift, combine: impl Fn(&Halves, &Halves) -> Halves) -> Result<()> {
    let from = match lift.is_memory(1) && lift.bits(1) == 64 {
        true => {
            lift.segment()?;
            let low = lift.load(lift.address(), 8);
            [low, constant(0)]
        }
        false => read(lift, 1)?,
    };
    let to = read(lift, 0)?;
    write(lift, 0, combine(&to, &from))
}

/// Lane by lane.
fn each(lift: &mut Lift, bits: u8, op: impl Fn(VarExpr, VarExpr) -> VarExpr) -> Result<()> {
    merge(lift, |to, from| [0, 1].map(|h| lanes(bits, |n| op(at(&to[h], n, bits), at(&from[h], n, bits)))))
}

/// One half of lanes.
fn lanes(bits: u8, lane: impl Fn(u8) -> VarExpr) -> VarExpr {
    let place = |n: u8| shl(cut(lane(n), bits), constant(u64::from(n) * u64::from(bits)));
    (0..64 / bits).map(place).reduce(or).expect("there are lanes")
}

fn at(half: &VarExpr, lane: u8, bits: u8) -> VarExpr {
    let down = constant(u64::from(lane) * u64::from(bits));
    cut(shr(half.clone(), down, 64), bits)
}

fn interleave(a: &VarExpr, b: &VarExpr) -> Halves {
    let pair = |n| or(at(a, n, 32), shl(at(b, n, 32), constant(32)));
    [pair(0), pair(1)]
}

/// The lower two lanes out of the one, the upper two out of the other.
fn shuffled(low: &Halves, high: &Halves, order: u64) -> Halves {
    let lane = |from: &Halves, n: u64| {
        let which = order >> (2 * n) & 3;
        at(&from[(which / 2) as usize], (which % 2) as u8, 32)
    };
    let pair = |from: &Halves, n| or(lane(from, n), shl(lane(from, n + 1), constant(32)));
    [pair(low, 0), pair(high, 2)]
}

fn moved_up(old: &Halves, bits: u64) -> Halves {
    match bits {
        0 => old.clone(),
        1..64 => [
            shl(old[0].clone(), constant(bits)),
            or(shl(old[1].clone(), constant(bits)), shr(old[0].clone(), constant(64 - bits), 64)),
        ],
        64..128 => [constant(0), shl(old[0].clone(), constant(bits - 64))],
        _ => [constant(0), constant(0)],
    }
}

fn moved_down(old: &Halves, bits: u64) -> Halves {
    match bits {
        0 => old.clone(),
        1..64 => [
            or(shr(old[0].clone(), constant(bits), 64), shl(old[1].clone(), constant(64 - bits))),
            shr(old[1].clone(), constant(bits), 64),
        ],
        64..128 => [shr(old[1].clone(), constant(bits - 64), 64), constant(0)],
        _ => [constant(0), constant(0)],
    }
}
