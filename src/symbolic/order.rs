//! Which access takes effect before which? One literal for each pair of nodes, and constants where the program's
//! order decides.
//!
//! The rules are those of the models' axioms, for two accesses of one thread: some pairs are always kept in
//! order, some if both have the same address, if a fence between them is executed, or if a place for a fence is
//! filled. A pair that is always kept is a constant only if that is safe: nodes that are not executed have a
//! place in the order too, and must not tie together others that are. Where they would, the pair is conditional.

use super::cnf::Cnf;
use super::sat::Lit;
use super::streams::{Item, StreamAccess, Streams};
use super::terms::{TermId, Terms};
use crate::query::Axioms;
use crate::query::{Limit, Limits};

/// When one node comes before another: all of it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OrderGuard {
    /// Terms that hold.
    pub terms: Vec<TermId>,
    /// Addresses that are equal.
    pub same: Option<(TermId, TermId)>,
    /// The place for fences, and which kind of fence.
    pub candidate: Option<(usize, usize)>,
}

impl OrderGuard {
    fn is_always(&self) -> bool {
        self.terms.is_empty() && self.same.is_none() && self.candidate.is_none()
    }
}

/// A rule: the first node before the second, if that holds.
pub(super) struct Rule {
    pub first: usize,
    pub second: usize,
    pub when: OrderGuard,
}

/// What is known of the order beforehand.
pub(super) struct KeptOrder {
    /// Pairs in constant order.
    pub always: Vec<(usize, usize)>,
    pub rules: Vec<Rule>,
}

/// Where a node stands in its thread, and with what.
struct Placed {
    node: usize,
    guard: TermId,
    /// Accesses, with their places among the items.
    accesses: Vec<(usize, usize)>,
    locked: bool,
}

pub(super) fn kept(
    streams: &Streams,
    model: Axioms,
    same: impl Fn(TermId, TermId) -> Option<bool>,
    limits: &Limits,
) -> Result<KeptOrder, Limit> {
    let mut kept = KeptOrder { always: Vec::new(), rules: Vec::new() };
    for stream in &streams.threads {
        let placed = placed(streams, &stream.items);
        let count = placed.len();
        let mut always = vec![vec![false; count]; count];
        for i in 0..count {
            limits.spend(count * 16)?;
            for j in i + 1..count {
                let ways = ways(streams, model, &stream.items, &placed[i], &placed[j], &same);
                if ways.iter().any(OrderGuard::is_always) {
                    always[i][j] = true;
                } else {
                    let (first, second) = (placed[i].node, placed[j].node);
                    kept.rules.extend(ways.into_iter().map(|when| Rule { first, second, when }));
                }
            }
        }
        demote(&streams.terms, &placed, &mut always, &mut kept.rules, limits)?;
        for i in 0..count {
            let later = (i + 1..count).filter(|j| always[i][*j]);
            kept.always.extend(later.map(|j| (placed[i].node, placed[j].node)));
        }
    }
    Ok(kept)
}

/// Makes pairs conditional whose constants would tie together what nothing keeps in order.
fn demote(
    terms: &Terms,
    placed: &[Placed],
    always: &mut [Vec<bool>],
    rules: &mut Vec<Rule>,
    limits: &Limits,
) -> Result<(), Limit> {
    let count = placed.len();
    let mut changed = true;
    while changed {
        changed = false;
        for x in 0..count {
            for y in (x + 1..count).rev() {
                if always[x][y] {
                    continue;
                }
                limits.spend(y - x)?;
                for z in x + 1..y {
                    if !always[x][z] || !always[z][y] {
                        continue;
                    }
                    changed = true;
                    let guard = placed[z].guard;
                    if terms.implies(placed[y].guard, guard) || terms.implies(placed[x].guard, guard) {
                        always[x][y] = true;
                        break;
                    }
                    always[z][y] = false;
                    let when = OrderGuard { terms: vec![guard, placed[y].guard], ..OrderGuard::default() };
                    rules.push(Rule { first: placed[z].node, second: placed[y].node, when });
                }
            }
        }
    }
    Ok(())
}

fn placed(streams: &Streams, items: &[Item]) -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let (node, guard) = match item {
            Item::Access(access) => (streams.accesses[*access].node, streams.accesses[*access].guard),
            Item::Locked { node, guard } => (*node, *guard),
            Item::Fence(_) => continue,
        };
        let at = match all.iter().position(|p| p.node == node) {
            Some(at) => at,
            None => {
                all.push(Placed { node, guard, accesses: vec![], locked: false });
                all.len() - 1
            }
        };
        match item {
            Item::Access(access) => all[at].accesses.push((place, *access)),
            _ => all[at].locked = true,
        }
    }
    all
}

/// The parts of an access: whether it is the store, and what it is guarded by.
fn parts(access: &StreamAccess) -> impl Iterator<Item = (bool, TermId)> {
    let load = access.load.filter(|_| !access.ghost).map(|_| (false, access.guard));
    load.into_iter().chain(access.store.map(|(guard, _)| (true, guard)))
}

