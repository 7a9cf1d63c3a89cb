//! Which of the states that differ by the names of threads alone is stored? One representative of each orbit
//! `[IpDill96]`.
//!
//! For every group of interchangeable threads (`automorphism`) the members are sorted by what they and their
//! cells hold, and the state is renamed accordingly: locations, registers, cells, buffers, the owner of the
//! lock, and the values that stand for members. To be told apart, a value is compared as what it is to the
//! member that holds it: itself, another one, or none. Where members name each other, the sorting is repeated
//! with the places they got. Members that are still alike then are put in any order.
//!
//! Why this is sound: a renaming is an automorphism of the machine, so a state and its image have the same
//! steps up to renaming, the same normal forms, and the goal says the same of both. Any image of a state will
//! do as the representative; a poor choice stores more states and loses none. Sleep sets are renamed with
//! their state: which steps are independent is a matter of tables that renaming leaves as they are, so what a
//! sleeping thread would do is covered elsewhere up to renaming.
//! *Twins* are members that can be exchanged without changing the state at all. Only the first of them is
//! explored: what follows from the step of another is the image of what follows from its own. The first must
//! be explored itself, in the same task; a twin of a thread that sleeps is not left out.
//! Not here: how a run is told in the threads' own names; the machine keeps track of the renamings along it.

mod carried;

pub(crate) use carried::{Carried, Names, Renamed, Said};

use super::automorphism::{Group, groups};
use super::compile::{Compiled, Node, bits, lock_slot};
use super::core::{Cells, Work};
use crate::model::Value;
use crate::reach::Sleep;
use carried::{Key, Named};

/// How often members that name each other are sorted anew.
const ROUNDS: usize = 4;

#[derive(Default)]
pub(crate) struct Symmetry {
    orbits: Vec<Orbit>,
    /// Per thread and node the registers that matter there, if any group has members at all.
    live: Vec<Vec<Vec<u32>>>,
    register_base: Vec<usize>,
    memory: usize,
    lock: usize,
}

/// A group, with what is looked up often.
pub(crate) struct Orbit {
    group: Group,
    /// Per thread its place in the group.
    place: Vec<Option<usize>>,
    /// Per cell its family and the place of its member.
    family: Vec<Option<(usize, usize)>>,
    /// Per slot the values that stand for members there, as an index into the group's.
    named: Vec<Option<usize>>,
    /// Slots of cells that may name members and belong to none of them.
    shared: Vec<u32>,
}

/// One worker's space for renaming.
#[derive(Default)]
pub(crate) struct Renaming {
    vals: Vec<Value>,
    /// What can be said of each member of a group, one after the other, and where each ends.
    keys: Vec<Value>,
    ends: Vec<usize>,
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

    fn clear_ranks(&mut self, members: usize) {
        self.ranks.clear();
        self.ranks.resize(members, 0);
    }

    /// What is said of a member.
    #[inline]
    fn key(&self, member: usize) -> &[Value] {
        let start = if member == 0 { 0 } else { self.ends[member - 1] };
        &self.keys[start..self.ends[member]]
    }

    /// Sorting by insertion, for a state is mostly in order already.
    fn sort(&mut self) {
        for k in 1..self.order.len() {
            let mut at = k;
            while at > 0 && self.key(self.order[at - 1]) > self.key(self.order[at]) {
                self.order.swap(at - 1, at);
                at -= 1;
            }
        }
    }

    /// Per member its place in the new order, the same for members that are alike.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.order.len()];
        for (k, pair) in self.order.windows(2).enumerate() {
            let tied = self.key(pair[0]) == self.key(pair[1]);
            places[pair[1]] = if tied { places[pair[0]] } else { k + 1 };
        }
        places
    }

    /// The sleep set of the representative.
    #[inline]
    pub(crate) fn sleep(&self, sleep: Sleep) -> Sleep {
        let asleep = |&t: &usize| t < Sleep::BITS as usize && sleep >> t & 1 != 0;
        let bits = self.was.iter().take(Sleep::BITS as usize).enumerate();
        bits.filter(|(_, was)| asleep(was)).fold(0, |all, (t, _)| all | 1 << t)
    }
}

