//! Which steps does a process have at a location? Instructions as guarded blocks of assignments.
//!
//! A step begins with one instruction and may go on through instructions that only their own thread can
//! see: assignments, branches, fences (which mean nothing under SC). Joining them changes no reachable state
//! that a property or another thread can tell apart, because running such an instruction at once is one of
//! the orders allowed anyway, and it commutes with everything the others do. A branch that is joined to a
//! load is a guard on memory itself, as one writes it by hand. The rules:
//! - no location on the way may carry a flag, no instruction on the way may change what a property watches;
//! - after a change that a property sees, nothing else that it sees may join, or the state between is lost;
//!   nor after one that others see, unless what joins can only help the property to be violated;
//! - an instruction that others see (a store, a locked one) is joined to a branch only if some way out of the
//!   branch is always open: waiting must not undo the instruction. A load may wait: it has changed nothing.
//!
//! Registers that are dead after a step are set to 0 in it. A step back to its start that changes nothing is
//! left out: the process waits until something changes.

use super::super::Inexpressible;
use super::expr::{both, safe};
use super::layout::PromelaLayout;
use super::watch::{Change, Watch};
use super::{FORMAT, Joining};
use crate::analysis::interval::{Interval, Intervals};
use crate::analysis::liveness::Live;
use crate::model::{BinOp, Edge, Expr, Instr, Loc, Program, Reg, RegExpr, RmwOp, ThreadId, Value};
use std::collections::BTreeSet;

/// Branches deeper than this are left to SPIN.
const MAX_JOINED: usize = 6;
/// Values of `any` written out one by one; larger ranges become a loop.
const MAX_OPTIONS: u64 = 256;

pub(crate) struct Composer<'a> {
    pub program: &'a Program,
    pub t: ThreadId,
    pub layout: &'a PromelaLayout,
    pub watch: &'a Watch,
    pub live: &'a Live,
    pub intervals: &'a Intervals,
    pub joining: Joining,
    /// Whether the thread has blocks of its own.
    pub locks: bool,
}

/// A finished step: it is open if all guards hold, and then does everything at once.
pub(crate) struct PromelaStep {
    pub guards: Vec<String>,
    /// A choice from a large range, which SPIN makes in steps of its own.
    select: Option<String>,
    body: Vec<String>,
    pub to: Loc,
    pub line: u32,
    pub source: String,
}

impl PromelaStep {
    pub(crate) fn text(&self) -> String {
        match (&self.select, self.body.is_empty()) {
            (None, _) => self.block(),
            (Some(select), true) => select.clone(),
            (Some(select), false) => format!("{select}; {}", self.block()),
        }
    }

    fn block(&self) -> String {
        let guards: Vec<String> = self.guards.iter().map(|g| format!("({g})")).collect();
        match (guards.join(" && ").as_str(), self.body.as_slice()) {
            ("", []) => "true".to_string(),
            ("", [one]) => one.clone(),
            (guard, []) => guard.to_string(),
            ("", body) => format!("d_step {{ {} }}", body.join("; ")),
            (guard, body) => format!("d_step {{ {guard} -> {} }}", body.join("; ")),
        }
    }
}

/// A step in the making.
#[derive(Clone, Default)]
struct Partial {
    guards: Vec<String>,
    select: Option<String>,
    effects: Vec<Effect>,
    /// The register just loaded or assigned, and what it holds in terms of the state before the step.
    fresh: Option<(Reg, String)>,
    /// Registers have changed in ways that guards, which look at the state before, cannot follow.
    settled: bool,
    /// Others see what the first instruction did, so the step must not wait any more.
    committed: bool,
    /// A property sees it.
    seen: bool,
    memory: Option<Interval>,
    passed: Vec<Loc>,
}

#[derive(Clone)]
struct Effect {
    sets: Option<Reg>,
    uses: Vec<Reg>,
    text: String,
}

