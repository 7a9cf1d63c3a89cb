//! Which of the states that differ by the names of threads alone is stored? One representative of each orbit.
//!
//! For every group of interchangeable threads (`alike`) the members are sorted by what they and their cells hold, and
//! the state is renamed accordingly: locations, registers, cells, buffers, the owner of the lock, and the values that
//! stand for members. To be told apart, a value is compared as what it is to the member that holds it: itself,
//! another one, or nobody. Where members name each other, the sorting is repeated with the places they got.
//! Members that are still alike then are put in any order.
//!
//! Why this is sound: a renaming is an automorphism of the machine, so a state and its image have the same steps up to
//! renaming, the same normal forms, and the goal says the same of both. Any image of a state will do as the
//! representative; a poor choice stores more states and loses none. Sleep sets are renamed with their state: which
//! steps are independent is a matter of tables that renaming leaves as they are, so what a sleeping thread
//! would do is covered elsewhere up to renaming.
//! *Twins* are members that can be exchanged without changing the state at all. Only the first of them is
//! explored: what follows from the step of another is the image of what follows from its own. The first must be explored
//! itself, in the same task; a twin of a thread that sleeps is not left out.
//! Not here: how a run is told in the threads' own names; the machine keeps track of the renamings along it.

use super::Sleep;
use super::alike::{Group, groups};
use super::compile::{Compiled, Node, lock_slot};
use super::machine::Work;
use crate::model::Value;
use std::cmp::Ordering;

/// How often members that name each other are sorted anew.
const ROUNDS: usize = 4;

#[derive(Default)]
pub struct Symmetry {
    orbits: Vec<Orbit>,
    /// Per thread and node the registers that matter there, if any group has members at all.
    live: Vec<Vec<Vec<u32>>>,
    /// The sort of each slot.
    sorts: Vec<u32>,
    register_base: Vec<usize>,
    memory: usize,
    lock: usize,
}

/// A group, with what is looked up often.
struct Orbit {
    group: Group,
    /// Per thread its place in the group.
    place: Vec<Option<usize>>,
    /// Per cell its family and the place of its member.
    family: Vec<Option<(usize, usize)>>,
    /// Per slot the values that stand for members there, as an index into the group's.
    named: Vec<Option<usize>>,
    /// Slots of cells that may name members and belong to none of them.
    shared: Vec<u32>,
    /// May one member hold what stands for another?
    may_cross: bool,
}

/// One worker's space for renaming.
#[derive(Default)]
pub struct Renaming {
    vals: Vec<Value>,
    buffers: Vec<Vec<(u32, Value)>>,
    /// The places of a group's members in their new order.
    order: Vec<usize>,
    ranks: Vec<usize>,
    /// Per thread of the representative, which thread of the state it was.
    pub was: Vec<usize>,
}

impl Renaming {
    fn begin(&mut self, threads: usize) {
        self.was.clear();
        self.was.extend(0..threads);
    }

    /// The sleep set of the representative.
    #[inline]
    pub fn sleep(&self, sleep: Sleep) -> Sleep {
        let asleep = |&t: &usize| t < Sleep::BITS as usize && sleep >> t & 1 != 0;
        let bits = self.was.iter().take(Sleep::BITS as usize).enumerate();
        bits.filter(|(_, was)| asleep(was)).fold(0, |all, (t, _)| all | 1 << t)
    }
}

impl Symmetry {
    pub fn of(code: &Compiled) -> Symmetry {
        let (groups, sorts) = groups(code);
        if groups.is_empty() {
            return Symmetry::default();
        }
        Symmetry {
            live: (0..code.threads.len()).map(|t| live(code, t)).collect(),
            orbits: groups.into_iter().map(|group| Orbit::new(code, &sorts, group)).collect(),
            sorts,
            register_base: code.register_base.clone(),
            memory: code.memory,
            lock: lock_slot(code.threads.len()),
        }
    }

    pub fn is_none(&self) -> bool {
        self.orbits.is_empty()
    }

    /// How many threads may change places with others.
    pub fn interchangeable(&self) -> usize {
        self.orbits.iter().map(|o| o.group.members.len()).sum()
    }