impl Symmetry {
    pub(crate) fn of(code: &Compiled) -> Symmetry {
        let (groups, sorts) = groups(code);
        if groups.is_empty() {
            return Symmetry::default();
        }
        Symmetry {
            live: (0..code.threads.len()).map(|t| live(code, t)).collect(),
            orbits: groups.into_iter().map(|group| Orbit::new(code, &sorts, group)).collect(),
            register_base: code.register_base.clone(),
            memory: code.memory,
            lock: lock_slot(code.threads.len()),
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.orbits.is_empty()
    }

    /// How many threads may change places with others.
    pub(crate) fn interchangeable(&self) -> usize {
        self.members().map(<[usize]>::len).sum()
    }

    /// Per group the threads that may change places.
    pub(crate) fn members(&self) -> impl Iterator<Item = &[usize]> {
        self.orbits.iter().map(|o| &o.group.members[..])
    }

    /// Turns the state, in which dead registers have been cleared, into its representative. What the `dead`
    /// cells hold says nothing. The answer is whether a member got another place: then they may hold
    /// something else now.
    pub(crate) fn represent(
        &self,
        code: &Compiled,
        work: &mut Work,
        carried: &mut impl Carried,
        dead: &Cells,
        renaming: &mut Renaming,
    ) -> bool {
        renaming.begin(code.threads.len());
        let mut any = false;
        for orbit in &self.orbits {
            self.sort(orbit, work, carried, dead, renaming);
            if renaming.order.iter().enumerate().any(|(new, old)| new != *old) {
                self.rename(code, orbit, work, carried, renaming);
                any = true;
            }
        }
        any
    }

    /// Threads whose steps need not be explored because a twin's are: each with that twin.
    pub(crate) fn twins(
        &self,
        work: &Work,
        carried: &impl Carried,
        dead: &Cells,
        renaming: &mut Renaming,
        twins: &mut Vec<(usize, usize)>,
    ) {
        twins.clear();
        for orbit in &self.orbits {
            renaming.clear_ranks(orbit.group.members.len());
            let crosses = self.describe(orbit, work, carried, dead, renaming);
            if crosses || self.is_named_outside(orbit, work, carried) {
                continue;
            }
            let members = &orbit.group.members;
            let same = (1..members.len()).filter(|&i| renaming.key(i - 1) == renaming.key(i));
            twins.extend(same.map(|i| (members[i], members[i - 1])));
        }
    }

    /// Sorts the members; `renaming.order` says how.
    fn sort(
        &self,
        orbit: &Orbit,
        work: &Work,
        carried: &impl Carried,
        dead: &Cells,
        renaming: &mut Renaming,
    ) {
        renaming.order.clear();
        renaming.order.extend(0..orbit.group.members.len());
        renaming.clear_ranks(orbit.group.members.len());
        let crosses = self.describe(orbit, work, carried, dead, renaming);
        renaming.sort();
        if !crosses {
            return;
        }
        for _ in 0..ROUNDS {
            let next = renaming.places();
            if next == renaming.ranks {
                return;
            }
            renaming.ranks = next;
            self.describe(orbit, work, carried, dead, renaming);
            renaming.sort();
        }
    }

    /// Writes down all that can be said of each member without naming it; the answer is whether a member
    /// holds what stands for another.
    fn describe(
        &self,
        orbit: &Orbit,
        work: &Work,
        carried: &impl Carried,
        dead: &Cells,
        renaming: &mut Renaming,
    ) -> bool {
        let Renaming { keys, ends, ranks, .. } = renaming;
        let (vals, owner) = (&work.vals, work.vals[self.lock]);
        keys.clear();
        ends.clear();
        let key = Key { words: keys, crosses: false };
        let mut said = Said { names: self.names(orbit), member: 0, ranks, key };
        for (i, &t) in orbit.group.members.iter().enumerate() {
            said.member = i;
            let key = &mut said.key;
            key.plain(vals[t]);
            for &slot in &orbit.shared {
                let slot = slot as usize;
                let named = !self.is_dead(slot, dead) && orbit.named_by(slot, vals[slot]) == Some(i);
                key.plain(named as Value);
            }
            key.plain((owner == t as Value + 1) as Value);
            let registers =
                self.live[t][vals[t] as usize].iter().map(|r| self.register_base[t] + *r as usize);
            let cells = orbit.group.cells.iter().map(|family| self.memory + family[i] as usize);
            for slot in registers.chain(cells) {
                match orbit.named[slot] {
                    None => key.plain(vals[slot]),
                    Some(_) if self.is_dead(slot, dead) => key.named(Named::NoMember(0)),
                    Some(_) => key.named(orbit.naming(slot, vals[slot], i, ranks)),
                }
            }
            carried.describe(t, &mut said);
            ends.push(said.key.words.len());
        }
        said.key.crosses
    }

    fn names<'a>(&self, orbit: &'a Orbit) -> Names<'a> {
        Names { orbit, memory: self.memory }
    }

    #[inline]
    fn is_dead(&self, slot: usize, dead: &Cells) -> bool {
        slot.checked_sub(self.memory).is_some_and(|cell| dead.contains(cell))
    }

    /// Does a thread outside the group hold or carry what stands for a member?
    fn is_named_outside(&self, orbit: &Orbit, work: &Work, carried: &impl Carried) -> bool {
        let outside = (0..self.live.len()).filter(|&t| orbit.place[t].is_none());
        outside.into_iter().any(|t| {
            let node = work.vals[t] as usize;
            let mut registers = self.live[t][node].iter().map(|r| self.register_base[t] + *r as usize);
            registers.any(|s| orbit.named_by(s, work.vals[s]).is_some())
                || carried.names_member(t, &self.names(orbit))
        })
    }

    /// A value in a cell of a representative, as the run calls it: per thread there, `names` has the thread
    /// of the run.
    pub(crate) fn in_run(&self, names: &[usize], cell: u32, value: Value) -> Value {
        let mut called = (cell, value);
        for orbit in &self.orbits {
            let member = |t: usize| orbit.place[t].expect("members change places with members");
            let new_place: Vec<usize> = orbit.group.members.iter().map(|&t| member(names[t])).collect();
            let renamed = Renamed { orbit, order: &[], new_place: &new_place, memory: self.memory };
            called = renamed.pair(called.0, called.1);
        }
        called.1
    }

    /// Puts the members of the group into their new order.
    fn rename(
        &self,
        code: &Compiled,
        orbit: &Orbit,
        work: &mut Work,
        carried: &mut impl Carried,
        renaming: &mut Renaming,
    ) {
        let Renaming { vals, order, ranks: new_place, was, .. } = renaming;
        new_place.clear();
        new_place.resize(order.len(), 0);
        order.iter().enumerate().for_each(|(new, &old)| new_place[old] = new);
        let renamed = |slot: usize, v: Value| orbit.renamed(slot, v, new_place);
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
                let dead = bits(&code.threads[t].nodes[node].dead).map(|r| self.register_base[t] + r);
                dead.for_each(|slot| work.vals[slot] = code.template[slot]);
            }
        }
        for &slot in &orbit.shared {
            work.vals[slot as usize] = renamed(slot as usize, vals[slot as usize]);
        }
        if let Some(old) = usize::try_from(vals[self.lock] - 1).ok().and_then(|t| orbit.place[t]) {
            work.vals[self.lock] = members[new_place[old]] as Value + 1;
        }
        carried.rename(&Renamed { orbit, order, new_place, memory: self.memory });
    }
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
        Orbit { place: (0..code.threads.len()).map(place).collect(), family, named, shared, group }
    }

    /// The member that a value stands for in a slot.
    #[inline]
    fn named_by(&self, slot: usize, v: Value) -> Option<usize> {
        let values = &self.group.values[self.named[slot]?].1;
        values.iter().position(|&own| own == v)
    }

    #[inline]
    fn naming(&self, slot: usize, v: Value, holder: usize, ranks: &[usize]) -> Named {
        match self.named_by(slot, v) {
            None => Named::NoMember(v),
            Some(named) => Named::member(named, holder, ranks),
        }
    }

    #[inline]
    fn renamed(&self, slot: usize, v: Value, new_place: &[usize]) -> Value {
        match (self.named[slot], self.named_by(slot, v)) {
            (Some(which), Some(old)) => self.group.values[which].1[new_place[old]],
            _ => v,
        }
    }
}

