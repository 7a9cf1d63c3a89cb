//! What do shifts, and whatever looks at single bits, leave behind?

use super::super::ops::*;
use super::super::refusal::Result;
use super::Lift;
use crate::model::BinOp;
use iced_x86::{Mnemonic, OpKind, RflagsBits};

impl Lift {
    fn shift_count(&mut self, operand: u32, bits: u8) -> Result<VarExpr> {
        let count = match self.i.op_count() > operand {
            true => self.read(operand, 8)?,
            false => constant(1),
        };
        Ok(and(count, constant(if bits == 64 { 63 } else { 31 })))
    }

    pub(super) fn shift(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        let count = self.shift_count(1, bits)?;
        if count == constant(0) {
            return self.touch(bits);
        }
        let count = if matches!(count, VarExpr::Const(_)) { count } else { self.kept(count) };
        let varies = !matches!(count, VarExpr::Const(_));
        let width = constant(u64::from(bits));
        let rotates = matches!(which, M::Rol | M::Ror);
        let places = match rotates && bits < 32 {
            true => and(count.clone(), constant(u64::from(bits) - 1)),
            false => count.clone(),
        };
        let change = |old: VarExpr| match which {
            M::Shl | M::Sal => cut(shl(old, count.clone()), bits),
            M::Shr => shr(old, count.clone(), bits),
            M::Sar => cut(binary(BinOp::Shr, signed(old, bits), count.clone()), bits),
            M::Rol | M::Ror => {
                let back = and(sub(width.clone(), places.clone()), constant(u64::from(bits) - 1));
                let (left, right) =
                    if which == M::Rol { (places.clone(), back) } else { (back, places.clone()) };
                cut(or(shl(old.clone(), left), shr(old, right, bits)), bits)
            }
            _ => unreachable!("no other instruction shifts"),
        };
        let flags_before = self.flags;
        if varies && self.needed != 0 {
            // By zero places a shift leaves all flags alone.
            self.single(
                [
                    StatusFlag::Carry,
                    StatusFlag::Zero,
                    StatusFlag::Sign,
                    StatusFlag::Overflow,
                    StatusFlag::Parity,
                ]
                .map(|f| (f, Some(flag(f, flags_before).unwrap_or(var(Var::Temp(u8::MAX - 2)))))),
            )?;
        }
        let old = self.update(bits, change)?;
        let result = change(old.clone());
        let done = (varies && self.needed != 0).then(|| self.skip_if(eq(count.clone(), constant(0))));
        if self.needed == 0 {
            self.flags = Flags::Lost;
        } else if !varies && !rotates && !self.needs(RflagsBits::CF | RflagsBits::OF) {
            self.flags_of_result(result, bits);
        } else {
            let result = self.kept(result);
            let last = sub(count.clone(), constant(1));
            let (carry, overflow) = match which {
                M::Shl | M::Sal => {
                    let out = and(shr(shl(old, last), sub(width, constant(1)), bits.max(33)), constant(1));
                    let out = self.kept(out);
                    (out.clone(), xor(sign(result.clone(), bits), out))
                }
                M::Shr => (and(shr(old.clone(), last, bits), constant(1)), sign(old, bits)),
                M::Sar => (and(binary(BinOp::Shr, signed(old, bits), last), constant(1)), constant(0)),
                M::Rol => {
                    let out = and(result.clone(), constant(1));
                    (out.clone(), xor(sign(result.clone(), bits), out))
                }
                _ => {
                    let top = sign(result.clone(), bits);
                    let second = and(shr(result.clone(), constant(u64::from(bits) - 2), bits), constant(1));
                    (top.clone(), xor(top, second))
                }
            };
            let of_result = |value| if rotates { None } else { Some(value) };
            self.single([
                (StatusFlag::Carry, Some(carry)),
                (StatusFlag::Zero, of_result(eq(result.clone(), constant(0)))),
                (StatusFlag::Sign, of_result(sign(result.clone(), bits))),
                (StatusFlag::Overflow, Some(overflow)),
                (StatusFlag::Parity, of_result(parity(result))),
            ])?;
        }
        if let Some(done) = done {
            self.here(done);
        }
        Ok(())
    }

    /// A register of 32 bits loses its upper half even if nothing else changes.
    pub(super) fn touch(&mut self, bits: u8) -> Result<()> {
        let old = self.read(0, bits)?;
        if bits == 32 && !self.is_memory(0) { self.write(0, old) } else { Ok(()) }
    }

