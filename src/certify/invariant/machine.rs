//! What can happen in a state, if readers lag? The steps of the machine, one thread at a time, each up to the
//! thread's next stop.
//!
//! - A *store* is in memory at once. Every other thread that waits at a store gets the new memory into its
//!   past. The thread itself gets a mark and the new memory into its own, and *runs ahead*: it goes on in the
//!   same step, over local instructions and loads from its past. At another store it waits, with what is left
//!   of its past. At any other stop it may drop its past and be in step.
//! - A thread *in step* reads memory. When it comes to a store, its past begins with the present memory.
//! - *Fences* and *locked instructions* are for threads in step: whoever lags drops its past first.
//! - While a *block* is held, its owner alone moves and writes memory directly; what others can see of that is
//!   appended to their pasts at `unlock`. (Whatever others could do meanwhile, they can do before.)
//!
//! Why this is TSO: do each store when it is flushed, and each load at its own time, or at the flush of the
//! last store before it if that is later; in the latter case it reads from the past. The other way round,
//! give each load the time of the memory it read: a thread's place in its past only moves forward.
//! Under SC no thread ever lags.
//!
//! Not here: what is forbidden (`forbidden`), and which states there ought to be (`check`).

use super::past::seen;
use super::places::{Course, PassedThrough, Spot, graphs, is_passed};
use super::{Ideal, Past, Place, STUCK};
use crate::certify::Doubt;
use crate::limits::Limits;
use crate::model::{Addr, Edge, FenceKinds, Instr, Loc, Program, Reg, ThreadId, Value};
use crate::query::{Goal, Model};
use crate::semantics::{choices, eval, modified, trap};
use bit_set::BitSet;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

pub struct Machine<'a> {
    pub(super) program: &'a Program,
    pub(super) model: Model,
    /// Whether a thread that goes wrong just stands still.
    pub(super) ignores_errors: bool,
    pub(super) graphs: Vec<Course<'a>>,
    /// Where the registers of each thread begin in a key, and where memory does.
    registers: Vec<usize>,
    memory: usize,
    limits: &'a Limits,
    pasts: Vec<Rc<Past>>,
    numbers: HashMap<Rc<Past>, u32>,
}

/// A state: locations, lock, registers and memory in one list of numbers, the *key*, and a past per thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    pub key: Vec<Value>,
    pub pasts: Vec<u32>,
}

/// A thread on its way to a stop, with its past if it lags.
pub(in crate::certify) type Walker = (Point, Option<Rc<Past>>);

/// The value that a load has found, and what is left of the past if there was one.
type Found = (Value, Option<Rc<Past>>);

impl Point {
    pub(in crate::certify) fn at(&self, t: usize) -> Loc {
        Loc(self.key[t] as u32)
    }

    fn go(&mut self, t: usize, loc: Loc) {
        self.key[t] = loc.0 as Value;
    }

    /// The thread that holds a block.
    pub(in crate::certify) fn lock(&self) -> Option<usize> {
        usize::try_from(self.key[self.pasts.len()] - 1).ok()
    }

    fn set_lock(&mut self, owner: Option<usize>) {
        let threads = self.pasts.len();
        self.key[threads] = owner.map_or(0, |t| t as Value + 1);
    }
}

