//! How wide are instructions and the locations they access? The processor's rules are in `x86`; here they
//! meet the locations, which have their widths from their types or from other accesses.

use super::memory::LitmusMemory;
use super::parse::LitmusThread;
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::front::x86::{self, Instruction, Mem, Op, Operand, Widths};

/// Settles the width of every instruction, and tells memory about every access.
pub(crate) fn settle<'s>(
    threads: &mut [LitmusThread<'s>],
    memory: &mut LitmusMemory<'s>,
    problems: &mut Problems,
) {
    let mut sensible = Vec::new();
    for i in threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
        if problems.spend(1).is_err() {
            return;
        }
        for (operand, _) in &i.operands {
            mention(operand, memory);
        }
        put_memory_first(i);
        if x86::check(i, problems).is_ok() {
            sensible.push(i);
        }
    }
    // First those that have a width of their own: the others go by them, wherever they stand.
    let (telling, others): (Vec<_>, Vec<_>) = sensible.into_iter().partition(|i| x86::tells_width(i));
    for i in telling.into_iter().chain(others) {
        let _ = x86::settle(i, memory, problems);
    }
}

/// herd writes the memory first whatever the architecture's order is.
fn put_memory_first(i: &mut Instruction<&str>) {
    let exchanges = matches!(i.op, Op::Cmpxchg | Op::Xadd | Op::Xchg);
    let is_mem = |n: usize| matches!(i.operands[n].0, Operand::Mem(_));
    if exchanges && is_mem(1) && !is_mem(0) {
        i.operands.reverse();
    }
}

fn mention<'s>(operand: &Operand<&'s str>, memory: &mut LitmusMemory<'s>) {
    match operand {
        Operand::AddressOf(name) => memory.mention(name),
        Operand::Mem(mem) => {
            mem.symbol.into_iter().for_each(|name| memory.mention(name));
            memory.number(mem.offset);
        }
        Operand::Const(value) => memory.number(*value),
        Operand::Reg(_) | Operand::Label(_) => {}
    }
}

impl<'s> Widths for LitmusMemory<'s> {
    type Symbol = &'s str;
    const UNCLEAR: &'static str = "write `movzbl` or `BYTE PTR [x]`, or give `x` a type";

    fn bits(&self, name: &'s str) -> Option<u32> {
        self.known_bits(name)
    }

    fn access(
        &mut self,
        mem: &Mem<&'s str>,
        bits: u32,
        at: Span,
        problems: &mut Problems,
    ) -> Result<(), Reported> {
        match (mem.symbol, mem.is_direct()) {
            (Some(name), true) => self.access_location(name, bits, at, problems),
            (None, true) => {
                let wrong = Problem::error("a fixed address is not supported").at(at);
                return Err(problems.report(wrong.help("name the location, as in `[x]`")));
            }
            _ => {}
        }
        Ok(())
    }
}
