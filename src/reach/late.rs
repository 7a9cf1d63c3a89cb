//! Loads as late as they can be: the steps of a machine in which nobody reads before it matters.
//!
//! A load that the goal cannot see commutes with whatever the other threads do, except with a write that changes what
//! it leads to. So every run can be put in an order in which such a load comes right before what makes it matter: a
//! step of its own thread that is more than such a load (an *anchor*: a write, a choice, a step that the goal
//! sees, an arrival at the end or at an error), or another thread's write that would change its outcome. One
//! step of the search is then: one thread does its *row* of loads up to its anchor, each of the others
//! does nothing or as many loads of its own row as it takes to see the anchor's cell before it changes, and the anchor is
//! taken. States in the middle of a row are not stored, except where a load has seen what is no longer there.
//!
//! Why this is sound: take a shortest run from a stored state to a goal, and its first anchor. All before it are loads,
//! which commute with each other. Those of the anchor's thread are its row. Of those of another thread, all
//! after the last whose outcome the anchor changes can come after the anchor; the others are one of the
//! choices. What is left of the run is shorter and leads to a goal from the state that is stored. A shortest run has
//! no load that brings its thread back to a local state it has had in the same memory, so a row ends there. If the run has
//! no anchor, the goal says of its first state what it says of its last. Steps that hurry (`machine`) are at most taken
//! out of the rest of the run. A row that is long is cut, and an anchor with many choices is preceded by loads of
//! their own: those are steps of the run too, and shorten the rest of it.
//!
//! There are no sleep sets here: they would save few steps, and looking again at states that wake up costs more.
//! Not here: store buffers and `lock` … `unlock` blocks; `machine` has the steps of such programs.

use super::locals::{Act as Effect, Kind, LocalId, Locals};
use super::machine::{ProgramMachine, Record};
use crate::model::access::Access;
use crate::verdict::Act;
use std::ops::{ControlFlow, Range};

/// More loads than this are not taken at once.
const LONGEST: usize = 32;
/// With more choices than this, loads that matter to an anchor are steps of their own.
const MANY: usize = 16;

/// A packed state, and the local state of each thread in it.
#[derive(Clone, Default)]
struct Standing {
    words: Vec<u64>,
    at: Vec<LocalId>,
}

impl Standing {
    fn become_like(&mut self, other: &Standing) {
        self.words.clone_from(&other.words);
        self.at.clone_from(&other.at);
    }
}

/// The loads of a thread up to its anchor.
#[derive(Clone, Default)]
struct Row {
    loads: Vec<Load>,
    /// The cells of all of them.
    reads: Access,
    end: End,
    /// The ways to take the anchor.
    anchors: Range<usize>,
}

#[derive(Clone, Copy)]
struct Load {
    cell: u32,
    from: LocalId,
    to: LocalId,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum End {
    /// The thread stands before its anchor.
    #[default]
    Anchor,
    /// It can do no more, or goes round in a circle.
    Nothing,
    /// There are more loads.
    Cut,
}

/// A way to take the anchor of a thread.
#[derive(Clone, Copy)]
struct Anchor {
    thread: usize,
    /// Which of the local state's moves.
    number: usize,
    to: LocalId,
    /// The cell that it changes, and to what.
    write: Option<(u32, u64)>,
}

/// A thread that may load before an anchor, and how far: some of `how_far`.
#[derive(Clone, Copy)]
struct Choice {
    thread: usize,
    first: usize,
    count: usize,
}

/// One worker's space.
#[derive(Default)]
pub(crate) struct Late {
    locals: Locals,
    base: Standing,
    next: Standing,
    /// Threads that have moved from the one to the other.
    moved: Vec<usize>,
    rows: Vec<Row>,
    anchors: Vec<Anchor>,
    /// Per thread, what the others may still touch in `base`.
    others: Vec<Access>,
    others_next: Vec<Access>,
    choices: Vec<Choice>,
    /// Numbers of loads.
    how_far: Vec<usize>,
    /// Per choice, none or one of its numbers.
    chosen: Vec<usize>,
}

impl Late {
    /// Prepares for the steps from a state.
    pub fn begin(&mut self, machine: &ProgramMachine, state: &[u64]) {
        let threads = machine.threads();
        self.locals.tidy(machine);
        self.base.words.clear();
        self.base.words.extend_from_slice(state);
        self.base.at.clear();
        for t in 0..threads {
            self.base.at.push(self.locals.find(machine, t, state));
        }
        others_futures(&self.locals, &self.base.at, &mut self.others);
        self.rows.resize(threads, Row::default());
        self.anchors.clear();
        for t in 0..threads {
            self.fill_row(machine, t);
            self.find_anchors(machine, t);
        }
    }

