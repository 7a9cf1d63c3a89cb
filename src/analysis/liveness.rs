//! Which registers and cells still matter? A register is live at a location if its value may be used from
//! there on; a cell is live for a thread if the thread may read it from there on before it has written it
//! itself.
//!
//! Backward data flow on each thread's graph. What counts as a use at the end, or everywhere, is the goal's
//! business, so callers hand those registers in. A register that is dead may be stored as 0, and so may a
//! cell that is dead for every thread: whoever reads it then finds what was written later. Store buffers
//! change nothing in that, for a thread that has written a cell finds its own store in its buffer, or in
//! memory what came there with that store or later.

use super::access;
use super::interval::Intervals;
use super::solver::backward;
use crate::limits::{Limit, Limits};
use crate::model::{Edge, EdgeId, Instr, Loc, Program, Reg, Thread, ThreadId};
use bit_set::BitSet;

/// Per thread and location: the live registers.
#[derive(Clone, Debug)]
pub struct Live(Vec<Vec<BitSet>>);

/// Registers used by more than the program text: per thread, in every state and in final ones.
#[derive(Clone, Debug)]
pub struct Watched {
    pub always: Vec<Vec<Reg>>,
    pub at_end: Vec<Vec<Reg>>,
}

impl Watched {
    pub fn nothing(program: &Program) -> Watched {
        let none = vec![Vec::new(); program.threads().len()];
        Watched { always: none.clone(), at_end: none }
    }
}

impl Live {
    /// Edges that are `ignored` use nothing.
    pub fn of(
        program: &Program,
        watched: &Watched,
        ignored: impl Fn(ThreadId, EdgeId) -> bool,
        limits: &Limits,
    ) -> Result<Live, Limit> {
        let one = |t: ThreadId| {
            let (always, at_end) = (&watched.always[t.index()], &watched.at_end[t.index()]);
            live(program.thread(t), always, at_end, |edge| ignored(t, edge), limits)
        };
        Ok(Live(program.thread_ids().map(one).collect::<Result<_, _>>()?))
    }

    /// As if every register mattered everywhere.
    pub fn everything(program: &Program) -> Live {
        let one = |thread: &Thread| {
            let all: BitSet = (0..thread.registers().len()).collect();
            vec![all; thread.graph().node_count()]
        };
        Live(program.threads().iter().map(one).collect())
    }

    pub fn at(&self, t: ThreadId, loc: Loc) -> &BitSet {
        &self.0[t.index()][loc.index()]
    }

    /// The set as words of 64 registers, as many as are asked for.
    pub fn words(&self, t: ThreadId, loc: Loc) -> impl Iterator<Item = u64> {
        let halves = self.at(t, loc).get_ref().storage();
        let half = |k: usize| halves.get(k).map_or(0, |&half| half as u64);
        (0..).step_by(2).map(move |k| half(k) | half(k + 1) << 32)
    }

    pub fn is_live(&self, t: ThreadId, loc: Loc, r: Reg) -> bool {
        self.at(t, loc).contains(r.index())
    }
}

fn live(
    thread: &Thread,
    always: &[Reg],
    at_end: &[Reg],
    ignored: impl Fn(EdgeId) -> bool,
    limits: &Limits,
) -> Result<Vec<BitSet>, Limit> {
    let always: BitSet = always.iter().map(|r| r.index()).collect();
    let width = 1 + thread.registers().len() / 64;
    limits.reserve(thread.graph().node_count() * width * size_of::<u64>())?;
    let mut live = vec![always.clone(); thread.graph().node_count()];
    live[thread.end().index()].extend(at_end.iter().map(|r| r.index()));
    let mut before = BitSet::new();
    backward(thread, &mut live, limits, |id, edge, live| {
        limits.spend(width)?;
        before.clone_from(&live[edge.to.index()]);
        if let Some(r) = edge.instr.target().filter(|r| !always.contains(r.index())) {
            before.remove(r.index());
        }
        if !ignored(id) {
            edge.instr.uses(|r| {
                before.insert(r.index());
            });
        }
        let grows = !before.is_subset(&live[edge.from.index()]);
        if grows {
            live[edge.from.index()].union_with(&before);
        }
        Ok(grows)
    })?;
    Ok(live)
}