/// Per node where states are stored: the registers of the thread that have values of their own there.
fn live(code: &Compiled, t: usize) -> Vec<Vec<u32>> {
    let base = code.register_base[t];
    let stored = code.registers(t).filter(|&s| code.bounds[s].is_some_and(|i| i.width() > 0));
    let of = |node: &Node| {
        let alive = |r: &usize| node.dead[r / 64] >> (r % 64) & 1 == 0;
        stored.clone().map(|s| s - base).filter(alive).map(|r| r as u32).collect()
    };
    code.threads[t].nodes.iter().filter(|n| n.scheduling_point).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{MemoryModel, ProgramMachine};
    use crate::front::tso;
    use crate::query::Reductions;
    use crate::query::{Goal, Limits};
    use crate::reach::Order;
    use crate::reach::{Search, explore};

    /// How many threads may change places, and how many states are stored.
    fn counts(source: &str, model: MemoryModel) -> (usize, u64) {
        let program = tso::read(source, &[], &Limits::default()).unwrap().program;
        let machine =
            ProgramMachine::new(&program, &Goal::of(&program), model, Reductions::ALL, &Limits::default())
                .unwrap();
        let found = explore(&machine, &Limits::default(), Search::new(Order::BreadthFirst, 1));
        (machine.interchangeable(), found.states)
    }

    fn interchangeable(source: &str) -> usize {
        counts(source, MemoryModel::Sc).0
    }

    #[test]
    fn copies_of_a_template_are_interchangeable() {
        let race = |goal: &str| {
            format!(
                "shared x; thread p[i in 1..=4]; store [x], i; load r, [x]; won: assume r == i; end; {goal}"
            )
        };
        assert_eq!(interchangeable(&race("forbid two i: p[i]@won")), 4);
        assert_eq!(interchangeable(&race("exists all i: p[i].r == 1")), 0);
        assert_eq!(interchangeable(&race("forbid p[2]@won")), 3);
    }

    #[test]
    fn own_cells_move_with_their_threads() {
        let own = "shared b[3], x; thread p[i in 0..3]; store [b + i], 1; load r, [x]; store [x], 1; load s, [b + i]; end
                   exists two i: p[i].s == 1 && p[i].r == 0";
        assert_eq!(interchangeable(own), 3);
    }

    #[test]
    fn two_threads_that_mirror_each_other_are_interchangeable() {
        let sb =
            "shared x, y; thread p; store [x], 1; load r, [y]; end; thread q; store [y], 1; load r, [x]; end
                  exists p.r == 0 && q.r == 0";
        assert_eq!(counts(sb, MemoryModel::Tso(None)).0, 2);
        assert_eq!(interchangeable(&sb.replace("exists p.r == 0", "exists p.r == 1")), 0);
    }

    #[test]
    fn what_is_not_only_copied_and_compared_does_not_move() {
        let with = |line: &str| {
            format!(
                "shared x; thread p[i in 1..=3]; store [x], i; load r, [x]; {line}; end; exists two i: p[i].r == [x]"
            )
        };
        assert_eq!(interchangeable(&with("nop")), 3);
        assert_eq!(interchangeable(&with("assume r < 3")), 0);
        assert_eq!(interchangeable(&with("s = r + 1; store [x], s")), 0);
        assert_eq!(interchangeable(&with("if r == 2 goto on; store [x], 0; on: nop")), 2);
    }

    #[test]
    fn looking_at_the_others_in_a_fixed_order_is_not_symmetric() {
        let scan = "shared b[3]; thread p[i in 0..3]; store [b + i], 1; repeat k in 0..3 { load r, [b + k]; assume r }
                    end; exists two i: p[i].r == 0";
        assert_eq!(interchangeable(scan), 0);
    }

    #[test]
    fn one_state_is_stored_for_all_orders() {
        let counted = |n: usize| {
            let source = format!(
                "shared x; thread p[i in 1..={n}]; load r, [x]; store [x], 1; load r, [x]; end; exists all i: p[i].r == 0"
            );
            counts(&source, MemoryModel::Sc).1
        };
        assert!(counted(8) < 10 * counted(4), "{} and {}", counted(8), counted(4));
    }
}