    /// The state that was found last.
    pub fn found(&self) -> &[u64] {
        &self.next.words
    }

    fn fill_row(&mut self, machine: &ProgramMachine, t: usize) {
        let Late { locals, base, rows, .. } = self;
        let row = &mut rows[t];
        row.loads.clear();
        row.reads = Access::NONE;
        let mut from = base.at[t];
        row.end = loop {
            let local = locals.with_moves(machine, t, from);
            if local.kind != Kind::Load {
                break if local.moves().is_empty() { End::Nothing } else { End::Anchor };
            }
            if row.loads.len() == LONGEST {
                break End::Cut;
            }
            let cell = local.cell();
            let to = locals.load(machine, t, from, machine.parts().cell(cell).get(&base.words));
            if locals.get(to).arrived {
                break End::Anchor;
            }
            if to == base.at[t] || row.loads.iter().any(|l| l.to == to) {
                break End::Nothing;
            }
            row.reads = row.reads.union(Access::read(cell));
            row.loads.push(Load { cell, from, to });
            from = to;
        };
    }

    /// Where the thread stands after so many loads.
    fn after(&self, t: usize, loads: usize) -> LocalId {
        if loads == 0 { self.base.at[t] } else { self.rows[t].loads[loads - 1].to }
    }

    fn find_anchors(&mut self, machine: &ProgramMachine, t: usize) {
        let first = self.anchors.len();
        if self.rows[t].end == End::Anchor {
            let from = self.after(t, self.rows[t].loads.len());
            for number in self.locals.get(from).moves() {
                let (to, write) = self.locals.effect(machine, t, from, number, &self.base.words);
                self.anchors.push(Anchor { thread: t, number, to, write });
            }
        }
        self.rows[t].anchors = first..self.anchors.len();
    }

    /// Would writing the cell change the outcome of that load?
    fn changes(&mut self, machine: &ProgramMachine, t: usize, load: usize, cell: u32, raw: u64) -> bool {
        let Load { cell: own, from, to } = self.rows[t].loads[load];
        own == cell && self.locals.load(machine, t, from, raw) != to
    }

    /// Who may load before the anchor, so that it matters.
    fn find_choices(&mut self, machine: &ProgramMachine, anchor: Anchor) {
        self.choices.clear();
        self.how_far.clear();
        let Some((cell, raw)) = anchor.write else { return };
        for thread in 0..self.rows.len() {
            if thread == anchor.thread || !self.rows[thread].reads.may_read(cell) {
                continue;
            }
            let first = self.how_far.len();
            for load in 0..self.rows[thread].loads.len() {
                if self.changes(machine, thread, load, cell, raw)
                    && !self.locals.get(self.rows[thread].loads[load].to).stuck
                {
                    self.how_far.push(load + 1);
                }
            }
            let count = self.how_far.len() - first;
            if count > 0 {
                self.choices.push(Choice { thread, first, count });
            }
        }
    }

