//! How does SPIN notice a property's violation? By assertions inside the steps that can bring it about.
//!
//! A `forbid` is asserted after every step that changes one of its atoms, inside that step. Its locations
//! become global flags and its registers global variables, so a step that a property can see is one that
//! SPIN's partial order reduction sees too. A property of final states is asserted by the last thread to
//! arrive at its end; until then each thread keeps its registers to itself and publishes them as it ends.
//! Invariant: a flag is 1 exactly while its thread stands at one of its locations.

use super::layout::{PromelaLayout, all_registers};
use crate::analysis::interval::Interval;
use crate::analysis::liveness::Watched;
use crate::model::{
    Addr, Atom, BinOp, Expr, Loc, Pred, Program, Property, PropertyKind, Reg, ThreadId, Value,
};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;

pub(crate) struct Watch {
    forbids: Vec<Forbid>,
    finals: Vec<Property>,
    flags: Vec<Flag>,
    at_end: BTreeSet<(ThreadId, Reg)>,
    threads: usize,
}

struct Forbid {
    pred: Pred,
    flags: BTreeSet<usize>,
    registers: BTreeSet<(ThreadId, Reg)>,
    cells: BTreeSet<Addr>,
}

struct Flag {
    thread: ThreadId,
    locs: Vec<Loc>,
}

/// What one step of a thread changed.
pub(crate) struct Change {
    pub from: Loc,
    pub to: Loc,
    pub registers: Vec<Reg>,
    /// The addresses that may have been written.
    pub memory: Option<Interval>,
}

impl Watch {
    pub(crate) fn of(program: &Program) -> Watch {
        let threads = program.threads().len();
        let mut watch =
            Watch { forbids: vec![], finals: vec![], flags: vec![], at_end: BTreeSet::new(), threads };
        for property in program.properties() {
            match property.kind {
                PropertyKind::Forbid => watch.add_forbid(&property.pred),
                _ => watch.add_final(property),
            }
        }
        watch
    }

    /// Can an arrival at a flag only help a property to be violated?
    pub(crate) fn grows_with_arrivals(&self) -> bool {
        self.forbids.iter().all(|f| f.pred.grows_with(&|a| matches!(a, Atom::At(..))))
    }

    fn add_forbid(&mut self, pred: &Pred) {
        let mut forbid = Forbid {
            pred: pred.clone(),
            flags: BTreeSet::new(),
            registers: BTreeSet::new(),
            cells: BTreeSet::new(),
        };
        pred.for_each_atom(&mut |atom| match atom {
            Atom::At(t, locs) => {
                forbid.flags.insert(self.flag(*t, locs));
            }
            Atom::Reg(t, r) => {
                forbid.registers.insert((*t, *r));
            }
            Atom::Mem(a) => {
                forbid.cells.insert(*a);
            }
        });
        self.forbids.push(forbid);
    }

    fn add_final(&mut self, property: &Property) {
        property.pred.for_each_atom(&mut |atom| {
            if let Atom::Reg(t, r) = atom {
                self.at_end.insert((*t, *r));
            }
        });
        self.finals.push(property.clone());
    }

    /// The flag of an atom, made if it is new.
    fn flag(&mut self, thread: ThreadId, locs: &[Loc]) -> usize {
        let known = self.find_flag(thread, locs);
        known.unwrap_or_else(|| {
            self.flags.push(Flag { thread, locs: locs.to_vec() });
            self.flags.len() - 1
        })
    }

    fn find_flag(&self, thread: ThreadId, locs: &[Loc]) -> Option<usize> {
        self.flags.iter().position(|f| f.thread == thread && f.locs == locs)
    }

    /// Does a property watch the register in every state?
    pub(crate) fn always(&self, t: ThreadId, r: Reg) -> bool {
        self.forbids.iter().any(|f| f.registers.contains(&(t, r)))
    }

    pub(crate) fn memory(&self, range: Interval) -> bool {
        self.forbids.iter().any(|f| f.cells.iter().any(|a| within(*a, range)))
    }

    /// The flags that are 1 while the thread stands there.
    pub(crate) fn flags_at(&self, t: ThreadId, loc: Loc) -> Vec<usize> {
        let up = |f: &Flag| f.thread == t && f.locs.contains(&loc);
        (0..self.flags.len()).filter(|&k| up(&self.flags[k])).collect()
    }

    /// Registers that are used by more than the program text.
    pub(crate) fn registers(&self, program: &Program) -> Watched {
        let of = |wanted: &dyn Fn(ThreadId, Reg) -> bool| {
            let thread =
                |t| all_registers(program, t).filter(|&(t, r)| wanted(t, r)).map(|(_, r)| r).collect();
            program.thread_ids().map(thread).collect()
        };
        Watched { always: of(&|t, r| self.always(t, r)), at_end: of(&|t, r| self.at_end.contains(&(t, r))) }
    }

