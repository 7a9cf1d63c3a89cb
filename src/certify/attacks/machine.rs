//! What can come of an attack? An SC run up to a store that is delayed, the attacker's way to a load that
//! overtakes it, and what happens after that load (`[LazyTSO15]`, Figure 5).
//!
//! - *Phase 1* is plain SC. A thread that goes wrong does nothing more.
//! - *Phase 2* begins, while no block is held, with a store of an open attack: the attacker puts it into its
//!   buffer. From then on its stores stay there, its loads look there first, and it passes no fence and no
//!   locked instruction.
//! - *Phase 3* begins with a load of an open attack that finds its value in memory. The attacker stops.
//!
//! After phase 1 another thread touches a cell only if that happens after the load, in phase 2 after some load
//! from memory that the attacker has made since: the thread is a *helper*, or the cell has been touched after
//! the load in a conflicting way, which makes it one. (In phase 2, whatever does not happen after a load could
//! have happened before the store.) A block is one event: a thread that is no helper enters it with a *claim*,
//! what it touches is noted apart until one conflict earns the claim, and without that the block cannot end.
//! Local steps and fences are free. The attack has succeeded when, in phase 3 and outside blocks, the cell of
//! the delayed store has been touched after the load.

use super::text::{Open, Touched, futures, open};
use crate::certify::Doubt;
use crate::certify::invariant::{Machine, Place, Point, STUCK};
use crate::limits::Limits;
use crate::model::{Addr, Edge, EdgeId, Instr, Program, ThreadId, Value};
use crate::query::{Goal, Model};
use crate::semantics::eval;

/// The attack machine. A row of phase 1 has the location of each thread, the lock (0, or the owner's number
/// plus 1), all registers, and memory. In phases 2 and 3 there follow the attacker, the phase, the cell of the
/// delayed store, whether a claim is open; per thread whether it is a helper; and per cell how it has been
/// touched after the load (0 not, 1 read, 2 written), how a block with a claim has touched it, whether the
/// attacker's buffer has a store to it, and of which value.
pub struct Attempts<'a> {
    program: &'a Program,
    base: Machine<'a>,
    open: Open,
    futures: Vec<Vec<Touched>>,
    /// Per store of an open attack, where its thread may still come to a load of one.
    hopeful: Vec<((ThreadId, EdgeId), Vec<bool>)>,
    words: usize,
}

const READ: Value = 1;
const WRITTEN: Value = 2;
const ATTACKER: usize = 0;
const PHASE: usize = 1;
const CELL: usize = 2;
const CLAIM: usize = 3;
const HELPERS: usize = 4;

/// A state of phase 2 or 3: the SC part, and the rest.
#[derive(Clone)]
struct Attempt {
    point: Point,
    rest: Vec<Value>,
}

