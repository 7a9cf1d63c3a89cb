//! Which values can each term have, and from which stores can each load read?
//!
//! Both at once: a load has what its sources store, and its sources are those whose address can be the same. All
//! grows from nothing until it is stable. Under the models in which no value comes from nowhere, every value has
//! a derivation without repetitions, so that as many rounds as there are loads are enough. In the relaxed one a
//! load may read, in a circle, what depends on it; there 0, 1 and whatever comes of them are values out of thin
//! air as well, and what is not stable in the end may be anything.

use super::domain::Domain;
use super::streams::Streams;
use super::terms::{TermId, TermNode};
use crate::model::Value;
use crate::query::Axioms;
use crate::query::{Limit, Limits};
use crate::semantics::axioms::GARBAGE;
use bit_set::BitSet;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

pub struct Ranges {
    domains: Vec<Domain>,
    /// The loads whose value may depend on itself.
    pub circular: Vec<bool>,
}

impl Ranges {
    /// `initial` is what memory holds; nothing where it can be anything.
    pub fn new(
        streams: &Streams,
        initial: &[Option<Value>],
        model: Axioms,
        limits: &Limits,
    ) -> Result<Ranges, Limit> {
        let mut inputs: Vec<Domain> =
            streams.picks.iter().map(|p| p.map_or(Domain::NONE, |(lo, hi)| Domain::range(lo, hi))).collect();
        let loads = streams.picks.iter().filter(|p| p.is_none()).count();
        let patience = if model == Axioms::Relaxed { loads.min(24) } else { loads };
        let mut circular = vec![false; streams.accesses.len()];
        let mut round = 0;
        loop {
            let ranges = Ranges { domains: domains(streams, &inputs, limits)?, circular: circular.clone() };
            let mut changed = false;
            for (k, access) in streams.accesses.iter().enumerate() {
                let Some(load) = access.load else { continue };
                limits.spend(streams.accesses.len() * 8)?;
                let TermNode::Input(number) = streams.terms.node(load) else { continue };
                let own = &mut inputs[number as usize];
                let mut read = own.union(&ranges.begin(initial, ranges.of(access.addr)));
                for s in ranges.sources(streams, k) {
                    if let Some((_, value)) = streams.accesses[s].store {
                        read = read.union(ranges.of(value));
                    }
                }
                if read != *own {
                    changed = true;
                    *own = if round > patience + 1 { Domain::ALL } else { read };
                }
            }
            if !changed && model == Axioms::Relaxed {
                let now = ranges.circles(streams);
                for (k, _) in now.iter().enumerate().filter(|(k, new)| **new && !circular[*k]) {
                    if let Some(TermNode::Input(number)) =
                        streams.accesses[k].load.map(|l| streams.terms.node(l))
                    {
                        let own = &mut inputs[number as usize];
                        *own = own.union(&Domain::truth());
                        changed = true;
                    }
                }
                circular = now;
            }
            if !changed || model != Axioms::Relaxed && round > patience {
                return Ok(Ranges { domains: domains(streams, &inputs, limits)?, circular });
            }
            round += 1;
        }
    }

    pub fn of(&self, t: TermId) -> &Domain {
        &self.domains[t.index()]
    }

    /// Terms that were made since, out of the old ones.
    pub fn extend(&mut self, streams: &Streams, limits: &Limits) -> Result<(), Limit> {
        for t in self.domains.len()..streams.terms.len() {
            limits.spend(16)?;
            let domain = domain(streams, &self.domains, &[], TermId(t as u32));
            self.domains.push(domain);
        }
        Ok(())
    }

    /// What the cells at these addresses can hold when the run begins.
    fn begin(&self, initial: &[Option<Value>], addresses: &Domain) -> Domain {
        let cells = (0..initial.len() as Value).filter(|a| addresses.has(*a));
        let values = cells.flat_map(|a| match initial[a as usize] {
            Some(value) => vec![value],
            None => GARBAGE.to_vec(),
        });
        Domain::of(values.collect())
    }

    pub fn may_alias(&self, a: TermId, b: TermId) -> bool {
        a == b || self.of(a).meets(self.of(b))
    }