    pub(crate) fn declarations(&self, program: &Program, layout: &PromelaLayout) -> String {
        let mut text = String::new();
        for (k, flag) in self.flags.iter().enumerate() {
            let thread = program.thread(flag.thread);
            let atom = program.show_atom(&Atom::At(flag.thread, flag.locs.clone()));
            let up = if flag.locs.contains(&thread.initial()) { " = 1" } else { "" };
            let _ = writeln!(text, "bit at_{k}{up}; /* {} */", super::comment(&atom));
        }
        for (t, r) in program.thread_ids().flat_map(|t| all_registers(program, t)) {
            if self.always(t, r) {
                let _ = writeln!(text, "{} {};", layout.register_type(t, r), layout.register(t, r));
            } else if self.at_end.contains(&(t, r)) {
                let _ = writeln!(text, "{} {};", layout.register_type(t, r), published(layout, t, r));
            }
        }
        if !self.finals.is_empty() {
            let ended = program.threads().iter().filter(|t| t.initial() == t.end()).count();
            let _ = writeln!(text, "byte ended = {ended};");
        }
        text
    }

    /// Declares the thread's own registers, as far as its text uses them.
    pub(crate) fn locals(
        &self,
        program: &Program,
        layout: &PromelaLayout,
        t: ThreadId,
        used: &HashSet<String>,
    ) -> String {
        all_registers(program, t)
            .filter(|&(t, r)| !self.always(t, r) && used.contains(layout.register(t, r)))
            .map(|(t, r)| format!("    {} {};\n", layout.register_type(t, r), layout.register(t, r)))
            .collect()
    }

    /// What a step has to do besides its own work.
    pub(crate) fn after(
        &self,
        program: &Program,
        layout: &PromelaLayout,
        t: ThreadId,
        change: &Change,
    ) -> Vec<String> {
        let (before, now) = (self.flags_at(t, change.from), self.flags_at(t, change.to));
        let lowered: Vec<usize> = before.iter().copied().filter(|k| !now.contains(k)).collect();
        let raised: Vec<usize> = now.iter().copied().filter(|k| !before.contains(k)).collect();
        let mut text: Vec<String> = lowered.iter().map(|k| format!("at_{k} = 0")).collect();
        text.extend(raised.iter().map(|k| format!("at_{k} = 1")));
        let seen_by = |f: &&Forbid| {
            raised.iter().any(|k| f.flags.contains(k))
                || !only_grows(&f.pred) && lowered.iter().any(|k| f.flags.contains(k))
                || change.registers.iter().any(|r| f.registers.contains(&(t, *r)))
                || change.memory.is_some_and(|range| f.cells.iter().any(|a| within(*a, range)))
        };
        text.extend(self.forbids.iter().filter(seen_by).map(|f| self.assertion(layout, f)));
        if change.to == program.thread(t).end() && change.from != change.to && !self.finals.is_empty() {
            text.extend(self.arrival_at_end(program, layout, t));
        }
        text
    }

    fn assertion(&self, layout: &PromelaLayout, forbid: &Forbid) -> String {
        let pred = forbid.pred.show(&|atom| match atom {
            Atom::At(t, locs) => {
                let k = self.find_flag(*t, locs).expect("every location atom of a forbid has its flag");
                format!("at_{k}")
            }
            Atom::Reg(t, r) => layout.register(*t, *r).to_string(),
            Atom::Mem(a) => layout.cell(*a),
        });
        format!("assert(!({pred}))")
    }

    fn arrival_at_end(&self, program: &Program, layout: &PromelaLayout, t: ThreadId) -> Vec<String> {
        let mine = self.at_end.iter().filter(|(u, r)| *u == t && !self.always(t, *r));
        let mut text: Vec<String> = mine
            .map(|(t, r)| format!("{} = {}", published(layout, *t, *r), layout.register(*t, *r)))
            .collect();
        text.push("ended = ended + 1".to_string());
        for property in &self.finals {
            let pred = property.pred.show(&|atom| match atom {
                Atom::At(t, locs) => (locs.contains(&program.thread(*t).end()) as u8).to_string(),
                Atom::Reg(t, r) if self.always(*t, *r) => layout.register(*t, *r).to_string(),
                Atom::Reg(t, r) => published(layout, *t, *r),
                Atom::Mem(a) => layout.cell(*a),
            });
            let good = if property.kind == PropertyKind::Forall { pred } else { format!("!({pred})") };
            text.push(format!("assert(ended < {} || ({good}))", self.threads));
        }
        text
    }

    /// Is a property violated before anything has happened?
    pub(crate) fn violated_at_start(&self, program: &Program) -> bool {
        let holds = |pred: &Pred| {
            pred.eval(&|atom| match atom {
                Atom::At(t, locs) => locs.contains(&program.thread(*t).initial()) as Value,
                Atom::Reg(..) => 0,
                Atom::Mem(a) => program.initial_memory()[a.index()],
            }) != Ok(0)
        };
        let over = program.threads().iter().all(|t| t.initial() == t.end());
        let bad = |p: &Property| over && holds(&p.pred) != (p.kind == PropertyKind::Forall);
        self.forbids.iter().any(|f| holds(&f.pred)) || self.finals.iter().any(bad)
    }
}

/// Can raising flags make the predicate true, and lowering them only false?
fn only_grows(pred: &Pred) -> bool {
    match pred {
        Expr::Const(_) | Expr::Atom(_) => true,
        Expr::Binary(BinOp::And | BinOp::Or, a, b) => only_grows(a) && only_grows(b),
        _ => false,
    }
}

fn within(a: Addr, range: Interval) -> bool {
    (range.lo..=range.hi).contains(&(a.0 as Value))
}

/// The global copy of a register that a property of final states reads.
fn published(layout: &PromelaLayout, t: ThreadId, r: Reg) -> String {
    format!("final_{}_{}", layout.process(t), layout.register(t, r))
}
