//! Which runs does a memory model allow? The axioms of `[BurckhardtAlurMartin06]` as clauses over the streams of
//! a program: an order of all nodes, and for each load the store that it reads from.
//!
//! A load sees the stores before it in the order, and all earlier ones of its own thread; it reads from the last
//! of those that it sees, or what memory held in the beginning. Everything that is known beforehand (addresses,
//! pairs in constant order, guards that imply each other) leaves the formula at once.

use super::bits::{self, BitVector, TooWide, Words};
use super::cnf::Cnf;
use super::domain::Domain;
use super::order::{self, Order};
use super::ranges::Ranges;
use super::sat::{Lit, SolverReply};
use super::streams::{NoStreams, Streams};
use super::terms::{TermId, TermNode};
use crate::model::Value;
use crate::query::Axioms;
use crate::query::{Limit, Limits};
use crate::semantics::axioms::GARBAGE;
use std::collections::HashMap;

/// A formula for the runs of a program, which can be asked again and again.
pub struct Encoding<'l> {
    pub streams: Streams,
    pub ranges: Ranges,
    pub cnf: Cnf<'l>,
    order: Order,
    words: Words,
    reads: Vec<Option<Reads>>,
    places: HashMap<(usize, usize), Lit>,
    aliases: HashMap<(TermId, TermId), Lit>,
    /// What cells that nobody has written hold.
    garbage: HashMap<usize, BitVector>,
    initial: Vec<Option<Value>>,
    limits: &'l Limits,
}

/// Where a load reads from.
#[derive(Clone, Debug)]
struct Reads {
    stores: Vec<(usize, Lit)>,
    initial: Lit,
}

/// Who reads: when, from where, and with which result.
struct LoadSight<'a> {
    guard: Lit,
    addr: TermId,
    word: BitVector,
    /// The stores that may be seen, and whether they are.
    stores: &'a [(usize, Lit)],
}

impl From<TooWide> for NoStreams {
    fn from(_: TooWide) -> NoStreams {
        NoStreams::Unsupported("a quotient of numbers that can have many values")
    }
}

/// A run that the formula allows, in terms of the streams.
#[derive(Clone, Debug)]
pub struct Solution {
    /// What each term is worth.
    pub values: Vec<Value>,
    /// The nodes, in their order.
    pub order: Vec<usize>,
}