impl Composer<'_> {
    pub(crate) fn steps(&self, loc: Loc) -> Result<Vec<PromelaStep>, Inexpressible> {
        let mut steps = Vec::new();
        for (_, edge) in self.program.thread(self.t).edges_from(loc) {
            let first = steps.len();
            let safe = self.safe(edge);
            if let Some(safe) = &safe {
                steps.push(self.error(edge, safe));
            }
            if safe != Some(Expr::Const(0)) {
                for start in self.starts(edge, safe.as_ref())? {
                    self.follow(start, edge, edge.to, &mut steps);
                }
            }
            for step in &mut steps[first..] {
                (step.line, step.source) = (edge.line, edge.text.clone());
            }
        }
        steps.retain(|s| s.to != loc || !s.body.is_empty() || s.select.is_some());
        Ok(steps)
    }

    /// The condition under which the edge goes wrong in no way; `None` if it never does.
    fn safe(&self, edge: &Edge) -> Option<RegExpr> {
        let divisions = edge.instr.exprs().into_iter().map(safe).reduce(both).flatten();
        let range = edge.instr.address().and_then(|addr| {
            in_memory(addr, self.intervals.address(self.t, edge), self.program.cells() as Value)
        });
        let asserted = match &edge.instr {
            Instr::Assert(e) => Some(e.clone()),
            _ => None,
        };
        match range {
            Some(Expr::Const(0)) => range,
            _ => both(divisions, both(range, asserted)),
        }
    }

    fn error(&self, edge: &Edge, safe: &RegExpr) -> PromelaStep {
        PromelaStep {
            guards: vec![format!("!({})", self.text(safe, &None))],
            select: None,
            body: vec!["assert(false)".to_string()],
            to: edge.from,
            line: 0,
            source: String::new(),
        }
    }

    /// The steps' first instruction, by itself. An `any` begins one step for each value.
    fn starts(&self, edge: &Edge, safe: Option<&RegExpr>) -> Result<Vec<Partial>, Inexpressible> {
        let flagged = !self.watch.flags_at(self.t, edge.from).is_empty();
        let mut start = Partial { seen: flagged, passed: vec![edge.from], ..Partial::default() };
        start.guards.extend(safe.map(|e| self.text(e, &None)));
        if edge.instr.address().is_some() {
            start.guards.extend(self.memory_is_free());
        }
        match &edge.instr {
            Instr::Assume(e) => start.guards.push(self.text(e, &None)),
            Instr::Assert(_) | Instr::Fence | Instr::Partial(_) | Instr::Membarrier | Instr::Nop => {}
            Instr::Assign { dst, value } => self.assign(&mut start, *dst, value),
            Instr::Any { dst, lo, hi } => return self.choose(start, edge, *dst, *lo, *hi),
            Instr::Load { bytes, .. } | Instr::Store { bytes, .. } if !bytes.is_whole() => {
                return Err(self.refuse(edge, "there every access is one of a whole variable".to_string()));
            }
            Instr::Load { dst, addr, .. } => {
                let cell = self.cell(edge, addr);
                start.effects.push(self.effect(Some(*dst), &[addr], format!("{} = {cell}", self.reg(*dst))));
                start.fresh = Some((*dst, cell));
            }
            Instr::Store { addr, value, .. } => {
                let text = format!("{} = {}", self.cell(edge, addr), self.text(value, &None));
                start.effects.push(self.effect(None, &[addr, value], text));
                self.writes(&mut start, edge);
            }
            Instr::Rmw { dst, addr, op } => {
                let cell = self.cell(edge, addr);
                start.effects = self.locked(edge, *dst, &cell, op);
                start.fresh = Some((*dst, cell));
                self.writes(&mut start, edge);
            }
            Instr::Lock => self.locking(&mut start, 0, self.owner()),
            Instr::Unlock => self.locking(&mut start, self.owner(), 0),
        }
        start.seen |= edge.instr.target().is_some_and(|r| self.watch.always(self.t, r));
        start.committed |= start.seen;
        Ok(vec![start])
    }

    fn assign(&self, start: &mut Partial, dst: Reg, value: &RegExpr) {
        let text = self.text(value, &start.fresh);
        start.fresh = Some((dst, format!("({text})")));
        start.effects.push(self.effect(Some(dst), &[value], format!("{} = {text}", self.reg(dst))));
    }

    fn choose(
        &self,
        start: Partial,
        edge: &Edge,
        dst: Reg,
        lo: Value,
        hi: Value,
    ) -> Result<Vec<Partial>, Inexpressible> {
        let watched = self.watch.always(self.t, dst);
        if hi.abs_diff(lo) < MAX_OPTIONS {
            let option = |v| {
                let mut start = start.clone();
                self.assign(&mut start, dst, &Expr::Const(v));
                start.seen |= watched;
                start.committed |= start.seen;
                start
            };
            return Ok((lo..=hi).map(option).collect());
        }
        if watched {
            let why = format!("a `forbid` watches the register and there are more than {MAX_OPTIONS} values");
            return Err(self.refuse(edge, why));
        }
        // The choice is made before the step, so guards must not look at the register.
        let select = Some(format!("select ({} : {lo} .. {hi})", self.reg(dst)));
        let chosen = Effect { sets: Some(dst), uses: vec![dst], text: String::new() };
        Ok(vec![Partial { select, effects: vec![chosen], settled: true, committed: start.seen, ..start }])
    }

    fn refuse(&self, edge: &Edge, why: String) -> Inexpressible {
        let thread = self.program.thread(self.t);
        Inexpressible {
            format: FORMAT,
            place: format!("thread `{}`, line {}", thread.name(), edge.line),
            construct: format!("`{}`", thread.show_instr(self.program, &edge.instr)),
            why,
        }
    }

    fn writes(&self, start: &mut Partial, edge: &Edge) {
        let range = self.intervals.address(self.t, edge);
        start.memory = Some(range);
        start.committed = true;
        start.seen |= self.watch.memory(range);
    }

    /// The register gets the old value; every operand is evaluated before it does.
    fn locked(&self, edge: &Edge, dst: Reg, cell: &str, op: &RmwOp) -> Vec<Effect> {
        let text = |e| self.text(e, &None);
        let new = match op {
            RmwOp::Swap(v) => text(v),
            RmwOp::Add(v) => format!("{cell} + ({})", text(v)),
            RmwOp::And(v) => format!("{cell} & ({})", text(v)),
            RmwOp::Or(v) => format!("{cell} | ({})", text(v)),
            RmwOp::Xor(v) => format!("{cell} ^ ({})", text(v)),
            RmwOp::New(v) => self.text(v, &Some((dst, cell.to_string()))),
            RmwOp::Cas { old, new } => format!("({cell} == ({}) -> {} : {cell})", text(old), text(new)),
        };
        let mut uses = Vec::new();
        edge.instr.uses(|r| uses.push(r));
        let write = Effect { sets: None, uses, text: format!("{cell} = {new}") };
        let set = |value: &str| Effect {
            sets: Some(dst),
            uses: vec![],
            text: format!("{} = {value}", self.reg(dst)),
        };
        if !write.uses.contains(&dst) {
            let read = Effect { uses: write.uses.clone(), ..set(cell) };
            return vec![read, write];
        }
        let keep = Effect { sets: None, uses: write.uses.clone(), text: format!("scratch = {cell}") };
        vec![keep, write, set("scratch")]
    }

    fn locking(&self, start: &mut Partial, before: usize, after: usize) {
        start.guards.push(format!("owner == {before}"));
        start.effects.push(self.effect(None, &[], format!("owner = {after}")));
        start.committed = true;
    }

    fn owner(&self) -> usize {
        self.t.index() + 1
    }

    fn memory_is_free(&self) -> Option<String> {
        self.layout.locks.then(|| match self.locks {
            true => format!("owner == 0 || owner == {}", self.owner()),
            false => "owner == 0".to_string(),
        })
    }

    /// Goes on from a location as long as the rules allow, and finishes the steps that come of it.
    fn follow(&self, step: Partial, first: &Edge, at: Loc, out: &mut Vec<PromelaStep>) {
        let ways = self.join(&step, at);
        if ways.is_empty() {
            return out.push(self.finish(step, first.from, at));
        }
        for (longer, to) in ways {
            self.follow(longer, first, to, out);
        }
    }

    /// The step, made longer by what can join it at the location.
    fn join(&self, step: &Partial, at: Loc) -> Vec<(Partial, Loc)> {
        let edges = self.program.thread(self.t).edges_from(at);
        let flagged = |loc| !self.watch.flags_at(self.t, loc).is_empty();
        let between = step.seen || step.committed && !self.watch.grows_with_arrivals();
        let visible = flagged(at) || between && edges.iter().any(|(_, e)| flagged(e.to));
        if self.joining == Joining::Literal
            || visible
            || step.passed.contains(&at)
            || step.passed.len() > MAX_JOINED
            || edges.iter().any(|(_, e)| self.safe(e).is_some())
        {
            return vec![];
        }
        let mut longer = step.clone();
        longer.passed.push(at);
        if let [(_, edge)] = edges.as_slice()
            && let Instr::Assign { dst, value } = &edge.instr
            && !self.watch.always(self.t, *dst)
        {
            // The value is computed when earlier effects have happened, so it needs no substitution.
            let fresh = longer.fresh.take();
            longer.settled |= fresh.is_some();
            self.assign(&mut longer, *dst, value);
            return vec![(longer, edge.to)];
        }
        self.branch(longer, &edges.into_iter().map(|(_, e)| e).collect::<Vec<_>>())
    }

    /// Every edge as one more guard, if all are branches that the step can decide.
    fn branch(&self, step: Partial, edges: &[&Edge]) -> Vec<(Partial, Loc)> {
        let conditions: Option<Vec<_>> = edges.iter().map(|e| condition(&e.instr)).collect();
        let Some(conditions) = conditions else { return vec![] };
        let open = conditions.iter().all(Option::is_none);
        if step.settled && !open || step.committed && !always_open(&conditions) {
            return vec![];
        }
        let one = |(edge, condition): (&&Edge, &Option<&RegExpr>)| {
            let mut step = step.clone();
            step.guards.extend(condition.map(|e| self.text(e, &step.fresh)));
            (step, edge.to)
        };
        edges.iter().zip(&conditions).map(one).collect()
    }

    fn finish(&self, step: Partial, from: Loc, to: Loc) -> PromelaStep {
        let mut live: BTreeSet<Reg> = self.live.at(self.t, to).iter().map(|r| Reg(r as u16)).collect();
        let mut effects = step.effects;
        let mut stale: BTreeSet<Reg> = self.live.at(self.t, from).iter().map(|r| Reg(r as u16)).collect();
        if self.joining == Joining::Literal {
            stale.clear();
        } else {
            stale.retain(|r| !live.contains(r));
            effects = needed_effects(effects, &mut live);
            let dead = |r: &Reg| !self.live.is_live(self.t, to, *r);
            stale.extend(effects.iter().filter_map(|e| e.sets).filter(dead));
        }
        let change = Change {
            from,
            to,
            registers: effects.iter().filter_map(|e| e.sets).collect(),
            memory: step.memory,
        };
        let mut body: Vec<String> = effects.into_iter().map(|e| e.text).filter(|t| !t.is_empty()).collect();
        body.extend(stale.iter().map(|r| format!("{} = 0", self.reg(*r))));
        body.extend(self.watch.after(self.program, self.layout, self.t, &change));
        PromelaStep { guards: step.guards, select: step.select, body, to, line: 0, source: String::new() }
    }

    fn effect(&self, sets: Option<Reg>, exprs: &[&RegExpr], text: String) -> Effect {
        let mut uses = Vec::new();
        exprs.iter().for_each(|e| e.for_each_atom(&mut |r| uses.push(*r)));
        Effect { sets, uses, text }
    }

    fn cell(&self, edge: &Edge, addr: &RegExpr) -> String {
        match addr.constant().and_then(|a| self.program.cell(a)) {
            Some(cell) => self.layout.cell(cell),
            None => self.layout.computed(self.intervals.address(self.t, edge), &self.text(addr, &None)),
        }
    }

    fn reg(&self, r: Reg) -> &str {
        self.layout.register(self.t, r)
    }

    fn text(&self, e: &RegExpr, fresh: &Option<(Reg, String)>) -> String {
        e.show(&|r| match fresh {
            Some((changed, text)) if changed == r => text.clone(),
            _ => self.reg(*r).to_string(),
        })
    }
}

