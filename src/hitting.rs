//! Which cheapest choice of elements hits every set? Exact, by branch and bound.
//!
//! The sets are cores: of each, at least one element is needed. Cores of different threads mostly share no
//! elements, so the problem falls into small parts, and each is solved by itself. A part branches over the
//! elements of its smallest core, and cuts branches by the cores that are disjoint: each costs at least its
//! cheapest element. Parts are small enough that a SAT solver or an integer program would cost more to set up
//! than to solve; and what is asked next, all cheapest choices, is one comparison away here. Invariant: all
//! costs are positive, so a cheapest choice has no element that it could do without.

use crate::limits::{Limit, Limits};
use bit_set::BitSet;
use std::collections::{BTreeMap, BTreeSet};

/// What elements cost. A cost that is compared part by part, the first part first, is as good as a number.
pub trait Cost: Copy + Ord {
    const NOTHING: Self;
    /// No choice costs more.
    const MOST: Self;

    /// Both together, at most [`Cost::MOST`].
    fn plus(self, other: Self) -> Self;
}

impl Cost for u64 {
    const NOTHING: u64 = 0;
    const MOST: u64 = u64::MAX;

    fn plus(self, other: u64) -> u64 {
        self.saturating_add(other)
    }
}

/// Every core is a set of elements, by their numbers; `costs` has one entry for each element.
#[derive(Clone, Debug, Default)]
pub struct Cores {
    sets: BTreeSet<Vec<usize>>,
}

impl Cores {
    /// Remembers a core, unless one that is part of it is known. Whether it was new.
    pub fn add(&mut self, mut core: Vec<usize>) -> bool {
        core.sort_unstable();
        core.dedup();
        assert!(!core.is_empty(), "an empty core cannot be hit");
        if self.sets.iter().any(|known| is_part(known, &core)) {
            return false;
        }
        self.sets.retain(|known| !is_part(&core, known));
        self.sets.insert(core)
    }

    /// Adds all of these cores to others.
    pub fn join_into(&self, others: &mut Cores) {
        self.sets.iter().for_each(|core| {
            others.add(core.clone());
        });
    }

    pub fn count(&self) -> usize {
        self.sets.len()
    }

    /// A cheapest choice that hits every core: among equals, the one that the order of the elements prefers.
    pub fn cheapest<C: Cost>(&self, costs: &[C], limits: &Limits) -> Result<Vec<usize>, Limit> {
        let mut all = Vec::new();
        for part in self.parts() {
            all.extend(Part::dominating(&part, costs, limits)?.one()?);
        }
        all.sort_unstable();
        Ok(all)
    }

    /// All cheapest choices, at most so many, and whether there are more.
    pub fn all_cheapest<C: Cost>(
        &self,
        costs: &[C],
        most: usize,
        limits: &Limits,
    ) -> Result<(Vec<Vec<usize>>, bool), Limit> {
        let mut all = vec![vec![]];
        let mut more = false;
        for part in self.parts() {
            let (choices, cut) = Part::new(&part, costs, limits).all(most)?;
            let pairs = all.iter().flat_map(|a| choices.iter().map(move |b| [&a[..], &b[..]].concat()));
            let joined: Vec<Vec<usize>> = pairs.take(most).collect();
            more |= cut || all.len() * choices.len() > most;
            all = joined;
        }
        all.iter_mut().for_each(|choice| choice.sort_unstable());
        all.sort();
        Ok((all, more))
    }

    /// Cores that hang together by common elements, apart from those that do not.
    fn parts(&self) -> Vec<Vec<&[usize]>> {
        let mut parts: Vec<(BitSet, Vec<&[usize]>)> = Vec::new();
        for core in &self.sets {
            let mut elements: BitSet = core.iter().copied().collect();
            let mut cores = vec![&core[..]];
            parts.retain_mut(|(others, theirs)| {
                let apart = others.is_disjoint(&elements);
                if !apart {
                    elements.union_with(others);
                    cores.append(theirs);
                }
                apart
            });
            parts.push((elements, cores));
        }
        parts.into_iter().map(|(_, cores)| cores).collect()
    }
}

/// Are all elements of the one, in ascending order, among those of the other?
fn is_part(small: &[usize], large: &[usize]) -> bool {
    small.iter().all(|e| large.binary_search(e).is_ok())
}