impl<'l> Encoding<'l> {
    /// `initial` is what memory holds in the beginning; nothing where it can be anything.
    pub fn new(
        streams: Streams,
        initial: &[Option<Value>],
        model: Axioms,
        proving: bool,
        limits: &'l Limits,
    ) -> Result<Encoding<'l>, NoStreams> {
        let ranges = Ranges::new(&streams, initial, model, limits)?;
        let mut cnf = Cnf::new(limits, proving);
        let same = |a: TermId, b: TermId| match (ranges.of(a).single(), ranges.of(b).single()) {
            _ if a == b => Some(true),
            (Some(a), Some(b)) => Some(a == b),
            _ if !ranges.may_alias(a, b) => Some(false),
            _ => None,
        };
        let kept = order::kept(&streams, model, same, limits)?;
        let order = Order::new(&mut cnf, streams.nodes, &kept.always, limits)?;
        let mut encoding = Encoding {
            words: Words::new(&streams.terms),
            reads: vec![None; streams.accesses.len()],
            places: HashMap::new(),
            aliases: HashMap::new(),
            garbage: HashMap::new(),
            initial: initial.to_vec(),
            streams,
            ranges,
            cnf,
            order,
            limits,
        };
        encoding.picks()?;
        for t in encoding.streams.required.clone() {
            let required = encoding.holds(t)?;
            encoding.cnf.clause(&[required]);
        }
        for rule in kept.rules {
            encoding.rule(&rule)?;
        }
        for access in 0..encoding.streams.accesses.len() {
            limits.spend(256)?;
            encoding.load(access)?;
        }
        Ok(encoding)
    }

    pub fn holds(&mut self, t: TermId) -> Result<Lit, NoStreams> {
        self.limits.spend(8)?;
        Ok(self.words.holds(&mut self.cnf, &self.streams.terms, &self.ranges, t)?)
    }

    pub fn word(&mut self, t: TermId) -> Result<BitVector, NoStreams> {
        self.limits.spend(8)?;
        Ok(self.words.word(&mut self.cnf, &self.streams.terms, &self.ranges, t)?)
    }

    /// Does the term have this value?
    pub fn is(&mut self, t: TermId, value: Value) -> Result<Lit, NoStreams> {
        if !self.ranges.of(t).has(value) {
            return Ok(Lit::FALSE);
        }
        let word = self.word(t)?;
        Ok(bits::equal(&mut self.cnf, &word, &bits::constant(value)))
    }

    /// Does the word have this value?
    pub fn word_is(&mut self, word: &BitVector, value: Value) -> Lit {
        bits::equal(&mut self.cnf, word, &bits::constant(value))
    }

    /// A term for a word that is made of no terms.
    pub fn input(&mut self, word: BitVector) -> TermId {
        let t = self.streams.terms.input();
        self.streams.picks.push(Some((0, 0)));
        self.words.extend(&self.streams.terms);
        self.words.set(t, word);
        t
    }

    /// The literal that fills a place for fences with this kind.
    pub fn place(&mut self, place: usize, kind: usize) -> Lit {
        let Encoding { places, cnf, .. } = self;
        *places.entry((place, kind)).or_insert_with(|| cnf.fresh())
    }

    fn picks(&mut self) -> Result<(), NoStreams> {
        for t in 0..self.streams.terms.len() {
            let t = TermId(t as u32);
            if let TermNode::Input(number) = self.streams.terms.node(t)
                && self.streams.picks[number as usize].is_some()
            {
                let word = self.word(t)?;
                let domain = self.ranges.of(t).clone();
                self.member(&word, &domain);
            }
        }
        Ok(())
    }

    /// The word is a value of the domain.
    fn member(&mut self, word: &BitVector, domain: &Domain) {
        match domain {
            Domain::Each(values) if values.len() == 1 => {}
            Domain::Each(values) => {
                let each: Vec<Lit> =
                    values.iter().map(|v| bits::equal(&mut self.cnf, word, &bits::constant(*v))).collect();
                self.cnf.clause(&each);
            }
            Domain::Range(lo, hi) => {
                let (lo, hi) = (bits::constant(*lo), bits::constant(*hi));
                let below = bits::less(&mut self.cnf, word, &lo);
                let above = bits::less(&mut self.cnf, &hi, word);
                self.cnf.clause(&[!below]);
                self.cnf.clause(&[!above]);
            }
        }
    }

    fn rule(&mut self, rule: &order::Rule) -> Result<(), NoStreams> {
        let mut clause = vec![self.order.before(rule.first, rule.second)];
        for t in &rule.when.terms {
            clause.push(!self.holds(*t)?);
        }
        if let Some((a, b)) = rule.when.same {
            clause.push(!self.alias(a, b)?);
        }
        if let Some((place, kind)) = rule.when.candidate {
            clause.push(!self.place(place, kind));
        }
        self.cnf.clause(&clause);
        Ok(())
    }

    fn alias(&mut self, a: TermId, b: TermId) -> Result<Lit, NoStreams> {
        let key = (a.min(b), a.max(b));
        if a == b {
            return Ok(Lit::TRUE);
        }
        if !self.ranges.may_alias(a, b) {
            return Ok(Lit::FALSE);
        }
        if let Some(known) = self.aliases.get(&key) {
            return Ok(*known);
        }
        let (x, y) = (self.word(a)?, self.word(b)?);
        let lit = bits::equal(&mut self.cnf, &x, &y);
        self.aliases.insert(key, lit);
        Ok(lit)
    }

    /// Does one access come before the other?
    fn before(&self, a: usize, b: usize) -> Lit {
        let (x, y) = (self.streams.accesses[a].node, self.streams.accesses[b].node);
        match x == y {
            true if a < b => Lit::TRUE,
            true => Lit::FALSE,
            false => self.order.before(x, y),
        }
    }

    /// The same, for whoever asks about accesses.
    pub fn access_before(&self, a: usize, b: usize) -> Lit {
        self.before(a, b)
    }

    fn load(&mut self, access: usize) -> Result<(), NoStreams> {
        let own = self.streams.accesses[access].clone();
        let Some(load) = own.load else { return Ok(()) };
        let (word, guard) = (self.word(load)?, self.holds(own.guard)?);
        if guard == Lit::FALSE {
            return Ok(());
        }
        if self.ranges.circular[access] {
            let domain = self.ranges.of(load).clone();
            self.member(&word, &domain);
        }
        let mut stores: Vec<(usize, Lit)> = Vec::new();
        for s in self.ranges.sources(&self.streams, access) {
            let own_store = self.streams.accesses[s].thread == own.thread;
            let visible = if own_store { Lit::TRUE } else { self.before(s, access) };
            if visible != Lit::FALSE {
                stores.push((s, visible));
            }
        }
        let reader = LoadSight { guard, addr: own.addr, word, stores: &stores };
        self.reads[access] = Some(self.reading(&reader, own.guard)?);
        Ok(())
    }

    /// The clauses of one reader, which is there under this guard.
    fn reading(&mut self, reader: &LoadSight<'_>, guard: TermId) -> Result<Reads, NoStreams> {
        // Of each store whether it is seen: executed, at the same address, and early enough.
        let mut seen: Vec<(usize, Lit)> = Vec::new();
        for &(s, visible) in reader.stores {
            let store = &self.streams.accesses[s];
            let (executed, addr) = (store.store.map_or(TermId::FALSE, |(guard, _)| guard), store.addr);
            // Only where the load is executed does this matter.
            let executed = if self.streams.terms.implies(guard, executed) { TermId::TRUE } else { executed };
            let (executed, alias) = (self.holds(executed)?, self.alias(addr, reader.addr)?);
            let both = self.cnf.and(executed, alias);
            let seen_here = self.cnf.and(both, visible);
            if seen_here != Lit::FALSE {
                seen.push((s, seen_here));
            }
        }
        // What is certainly hidden behind another store is no source, and in nobody's way.
        let certain: Vec<usize> = seen.iter().filter(|(_, l)| *l == Lit::TRUE).map(|(s, _)| *s).collect();
        let hidden = |s: usize| certain.iter().any(|c| *c != s && self.before(s, *c) == Lit::TRUE);
        let seen: Vec<(usize, Lit)> = seen.iter().copied().filter(|(s, _)| !hidden(*s)).collect();
        let initial = if certain.is_empty() { self.cnf.fresh() } else { Lit::FALSE };
        let mut stores = Vec::new();
        for &(s, seen_s) in &seen {
            let reads =
                if seen.len() == 1 && initial == Lit::FALSE { reader.guard } else { self.cnf.fresh() };
            self.cnf.clause(&[!reads, seen_s]);
            let value = self.streams.accesses[s].store.map_or(TermId::FALSE, |(_, value)| value);
            let value = self.word(value)?;
            bits::force_equal(&mut self.cnf, &[reads], &value, &reader.word);
            stores.push((s, reads));
        }
        self.limits.spend(seen.len() * seen.len())?;
        for &(s, reads) in &stores {
            for &(other, seen_other) in &seen {
                if other != s {
                    let later = self.before(s, other);
                    self.cnf.clause(&[!reads, !seen_other, !later]);
                }
            }
        }
        for &(_, seen_s) in &seen {
            self.cnf.clause(&[!initial, !seen_s]);
        }
        let mut some: Vec<Lit> = stores.iter().map(|(_, l)| *l).collect();
        some.extend([initial, !reader.guard]);
        self.cnf.clause(&some);
        if initial != Lit::FALSE {
            self.begin(initial, reader)?;
        }
        Ok(Reads { stores, initial })
    }

    /// If it reads what memory held in the beginning, that is its value.
    fn begin(&mut self, initial: Lit, reader: &LoadSight<'_>) -> Result<(), NoStreams> {
        let cells = self.initial.len();
        let domain = self.ranges.of(reader.addr).clone();
        let mut inside = vec![!initial];
        for cell in (0..cells).filter(|c| domain.has(*c as Value)) {
            let here = self.is(reader.addr, cell as Value)?;
            inside.push(here);
            let word = match self.initial[cell] {
                Some(value) => bits::constant(value),
                None => self.garbage(cell),
            };
            bits::force_equal(&mut self.cnf, &[initial, here], &word, &reader.word);
        }
        // Outside memory there is nothing to read.
        self.cnf.clause(&inside);
        Ok(())
    }

    fn garbage(&mut self, cell: usize) -> BitVector {
        if let Some(word) = self.garbage.get(&cell) {
            return word.clone();
        }
        let domain = Domain::of(GARBAGE.to_vec());
        let word = Words::fresh(&mut self.cnf, &domain);
        self.member(&word, &domain);
        self.garbage.insert(cell, word.clone());
        word
    }

    /// What a cell holds in the end.
    pub fn last_value(&mut self, cell: usize) -> Result<BitVector, NoStreams> {
        let address = self.streams.terms.constant(cell as Value);
        self.cover_new_terms()?;
        let mut stores = Vec::new();
        let mut domain = match self.initial.get(cell) {
            Some(Some(value)) => Domain::one(*value),
            _ => Domain::of(GARBAGE.to_vec()),
        };
        for s in 0..self.streams.accesses.len() {
            if let Some((_, value)) = self.streams.accesses[s].store
                && self.ranges.may_alias(self.streams.accesses[s].addr, address)
            {
                domain = domain.union(self.ranges.of(value));
                stores.push((s, Lit::TRUE));
            }
        }
        let word = Words::fresh(&mut self.cnf, &domain);
        let reader = LoadSight { guard: Lit::TRUE, addr: address, word: word.clone(), stores: &stores };
        self.reading(&reader, TermId::TRUE)?;
        Ok(word)
    }

    /// Terms that were made since have ranges and words too.
    fn cover_new_terms(&mut self) -> Result<(), Limit> {
        self.ranges.extend(&self.streams, self.limits)?;
        self.words.extend(&self.streams.terms);
        Ok(())
    }

    /// A term that was made after the formula: a condition on terms that are in it.
    pub fn holds_new(&mut self, t: TermId) -> Result<Lit, NoStreams> {
        self.cover_new_terms()?;
        self.holds(t)
    }

    /// Under the condition, the load reads the last value that its cell ever has.
    pub fn reads_last(&mut self, condition: Lit, access: usize) -> Result<(), NoStreams> {
        let Some(reads) = self.reads[access].clone() else { return Ok(()) };
        let addr = self.streams.accesses[access].addr;
        for s in 0..self.streams.accesses.len() {
            let store = self.streams.accesses[s].clone();
            let Some((guard, _)) = store.store.filter(|_| s != access) else { continue };
            let (executed, alias) = (self.holds(guard)?, self.alias(store.addr, addr)?);
            for &(from, read) in &reads.stores {
                if from != s {
                    let later = self.before(from, s);
                    self.cnf.clause(&[!condition, !read, !executed, !alias, !later]);
                }
            }
            self.cnf.clause(&[!condition, !reads.initial, !executed, !alias]);
        }
        Ok(())
    }

    /// A run under these assumptions, or those of them that rule out all runs.
    pub fn solve(&mut self, assumptions: &[Lit]) -> Result<Result<Solution, Vec<Lit>>, Limit> {
        match self.cnf.solve(assumptions)? {
            SolverReply::Core(core) => Ok(Err(core)),
            SolverReply::Solution(solution) => Ok(Ok(self.solution(&solution))),
        }
    }

    fn solution(&self, solution: &[bool]) -> Solution {
        let mut inputs: Vec<Value> =
            self.streams.picks.iter().map(|pick| pick.map_or(0, |(lo, _)| lo)).collect();
        for t in 0..self.streams.terms.len() {
            let t = TermId(t as u32);
            if let TermNode::Input(number) = self.streams.terms.node(t)
                && let Some(word) = self.words.known(t)
            {
                inputs[number as usize] = bits::value(word, solution);
            }
        }
        Solution { values: self.streams.values(&inputs), order: self.order.sorted(solution) }
    }
}