    /// All normal forms that follow when thread `t` takes its anchor, each left in `found`.
    pub fn successors<R: Record>(
        &mut self,
        machine: &ProgramMachine,
        t: usize,
        mut done: impl FnMut(&Late, &R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.rows[t].end == End::Cut {
            let record = self.load_alone::<R>(machine, t, self.rows[t].loads.len());
            done(self, &record)?;
        }
        for i in self.rows[t].anchors.clone() {
            let anchor = self.anchors[i];
            if self.is_idle(machine, anchor) {
                continue;
            }
            self.find_choices(machine, anchor);
            let many = self.choices.iter().map(|c| c.count + 1).try_fold(1, usize::checked_mul);
            if many.is_none_or(|many| many > MANY) {
                for choice in std::mem::take(&mut self.choices) {
                    let record = self.load_alone::<R>(machine, choice.thread, self.how_far[choice.first]);
                    done(self, &record)?;
                }
            }
            self.chosen.clear();
            self.chosen.resize(self.choices.len(), 0);
            loop {
                let record = self.take::<R>(machine, anchor);
                done(self, &record)?;
                if !self.choose_next() {
                    break;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The next combination of choices; `false` if there is none.
    fn choose_next(&mut self) -> bool {
        for (chosen, choice) in self.chosen.iter_mut().zip(&self.choices) {
            if *chosen < choice.count {
                *chosen += 1;
                return true;
            }
            *chosen = 0;
        }
        false
    }

    /// Who loads before the anchor by the `i`th choice, and how much.
    #[inline]
    fn loads_chosen(&self, i: usize) -> Option<(usize, usize)> {
        let Choice { thread, first, .. } = self.choices[i];
        let number = self.chosen[i].checked_sub(1)?;
        Some((thread, self.how_far[first + number]))
    }

    /// Does the anchor only lead to where its thread never moves again? Then whatever the others do next they can do
    /// without it.
    fn is_idle(&self, machine: &ProgramMachine, anchor: Anchor) -> bool {
        let from = self.after(anchor.thread, self.rows[anchor.thread].loads.len());
        let silent =
            matches!(self.locals.a_move(anchor.number).act, Effect::Local { .. } | Effect::Load { .. });
        machine.prunes() && silent && self.locals.get(anchor.to).stuck && !self.locals.get(from).visible
    }

    /// Some loads of a thread, and nothing else.
    fn load_alone<R: Record>(&mut self, machine: &ProgramMachine, t: usize, loads: usize) -> R {
        let mut record = R::default();
        self.next.become_like(&self.base);
        self.moved.clear();
        self.load(machine, t, loads, &mut record);
        self.normalise(machine, &mut record);
        record
    }

    fn load(&mut self, machine: &ProgramMachine, t: usize, loads: usize, record: &mut impl Record) {
        self.tell_loads(t, loads, record);
        let to = self.after(t, loads);
        self.go(machine, t, to);
    }

    #[inline]
    fn tell_loads<R: Record>(&self, t: usize, loads: usize, record: &mut R) {
        if R::WANTED {
            for load in &self.rows[t].loads[..loads] {
                let number = self.locals.get(load.from).moves().start;
                record.push(t, Act::Step { edge: self.locals.a_move(number).edge, choice: None });
            }
        }
    }

    /// The anchor, and the loads before it that are chosen.
    fn take<R: Record>(&mut self, machine: &ProgramMachine, anchor: Anchor) -> R {
        let mut record = R::default();
        self.next.become_like(&self.base);
        self.moved.clear();
        self.tell_loads(anchor.thread, self.rows[anchor.thread].loads.len(), &mut record);
        self.go(machine, anchor.thread, anchor.to);
        for i in 0..self.chosen.len() {
            if let Some((u, loads)) = self.loads_chosen(i) {
                self.load(machine, u, loads, &mut record);
            }
        }
        if R::WANTED {
            let taken = self.locals.a_move(anchor.number);
            record.push(anchor.thread, Act::Step { edge: taken.edge, choice: taken.choice });
        }
        if let Some((cell, raw)) = anchor.write {
            machine.parts().cell(cell).set(&mut self.next.words, raw);
        }
        self.normalise(machine, &mut record);
        record
    }

    #[inline]
    fn go(&mut self, machine: &ProgramMachine, t: usize, to: LocalId) {
        self.moved.push(t);
        self.next.at[t] = to;
        self.locals.put(machine, t, to, &mut self.next.words);
    }

    /// Takes every step that may hurry.
    #[inline]
    fn normalise(&mut self, machine: &ProgramMachine, record: &mut impl Record) {
        if !machine.hurries() || self.is_plainly_normal(machine) {
            return;
        }
        while let Some(t) = self.find_hurry(machine) {
            let from = self.next.at[t];
            let number = self.locals.get(from).moves().start;
            let (to, write) = self.locals.effect(machine, t, from, number, &self.next.words);
            let taken = self.locals.a_move(number);
            record.push(t, Act::Step { edge: taken.edge, choice: taken.choice });
            self.go(machine, t, to);
            if let Some((cell, raw)) = write {
                machine.parts().cell(cell).set(&mut self.next.words, raw);
            }
        }
    }

    /// A look that settles most cases: nothing has changed for those who have not moved if the futures of the others
    /// have not.
    fn is_plainly_normal(&mut self, machine: &ProgramMachine) -> bool {
        let Late { locals, base, next, moved, others, .. } = self;
        moved.iter().all(|&t| {
            let future = locals.get(base.at[t]).future;
            let local = *locals.get(next.at[t]);
            local.future == future
                && (!local.may_hurry || others[t].conflicts(locals.with_moves(machine, t, next.at[t]).next))
        })
    }

    fn find_hurry(&mut self, machine: &ProgramMachine) -> Option<usize> {
        let Late { locals, next, others_next, .. } = self;
        others_futures(locals, &next.at, others_next);
        (0..next.at.len()).find(|&t| {
            if !locals.get(next.at[t]).may_hurry {
                return false;
            }
            let local = locals.with_moves(machine, t, next.at[t]);
            !local.moves().is_empty() && !others_next[t].conflicts(local.next)
        })
    }

    /// Has somebody who moved lost something that a goal may ask for?
    pub fn has_lost(&self) -> bool {
        self.moved.iter().any(|&t| self.locals.get(self.next.at[t]).lost)
    }
}

/// Per thread, everything that the others may still touch.
fn others_futures(locals: &Locals, at: &[LocalId], out: &mut Vec<Access>) {
    out.clear();
    out.extend(at.iter().map(|&id| locals.get(id).future));
    super::machine::without_own(out);
}
