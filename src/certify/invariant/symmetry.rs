//! Which images does a state have, if threads change places?
//!
//! All permutations of the members of a group are automorphisms, once each exchange of two is (`exchange`
//! verifies that). So a state may be looked for under any of its images. Those are tried whose members come
//! in the order of what can be said of each: equal states have the same image first, unless members are alike;
//! then all orders of those that are alike are tried.

use super::exchange;
use super::machine::{Machine, Point};
use super::{Interchangeable, Invariant, Past};
use crate::certify::Doubt;
use crate::model::{Addr, Program, Reg, Value};
use crate::query::Goal;
use std::collections::HashMap;

#[derive(Default)]
pub struct Symmetry {
    with: Interchangeable,
    /// Which value of a sort stands for which member: group and place.
    named: HashMap<(u32, Value), (usize, usize)>,
}

/// The images of a state that are worth a look, one after the other.
pub(super) struct Images {
    point: Option<Point>,
    /// Per group, the places of the members in the order that is to be tried next, and what was said of each.
    orders: Vec<Vec<(Vec<Value>, usize)>>,
}

impl Symmetry {
    /// The symmetry that the invariant claims, if it is one.
    pub fn verified(program: &Program, goal: &Goal, invariant: &Invariant) -> Result<Symmetry, Doubt> {
        exchange::check(program, goal, invariant)?;
        let with = invariant.symmetry.clone();
        let mut named = HashMap::new();
        for (g, group) in with.groups.iter().enumerate() {
            for (sort, values) in &group.values {
                named.extend(values.iter().enumerate().map(|(k, &value)| ((*sort, value), (g, k))));
            }
        }
        Ok(Symmetry { with, named })
    }

    pub(super) fn images(&self, machine: &Machine<'_>, point: &Point) -> Images {
        let order = |g: usize| {
            let members = 0..self.with.groups[g].threads.len();
            let mut order: Vec<_> = members.map(|k| (self.description(machine, point, g, k), k)).collect();
            order.sort();
            order
        };
        Images { point: Some(point.clone()), orders: (0..self.with.groups.len()).map(order).collect() }
    }

    /// What can be said of a member without naming others: where it stands, what its registers and cells
    /// hold.
    fn description(&self, machine: &Machine<'_>, point: &Point, g: usize, k: usize) -> Vec<Value> {
        let group = &self.with.groups[g];
        let t = group.threads[k].index();
        let mut said = vec![point.at(t).0 as Value, Value::from(point.lock() == Some(t))];
        let mut say = |sort: u32, value: Value| match self.named.get(&(sort, value)) {
            Some(&(of, member)) => said.extend([1, of as Value, Value::from(of == g && member == k)]),
            None => said.extend([0, value, 0]),
        };
        let registers = machine.registers_of(point, t);
        machine.live(point, t).iter().for_each(|r| say(self.with.register_sorts[t][r], registers[r]));
        for cells in &group.cells {
            let cell = cells[k];
            say(self.with.cell_sorts[cell.index()], machine.memory_of(point)[cell.index()]);
        }
        said
    }

    /// The state after the members of a group have changed places: the one that is now at a place was at that
    /// of the order.
    fn permuted(&self, machine: &mut Machine<'_>, point: &Point, g: usize, order: &[usize]) -> Point {
        if order.iter().enumerate().all(|(new, old)| new == *old) {
            return point.clone();
        }
        let group = &self.with.groups[g];
        let mut to = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| to[old] = new);
        let threads: HashMap<usize, usize> =
            (0..order.len()).map(|k| (group.threads[k].index(), group.threads[to[k]].index())).collect();
        let thread = |t: usize| threads.get(&t).copied().unwrap_or(t);
        let cells: HashMap<Addr, Addr> =
            group.cells.iter().flat_map(|list| (0..order.len()).map(|k| (list[k], list[to[k]]))).collect();
        let cell = |c: Addr| cells.get(&c).copied().unwrap_or(c);
        let value = |sort: u32, v: Value| {
            let list = group.values.iter().find(|(of, _)| *of == sort).map(|(_, list)| list);
            let place = list.and_then(|list| Some(list[to[list.iter().position(|&named| named == v)?]]));
            place.unwrap_or(v)
        };
        let mut image = point.clone();
        for t in 0..point.pasts.len() {
            image.key[thread(t)] = point.key[t];
            for (r, &v) in machine.registers_of(point, t).iter().enumerate() {
                let slot = machine.register_slot(thread(t), Reg(r as u16));
                image.key[slot] = value(self.with.register_sorts[t][r], v);
            }
        }
        image.key[point.pasts.len()] = point.lock().map_or(0, |t| thread(t) as Value + 1);
        let held = |c: Addr, v: Value| (cell(c), value(self.with.cell_sorts[c.index()], v));
        for (c, &v) in machine.memory_of(point).iter().enumerate() {
            let (cell, value) = held(Addr(c as u32), v);
            image.key[machine.cell_slot(cell)] = value;
        }
        for (t, &past) in point.pasts.iter().enumerate() {
            image.pasts[thread(t)] = if past == 0 { 0 } else { renamed(machine, past, held) };
        }
        // What 0 has become in a register that is dead says nothing.
        (0..point.pasts.len()).for_each(|t| machine.forget(&mut image, t));
        image
    }
}

impl Images {
    /// The next image, if there is another.
    pub(crate) fn next(&mut self, symmetry: &Symmetry, machine: &mut Machine<'_>) -> Option<Point> {
        let point = self.point.take()?;
        let mut image = point.clone();
        for (g, order) in self.orders.iter().enumerate() {
            let order: Vec<usize> = order.iter().map(|(_, k)| *k).collect();
            image = symmetry.permuted(machine, &image, g, &order);
        }
        let more = self
            .orders
            .iter_mut()
            .any(|order| order.chunk_by_mut(|a, b| a.0 == b.0).any(|alike| advance(alike, |a, b| a.1 < b.1)));
        self.point = more.then_some(point);
        Some(image)
    }
}

/// Brings the list into its next order, in which the last elements move first. If there is none, it is back in
/// its first order.
fn advance<T>(list: &mut [T], less: impl Fn(&T, &T) -> bool) -> bool {
    let Some(pivot) = (1..list.len()).rfind(|&k| less(&list[k - 1], &list[k])).map(|k| k - 1) else {
        list.reverse();
        return false;
    };
    let with =
        (pivot + 1..list.len()).rfind(|&k| less(&list[pivot], &list[k])).expect("the next one is more");
    list.swap(pivot, with);
    list[pivot + 1..].reverse();
    true
}

/// The past with other cells and values.
fn renamed(machine: &mut Machine<'_>, past: u32, held: impl Fn(Addr, Value) -> (Addr, Value)) -> u32 {
    let mut past = Past::clone(&machine.pasts()[past as usize]);
    past.marks.iter_mut().for_each(|(c, v)| (*c, *v) = held(*c, *v));
    for set in past.segments.iter_mut().flatten() {
        set.iter_mut().for_each(|(c, v)| (*c, *v) = held(*c, *v));
        set.sort_unstable();
    }
    machine.number(past)
}