    pub(super) fn double_shift(&mut self) -> Result<()> {
        let (bits, left) = (self.bits(0), self.i.mnemonic() == Mnemonic::Shld);
        if self.needed != 0 || bits == 16 {
            return Err(self.uncovered());
        }
        let count = self.shift_count(2, bits)?;
        let count = self.kept(count);
        let filler = self.read(1, bits)?;
        let filler = self.kept(filler);
        let last = constant(u64::from(bits) - 1);
        let rest = sub(last, count.clone());
        self.update(bits, |old| {
            // By one place less and one more, since a shift by all places is one by none.
            let (moved, filled) = match left {
                true => (shl(old, count.clone()), shr(shr(filler, rest, bits), constant(1), bits)),
                false => (shr(old, count.clone(), bits), shl(shl(filler, rest), constant(1))),
            };
            cut(or(moved, filled), bits)
        })?;
        self.flags = Flags::Lost;
        Ok(())
    }

    pub(super) fn bit(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        let whole = self.read(1, bits)?;
        let whole = self.kept(whole);
        let number = self.kept(and(whole.clone(), constant(u64::from(bits) - 1)));
        let one = shl(constant(1), number.clone());
        let change = |old| match which {
            M::Bts => or(old, one),
            M::Btr => and(old, not(one)),
            _ => xor(old, one),
        };
        let old = if self.is_memory(0) && self.i.op_kind(1) == OpKind::Register {
            // The number is one of a row of bits as long as can be, before the address and behind it.
            self.segment()?;
            let words = binary(BinOp::Shr, signed(whole, bits), constant(u64::from(bits.ilog2())));
            let at = add(self.address(), shl(words, constant(u64::from((bits / 8).ilog2()))));
            match which {
                M::Bt => self.load(at, bits / 8),
                _ => self.update_at(at, bits, change),
            }
        } else {
            match which {
                M::Bt => self.read(0, bits)?,
                _ => self.update(bits, change)?,
            }
        };
        let carry = and(shr(old, number, bits), constant(1));
        if self.needed == RflagsBits::CF || self.flags != Flags::Lost {
            self.single([
                (StatusFlag::Carry, Some(carry)),
                (StatusFlag::Zero, None),
                (StatusFlag::Sign, None),
                (StatusFlag::Overflow, None),
                (StatusFlag::Parity, None),
            ])
        } else {
            self.flags = Flags::Lost;
            Ok(())
        }
    }

    pub(super) fn count(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        let source = self.read(1, bits)?;
        let source = self.kept(source);
        let width = u64::from(bits);
        let zero = self.kept(eq(source.clone(), constant(0)));
        let result = match which {
            M::Popcnt => self.ones(source.clone()),
            M::Tzcnt | M::Bsf => {
                let trailing = and(not(source.clone()), sub(source.clone(), constant(1)));
                self.ones(cut(trailing, bits))
            }
            _ => {
                let mut smeared = source.clone();
                for n in [1, 2, 4, 8, 16, 32] {
                    if n < width {
                        smeared = self.kept(or(smeared.clone(), shr(smeared, constant(n), bits)));
                    }
                }
                let bits_used = self.ones(smeared);
                match which {
                    M::Lzcnt => sub(constant(width), bits_used),
                    _ => sub(bits_used, constant(1)),
                }
            }
        };
        let result = self.kept(result);
        match which {
            M::Bsf | M::Bsr => {
                // Without a bit the destination keeps its value, as both makers' processors do it.
                let past = self.skip_if(zero.clone());
                self.write(0, result.clone())?;
                self.here(past);
            }
            _ => self.write(0, result.clone())?,
        }
        let carry = if which == M::Popcnt { constant(0) } else { zero.clone() };
        let zero = match which {
            M::Tzcnt | M::Lzcnt => eq(result, constant(0)),
            _ => zero,
        };
        let none = || Some(constant(0));
        self.single([
            (StatusFlag::Carry, Some(carry)),
            (StatusFlag::Zero, Some(zero)),
            (StatusFlag::Sign, none()),
            (StatusFlag::Overflow, none()),
            (StatusFlag::Parity, none()),
        ])
    }

    /// How many bits are set.
    fn ones(&mut self, a: VarExpr) -> VarExpr {
        let a = self.kept(a);
        let pairs = sub(a.clone(), and(shr(a, constant(1), 64), constant(0x5555_5555_5555_5555)));
        let pairs = self.kept(pairs);
        let three = constant(0x3333_3333_3333_3333);
        let fours = add(and(pairs.clone(), three.clone()), and(shr(pairs, constant(2), 64), three));
        let fours = self.kept(fours);
        let bytes = and(add(fours.clone(), shr(fours, constant(4), 64)), constant(0x0f0f_0f0f_0f0f_0f0f));
        shr(binary(BinOp::Mul, bytes, constant(0x0101_0101_0101_0101)), constant(56), 64)
    }

    pub(super) fn bswap(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let old = self.read(0, bits)?;
        let old = self.kept(old);
        let bytes = u64::from(bits / 8);
        let place =
            |n: u64| shl(cut(shr(old.clone(), constant(8 * n), bits), 8), constant(8 * (bytes - 1 - n)));
        let swapped = (0..bytes).map(place).reduce(or).expect("a register has bytes");
        self.write(0, swapped)
    }
}