pub fn cost<C: Cost>(choice: &[usize], costs: &[C]) -> C {
    choice.iter().map(|&e| costs[e]).fold(C::NOTHING, C::plus)
}

/// Cores that have to be looked at together.
struct Part<'a, C> {
    cores: Vec<Vec<usize>>,
    costs: &'a [C],
    limits: &'a Limits,
}

/// What has been found so far.
struct Best<C> {
    cost: C,
    choices: Vec<Vec<usize>>,
    /// How many choices of the least cost are wanted.
    most: usize,
    more: bool,
}

impl<'a, C: Cost> Part<'a, C> {
    fn new(cores: &[&[usize]], costs: &'a [C], limits: &'a Limits) -> Self {
        Part { cores: cores.iter().map(|c| c.to_vec()).collect(), costs, limits }
    }

    /// The same without elements that another does the work of, for no more cost.
    fn dominating(cores: &[&[usize]], costs: &'a [C], limits: &'a Limits) -> Result<Self, Limit> {
        let mut hits: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (core, &e) in cores.iter().enumerate().flat_map(|(i, c)| c.iter().map(move |e| (i, e))) {
            hits.entry(e).or_default().push(core);
        }
        // Of those that do the same work, the cheapest; among equals, the first.
        let mut of_work: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for (e, work) in hits {
            limits.spend(1 + work.len())?;
            let best = of_work.entry(work).or_insert(e);
            if costs[e] < costs[*best] {
                *best = e;
            }
        }
        let hits: Vec<(usize, BitSet)> =
            of_work.into_iter().map(|(work, e)| (e, work.into_iter().collect())).collect();
        limits.spend(hits.len().saturating_mul(hits.len()))?;
        let better = |(e, of_e): &(usize, BitSet), (f, of_f): &(usize, BitSet)| {
            let as_good = of_f.is_subset(of_e) && costs[*e] <= costs[*f];
            let equal = of_f.count() == of_e.count() && costs[*e] == costs[*f];
            as_good && (!equal || e < f)
        };
        let kept: BTreeSet<usize> =
            hits.iter().filter(|f| !hits.iter().any(|e| better(e, f))).map(|(f, _)| *f).collect();
        let keep = |c: &&[usize]| c.iter().copied().filter(|e| kept.contains(e)).collect();
        Ok(Part { cores: cores.iter().map(keep).collect(), costs, limits })
    }

    fn one(&self) -> Result<Vec<usize>, Limit> {
        let (mut choices, _) = self.all(1)?;
        Ok(choices.pop().expect("cores that are not empty can be hit"))
    }

    fn all(&self, most: usize) -> Result<(Vec<Vec<usize>>, bool), Limit> {
        let mut best = Best { cost: C::MOST, choices: vec![], most, more: false };
        let open: Vec<usize> = (0..self.cores.len()).collect();
        self.branch(&mut vec![], &open, &mut BitSet::new(), &mut best)?;
        Ok((best.choices, best.more))
    }

    /// Completes a choice that leaves these cores open, without the elements that were left out before.
    fn branch(
        &self,
        chosen: &mut Vec<usize>,
        open: &[usize],
        out: &mut BitSet,
        best: &mut Best<C>,
    ) -> Result<(), Limit> {
        self.limits.spend(open.iter().map(|&c| 2 * self.cores[c].len()).sum())?;
        let so_far = cost(chosen, self.costs);
        let Some(&next) = open.iter().min_by_key(|&&c| self.left(c, out).count()) else {
            best.take(so_far, chosen);
            return Ok(());
        };
        let Some(bound) = self.bound(open, out) else { return Ok(()) };
        let least = so_far.plus(bound);
        if least > best.cost || (least == best.cost && best.most == 1) {
            return Ok(());
        }
        let elements: Vec<usize> = self.left(next, out).collect();
        for &e in &elements {
            let rest: Vec<usize> = open.iter().copied().filter(|&c| !self.cores[c].contains(&e)).collect();
            chosen.push(e);
            self.branch(chosen, &rest, out, best)?;
            chosen.pop();
            out.insert(e);
        }
        elements.iter().for_each(|&e| {
            out.remove(e);
        });
        Ok(())
    }

    fn left(&self, core: usize, out: &BitSet) -> impl Iterator<Item = usize> {
        self.cores[core].iter().copied().filter(|&e| !out.contains(e))
    }

