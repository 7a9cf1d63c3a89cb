//! Which registers and locations may hold an address? Elsewhere a value is a number, whatever number it is.
//!
//! Addresses are numbers in the model, so that a program may compute with them. An address comes from the
//! initial state, from `$x` or from an LEA of a named place; whatever an instruction writes may be one if
//! something that it reads may be. The order of instructions is not looked at. Invariant: a value that
//! depends on where a location lies is in one of these places, unless it is 0 or 1 and came through a flag.

use super::init::RegisterValue;
use super::memory::{Initial, LitmusMemory};
use super::parse::LitmusThread;
use crate::front::diagnostics::{Problems, Reported};
use crate::front::x86::{Bit, EAX, Gpr, Instruction, Mem, Op, Operand, Own, Two};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pointers<'s> {
    /// By the number of the thread.
    registers: BTreeSet<(u64, Gpr)>,
    locations: BTreeSet<&'s str>,
    /// An address may have been stored anywhere.
    anywhere: bool,
}

impl<'s> Pointers<'s> {
    pub(crate) fn of(
        threads: &[LitmusThread<'s>],
        initial: &[RegisterValue<'s>],
        memory: &LitmusMemory<'s>,
        problems: &mut Problems,
    ) -> Result<Pointers<'s>, Reported> {
        let mut found = Pointers { locations: memory.locations_with_addresses(), ..Pointers::default() };
        for first in initial {
            if let (Own::Gpr(gpr), Initial::AddressOf(_)) = (first.register.own, first.value) {
                found.registers.insert((first.register.thread, gpr));
            }
        }
        loop {
            let before = found.clone();
            for thread in threads {
                for i in &thread.instructions {
                    problems.spend(1)?;
                    found.step(thread.number, i);
                }
            }
            if found == before {
                return Ok(found);
            }
        }
    }

    pub(crate) fn in_register(&self, thread: u64, gpr: Gpr) -> bool {
        self.registers.contains(&(thread, gpr))
    }

    pub(crate) fn in_location(&self, name: &str) -> bool {
        self.anywhere || self.locations.contains(name)
    }

    fn step(&mut self, thread: u64, i: &Instruction<&'s str>) {
        let operands = || i.operands.iter().map(|(operand, _)| operand);
        let written = match i.op {
            Op::Two(Two::Cmp | Two::Test) | Op::Bit(Bit::Keep) | Op::Set(_) => 0,
            Op::Xchg | Op::Xadd => 2,
            _ => 1,
        };
        let accumulates = i.op == Op::Cmpxchg;
        let reads =
            operands().any(|o| self.may_be(thread, i.op, o)) || accumulates && self.in_register(thread, EAX);
        if !reads {
            return;
        }
        if accumulates {
            self.registers.insert((thread, EAX));
        }
        for operand in operands().take(written) {
            match operand {
                Operand::Reg(part) => {
                    self.registers.insert((thread, part.gpr));
                }
                Operand::Mem(Mem { symbol: Some(name), base: None, index: None, .. }) => {
                    self.locations.insert(name);
                }
                Operand::Mem(_) => self.anywhere = true,
                Operand::Const(_) | Operand::AddressOf(_) | Operand::Label(_) => {}
            }
        }
    }

    /// May the operand's value be an address?
    fn may_be(&self, thread: u64, op: Op, operand: &Operand<&str>) -> bool {
        match operand {
            Operand::AddressOf(_) => true,
            Operand::Reg(part) => self.in_register(thread, part.gpr),
            Operand::Mem(mem) if op == Op::Lea => {
                mem.symbol.is_some() || mem.parts().any(|part| self.in_register(thread, part.gpr))
            }
            Operand::Mem(mem) if mem.is_direct() => mem.symbol.is_some_and(|name| self.in_location(name)),
            Operand::Mem(_) => self.anywhere || !self.locations.is_empty(),
            Operand::Const(_) | Operand::Label(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::front::litmus::read_test;
    use crate::limits::Limits;

    /// Which of the columns may hold an address.
    fn pointers(init: &str, rows: &str, shown: &str) -> Vec<String> {
        let source = format!("X86 T\n{{{init}}}\nP0;\n{rows};\nlocations [{shown}]");
        let (_, litmus) =
            read_test(&source, &Limits::default()).unwrap_or_else(|wrong| panic!("{source}\n{wrong:#?}"));
        litmus.observed.iter().filter(|o| o.may_be_address).map(|o| o.name.clone()).collect()
    }

    #[test]
    fn addresses_are_where_they_were_moved() {
        let none: [&str; 0] = [];
        let all = "0:EAX;0:EBX;0:ECX;x;y";
        assert_eq!(pointers("0:EAX=x", "NOP", all), ["0:EAX"]);
        assert_eq!(pointers("y=x", "MOV EBX,[y]", all), ["0:EBX", "y"]);
        assert_eq!(pointers("", "MOV EAX,[x+EBX*4];\nMOV [x+EBX],$1;\nCMP ECX,$x;\nSETE CL", all), none);
        assert_eq!(pointers("", "LEA EAX,[x+8];\nSUB EBX,EAX;\nMOV [y],$3", all), ["0:EAX", "0:EBX"]);
        assert_eq!(pointers("0:EBX=y", "LOCK CMPXCHG [x],EBX", all), ["0:EAX", "0:EBX", "x"]);
        assert_eq!(pointers("", "MOV [EAX],$y;\nXCHG EBX,[x]", all), ["0:EBX", "x", "y"]);
        assert_eq!(pointers("0:EAX=x", "XCHG EAX,EBX", all), ["0:EAX", "0:EBX"]);
        // A step back in the list.
        assert_eq!(pointers("", "L: MOV ECX,EBX;\nMOV EBX,$x;\nJMP L", all), ["0:EBX", "0:ECX"]);
    }
}
