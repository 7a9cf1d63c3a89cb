//! Which goals hold inside a block, with the others' store buffers as they are? A thread that stands at a
//! store may have issued it, and more after it, before another thread took the lock. Such stores are
//! *phantoms*: they reach memory too late, if ever, and their own thread alone sees them.
//!
//! From each store at which another thread stands, all places that it can get to are found: by phantom
//! stores, loads of these or from the past, and local steps; not past a fence or a locked instruction, which
//! would wait for the buffer. The goal is asked of every combination of such places. Errors on the way count
//! nothing here: whoever goes wrong after a phantom does so after a real store too.

use super::machine::{LaggingMachine, Telling};
use super::table::{PastId, PastTable};
use crate::machine::{CInstr, Taken, Work, lock_slot};
use crate::model::Value;
use crate::query::{Act, Limit, Limits};
use std::collections::{BTreeMap, HashSet};

/// Where a thread may have got to.
struct Arrival<R> {
    /// Its location and registers.
    own: Box<[Value]>,
    told: R,
}

/// A thread on its way.
#[derive(Clone)]
struct Phantom<R> {
    own: Box<[Value]>,
    past: PastId,
    /// What it has stored last.
    stored: BTreeMap<u32, Value>,
    told: R,
}

/// What tells a phantom from others: location and registers, past, and what it has stored.
type Trail = (Box<[Value]>, PastId, BTreeMap<u32, Value>);

/// Steps that it takes to come to the next place.
const PLACE: usize = 32;

/// If the goal holds of a state in which a block is held, as the threads stand or with phantoms: what they have
/// done. `work` is as it was in the end, unless the goal holds.
pub(crate) fn goal_inside<R: Telling>(
    machine: &LaggingMachine,
    table: &mut PastTable,
    work: &mut Work,
    pasts: &[PastId],
    limits: &Limits,
) -> Result<Option<Vec<R>>, Limit> {
    let owner = work.vals[lock_slot(machine.core.threads())] - 1;
    let mut others = Vec::new();
    let stores = |t: &usize| machine.facts(work, *t).stores;
    let waiting: Vec<usize> = (0..pasts.len()).filter(|&t| t as Value != owner).filter(stores).collect();
    for t in waiting {
        let before = machine.save(work, t);
        let mut places = vec![Arrival { own: before.clone(), told: R::default() }];
        let mut search = Ways { machine, table, limits, t, seen: HashSet::new(), places: &mut places };
        search.all(work, pasts[t])?;
        machine.restore(work, t, &before);
        others.push((t, places));
    }
    let mut chosen = Vec::new();
    let holds = combine(machine, work, &others, &mut chosen, limits)?;
    Ok(holds.then(|| others.iter().zip(chosen).map(|((_, places), k)| places[k].told.clone()).collect()))
}

/// Does the goal hold of some combination? If so, `chosen` has it.
fn combine<R>(
    machine: &LaggingMachine,
    work: &mut Work,
    others: &[(usize, Vec<Arrival<R>>)],
    chosen: &mut Vec<usize>,
    limits: &Limits,
) -> Result<bool, Limit> {
    limits.spend(PLACE)?;
    let Some((t, places)) = others.get(chosen.len()) else {
        return Ok(machine.core.reaches_goal(work));
    };
    for (k, place) in places.iter().enumerate() {
        machine.restore(work, *t, &place.own);
        chosen.push(k);
        if combine(machine, work, others, chosen, limits)? {
            return Ok(true);
        }
        chosen.pop();
    }
    machine.restore(work, *t, &places[0].own);
    Ok(false)
}

/// All ways of one thread.
struct Ways<'a, R> {
    machine: &'a LaggingMachine,
    table: &'a mut PastTable,
    limits: &'a Limits,
    t: usize,
    seen: HashSet<Trail>,
    places: &'a mut Vec<Arrival<R>>,
}

impl<R: Telling> Ways<'_, R> {
    fn all(&mut self, work: &mut Work, past: PastId) -> Result<(), Limit> {
        let start = Phantom {
            own: self.machine.save(work, self.t),
            past,
            stored: BTreeMap::new(),
            told: R::default(),
        };
        let mut todo = Vec::new();
        self.follow(work, start, &mut todo);
        while let Some(mut phantom) = todo.pop() {
            self.limits.spend(PLACE)?;
            self.machine.restore(work, self.t, &phantom.own);
            self.run(work, &mut phantom);
            let (core, t) = (&self.machine.core, self.t);
            if core.is_trapped(work, t) {
                continue;
            }
            phantom.own = self.machine.save(work, t);
            if self.seen.insert((phantom.own.clone(), phantom.past, phantom.stored.clone())) {
                let mut told = phantom.told.clone();
                told.are_phantoms();
                self.places.push(Arrival { own: phantom.own.clone(), told });
                self.follow(work, phantom, &mut todo);
            }
        }
        Ok(())
    }

    /// Local steps up to the next scheduling point, or to a fence.
    fn run(&self, work: &mut Work, phantom: &mut Phantom<R>) {
        let (core, t) = (&self.machine.core, self.t);
        while !core.node(work, t).scheduling_point {
            let edges = &core.node(work, t).edges;
            if edges.iter().any(|edge| matches!(edge.instr, CInstr::Fence)) {
                return;
            }
            match edges.iter().find(|edge| core.take(work, t, edge, None) == Taken::Yes) {
                None => work.vals[t] = core.code.threads[t].stuck as Value,
                Some(edge) => phantom.told.push(t, Act::Step { edge: edge.id, choice: None }),
            }
        }
        work.moved.clear();
        work.moved.push(t);
        core.clear_dead_registers(work);
    }

    /// One instruction further; the first is a store.
    fn follow(&mut self, work: &mut Work, from: Phantom<R>, todo: &mut Vec<Phantom<R>>) {
        let (machine, t) = (self.machine, self.t);
        let core = &machine.core;
        machine.restore(work, t, &from.own);
        for edge in &core.node(work, t).edges {
            for choice in edge.instr.choices() {
                machine.restore(work, t, &from.own);
                let mut next = from.clone();
                next.told.push(t, Act::Step { edge: edge.id, choice });
                match &edge.instr {
                    CInstr::Store { addr, value, .. } => {
                        let (Some(cell), Some(value)) = (core.cell(work, addr), value.eval(&work.vals))
                        else {
                            continue;
                        };
                        next.stored.insert(cell as u32, value);
                        work.vals[t] = edge.to as Value;
                    }
                    _ if from.stored.is_empty() => continue,
                    CInstr::Load { dst, addr, .. } => {
                        let Some(cell) = core.cell(work, addr) else { continue };
                        let own = next.stored.get(&(cell as u32)).map(|&value| (value, next.past));
                        let old = self.table.reads(next.past, cell as u32);
                        let old: Vec<(Value, PastId)> = old.map(|which| self.table.read(which)).collect();
                        let found = own.map_or(old, |own| vec![own]);
                        for (value, past) in found {
                            work.vals[*dst as usize] = value;
                            work.vals[t] = edge.to as Value;
                            let mut next = Phantom { past, own: machine.save(work, t), ..next.clone() };
                            next.told.read(cell as u32, value);
                            todo.push(next);
                        }
                        continue;
                    }
                    CInstr::Fence
                    | CInstr::Membarrier
                    | CInstr::Rmw { .. }
                    | CInstr::Lock
                    | CInstr::Unlock => continue,
                    _ if core.take(work, t, edge, choice) == Taken::No => continue,
                    _ => {}
                }
                todo.push(Phantom { own: machine.save(work, t), ..next });
            }
        }
    }
}