    /// What the open cores cost at least; nothing if one of them has no element left.
    fn bound(&self, open: &[usize], out: &BitSet) -> Option<C> {
        let (mut taken, mut bound) = (BitSet::new(), C::NOTHING);
        let mut cores: Vec<(usize, Vec<usize>)> = Vec::with_capacity(open.len());
        for &core in open {
            let left: Vec<usize> = self.left(core, out).collect();
            cores.push((left.len(), left));
        }
        cores.sort();
        for (count, left) in cores {
            if count == 0 {
                return None;
            }
            if left.iter().all(|&e| !taken.contains(e)) {
                let cheapest = left.iter().map(|&e| self.costs[e]).min().expect("it is not empty");
                bound = bound.plus(cheapest);
                taken.extend(left);
            }
        }
        Some(bound)
    }
}

impl<C: Cost> Best<C> {
    fn take(&mut self, cost: C, chosen: &[usize]) {
        if cost < self.cost {
            *self = Best { cost, choices: vec![], most: self.most, more: false };
        }
        if cost == self.cost {
            match self.choices.len() < self.most {
                true => self.choices.push(chosen.to_vec()),
                false => self.more = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Without limits.
    impl Cores {
        fn one(&self, costs: &[u64]) -> Vec<usize> {
            self.cheapest(costs, &Limits::default()).unwrap()
        }

        fn all(&self, costs: &[u64], most: usize) -> (Vec<Vec<usize>>, bool) {
            self.all_cheapest(costs, most, &Limits::default()).unwrap()
        }
    }

    fn cores(sets: &[&[usize]]) -> Cores {
        let mut cores = Cores::default();
        sets.iter().for_each(|s| {
            cores.add(s.to_vec());
        });
        cores
    }

    #[test]
    fn nothing_is_needed_where_there_are_no_cores() {
        assert!(cores(&[]).one(&[]).is_empty());
        assert_eq!(cores(&[]).all(&[], 9), (vec![vec![]], false));
    }

    #[test]
    fn an_element_of_several_cores_is_worth_more() {
        let cores = cores(&[&[0, 1], &[1, 2]]);
        assert_eq!(cores.one(&[1, 1, 1]), [1]);
        assert_eq!(cores.one(&[1, 3, 1]), [0, 2]);
        assert_eq!(cores.all(&[1, 2, 1], 9), (vec![vec![0, 2], vec![1]], false));
    }

    #[test]
    fn a_core_makes_larger_ones_superfluous() {
        let mut cores = cores(&[&[0, 1, 2]]);
        assert!(cores.add(vec![2, 1]));
        assert_eq!(cores.count(), 1);
        assert!(!cores.add(vec![0, 1, 2]));
    }

    #[test]
    fn parts_that_share_nothing_multiply() {
        let cores = cores(&[&[0, 1], &[2, 3], &[4, 5, 6]]);
        let (all, more) = cores.all(&[1; 7], 100);
        assert_eq!((all.len(), more), (12, false));
        let (some, more) = cores.all(&[1; 7], 5);
        assert_eq!((some.len(), more), (5, true));
    }

    /// Every choice there is, for comparison.
    fn by_force(sets: &[Vec<usize>], costs: &[u64]) -> (u64, Vec<Vec<usize>>) {
        let choices = (0u32..1 << costs.len())
            .map(|bits| (0..costs.len()).filter(|e| bits >> e & 1 == 1).collect::<Vec<usize>>());
        let hits = |choice: &Vec<usize>| sets.iter().all(|s| s.iter().any(|e| choice.contains(e)));
        let mut good: Vec<Vec<usize>> = choices.filter(hits).collect();
        let least = good.iter().map(|c| cost(c, costs)).min().expect("all elements together hit everything");
        good.retain(|c| cost(c, costs) == least);
        good.sort();
        (least, good)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn brute_force_agrees(
            sets in prop::collection::vec(prop::collection::vec(0..9usize, 1..5), 0..9),
            costs in prop::collection::vec(1..4u64, 9),
        ) {
            let mut cores = Cores::default();
            for set in &sets {
                cores.add(set.clone());
            }
            let (least, good) = by_force(&sets, &costs);
            prop_assert_eq!(cost(&cores.one(&costs), &costs), least);
            prop_assert_eq!(cores.all(&costs, 1000), (good, false));
        }
    }
}
