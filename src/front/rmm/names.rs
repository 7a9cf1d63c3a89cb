//! What is there to name? Memory locations with their cells and domains, the processes, and each one's
//! registers.
//!
//! Globals come first and in their order, so that a pointer's value is the address of its cell. The locals of
//! each process follow; they are shared memory like everything else, and only addressed from the one who
//! speaks. How registers are used is `flow`'s business.

use super::ast::{Decl, File, Name, PlaceKind, Process, RmmPlace};
use crate::analysis::interval::Interval;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported};
use crate::model::{MAX_THREADS, Value, Variable};
use std::collections::{HashMap, HashSet};

pub(crate) struct RmmNames<'s, 'f> {
    pub cells: Vec<RmmCell<'s>>,
    pub globals: usize,
    by_name: HashMap<&'s str, usize>,
    pub processes: Vec<Instance<'s, 'f>>,
    doubtful: &'f HashSet<&'s str>,
}

/// A memory location.
pub(crate) struct RmmCell<'s> {
    pub name: String,
    pub decl: Decl<'s>,
}

/// One of the copies of a process.
pub(crate) struct Instance<'s, 'f> {
    pub process: &'f Process<'s>,
    /// The cells of its locals.
    locals: HashMap<&'s str, usize>,
}

impl<'s, 'f> RmmNames<'s, 'f> {
    pub(crate) fn declare(file: &'f File<'s>, problems: &mut Problems) -> Result<RmmNames<'s, 'f>, Reported> {
        let mut names = RmmNames {
            cells: Vec::new(),
            globals: file.globals.len(),
            by_name: HashMap::new(),
            processes: Vec::new(),
            doubtful: &file.doubtful,
        };
        for decl in &file.globals {
            let cell = names.cell(decl.name.text.to_string(), decl);
            twice(names.by_name.insert(decl.name.text, cell), decl, problems);
        }
        for process in &file.processes {
            let mut registers = HashMap::new();
            process.registers.iter().for_each(|r| twice(registers.insert(r.name.text, ()), r, problems));
            if names.processes.len() + process.copies > MAX_THREADS {
                let problem = Problem::error(format!("a program has at most {MAX_THREADS} processes"));
                return Err(problems.report(problem.at(process.span)));
            }
            for _ in 0..process.copies {
                problems.spend(INSTRUCTION * (1 + process.locals.len()))?;
                let number = names.processes.len();
                let mut locals = HashMap::new();
                for decl in &process.locals {
                    let cell = names.cell(format!("{}[{number}]", decl.name.text), decl);
                    twice(locals.insert(decl.name.text, cell), decl, problems);
                }
                names.processes.push(Instance { process, locals });
            }
        }
        Ok(names)
    }

    fn cell(&mut self, name: String, decl: &Decl<'s>) -> usize {
        self.cells.push(RmmCell { name, decl: decl.clone() });
        self.cells.len() - 1
    }

    /// The memory, with 0 or the nearest value where any value may be the first.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        let first = |decl: &Decl| decl.init.unwrap_or(0.clamp(decl.domain.lo, decl.domain.hi));
        self.cells.iter().map(|c| Variable { name: c.name.clone(), init: vec![first(&c.decl)] }).collect()
    }

    /// Was the name part of something that could not be read?
    pub(crate) fn is_doubtful(&self, name: &str) -> bool {
        self.doubtful.contains(name)
    }

    /// The cell that a place other than a pointer means to a process.
    pub(crate) fn resolve(
        &self,
        place: &RmmPlace<'s>,
        speaker: usize,
        problems: &mut Problems,
    ) -> Result<usize, Reported> {
        match &place.kind {
            PlaceKind::Global(name) => match self.by_name.get(name.text) {
                Some(cell) => Ok(*cell),
                None => Err(self.unknown_global(name, speaker, problems)),
            },
            PlaceKind::Own(name) => self.local(name, speaker, speaker, problems),
            PlaceKind::Other(name, k) => {
                if self.by_name.contains_key(name.text) && !self.is_local(name.text) {
                    return self.local(name, speaker, speaker, problems);
                }
                let others = self.processes.len() as Value - 1;
                if *k < 0 || *k >= others {
                    let problem = Problem::error(format!("there is no other process {k}")).at(place.span);
                    return Err(
                        problems.report(problem.label(format!("there are {others} others, from 0 up")))
                    );
                }
                let k = *k as usize;
                self.local(name, if k < speaker { k } else { k + 1 }, speaker, problems)
            }
            PlaceKind::Pointer(_) => unreachable!("pointers have no cell of their own"),
        }
    }

    fn local(
        &self,
        name: &Name<'s>,
        owner: usize,
        speaker: usize,
        problems: &mut Problems,
    ) -> Result<usize, Reported> {
        let locals = &self.processes[owner].locals;
        if let Some(cell) = locals.get(name.text) {
            return Ok(*cell);
        }
        if self.is_doubtful(name.text) && !self.by_name.contains_key(name.text) {
            return Err(Reported);
        }
        let problem = Problem::error(format!("process {owner} has no location `{}` of its own", name.text));
        let problem = problem.at(name.span);
        let problem = match self.by_name.contains_key(name.text) {
            true => problem.help(format!("`{}` belongs to nobody: write it without brackets", name.text)),
            false => problem.suggest(problems.nearest(name.text, locals.keys().copied())),
        };
        let problem = match owner == speaker {
            true => problem,
            false => problem.label(format!("as seen from process {speaker}")),
        };
        Err(problems.report(problem))
    }

    fn unknown_global(&self, name: &Name<'s>, speaker: usize, problems: &mut Problems) -> Reported {
        if self.is_doubtful(name.text) {
            return Reported;
        }
        let problem = Problem::error(format!("unknown memory location `{}`", name.text)).at(name.span);
        let problem = match self.is_local(name.text) {
            true => problem
                .help(format!("a process has it of its own: `{0}[my]`, or `{0}[0]` of another", name.text)),
            false => {
                let locals = self.processes[speaker].locals.keys().copied();
                problem.suggest(problems.nearest(name.text, self.by_name.keys().copied().chain(locals)))
            }
        };
        problems.report(problem)
    }

    /// Does some process have it of its own?
    fn is_local(&self, name: &str) -> bool {
        self.processes.iter().any(|p| p.locals.contains_key(name))
    }

    /// The globals that an address in this range can mean.
    pub(crate) fn pointed_at(&self, range: Interval) -> std::ops::Range<usize> {
        let lo = range.lo.max(0);
        let hi = range.hi.min(self.globals as Value - 1);
        if lo > hi { 0..0 } else { lo as usize..hi as usize + 1 }
    }
}

fn twice<T>(before: Option<T>, decl: &Decl, problems: &mut Problems) {
    if before.is_some() {
        let problem = Problem::error(format!("`{}` is declared twice", decl.name.text)).at(decl.name.span);
        problems.report(problem);
    }
}
