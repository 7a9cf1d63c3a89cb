//! TSO once more, read plainly and apart from `semantics`: final states alone. A thread that goes wrong stays
//! where it is.
//!
//! A state is one list of numbers per thread and one for memory. Nothing is shared with the machines of the
//! crate but the program itself and the values of its expressions. What counts at the end: all threads stand
//! at their ends, and nothing can be flushed any more, be it because buffers are empty or because a block
//! holds memory for good.

use overtake::model::{Atom, Edge, Instr, Program, RegExpr, RmwOp, ThreadId, Value};
use std::collections::{BTreeSet, HashSet, VecDeque};

#[derive(Clone, PartialEq, Eq, Hash)]
struct Cpu {
    at: u32,
    registers: Vec<Value>,
    buffer: VecDeque<(usize, Value)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Machine {
    cpus: Vec<Cpu>,
    memory: Vec<Value>,
    bus: Option<usize>,
}

/// The values of what is observed in final states with empty buffers, and in those with stores that are
/// frozen.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Finals {
    pub drained: BTreeSet<Vec<Value>>,
    pub frozen: BTreeSet<Vec<Value>>,
}

/// `None` if there are more states than allowed.
pub fn finals(program: &Program, observed: &[Atom], most: usize) -> Option<Finals> {
    let cpu = |t: &overtake::model::Thread| Cpu {
        at: t.initial().0,
        registers: vec![0; t.registers().len()],
        buffer: VecDeque::new(),
    };
    let start = Machine {
        cpus: program.threads().iter().map(cpu).collect(),
        memory: program.initial_memory().to_vec(),
        bus: None,
    };
    let (mut seen, mut todo, mut found) = (HashSet::new(), vec![start], Finals::default());
    while let Some(machine) = todo.pop() {
        if !seen.insert(machine.clone()) {
            continue;
        }
        if seen.len() > most {
            return None;
        }
        machine.note(program, observed, &mut found);
        for t in 0..machine.cpus.len() {
            todo.extend(machine.drain(t));
            let thread = &program.threads()[t];
            let out = thread.edges().filter(|(_, e)| e.from.0 == machine.cpus[t].at);
            todo.extend(out.flat_map(|(_, edge)| machine.execute(t, edge)));
        }
    }
    Some(found)
}

impl Machine {
    fn note(&self, program: &Program, observed: &[Atom], found: &mut Finals) {
        let ended = |(cpu, t): (&Cpu, ThreadId)| cpu.at == program.thread(t).end().0;
        let waiting = |t: &usize| !self.cpus[*t].buffer.is_empty();
        let frozen: Vec<usize> = (0..self.cpus.len()).filter(waiting).collect();
        let stands_still = frozen.iter().all(|&t| self.drain(t).is_none());
        if !self.cpus.iter().zip(program.thread_ids()).all(ended) || !stands_still {
            return;
        }
        let value = |atom: &Atom| match atom {
            Atom::Reg(t, r) => self.cpus[t.index()].registers[r.index()],
            Atom::Mem(a) => self.memory[a.index()],
            Atom::At(..) => unreachable!("locations are not observed"),
        };
        let values = observed.iter().map(value).collect();
        if frozen.is_empty() {
            found.drained.insert(values)
        } else {
            found.frozen.insert(values)
        };
    }

    fn may_use_bus(&self, t: usize) -> bool {
        self.bus.is_none() || self.bus == Some(t)
    }

    /// The oldest store of the thread reaches memory.
    fn drain(&self, t: usize) -> Option<Machine> {
        let mut next = self.clone();
        let (cell, value) = next.cpus[t].buffer.pop_front().filter(|_| self.may_use_bus(t))?;
        next.memory[cell] = value;
        Some(next)
    }

    fn value(&self, t: usize, e: &RegExpr) -> Option<Value> {
        e.eval(&|r| self.cpus[t].registers[r.index()]).ok()
    }

    fn cell(&self, t: usize, e: &RegExpr) -> Option<usize> {
        let address = self.value(t, e)?;
        (0..self.memory.len() as Value).contains(&address).then_some(address as usize)
    }

    /// What the instruction leads to; nothing if it has to wait, or goes wrong.
    fn execute(&self, t: usize, edge: &Edge) -> Vec<Machine> {
        if let Instr::Any { dst, lo, hi } = edge.instr {
            let pick = |value| {
                let mut next = self.clone();
                next.cpus[t].registers[dst.index()] = value;
                next.cpus[t].at = edge.to.0;
                next
            };
            return (lo..=hi).map(pick).collect();
        }
        let mut next = self.clone();
        next.cpus[t].at = edge.to.0;
        next.act(t, &edge.instr).map(|()| next).into_iter().collect()
    }

    fn act(&mut self, t: usize, instr: &Instr) -> Option<()> {
        let drained = self.cpus[t].buffer.is_empty();
        let possible = |yes: bool| yes.then_some(());
        match instr {
            Instr::Nop | Instr::Any { .. } => {}
            Instr::Assume(e) | Instr::Assert(e) => possible(self.value(t, e)? != 0)?,
            Instr::Assign { dst, value } => self.cpus[t].registers[dst.index()] = self.value(t, value)?,
            Instr::Fence => possible(drained)?,
            Instr::Store { addr, value } => {
                let store = (self.cell(t, addr)?, self.value(t, value)?);
                self.cpus[t].buffer.push_back(store);
            }
            Instr::Load { dst, addr } => {
                let cell = self.cell(t, addr)?;
                let own = self.cpus[t].buffer.iter().rev().find(|(c, _)| *c == cell).map(|(_, v)| *v);
                let from_memory = || self.may_use_bus(t).then(|| self.memory[cell]);
                self.cpus[t].registers[dst.index()] = own.or_else(from_memory)?;
            }
            Instr::Rmw { dst, addr, op } => {
                let cell = self.cell(t, addr)?;
                let old = self.memory[cell];
                let new = match op {
                    RmwOp::Swap(v) => self.value(t, v)?,
                    RmwOp::Add(v) => old.wrapping_add(self.value(t, v)?),
                    RmwOp::And(v) => old & self.value(t, v)?,
                    RmwOp::Or(v) => old | self.value(t, v)?,
                    RmwOp::Xor(v) => old ^ self.value(t, v)?,
                    RmwOp::Cas { old: expected, new } => {
                        let (expected, new) = (self.value(t, expected)?, self.value(t, new)?);
                        if old == expected { new } else { old }
                    }
                };
                possible(drained && self.may_use_bus(t))?;
                self.memory[cell] = new;
                self.cpus[t].registers[dst.index()] = old;
            }
            Instr::Lock => {
                possible(drained && self.bus.is_none())?;
                self.bus = Some(t);
            }
            Instr::Unlock => {
                possible(drained && self.bus == Some(t))?;
                self.bus = None;
            }
        }
        Some(())
    }
}