/// Per thread and location: the live cells, as a set of `access`.
#[derive(Clone, Debug)]
pub struct LiveCells(Vec<Vec<u64>>);

impl LiveCells {
    /// Edges that are `ignored` touch nothing.
    pub fn of(
        program: &Program,
        intervals: &Intervals,
        ignored: impl Fn(ThreadId, EdgeId) -> bool,
        limits: &Limits,
    ) -> Result<LiveCells, Limit> {
        let touched = |t: ThreadId, id: EdgeId, edge: &Edge| match ignored(t, id) {
            true => Touched::default(),
            false => Touched::by(program, intervals, t, edge),
        };
        let one = |t: ThreadId| live_cells(program.thread(t), |id, edge| touched(t, id, edge), limits);
        Ok(LiveCells(program.thread_ids().map(one).collect::<Result<_, _>>()?))
    }

    pub fn at(&self, t: ThreadId, loc: Loc) -> u64 {
        self.0[t.index()][loc.index()]
    }
}

/// The cells that an instruction may read, and those that it surely overwrites.
#[derive(Clone, Copy, Default)]
struct Touched {
    read: u64,
    overwritten: u64,
}

impl Touched {
    fn by(program: &Program, intervals: &Intervals, t: ThreadId, edge: &Edge) -> Touched {
        let range = || intervals.address(t, edge);
        let access = access::of_instr(program, &edge.instr, range).cells();
        let whole = matches!(edge.instr, Instr::Store { bytes, .. } if bytes.is_whole());
        let surely = whole && range().width() == 0;
        let exact = access::is_exact(program);
        Touched { read: access.reads, overwritten: if surely && exact { access.writes } else { 0 } }
    }
}

fn live_cells(
    thread: &Thread,
    touched: impl Fn(EdgeId, &Edge) -> Touched,
    limits: &Limits,
) -> Result<Vec<u64>, Limit> {
    let all: Vec<Touched> = thread.edges().map(|(id, edge)| touched(id, edge)).collect();
    let mut live = vec![0; thread.graph().node_count()];
    backward(thread, &mut live, limits, |id, edge, live| {
        let Touched { read, overwritten } = all[id.index()];
        let before = live[edge.from.index()];
        live[edge.from.index()] |= read | live[edge.to.index()] & !overwritten;
        Ok(live[edge.from.index()] != before)
    })?;
    Ok(live)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    /// The live cells of the first thread where it begins, of `x` and `y` in this order.
    fn live_at_first(body: &str) -> [bool; 2] {
        let source = format!("shared x, y; thread p; {body}; end; exists p.r == 0");
        let program = tso::read(&source, &[], &Limits::default()).unwrap().program;
        let cells = {
            let limits = Limits::default();
            let intervals = Intervals::of(&program, &limits).unwrap();
            LiveCells::of(&program, &intervals, |_, _| false, &limits).unwrap()
        };
        let live = cells.at(ThreadId(0), program.thread(ThreadId(0)).initial());
        [live & 1 != 0, live & 2 != 0]
    }

    #[test]
    fn a_cell_is_live_until_the_thread_writes_it() {
        assert_eq!(live_at_first("load r, [x]; store [x], 1"), [true, false]);
        assert_eq!(live_at_first("store [x], 1; load r, [x]; load r, [y]"), [false, true]);
        assert_eq!(live_at_first("again: store [x], 1; load r, [x]; goto again"), [false, false]);
        assert_eq!(live_at_first("again: load r, [x]; store [x], 1; goto again"), [true, false]);
    }

    #[test]
    fn every_way_to_a_read_must_lead_past_the_write() {
        let ways =
            |other: &str| format!("choose a, b; a: store [x], 1; goto on; b: {other}; on: load r, [x]");
        assert_eq!(live_at_first(&ways("nop")), [true, false]);
        assert_eq!(live_at_first(&ways("store [x], 2")), [false, false]);
    }

    #[test]
    fn a_store_somewhere_overwrites_nothing_for_sure() {
        assert_eq!(live_at_first("i = any(0..=1); store [x + i], 1; load r, [x]; load r, [y]"), [true, true]);
    }

    #[test]
    fn locked_instructions_read() {
        assert_eq!(live_at_first("xchg r, [x], 1; load s, [x]"), [true, false]);
    }
}