/// Everything that keeps the two nodes in order.
fn ways(
    streams: &Streams,
    model: Axioms,
    items: &[Item],
    first: &Placed,
    second: &Placed,
    same: &impl Fn(TermId, TermId) -> Option<bool>,
) -> Vec<OrderGuard> {
    let mut ways: Vec<OrderGuard> = Vec::new();
    let drains = matches!(model, Axioms::Tso | Axioms::Pso) && (first.locked || second.locked);
    if model == Axioms::Sc || drains {
        return vec![OrderGuard::default()];
    }
    let implied = |t: TermId| streams.terms.implies(first.guard, t) || streams.terms.implies(second.guard, t);
    let mut add = |terms: &[TermId], same: Option<(TermId, TermId)>, candidate: Option<(usize, usize)>| {
        let mut terms: Vec<TermId> = terms.iter().copied().filter(|t| !implied(*t)).collect();
        terms.sort_unstable();
        terms.dedup();
        if !terms.is_empty() || same.is_some() || candidate.is_some() {
            // What is executed at all is part of the condition.
            terms.extend([first.guard, second.guard].into_iter().filter(|g| *g != TermId::TRUE));
            terms.sort_unstable();
            terms.dedup();
        }
        let when = OrderGuard { terms, same, candidate };
        if !ways.contains(&when) {
            ways.push(when);
        }
    };
    for &(before, a) in &first.accesses {
        for &(behind, b) in &second.accesses {
            let (a, b) = (&streams.accesses[a], &streams.accesses[b]);
            for (stores, guard) in parts(a) {
                for (too, other) in parts(b) {
                    let both = [guard, other];
                    if model.keeps(stores, too) {
                        add(&both, None, None);
                    } else if model.keeps_same(stores, too) {
                        match same(a.addr, b.addr) {
                            Some(true) => add(&both, None, None),
                            Some(false) => {}
                            None => add(&both, Some((a.addr, b.addr)), None),
                        }
                    }
                    for fence in &items[before.min(behind)..behind] {
                        let Item::Fence(fence) = fence else { continue };
                        let fence = &streams.fences[*fence];
                        let number = 2 * usize::from(stores) + usize::from(too);
                        if !fence.kinds.each()[number] {
                            continue;
                        }
                        let candidate = fence.candidate.map(|place| (place, number));
                        add(&[guard, other, fence.guard], None, candidate);
                    }
                }
            }
        }
    }
    if let Some(always) = ways.iter().position(OrderGuard::is_always) {
        return vec![ways.swap_remove(always)];
    }
    ways
}

impl Axioms {
    /// Does the model keep two accesses of a thread in order, whatever their addresses?
    fn keeps(self, first_stores: bool, second_stores: bool) -> bool {
        match self {
            Axioms::Sc => true,
            Axioms::Tso => !first_stores || second_stores,
            Axioms::Pso | Axioms::PsoSparc => !first_stores,
            Axioms::Relaxed => false,
        }
    }

    /// Or if they have the same address?
    fn keeps_same(self, _first_stores: bool, second_stores: bool) -> bool {
        second_stores
    }
}

/// The literal of every pair, and the clauses that make an order of them.
pub(super) struct Order {
    count: usize,
    lits: Vec<Lit>,
}

impl Order {
    pub(super) fn new(
        cnf: &mut Cnf,
        count: usize,
        always: &[(usize, usize)],
        limits: &Limits,
    ) -> Result<Order, Limit> {
        let mut order = Order { count, lits: vec![Lit::FALSE; count * count] };
        let mut known = vec![None; count * count];
        for &(a, b) in always {
            known[a * count + b] = Some(Lit::TRUE);
            known[b * count + a] = Some(Lit::FALSE);
        }
        for a in 0..count {
            for b in a + 1..count {
                let lit = known[a * count + b].unwrap_or_else(|| cnf.fresh());
                order.lits[a * count + b] = lit;
                order.lits[b * count + a] = !lit;
            }
        }
        for a in 0..count {
            limits.spend(count * count)?;
            for b in a + 1..count {
                for c in b + 1..count {
                    let (ab, bc, ca) = (order.before(a, b), order.before(b, c), order.before(c, a));
                    cnf.clause(&[!ab, !bc, !ca]);
                    cnf.clause(&[ab, bc, ca]);
                }
            }
        }
        Ok(order)
    }

    pub(super) fn before(&self, a: usize, b: usize) -> Lit {
        self.lits[a * self.count + b]
    }

    /// The nodes in the order of a solution.
    pub(super) fn sorted(&self, solution: &[bool]) -> Vec<usize> {
        let holds = |l: Lit| solution[l.variable()] != l.is_negated();
        let mut nodes: Vec<usize> = (0..self.count).collect();
        nodes.sort_by_key(|&b| (0..self.count).filter(|&a| a != b && holds(self.before(a, b))).count());
        nodes
    }
}