impl<'a> Attempts<'a> {
    pub fn new(
        program: &'a Program,
        places: &[Vec<Place>],
        limits: &'a Limits,
    ) -> Result<Attempts<'a>, Doubt> {
        let threads = program.threads();
        if !places.iter().map(Vec::len).eq(threads.iter().map(|t| t.graph().node_count())) {
            return Err(Doubt::refuted("it is not about threads with as many locations".to_string()));
        }
        let nothing = Goal { ignores_errors: true, ..Goal::default() };
        let base = Machine::new(program, &nothing, Model::Sc, places, limits)?;
        let open = open(program, limits)?;
        let mut hopeful = Vec::new();
        for ((t, store), loads) in &open {
            let thread = program.thread(*t);
            limits.spend(thread.graph().edge_count())?;
            let before = loads.iter().map(|&load| thread.edge(load).from);
            hopeful.push(((*t, *store), thread.reaching(before, |e| !e.instr.drains_buffer())));
        }
        let registers: usize = threads.iter().map(|t| t.registers().len()).sum();
        let words = threads.len() + 1 + registers + program.cells();
        Ok(Attempts { program, base, futures: futures(program, limits)?, open, hopeful, words })
    }

    /// Is no attack open at all?
    pub fn is_refuted(&self) -> bool {
        self.open.is_empty()
    }

    /// Do the numbers name things of the program?
    pub fn is_row(&self, row: &[Value]) -> bool {
        let threads = self.program.threads().len();
        let is_attack = row.len() == self.words + HELPERS + threads + 4 * self.program.cells();
        let point = self.point(row);
        (row.len() == self.words || is_attack)
            && (0..=threads as Value).contains(&row[threads])
            && (0..threads).all(|t| self.base.stands(&point, t))
            && (!is_attack
                || (0..threads as Value).contains(&row[self.words + ATTACKER])
                    && (0..self.program.cells() as Value).contains(&row[self.words + CELL]))
    }

    pub fn initial(&mut self) -> Result<Vec<Vec<Value>>, Doubt> {
        Ok(self.base.initial()?.into_iter().map(|point| point.key).collect())
    }

    /// Has an attack succeeded?
    pub fn succeeds(&self, row: &[Value]) -> bool {
        let Some(attempt) = self.attempt(row) else { return false };
        let cell = attempt.rest[CELL] as usize;
        attempt.rest[PHASE] == 3 && attempt.rest[self.after(cell)] != 0 && attempt.point.lock().is_none()
    }

    /// All that can follow.
    pub fn steps(&mut self, row: &[Value], next: &mut Vec<Vec<Value>>) -> Result<(), Doubt> {
        let threads = self.program.threads().len();
        let Some(attempt) = self.attempt(row) else {
            let (point, mut points) = (self.point(row), Vec::new());
            (0..threads).try_for_each(|t| self.base.steps(&point, t, &mut points))?;
            next.extend(points.into_iter().map(|point| point.key));
            return self.beginnings(&point, next);
        };
        let attacker = attempt.rest[ATTACKER] as usize;
        for t in (0..threads).filter(|&t| t != attacker) {
            for edge in self.edges(&attempt.point, t) {
                if let Some(moved) = self.helped(&attempt, t, edge) {
                    self.take(moved, t, edge, next)?;
                }
            }
        }
        if attempt.rest[PHASE] == 2 {
            for edge in self.edges(&attempt.point, attacker) {
                self.attack(&attempt, attacker, edge, next)?;
            }
        }
        Ok(())
    }

    fn point(&self, row: &[Value]) -> Point {
        let key = row[..self.words.min(row.len())].to_vec();
        Point { key, pasts: vec![0; self.program.threads().len()] }
    }

    fn attempt(&self, row: &[Value]) -> Option<Attempt> {
        let rest = row.get(self.words..).filter(|rest| !rest.is_empty())?.to_vec();
        Some(Attempt { point: self.point(row), rest })
    }

    fn edges(&self, point: &Point, t: usize) -> Vec<&'a Edge> {
        let thread = &self.program.threads()[t];
        match point.at(t) {
            STUCK => vec![],
            loc => thread.edges_from(loc).into_iter().map(|(_, edge)| edge).collect(),
        }
    }

    fn after(&self, cell: usize) -> usize {
        HELPERS + self.program.threads().len() + cell
    }

    fn noted(&self, cell: usize) -> usize {
        self.after(cell) + self.program.cells()
    }

    fn buffered(&self, cell: usize) -> usize {
        self.after(cell) + 2 * self.program.cells()
    }

    fn value(&self, cell: usize) -> usize {
        self.after(cell) + 3 * self.program.cells()
    }

    /// The cell that an instruction touches, if it touches one and does not go wrong.
    fn cell(&self, point: &Point, t: usize, instr: &Instr) -> Option<Addr> {
        let address = eval(self.base.registers_of(point, t), instr.address()?).ok()?;
        self.program.cell(address)
    }

    /// Every attack that can begin in a state of phase 1.
    fn beginnings(&mut self, point: &Point, next: &mut Vec<Vec<Value>>) -> Result<(), Doubt> {
        if point.lock().is_some() {
            return Ok(());
        }
        let stores: Vec<(ThreadId, EdgeId)> = self.open.keys().copied().collect();
        for (t, store) in stores {
            let edge = self.program.thread(t).edge(store);
            let Some(cell) = self.cell(point, t.index(), &edge.instr) else { continue };
            if point.at(t.index()) != edge.from {
                continue;
            }
            let mut rest = vec![0; HELPERS + self.program.threads().len() + 4 * self.program.cells()];
            (rest[ATTACKER], rest[PHASE], rest[CELL]) = (t.0.into(), 2, cell.0.into());
            self.issue(&Attempt { point: point.clone(), rest }, t.index(), edge, next)?;
        }
        Ok(())
    }

    /// The attacker puts a store into its buffer.
    fn issue(
        &mut self,
        attempt: &Attempt,
        t: usize,
        edge: &Edge,
        next: &mut Vec<Vec<Value>>,
    ) -> Result<(), Doubt> {
        let Instr::Store { value, .. } = &edge.instr else { return Ok(()) };
        let cell = self.cell(&attempt.point, t, &edge.instr);
        let stored = eval(self.base.registers_of(&attempt.point, t), value);
        let (Some(cell), Ok(stored)) = (cell, stored) else { return Ok(()) };
        let mut issued = attempt.clone();
        issued.rest[self.buffered(cell.index())] = 1;
        issued.rest[self.value(cell.index())] = stored;
        self.base.follow(&mut issued.point, t, edge)?;
        self.settle(issued, t, next)
    }

    /// What the attacker can do along an edge in phase 2.
    fn attack(
        &mut self,
        attempt: &Attempt,
        t: usize,
        edge: &'a Edge,
        next: &mut Vec<Vec<Value>>,
    ) -> Result<(), Doubt> {
        match &edge.instr {
            Instr::Store { .. } => self.issue(attempt, t, edge, next),
            Instr::Load { dst, .. } => {
                let Some(cell) = self.cell(&attempt.point, t, &edge.instr) else { return Ok(()) };
                let own = attempt.rest[self.buffered(cell.index())] != 0;
                if !own && attempt.point.lock().is_some() {
                    return Ok(());
                }
                let mut moved = attempt.clone();
                let read = match own {
                    true => attempt.rest[self.value(cell.index())],
                    false => self.base.memory_of(&attempt.point)[cell.index()],
                };
                if !own {
                    self.overtake(attempt, t, edge, cell, next)?;
                    self.touch(&mut moved, cell.index(), READ);
                }
                self.base.follow(&mut moved.point, t, edge)?;
                let slot = self.base.register_slot(t, *dst);
                moved.point.key[slot] = read;
                self.settle(moved, t, next)
            }
            instr if instr.is_local() => self.take(attempt.clone(), t, edge, next),
            _ => Ok(()),
        }
    }

    /// Phase 3 begins, if the load is one of an open attack. Of the attacker nothing matters any more.
    fn overtake(
        &self,
        attempt: &Attempt,
        t: usize,
        edge: &Edge,
        cell: Addr,
        next: &mut Vec<Vec<Value>>,
    ) -> Result<(), Doubt> {
        let thread = ThreadId(t as u16);
        let is_open = self.open.iter().any(|((attacker, _), loads)| {
            *attacker == thread
                && loads.iter().any(|&load| std::ptr::eq(self.program.thread(thread).edge(load), edge))
        });
        if !is_open {
            return Ok(());
        }
        let mut moved = attempt.clone();
        moved.rest[CLAIM] = 0;
        moved.rest[HELPERS..].fill(0);
        moved.rest[PHASE] = 3;
        moved.rest[self.after(cell.index())] = READ;
        self.base.get_stuck(&mut moved.point, t)?;
        self.keep(moved, next);
        Ok(())
    }

    /// The same attempt after another thread has been let take the edge, if it may.
    fn helped(&self, attempt: &Attempt, t: usize, edge: &Edge) -> Option<Attempt> {
        let mut moved = attempt.clone();
        let access = match &edge.instr {
            Instr::Lock => {
                moved.rest[CLAIM] = Value::from(attempt.rest[HELPERS + t] == 0);
                return Some(moved);
            }
            Instr::Unlock => return (attempt.rest[CLAIM] == 0).then_some(moved),
            Instr::Load { .. } => READ,
            Instr::Store { .. } | Instr::Rmw { .. } => WRITTEN,
            _ => return Some(moved),
        };
        let cell = self.cell(&attempt.point, t, &edge.instr)?.index();
        let touched = attempt.rest[self.after(cell)];
        let conflicts = touched != 0 && (touched == WRITTEN || access == WRITTEN);
        if conflicts {
            moved.rest[HELPERS + t] = 1;
            if std::mem::take(&mut moved.rest[CLAIM]) != 0 {
                for c in 0..self.program.cells() {
                    let noted = std::mem::take(&mut moved.rest[self.noted(c)]);
                    self.touch(&mut moved, c, noted);
                }
            }
        }
        if moved.rest[HELPERS + t] != 0 {
            self.touch(&mut moved, cell, access);
        } else if moved.rest[CLAIM] != 0 {
            let slot = self.noted(cell);
            moved.rest[slot] = moved.rest[slot].max(access);
        } else {
            return None;
        }
        Some(moved)
    }

    fn touch(&self, attempt: &mut Attempt, cell: usize, access: Value) {
        let after = &mut attempt.rest[self.after(cell)];
        *after = (*after).max(access);
    }

    /// The thread takes the edge as under SC.
    fn take(
        &mut self,
        attempt: Attempt,
        t: usize,
        edge: &Edge,
        next: &mut Vec<Vec<Value>>,
    ) -> Result<(), Doubt> {
        let mut points = Vec::new();
        self.base.edge_steps(&attempt.point, t, edge, &mut points)?;
        for point in points {
            self.keep(Attempt { point, rest: attempt.rest.clone() }, next);
        }
        Ok(())
    }

    /// The thread, which has just taken an edge, goes on to its next stop.
    fn settle(&mut self, attempt: Attempt, t: usize, next: &mut Vec<Vec<Value>>) -> Result<(), Doubt> {
        let mut points = Vec::new();
        self.base.settle(vec![(attempt.point, None)], t, &mut points)?;
        for point in points {
            self.keep(Attempt { point, rest: attempt.rest.clone() }, next);
        }
        Ok(())
    }

    /// The attempt as a row, unless it is hopeless by the graphs alone: the attacker can no longer come to its
    /// load, or nobody can still touch the cell of its store.
    fn keep(&self, attempt: Attempt, next: &mut Vec<Vec<Value>>) {
        let Attempt { point, rest } = &attempt;
        let (attacker, cell) = (rest[ATTACKER] as usize, rest[CELL] as usize);
        let loc = |t: usize| Some(point.at(t)).filter(|&loc| loc != STUCK);
        let comes = || {
            let own = self.hopeful.iter().filter(|((t, _), _)| t.index() == attacker);
            loc(attacker).is_some_and(|loc| own.clone().any(|(_, hopeful)| hopeful[loc.index()]))
        };
        let touches = |t: usize| loc(t).is_some_and(|loc| self.futures[t][loc.index()].touches(cell));
        let touched = rest[self.after(cell)] != 0 || rest[self.noted(cell)] != 0;
        let others = |t: &usize| *t != attacker;
        if (rest[PHASE] == 3 || comes()) && (touched || (0..point.pasts.len()).filter(others).any(touches)) {
            next.push([&point.key[..], &rest[..]].concat());
        }
    }
}