    /// The loads on circles of values: a load reads what is stored, which comes from loads, …
    fn circles(&self, streams: &Streams) -> Vec<bool> {
        let made_of = loads_of_terms(streams);
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        streams.accesses.iter().for_each(|_| {
            graph.add_node(());
        });
        for (k, access) in streams.accesses.iter().enumerate().filter(|(_, a)| a.load.is_some()) {
            let mut from = made_of[access.addr.index()].clone();
            for s in self.sources(streams, k) {
                let store = &streams.accesses[s];
                let (guard, value) = store.store.unwrap_or((TermId::FALSE, TermId::FALSE));
                [guard, value, store.addr].iter().for_each(|t| from.union_with(&made_of[t.index()]));
            }
            from.iter().for_each(|l| {
                graph.add_edge(NodeIndex::new(k), NodeIndex::new(l), ());
            });
        }
        let mut circular = vec![false; streams.accesses.len()];
        for part in tarjan_scc(&graph) {
            let own = part.len() > 1 || graph.contains_edge(part[0], part[0]);
            part.iter().for_each(|n| circular[n.index()] = own);
        }
        circular
    }

    /// The stores that the load may read from, by what addresses there are: of other threads, and earlier ones
    /// of its own.
    pub fn sources(&self, streams: &Streams, load: usize) -> Vec<usize> {
        let own = &streams.accesses[load];
        let all = streams.accesses.iter().enumerate();
        all.filter(|(s, store)| {
            let possible = match &store.store {
                Some((guard, _)) => self.of(*guard).has(1),
                None => false,
            };
            possible && (store.thread != own.thread || *s < load) && self.may_alias(store.addr, own.addr)
        })
        .map(|(s, _)| s)
        .collect()
    }
}

/// The loads that each term is made of.
fn loads_of_terms(streams: &Streams) -> Vec<BitSet> {
    let mut load_of = vec![None; streams.terms.inputs()];
    for (k, access) in streams.accesses.iter().enumerate() {
        if let Some(TermNode::Input(number)) = access.load.map(|l| streams.terms.node(l)) {
            load_of[number as usize] = Some(k);
        }
    }
    let mut all: Vec<BitSet> = Vec::with_capacity(streams.terms.len());
    for t in 0..streams.terms.len() {
        let mut own = BitSet::new();
        let mut add = |parts: &[TermId]| parts.iter().for_each(|p| own.union_with(&all[p.index()]));
        match streams.terms.node(TermId(t as u32)) {
            TermNode::Const(_) => {}
            TermNode::Input(number) => {
                if let Some(load) = load_of[number as usize] {
                    own.insert(load);
                }
            }
            TermNode::Unary(_, a) => add(&[a]),
            TermNode::Binary(_, a, b) => add(&[a, b]),
            TermNode::Choice(c, a, b) => add(&[c, a, b]),
        }
        all.push(own);
    }
    all
}

fn domains(streams: &Streams, inputs: &[Domain], limits: &Limits) -> Result<Vec<Domain>, Limit> {
    let mut domains: Vec<Domain> = Vec::with_capacity(streams.terms.len());
    for t in 0..streams.terms.len() {
        limits.spend(16)?;
        let domain = domain(streams, &domains, inputs, TermId(t as u32));
        domains.push(domain);
    }
    Ok(domains)
}

/// The domain of a term, from those of its parts.
fn domain(streams: &Streams, domains: &[Domain], inputs: &[Domain], t: TermId) -> Domain {
    let of = |t: TermId| &domains[t.index()];
    match streams.terms.node(t) {
        TermNode::Const(value) => Domain::one(value),
        TermNode::Input(k) => inputs.get(k as usize).cloned().unwrap_or(Domain::ALL),
        TermNode::Unary(op, a) => Domain::unary(op, of(a)),
        TermNode::Binary(op, a, b) => Domain::binary(op, of(a), of(b)),
        TermNode::Choice(c, a, b) => match of(c).single() {
            Some(0) => of(b).clone(),
            Some(_) => of(a).clone(),
            None if of(c).is_empty() => Domain::NONE,
            None => of(a).union(of(b)),
        },
    }
}
