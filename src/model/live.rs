//! Which registers still matter? A register is live at a location if its value may be used from there on.
//!
//! Backward data flow on each thread's graph. What counts as a use at the end, or everywhere, is the goal's
//! business, so callers hand those registers in. A register that is dead may be stored as 0.

use super::{EdgeId, Loc, Program, Reg, Thread, ThreadId};
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
    pub fn of(program: &Program, watched: &Watched, ignored: impl Fn(ThreadId, EdgeId) -> bool) -> Live {
        let one = |t: ThreadId| {
            let (always, at_end) = (&watched.always[t.index()], &watched.at_end[t.index()]);
            live(program.thread(t), always, at_end, |edge| ignored(t, edge))
        };
        Live(program.thread_ids().map(one).collect())
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

    pub fn is_live(&self, t: ThreadId, loc: Loc, r: Reg) -> bool {
        self.at(t, loc).contains(r.index())
    }
}

fn live(
    thread: &Thread,
    always: &[Reg],
    at_end: &[Reg],
    ignored: impl Fn(EdgeId) -> bool,
) -> Vec<BitSet> {
    let always: BitSet = always.iter().map(|r| r.index()).collect();
    let mut live = vec![always.clone(); thread.graph().node_count()];
    live[thread.end().index()].extend(at_end.iter().map(|r| r.index()));
    let mut into: Vec<Vec<_>> = vec![Vec::new(); live.len()];
    for (id, edge) in thread.edges() {
        into[edge.to.index()].push((id, edge));
    }
    let mut todo: Vec<Loc> = thread.locations().collect();
    while let Some(loc) = todo.pop() {
        for &(id, edge) in &into[loc.index()] {
            let mut before = live[loc.index()].clone();
            if let Some(r) = edge.instr.target().filter(|r| !always.contains(r.index())) {
                before.remove(r.index());
            }
            for e in edge.instr.exprs().into_iter().filter(|_| !ignored(id)) {
                e.for_each_atom(&mut |r| {
                    before.insert(r.index());
                });
            }
            if !before.is_subset(&live[edge.from.index()]) {
                live[edge.from.index()].union_with(&before);
                todo.push(edge.from);
            }
        }
    }
    live
}