impl<'a> Machine<'a> {
    /// The machine of the program, if what is said of its locations may be said.
    pub fn new(
        program: &'a Program,
        goal: &Goal,
        model: Model,
        places: &[Vec<Place>],
        limits: &'a Limits,
    ) -> Result<Machine<'a>, Doubt> {
        if let Some((thread, edge)) = program.membarrier() {
            let place = match edge.line {
                0 => format!("thread {}", thread.name()),
                line => format!("line {}", program.place(line)),
            };
            let why = format!("certificates are not about programs with a `membarrier`, as in {place}");
            return Err(Doubt::refuted(why));
        }
        let mut next = program.threads().len() + 1;
        let mut registers = Vec::new();
        for thread in program.threads() {
            registers.push(next);
            next += thread.registers().len();
        }
        let graphs = graphs(program, goal, model, places, limits)?;
        let ignores_errors = goal.ignores_errors;
        let (pasts, numbers) = (vec![], HashMap::new());
        let mut machine = Machine {
            program,
            model,
            ignores_errors,
            graphs,
            registers,
            memory: next,
            limits,
            pasts,
            numbers,
        };
        machine.number(Past::default());
        Ok(machine)
    }

    /// A stored state as a point, if dead registers are 0 and nobody lags who cannot.
    pub fn point(&self, state: &Ideal, pasts: &[u32]) -> Option<Point> {
        let mut key: Vec<Value> = state.at.iter().map(|loc| loc.0 as Value).collect();
        key.push(state.lock.map_or(0, |t| t.0 as Value + 1));
        key.extend(state.registers.iter().flatten());
        key.extend(&state.memory);
        let given = Point { key, pasts: pasts.to_vec() };
        let mut point = given.clone();
        for (t, &past) in pasts.iter().enumerate() {
            let stores = self.spot(&point, t).is_some_and(|spot| spot.stores);
            self.forget(&mut point, t);
            if past != 0 && (!stores || point.lock() == Some(t) || self.model == Model::Sc) {
                return None;
            }
        }
        (point == given).then_some(point)
    }

    /// The point as a state to be stored.
    pub fn ideal(&self, point: &Point) -> Ideal {
        let threads = point.pasts.len();
        Ideal {
            at: (0..threads).map(|t| point.at(t)).collect(),
            registers: (0..threads).map(|t| self.registers_of(point, t).to_vec()).collect(),
            memory: self.memory_of(point).to_vec(),
            lock: point.lock().map(|t| ThreadId(t as u16)),
            pasts: point.pasts.clone(),
        }
    }

    /// The number of a past, which is the same for equal ones.
    pub fn number(&mut self, past: Past) -> u32 {
        if let Some(&number) = self.numbers.get(&past) {
            return number;
        }
        let (past, number) = (Rc::new(past), self.pasts.len() as u32);
        self.pasts.push(past.clone());
        self.numbers.insert(past, number);
        number
    }

    /// All pasts so far, by their numbers.
    pub fn pasts(&self) -> &[Rc<Past>] {
        &self.pasts
    }

    /// Where the thread stands, if it is not stuck.
    pub(super) fn spot(&self, point: &Point, t: usize) -> Option<&Spot<'a>> {
        self.graphs[t].spots.get(point.at(t).index())
    }

    pub(in crate::certify) fn registers_of<'p>(&self, point: &'p Point, t: usize) -> &'p [Value] {
        let base = self.registers[t];
        &point.key[base..base + self.program.threads()[t].registers().len()]
    }

    pub(in crate::certify) fn memory_of<'p>(&self, point: &'p Point) -> &'p [Value] {
        &point.key[self.memory..]
    }

    /// The place of a register or a cell in a key.
    pub(in crate::certify) fn register_slot(&self, t: usize, r: Reg) -> usize {
        self.registers[t] + r.index()
    }

    pub(super) fn cell_slot(&self, cell: Addr) -> usize {
        self.memory + cell.index()
    }

    /// The registers of a thread that count where it stands: of one that is stuck, those that lasting clauses
    /// look at.
    pub(super) fn live(&self, point: &Point, t: usize) -> &BitSet {
        self.spot(point, t).map_or(&self.graphs[t].watched, |spot| &spot.live)
    }

    /// Dead registers count as 0.
    pub(super) fn forget(&self, point: &mut Point, t: usize) {
        match self.spot(point, t) {
            Some(spot) => spot.dead.iter().for_each(|r| point.key[self.registers[t] + r] = 0),
            None => {
                let live = &self.graphs[t].watched;
                let registers = 0..self.program.threads()[t].registers().len();
                registers.filter(|r| !live.contains(*r)).for_each(|r| point.key[self.registers[t] + r] = 0);
            }
        }
    }

    /// What the thread's past is, spelled out. That of a thread at a store that is in step has the present
    /// memory alone, unless somebody's block is changing it.
    pub fn spelled_out(&mut self, point: &Point, t: usize) -> u32 {
        let waits = self.spot(point, t).is_some_and(|spot| spot.stores);
        if point.pasts[t] != 0 || !waits || point.lock().is_some() || self.model == Model::Sc {
            return point.pasts[t];
        }
        let spot = self.spot(point, t).expect("it waits somewhere");
        let past = Past::of(self.memory_of(point), &spot.relevant);
        self.number(past)
    }

    /// The states in which a run may begin: each thread at its first stop.
    pub fn initial(&mut self) -> Result<Vec<Point>, Doubt> {
        let threads = self.program.threads();
        let mut key: Vec<Value> = threads.iter().map(|t| t.initial().0 as Value).collect();
        key.push(0);
        key.resize(self.memory, 0);
        key.extend(self.program.initial_memory());
        let mut points = vec![Point { key, pasts: vec![0; threads.len()] }];
        for t in 0..threads.len() {
            let mut further = Vec::new();
            for point in points {
                self.settle(vec![(point, None)], t, &mut further)?;
            }
            points = further;
        }
        Ok(points)
    }

    /// The states that a step of the thread leads to.
    pub fn steps(&mut self, point: &Point, t: usize, next: &mut Vec<Point>) -> Result<(), Doubt> {
        let Some(spot) = self.spot(point, t) else { return Ok(()) };
        let owns = point.lock() == Some(t);
        if point.lock().is_some() && !owns {
            return Ok(());
        }
        let lags = spot.stores && !owns && self.model == Model::Tso;
        let number = self.spelled_out(point, t);
        let past = lags.then(|| self.pasts[number as usize].clone());
        let mut walkers = Vec::new();
        for k in 0..self.ways(point, t) {
            self.take(point, past.as_ref(), t, k, &mut walkers)?;
        }
        self.settle(walkers, t, next)
    }

    fn ways(&self, point: &Point, t: usize) -> usize {
        self.spot(point, t).map_or(0, |spot| spot.ways.len())
    }

    /// The same for one of its edges.
    pub(in crate::certify) fn edge_steps(
        &mut self,
        point: &Point,
        t: usize,
        edge: &Edge,
        next: &mut Vec<Point>,
    ) -> Result<(), Doubt> {
        let ways = self.spot(point, t).map_or(&[][..], |spot| &spot.ways);
        let Some(k) = ways.iter().position(|way| std::ptr::eq(way.edge, edge)) else { return Ok(()) };
        let mut walkers = Vec::new();
        if self.may_move(point, t, &edge.instr) {
            self.take(point, None, t, k, &mut walkers)?;
        }
        self.settle(walkers, t, next)
    }

    /// While a block is held, only its owner touches memory or the lock.
    fn may_move(&self, point: &Point, t: usize, instr: &Instr) -> bool {
        point.lock().is_none_or(|owner| owner == t) || is_passed(instr)
    }

    /// The thread has taken the edge, which does nothing else.
    pub(in crate::certify) fn follow(&self, point: &mut Point, t: usize, edge: &Edge) -> Result<(), Doubt> {
        let ways = self.spot(point, t).map_or(&[][..], |spot| &spot.ways);
        let flaw = ways.iter().find(|way| std::ptr::eq(way.edge, edge)).and_then(|way| way.flaw);
        point.go(t, edge.to);
        flaw.map_or(Ok(()), |flaw| Err(Doubt::refuted(format!("an instruction of thread {t} {flaw}"))))
    }

    /// Does the thread stand at a stop, or is it stuck?
    pub(in crate::certify) fn stands(&self, point: &Point, t: usize) -> bool {
        match usize::try_from(point.key[t]).ok().and_then(|loc| self.graphs[t].spots.get(loc)) {
            Some(spot) => spot.stop,
            None => point.key[t] == Value::from(STUCK.0),
        }
    }

    /// Lets the thread go on to its stops.
    pub(in crate::certify) fn settle(
        &mut self,
        mut walkers: Vec<Walker>,
        t: usize,
        next: &mut Vec<Point>,
    ) -> Result<(), Doubt> {
        let mut known: HashSet<(Vec<Value>, Rc<Past>)> = HashSet::new();
        while let Some((mut point, past)) = walkers.pop() {
            self.limits.spend(16 + point.key.len() / 8)?;
            if point.at(t) == STUCK {
                next.push(point);
                continue;
            }
            self.forget(&mut point, t);
            let spot = self.spot(&point, t).expect("a thread that walks is not stuck");
            let past = past.and_then(|past| self.still_lags(&point, spot, &past));
            let (stop, stores) = (spot.stop, spot.stores);
            if stop && stores {
                point.pasts[t] = past.map_or(0, |past| self.number(past));
                next.push(point);
                continue;
            }
            // A thread that lags and does not wait may go on, over what does not need it to be in step.
            let past = past.map(Rc::new);
            let fresh = |past: &Rc<Past>| !stop || known.insert((point.key.clone(), past.clone()));
            if !stop || past.as_ref().is_some_and(fresh) {
                let before = walkers.len();
                for k in 0..self.ways(&point, t) {
                    let instr = &self.way(&point, t, k).edge.instr;
                    if instr.is_local() || matches!(instr, Instr::Load { .. }) || !stop {
                        self.take(&point, past.as_ref(), t, k, &mut walkers)?;
                    }
                }
                if !stop && walkers.len() == before {
                    self.get_stuck(&mut point, t)?;
                }
            }
            if stop || point.at(t) == STUCK {
                next.push(point);
            }
        }
        Ok(())
    }

    /// What is left of a past where the thread has come to, unless that is no more than the present memory.
    fn still_lags(&self, point: &Point, spot: &Spot<'_>, past: &Past) -> Option<Past> {
        let past = past.restrict(&spot.relevant_set);
        let now = Past::of(self.memory_of(point), &spot.relevant);
        (!past.is_below(&now)).then_some(past)
    }

    /// The thread never moves again, because no condition holds or because it has gone wrong.
    pub(in crate::certify) fn get_stuck(&self, point: &mut Point, t: usize) -> Result<(), Doubt> {
        if !self.graphs[t].watched.is_subset(self.live(point, t)) {
            let what = "is stuck where a register is dead that the goal looks at";
            return Err(Doubt::refuted(format!("thread {} {what}", self.program.threads()[t].name())));
        }
        point.go(t, STUCK);
        self.forget(point, t);
        Ok(())
    }

    pub(super) fn way(&self, point: &Point, t: usize, k: usize) -> &PassedThrough<'a> {
        &self.spot(point, t).expect("a thread with edges stands somewhere").ways[k]
    }

    /// The instruction of an edge, if it may be taken as far as side conditions go; none if the thread goes
    /// wrong on it, and that is allowed.
    fn possible(&self, point: &Point, t: usize, k: usize) -> Result<Option<&'a Instr>, Doubt> {
        let way = self.way(point, t, k);
        let (thread, instr) = (&self.program.threads()[t], &way.edge.instr);
        let refuted = |what: &str| {
            let text = thread.show_instr(self.program, instr);
            Err(Doubt::refuted(format!("`{text}` of thread {} {what}", thread.name())))
        };
        match (way.flaw, trap(self.program, self.registers_of(point, t), instr)) {
            (Some(flaw), _) => refuted(flaw),
            (None, None) => Ok(Some(instr)),
            (None, Some(_)) if self.ignores_errors => Ok(None),
            (None, Some(_)) => refuted("can go wrong"),
        }
    }

    /// What an edge leads to, for a thread that lags behind with this past, or is in step.
    fn take(
        &mut self,
        point: &Point,
        past: Option<&Rc<Past>>,
        t: usize,
        k: usize,
        walkers: &mut Vec<Walker>,
    ) -> Result<(), Doubt> {
        let Some(instr) = self.possible(point, t, k)? else {
            let mut wrong = point.clone();
            wrong.pasts[t] = 0;
            self.get_stuck(&mut wrong, t)?;
            walkers.push((wrong, None));
            return Ok(());
        };
        let value = |e| eval(self.registers_of(point, t), e).expect("a division by zero has been noticed");
        let mut next = point.clone();
        next.go(t, self.way(point, t, k).edge.to);
        next.pasts[t] = 0;
        let slot = |r: Reg| self.register_slot(t, r);
        match instr {
            Instr::Assume(e) if value(e) == 0 => return Ok(()),
            Instr::Lock if point.lock().is_some() => return Ok(()),
            Instr::Unlock if point.lock() != Some(t) => return Ok(()),
            Instr::Assume(_) | Instr::Assert(_) | Instr::Nop => walkers.push((next, past.cloned())),
            Instr::Assign { dst, value: e } => {
                next.key[slot(*dst)] = value(e);
                walkers.push((next, past.cloned()));
            }
            Instr::Any { dst, .. } => {
                for choice in choices(instr).flatten() {
                    self.limits.spend(1 + next.key.len() / 8)?;
                    next.key[slot(*dst)] = choice;
                    walkers.push((next.clone(), past.cloned()));
                }
            }
            Instr::Load { dst, addr, .. } => {
                let cell = Addr(value(addr) as u32);
                for (read, left) in self.reads(point, past, t, cell)? {
                    next.key[slot(*dst)] = read;
                    walkers.push((next.clone(), left));
                }
            }
            Instr::Store { addr, value: e, .. } => {
                let (cell, stored) = (Addr(value(addr) as u32), value(e));
                next.key[self.memory + cell.index()] = stored;
                self.publish(point, &mut next, t);
                let own = past.map(|past| {
                    let spot = self.spot(point, t).expect("a thread that stores stands somewhere");
                    let mut past = Past::clone(past);
                    past.mark(cell, stored);
                    past.append(seen(self.memory_of(&next), &spot.relevant));
                    Rc::new(past)
                });
                walkers.push((next, own));
            }
            Instr::Rmw { dst, addr, op } => {
                let cell = self.memory + value(addr) as usize;
                next.key[cell] = modified(self.registers_of(point, t), *dst, op, point.key[cell]);
                next.key[slot(*dst)] = point.key[cell];
                self.publish(point, &mut next, t);
                walkers.push((next, None));
            }
            Instr::Fence | Instr::Membarrier | Instr::Partial(FenceKinds { sl: true, .. }) => {
                walkers.push((next, None));
            }
            Instr::Partial(_) => walkers.push((next, past.cloned())),
            Instr::Lock => {
                for u in (0..next.pasts.len()).filter(|&u| u != t) {
                    next.pasts[u] = self.spelled_out(point, u);
                }
                next.set_lock(Some(t));
                walkers.push((next, None));
            }
            Instr::Unlock => {
                next.set_lock(None);
                self.publish(point, &mut next, t);
                walkers.push((next, None));
            }
        }
        Ok(())
    }

    /// The values that a load may find, each with what is left of the past.
    pub(super) fn reads(
        &self,
        point: &Point,
        past: Option<&Rc<Past>>,
        t: usize,
        cell: Addr,
    ) -> Result<Vec<Found>, Doubt> {
        let spot = self.spot(point, t).expect("a thread that loads stands somewhere");
        if self.model == Model::Tso && !spot.relevant_set.contains(cell.index()) {
            let thread = &self.program.threads()[t];
            let (name, place) = (thread.name(), thread.location_name(point.at(t)));
            let cell = self.program.cell_name(cell);
            return Err(Doubt::refuted(format!(
                "thread {name} loads {cell} at {place}, where it is not relevant"
            )));
        }
        let Some(past) = past else { return Ok(vec![(point.key[self.cell_slot(cell)], None)]) };
        self.limits.spend(past.segments.iter().map(Vec::len).sum())?;
        Ok(past.reads(cell).into_iter().map(|(value, left)| (value, Some(Rc::new(left)))).collect())
    }

    /// Lets the others see what memory is now, if no block keeps it from them.
    fn publish(&mut self, before: &Point, next: &mut Point, t: usize) {
        if next.lock().is_some() || self.model == Model::Sc {
            return;
        }
        for u in (0..next.pasts.len()).filter(|&u| u != t) {
            let Some(spot) = self.spot(next, u).filter(|spot| spot.stores) else { continue };
            let set = seen(self.memory_of(next), &spot.relevant);
            let number = self.spelled_out(before, u);
            let mut past = Past::clone(&self.pasts[number as usize]);
            past.append(set);
            next.pasts[u] = self.number(past);
        }
    }
}
