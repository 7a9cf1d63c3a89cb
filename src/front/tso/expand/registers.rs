//! Which registers does a thread have? Those of its own text, and those of every `inline` it calls.
//!
//! A call has registers of its own, so a register is a name and the call it is in. In the model `r` of the
//! second call of `acquire` is called `acquire_r_2`, unless the thread itself has a register of that name.

use crate::front::diagnostics::Span;
use crate::model::{MAX_REGISTERS, Reg};
use std::collections::{HashMap, HashSet};

/// Where registers and labels belong: the thread itself, or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame<'s> {
    /// Told apart from all other frames of the thread by this.
    pub id: u32,
    /// The `inline`, and which of its calls this is, from 1.
    pub call: Option<(&'s str, u32)>,
}

impl<'s> Frame<'s> {
    pub(crate) const THREAD: Frame<'s> = Frame { id: 0, call: None };

    /// A name of this frame among those of the thread.
    pub(crate) fn qualified(&self, name: &str) -> String {
        match self.call {
            Some((inline, number)) => format!("{inline}_{name}_{number}"),
            None => name.to_string(),
        }
    }
}

/// Registers in order of appearance, and what happens to each.
#[derive(Default)]
pub(crate) struct TsoRegisters<'s> {
    ids: HashMap<(u32, &'s str), Reg>,
    all: Vec<TsoRegister<'s>>,
    /// Gets what nobody asked for, and what narrow loads find.
    unused: Option<Reg>,
}

struct TsoRegister<'s> {
    frame: Frame<'s>,
    name: &'s str,
    assigned: bool,
    first_read: Option<Span>,
}

impl<'s> TsoRegisters<'s> {
    /// The register of this name, be it new; none if there are too many.
    pub(crate) fn get(&mut self, frame: Frame<'s>, name: &'s str) -> Option<Reg> {
        if let Some(reg) = self.ids.get(&(frame.id, name)) {
            return Some(*reg);
        }
        let reg = self.add(frame, name)?;
        self.ids.insert((frame.id, name), reg);
        Some(reg)
    }

    /// The register for results that are not asked for, and for those that are not cut yet.
    pub(crate) fn unused(&mut self) -> Option<Reg> {
        if self.unused.is_none() {
            self.unused = self.add(Frame { id: u32::MAX, call: Some(("unused", 1)) }, "");
        }
        self.unused
    }

    fn add(&mut self, frame: Frame<'s>, name: &'s str) -> Option<Reg> {
        let reg = (self.all.len() < MAX_REGISTERS).then_some(Reg(self.all.len() as u16))?;
        self.all.push(TsoRegister { frame, name, assigned: false, first_read: None });
        Some(reg)
    }

    pub(crate) fn assign(&mut self, reg: Reg) {
        self.all[reg.index()].assigned = true;
    }

    pub(crate) fn read(&mut self, reg: Reg, at: Span) {
        self.all[reg.index()].first_read.get_or_insert(at);
    }

    /// Those that are read and never assigned, with the place.
    pub(crate) fn never_assigned(&self) -> Vec<(&'s str, Span)> {
        let missing = self.all.iter().filter(|r| !r.assigned);
        missing.filter_map(|r| Some((r.name, r.first_read?))).collect()
    }

    pub(crate) fn assigned(&self) -> impl Iterator<Item = &'s str> + '_ {
        self.all.iter().filter(|r| r.assigned).map(|r| r.name)
    }

    /// What they are called in the model, no two alike.
    pub(crate) fn names(&self) -> Vec<String> {
        let own: HashSet<&str> = self.all.iter().filter(|r| r.frame.call.is_none()).map(|r| r.name).collect();
        let mut given: HashSet<String> = HashSet::new();
        let name = |register: &TsoRegister| {
            if register.frame.call.is_none() {
                return register.name.to_string();
            }
            let mut name = match register.frame.id {
                u32::MAX => "unused".to_string(),
                _ => register.frame.qualified(register.name),
            };
            while own.contains(name.as_str()) || !given.insert(name.clone()) {
                name.push('_');
            }
            name
        };
        self.all.iter().map(name).collect()
    }
}