/// `Some` for branches: the condition, or none for what is always open. Fences mean nothing under SC.
fn condition(instr: &Instr) -> Option<Option<&RegExpr>> {
    match instr {
        Instr::Assume(e) if matches!(e.constant(), Some(c) if c != 0) => Some(None),
        Instr::Assume(e) => Some(Some(e)),
        Instr::Fence | Instr::Partial(_) | Instr::Membarrier | Instr::Nop => Some(None),
        _ => None,
    }
}

/// Is one of the ways open in every state?
fn always_open(conditions: &[Option<&RegExpr>]) -> bool {
    let negates = |a: &RegExpr, b: &RegExpr| *a == b.clone().negated();
    conditions.iter().any(|c| match c {
        None => true,
        Some(a) => conditions.iter().flatten().any(|b| negates(a, b)),
    })
}

/// Leaves out assignments to registers that are dead. `live` holds what is live after the effects, and in
/// the end what is live before them.
fn needed_effects(effects: Vec<Effect>, live: &mut BTreeSet<Reg>) -> Vec<Effect> {
    let mut kept: Vec<Effect> = Vec::new();
    for effect in effects.into_iter().rev() {
        if let Some(r) = effect.sets
            && !live.remove(&r)
        {
            continue;
        }
        live.extend(effect.uses.iter().copied());
        kept.push(effect);
    }
    kept.reverse();
    kept
}

/// The condition under which the address lies inside memory; `None` if it always does.
fn in_memory(addr: &RegExpr, range: Interval, cells: Value) -> Option<RegExpr> {
    if range.hi < 0 || range.lo >= cells || cells == 0 {
        return Some(Expr::Const(0));
    }
    let bound = |op, c| Expr::binary(op, addr.clone(), Expr::Const(c));
    let low = (range.lo < 0).then(|| bound(BinOp::Ge, 0));
    let high = (range.hi >= cells).then(|| bound(BinOp::Lt, cells));
    both(low, high)
}
