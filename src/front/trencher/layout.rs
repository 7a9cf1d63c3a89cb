//! Which cells does the program have? The format has none: every integer is an address, and what is never
//! written is 0.
//!
//! Where all addresses are constants, those are the cells. Otherwise the cells are a range that holds every
//! address that can be computed: it begins with the constants and grows until the analysis of intervals stays
//! inside. Invariant: no access of the program lies outside its memory, so none becomes an error. A program
//! whose addresses have no bound that the analysis can see is refused.

use super::parse::{Automaton, Transition};
use crate::analysis::interval::{Interval, Intervals};
use crate::front::const_fold;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported};
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{
    Atom, BinOp, Edge, EdgeId, Expr, Instr, Loc, Location, Pred, Program, Property, PropertyKind, RegExpr,
    ThreadId, Value, Variable,
};

/// Computed addresses may spread over so many cells.
const MAX_RANGE: i128 = 1 << 16;
/// Constants up to here are cells of one array, with the gaps between them.
const MAX_GAPS: Value = 1 << 12;
/// Each attempt reaches the next of at most 64 thresholds of the analysis, or the end.
const MAX_ATTEMPTS: usize = 100;

/// How addresses become cells.
enum TrencherLayout {
    /// These addresses, in order, and no others.
    Listed(Vec<Value>),
    /// All from here to there.
    Range(Interval),
}

pub(crate) fn program(threads: &[Automaton], problems: &mut Problems) -> Result<Program, Reported> {
    let mut constants = Vec::new();
    let mut computed = false;
    for addr in threads.iter().flat_map(|t| &t.transitions).filter_map(|t| t.instr.address()) {
        match addr.constant() {
            Some(address) => constants.push(address),
            None => computed = true,
        }
    }
    constants.sort_unstable();
    constants.dedup();
    let property = property(threads, problems);
    let compact = constants.first().is_none_or(|&a| a >= 0) && constants.last().is_none_or(|&a| a < MAX_GAPS);
    if !computed && !compact {
        return build(threads, &TrencherLayout::Listed(constants), property, problems);
    }
    let begin = Interval { lo: 0, hi: 0 };
    let mut range = constants.iter().fold(begin, |range, &a| range.join(Interval::constant(a)));
    if constants.is_empty() && !computed {
        return build(threads, &TrencherLayout::Listed(constants), property, problems);
    }
    for _ in 0..MAX_ATTEMPTS {
        let size = i128::from(range.hi) - i128::from(range.lo) + 1;
        if size > MAX_RANGE {
            break;
        }
        let program = build(threads, &TrencherLayout::Range(range), property.clone(), problems)?;
        let needed = addresses(&program, range.lo, problems)?.map(|(_, _, a)| a).fold(range, Interval::join);
        if needed == range {
            return Ok(program);
        }
        range = needed;
    }
    Err(unbounded(threads, property, problems))
}

/// The addresses of every access that can be reached, as the file counts them.
fn addresses<'p>(
    program: &'p Program,
    base: Value,
    problems: &mut Problems,
) -> Result<impl Iterator<Item = (ThreadId, EdgeId, Interval)> + use<'p>, Reported> {
    let intervals = problems.within(|limits| Intervals::of(program, limits))?;
    let one = move |t: ThreadId| {
        let thread = program.thread(t);
        let accesses = thread.edges().filter(|(_, e)| e.instr.address().is_some());
        let reached: Vec<_> = accesses
            .filter(|(_, e)| intervals.is_reachable(t, e.from))
            .map(|(id, e)| {
                let cells = intervals.address(t, e);
                let shifted = |v: Value| v.saturating_add(base);
                (t, id, Interval { lo: shifted(cells.lo), hi: shifted(cells.hi) })
            })
            .collect();
        reached
    };
    Ok(program.thread_ids().flat_map(one))
}

/// Says which addresses are to blame: those without a bound in the largest memory that can be.
fn unbounded(threads: &[Automaton], property: Option<Property>, problems: &mut Problems) -> Reported {
    let half = (MAX_RANGE / 2) as Value;
    let range = Interval { lo: -half, hi: half - 1 };
    let Ok(program) = build(threads, &TrencherLayout::Range(range), property, problems) else {
        return Reported;
    };
    let Ok(addresses) = addresses(&program, range.lo, problems) else { return Reported };
    for (t, edge, interval) in addresses {
        if interval.join(range) != range {
            let transition: &Transition = &threads[t.index()].transitions[edge.index()];
            let problem = Problem::error("this address can lie too far away")
                .at(transition.address)
                .label(format!("perhaps anything from {} to {}", interval.lo, interval.hi));
            let help =
                format!("memory has a fixed size here, of at most {MAX_RANGE} cells for computed addresses");
            problems.report(problem.help(help));
        }
    }
    if problems.has_errors() {
        return Reported;
    }
    problems.report(Problem::error("the addresses of this program spread too far"))
}