    /// Turns the state, in which dead registers have been buried, into its representative.
    pub fn represent(&self, code: &Compiled, work: &mut Work, renaming: &mut Renaming) {
        renaming.begin(code.threads.len());
        for orbit in &self.orbits {
            self.sort(orbit, work, renaming);
            if renaming.order.iter().enumerate().any(|(new, old)| new != *old) {
                self.rename(code, orbit, work, renaming);
            }
        }
    }

    /// Threads whose steps need not be explored because a twin's are: each with that twin.
    pub fn twins(&self, work: &Work, renaming: &mut Renaming, twins: &mut Vec<(usize, usize)>) {
        twins.clear();
        for orbit in &self.orbits {
            if self.crosses(orbit, work) || self.is_named_outside(orbit, work) {
                continue;
            }
            renaming.ranks.clear();
            renaming.ranks.resize(orbit.group.members.len(), 0);
            let members = &orbit.group.members;
            for i in 1..members.len() {
                if self.compare(orbit, work, &renaming.ranks, i - 1, i) == Ordering::Equal {
                    twins.push((members[i], members[i - 1]));
                }
            }
        }
    }

    /// Sorts the members; `renaming.order` says how.
    fn sort(&self, orbit: &Orbit, work: &Work, renaming: &mut Renaming) {
        let members = orbit.group.members.len();
        let Renaming { order, ranks, .. } = renaming;
        order.clear();
        order.extend(0..members);
        ranks.clear();
        ranks.resize(members, 0);
        self.insert_all(orbit, work, order, ranks);
        if !self.crosses(orbit, work) {
            return;
        }
        for _ in 0..ROUNDS {
            let mut next = vec![0; members];
            for k in 1..members {
                let (before, this) = (order[k - 1], order[k]);
                let tied = self.compare(orbit, work, ranks, before, this) == Ordering::Equal;
                next[this] = if tied { next[before] } else { k };
            }
            if next == *ranks {
                return;
            }
            *ranks = next;
            self.insert_all(orbit, work, order, ranks);
        }
    }

    /// Sorting by insertion, for a state is mostly in order already.
    fn insert_all(&self, orbit: &Orbit, work: &Work, order: &mut [usize], ranks: &[usize]) {
        for k in 1..order.len() {
            let mut at = k;
            while at > 0 && self.compare(orbit, work, ranks, order[at - 1], order[at]) == Ordering::Greater {
                order.swap(at - 1, at);
                at -= 1;
            }
        }
    }

    /// The order of two members, by all that can be said of them without saying who they are.
    fn compare(&self, orbit: &Orbit, work: &Work, ranks: &[usize], i: usize, j: usize) -> Ordering {
        let (t, u) = (orbit.group.members[i], orbit.group.members[j]);
        let vals = &work.vals;
        let owner = vals[self.lock];
        let shared = |&slot: &u32| {
            let named = orbit.named_by(slot, vals[slot as usize]);
            (named == Some(i)).cmp(&(named == Some(j)))
        };
        let slot = |a: usize, b: usize| {
            let (v, w) = (vals[a], vals[b]);
            match orbit.named[a] {
                None => v.cmp(&w),
                Some(_) => orbit.seen(a as u32, v, i, ranks).cmp(&orbit.seen(b as u32, w, j, ranks)),
            }
        };
        let register = |r: &u32| slot(self.register_base[t] + *r as usize, self.register_base[u] + *r as usize);
        let cell = |family: &Vec<u32>| slot(self.memory + family[i] as usize, self.memory + family[j] as usize);
        vals[t]
            .cmp(&vals[u])
            .then_with(|| first_difference(orbit.shared.iter().map(shared)))
            .then_with(|| (owner == t as Value + 1).cmp(&(owner == u as Value + 1)))
            .then_with(|| first_difference(self.live[t][vals[t] as usize].iter().map(register)))
            .then_with(|| first_difference(orbit.group.cells.iter().map(cell)))
            .then_with(|| match work.buffers.is_empty() {
                true => Ordering::Equal,
                false => self.compare_buffers(orbit, work, ranks, i, j),
            })
    }

