//! TSO once more, read plainly and apart from `semantics`: final states alone. A thread that goes wrong stays
//! where it is.
//!
//! A state is one list of numbers per thread and one for memory. Nothing is shared with the machines of the
//! crate but the program itself and the values of its expressions. What counts at the end: all threads stand
//! at their ends, and nothing can be flushed any more, be it because buffers are empty or because a block
//! holds memory for good.

use overtake::model::{Atom, Bytes, Edge, Instr, Program, RegExpr, RmwOp, ThreadId, Value};
use std::collections::{BTreeSet, HashSet, VecDeque};

#[derive(Clone, PartialEq, Eq, Hash)]
struct Cpu {
    at: u32,
    registers: Vec<Value>,
    buffer: VecDeque<Waiting>,
}

/// A store, byte by byte.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Waiting {
    cell: usize,
    bytes: Vec<(usize, u8)>,
}

/// Which of a cell's bytes there are.
fn numbers(bytes: Bytes) -> impl Iterator<Item = usize> {
    (0..8).filter(move |k| bytes.0 >> k & 1 != 0)
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Machine {
    cpus: Vec<Cpu>,
    memory: Vec<[u8; 8]>,
    bus: Option<usize>,
}

/// The values of what is observed in final states with empty buffers, and in those with stores that are
/// frozen.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Finals {
    pub drained: BTreeSet<Vec<Value>>,
    pub frozen: BTreeSet<Vec<Value>>,
}

/// `None` if there are more states than allowed.
pub(crate) fn finals(program: &Program, observed: &[Atom], most: usize) -> Option<Finals> {
    let cpu = |t: &overtake::model::Thread| Cpu {
        at: t.initial().0,
        registers: vec![0; t.registers().len()],
        buffer: VecDeque::new(),
    };
    let start = Machine {
        cpus: program.threads().iter().map(cpu).collect(),
        memory: program.initial_memory().iter().map(|value| value.to_le_bytes()).collect(),
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
            Atom::Mem(a) => Value::from_le_bytes(self.memory[a.index()]),
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
        let store = next.cpus[t].buffer.pop_front().filter(|_| self.may_use_bus(t))?;
        store.bytes.into_iter().for_each(|(k, byte)| next.memory[store.cell][k] = byte);
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
            Instr::Partial(kinds) if !kinds.sl => {}
            Instr::Fence | Instr::Partial(_) => possible(drained)?,
            Instr::Membarrier => possible(self.cpus.iter().all(|cpu| cpu.buffer.is_empty()))?,
            Instr::Store { addr, value, bytes } => {
                let (cell, value) = (self.cell(t, addr)?, self.value(t, value)?.to_le_bytes());
                let bytes = numbers(*bytes).map(|k| (k, value[k])).collect();
                self.cpus[t].buffer.push_back(Waiting { cell, bytes });
            }
            Instr::Load { dst, addr, bytes } => {
                let cell = self.cell(t, addr)?;
                let mut value = [0; 8];
                for k in numbers(*bytes) {
                    let mut own = self.cpus[t].buffer.iter().rev().filter(|store| store.cell == cell);
                    let own = own
                        .find_map(|store| store.bytes.iter().find(|(n, _)| *n == k).map(|(_, byte)| *byte));
                    let from_memory = || self.may_use_bus(t).then(|| self.memory[cell][k]);
                    value[k] = own.or_else(from_memory)?;
                }
                self.cpus[t].registers[dst.index()] = Value::from_le_bytes(value);
            }
            Instr::Rmw { dst, addr, op } => {
                let cell = self.cell(t, addr)?;
                let old = Value::from_le_bytes(self.memory[cell]);
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
                    RmwOp::New(v) => {
                        let mut after = self.clone();
                        after.cpus[t].registers[dst.index()] = old;
                        after.value(t, v)?
                    }
                };
                possible(drained && self.may_use_bus(t))?;
                self.memory[cell] = new.to_le_bytes();
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