fn build(
    threads: &[Automaton],
    layout: &TrencherLayout,
    property: Option<Property>,
    problems: &mut Problems,
) -> Result<Program, Reported> {
    let parts = ProgramParts {
        memory: layout.variables(),
        threads: threads.iter().map(|t| thread(t, layout, problems)).collect::<Result<_, _>>()?,
        properties: property.into_iter().collect(),
        no_hang: None,
        stretches: vec![],
        code: vec![],
    };
    problems.program(parts)
}

impl TrencherLayout {
    fn variables(&self) -> Vec<Variable> {
        let one = |address: Value| Variable { name: format!("m[{address}]"), init: vec![0] };
        match self {
            TrencherLayout::Listed(addresses) => addresses.iter().copied().map(one).collect(),
            TrencherLayout::Range(Interval { lo: 0, hi }) => {
                vec![Variable { name: "m".to_string(), init: vec![0; *hi as usize + 1] }]
            }
            TrencherLayout::Range(range) => (range.lo..=range.hi).map(one).collect(),
        }
    }

    /// The cell that an address means.
    fn cell(&self, addr: &RegExpr) -> RegExpr {
        match (self, addr.constant()) {
            (TrencherLayout::Listed(addresses), Some(a)) => {
                Expr::Const(addresses.binary_search(&a).expect("every constant address is listed") as Value)
            }
            (TrencherLayout::Range(range), Some(a)) => Expr::Const(a.wrapping_sub(range.lo)),
            (TrencherLayout::Range(range), None) if range.lo != 0 => {
                Expr::binary(BinOp::Sub, addr.clone(), Expr::Const(range.lo))
            }
            _ => addr.clone(),
        }
    }
}

fn thread(
    automaton: &Automaton,
    layout: &TrencherLayout,
    problems: &mut Problems,
) -> Result<ThreadParts, Reported> {
    problems.spend(INSTRUCTION * automaton.states.list.len())?;
    let mut locations: Vec<Location> =
        automaton.states.list.iter().map(|w| Location::labelled(vec![w.text.to_string()])).collect();
    let mut edges = Vec::with_capacity(automaton.transitions.len());
    for transition in &automaton.transitions {
        problems.spend(INSTRUCTION)?;
        edges.push(edge(transition, layout));
    }
    let mut leads_on = vec![false; locations.len()];
    edges.iter().for_each(|e: &Edge| leads_on[e.from.index()] = true);
    // An end is a location without a way out; where there is none, nothing leads to the end either.
    let end = leads_on.iter().position(|on| !on).unwrap_or_else(|| {
        locations.push(Location::default());
        locations.len() - 1
    });
    Ok(ThreadParts {
        name: automaton.name.text.to_string(),
        registers: automaton.registers.list.iter().map(|w| w.text.to_string()).collect(),
        locations,
        edges,
        initial: automaton.initial,
        end: Loc(end as u32),
    })
}

fn edge(transition: &Transition, layout: &TrencherLayout) -> Edge {
    let instr = match &transition.instr {
        Instr::Load { dst, addr, bytes } => Instr::Load { dst: *dst, addr: layout.cell(addr), bytes: *bytes },
        Instr::Store { addr, value, bytes } => {
            Instr::Store { addr: layout.cell(addr), value: value.clone(), bytes: *bytes }
        }
        other => other.clone(),
    };
    let (line, text) = (transition.line, transition.text.clone());
    Edge { from: transition.from, to: transition.to, instr, line, text, origin: None }
}

/// Every thread in its final state at once, if every thread has one.
fn property(threads: &[Automaton], problems: &mut Problems) -> Option<Property> {
    if threads.iter().all(|t| t.last.is_none()) {
        return None;
    }
    let mut places: Vec<Pred> = Vec::new();
    for (i, thread) in threads.iter().enumerate() {
        match thread.last {
            Some(state) => places.push(Expr::Atom(Atom::At(ThreadId(i as u16), vec![state]))),
            None => {
                let problem = Problem::warning(format!("thread `{}` has no final state", thread.name.text));
                let label = "so there is no state to look for: it needs every thread in its final state";
                problems.report(problem.at(thread.name.span).label(label));
            }
        }
    }
    if places.len() < threads.len() {
        return None;
    }
    let pred = const_fold::join(places, &mut |a, b| Expr::binary(BinOp::And, a, b))?;
    Some(Property::new(PropertyKind::Forbid, pred, 0))
}