    fn compare_buffers(&self, orbit: &Orbit, work: &Work, ranks: &[usize], i: usize, j: usize) -> Ordering {
        let seen = |member: usize, &(cell, value): &(u32, Value)| {
            let place = match orbit.family[cell as usize] {
                None => (Seen::Nobody(cell as Value), 0),
                Some((family, owner)) if owner == member => (Seen::Itself, family),
                Some((family, owner)) => (Seen::Other(ranks[owner]), family),
            };
            (place, orbit.seen((self.memory + cell as usize) as u32, value, member, ranks))
        };
        let (t, u) = (orbit.group.members[i], orbit.group.members[j]);
        let (own, other) = (&work.buffers[t], &work.buffers[u]);
        let entries = own.iter().zip(other).map(|(a, b)| seen(i, a).cmp(&seen(j, b)));
        own.len().cmp(&other.len()).then_with(|| first_difference(entries))
    }

    /// Does a member hold what stands for another one?
    fn crosses(&self, orbit: &Orbit, work: &Work) -> bool {
        if !orbit.may_cross && work.buffers.is_empty() {
            return false;
        }
        let foreign = |i: usize, slot: usize| {
            orbit.named_by(slot as u32, work.vals[slot]).is_some_and(|named| named != i)
        };
        let member = |(i, &t): (usize, &usize)| {
            let node = work.vals[t] as usize;
            let mut registers = self.live[t][node].iter().map(|r| self.register_base[t] + *r as usize);
            let mut cells = orbit.group.cells.iter().map(|family| self.memory + family[i] as usize);
            registers.any(|s| foreign(i, s))
                || cells.any(|s| foreign(i, s))
                || self.pending(work, t).iter().any(|e| self.names(orbit, e).any(|named| named != i))
        };
        orbit.group.members.iter().enumerate().any(member)
    }

    /// Does a thread outside the group hold what stands for a member, or wait to store to a member's cell?
    fn is_named_outside(&self, orbit: &Orbit, work: &Work) -> bool {
        let outside = (0..self.live.len()).filter(|&t| orbit.place[t].is_none());
        outside.into_iter().any(|t| {
            let node = work.vals[t] as usize;
            let mut registers = self.live[t][node].iter().map(|r| self.register_base[t] + *r as usize);
            registers.any(|s| orbit.named_by(s as u32, work.vals[s]).is_some())
                || self.pending(work, t).iter().any(|e| self.names(orbit, e).next().is_some())
        })
    }

    fn pending<'a>(&self, work: &'a Work, t: usize) -> &'a [(u32, Value)] {
        work.buffers.get(t).map_or(&[], |b| b)
    }

    /// The members that a waiting store names, by its cell and by its value.
    fn names(&self, orbit: &Orbit, &(cell, value): &(u32, Value)) -> impl Iterator<Item = usize> + use<> {
        let owner = orbit.family[cell as usize].map(|(_, owner)| owner);
        let named = orbit.named_by((self.memory + cell as usize) as u32, value);
        owner.into_iter().chain(named)
    }

    /// Puts the members of the group into their new order.
    fn rename(&self, code: &Compiled, orbit: &Orbit, work: &mut Work, renaming: &mut Renaming) {
        let Renaming { vals, buffers, order, ranks: new_place, was, .. } = renaming;
        new_place.clear();
        new_place.resize(order.len(), 0);
        order.iter().enumerate().for_each(|(new, &old)| new_place[old] = new);
        let renamed = |slot: usize, v: Value| orbit.renamed(slot as u32, v, new_place);
        vals.clone_from(&work.vals);
        let members = &orbit.group.members;
        for (new, &old) in order.iter().enumerate() {
            let (t, from) = (members[new], members[old]);
            work.vals[t] = vals[from];
            was[t] = from;
            for family in &orbit.group.cells {
                let (to, from) = (self.memory + family[new] as usize, self.memory + family[old] as usize);
                work.vals[to] = renamed(to, vals[from]);
            }
        }
        for t in 0..self.live.len() {
            let from = orbit.place[t].map_or(t, |new| members[order[new]]);
            let node = work.vals[t] as usize;
            for &r in &self.live[t][node] {
                let (to, from) = (self.register_base[t] + r as usize, self.register_base[from] + r as usize);
                work.vals[to] = renamed(to, vals[from]);
            }
            if orbit.place[t].is_some() {
                code.threads[t].nodes[node].dead.iter().for_each(|&(slot, v)| work.vals[slot as usize] = v);
            }
        }
        for &slot in &orbit.shared {
            work.vals[slot as usize] = renamed(slot as usize, vals[slot as usize]);
        }
        if let Some(old) = usize::try_from(vals[self.lock] - 1).ok().and_then(|t| orbit.place[t]) {
            work.vals[self.lock] = members[new_place[old]] as Value + 1;
        }
        if !work.buffers.is_empty() {
            std::mem::swap(buffers, &mut work.buffers);
            work.buffers.resize_with(buffers.len(), Vec::new);
            for (t, buffer) in work.buffers.iter_mut().enumerate() {
                let from = orbit.place[t].map_or(t, |new| members[order[new]]);
                buffer.clear();
                buffer.extend(buffers[from].iter().map(|&(cell, value)| {
                    let place = orbit.family[cell as usize];
                    let to = place.map_or(cell, |(family, old)| orbit.group.cells[family][new_place[old]]);
                    (to, renamed(self.memory + cell as usize, value))
                }));
            }
        }
    }
}

fn first_difference(mut all: impl Iterator<Item = Ordering>) -> Ordering {
    all.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// What a value is to the member that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Nobody(Value),
    Itself,
    /// A member of this rank.
    Other(usize),
}

impl Orbit {
    fn new(code: &Compiled, sorts: &[u32], group: Group) -> Orbit {
        let place = |t: usize| group.members.iter().position(|&m| m == t);
        let mut family = vec![None; code.cells];
        for (f, cells) in group.cells.iter().enumerate() {
            cells.iter().enumerate().for_each(|(i, &c)| family[c as usize] = Some((f, i)));
        }
        let named: Vec<Option<usize>> =
            sorts.iter().map(|sort| group.values.iter().position(|(s, _)| s == sort)).collect();
        let names = |slot: usize| named[slot].is_some() && code.bounds[slot].is_some();
        let shared = (0..code.cells).filter(|&c| family[c].is_none()).map(|c| code.memory + c);
        let shared = shared.filter(|&s| names(s)).map(|s| s as u32).collect();
        let registers = |t: usize| {
            let end = code.register_base.get(t + 1).copied().unwrap_or(code.memory);
            code.register_base[t]..end
        };
        let may_cross = group.members.iter().any(|&t| registers(t).any(names))
            || group.cells.iter().flatten().any(|&c| names(code.memory + c as usize));
        Orbit { place: (0..code.threads.len()).map(place).collect(), family, named, shared, may_cross, group }
    }

    /// The member that a value stands for in a slot.
    #[inline]
    fn named_by(&self, slot: u32, v: Value) -> Option<usize> {
        let values = &self.group.values[self.named[slot as usize]?].1;
        values.iter().position(|&own| own == v)
    }

    #[inline]
    fn seen(&self, slot: u32, v: Value, member: usize, ranks: &[usize]) -> Seen {
        match self.named_by(slot, v) {
            None => Seen::Nobody(v),
            Some(named) if named == member => Seen::Itself,
            Some(named) => Seen::Other(ranks[named]),
        }
    }

    #[inline]
    fn renamed(&self, slot: u32, v: Value, new_place: &[usize]) -> Value {
        match (self.named[slot as usize], self.named_by(slot, v)) {
            (Some(which), Some(old)) => self.group.values[which].1[new_place[old]],
            _ => v,
        }
    }
}

/// Per node where states are stored: the registers of the thread that have values of their own there.
fn live(code: &Compiled, t: usize) -> Vec<Vec<u32>> {
    let base = code.register_base[t];
    let end = code.register_base.get(t + 1).copied().unwrap_or(code.memory);
    let stored = (base..end).filter(|&s| code.bounds[s].is_some_and(|i| i.width() > 0));
    let of = |node: &Node| {
        // Both in ascending order.
        let mut dead = node.dead.iter().map(|d| d.0 as usize).peekable();
        let alive = |s: &usize| {
            while dead.next_if(|d| d < s).is_some() {}
            dead.peek() != Some(s)
        };
        stored.clone().filter(alive).map(|s| (s - base) as u32).collect()
    };
    code.threads[t].nodes.iter().filter(|n| n.stop).map(of).collect()
}
