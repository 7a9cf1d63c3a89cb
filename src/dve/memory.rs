//! Which memory does a model run on? Sequentially consistent, or with store buffers of one slot for each
//! process and element `[Havel12]`, some writes being atomic and some transitions barriers.

use super::System;
use std::collections::BTreeSet;

/// One assignment of one transition: what it writes there is written at once if the site is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    pub process: usize,
    pub transition: usize,
    pub variable: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// A write is seen by all at once.
    #[default]
    Sc,
    /// A write waits in its process's slot for that element, and goes to memory at some time.
    Slots {
        atomic: BTreeSet<Site>,
        /// Transitions, by process and number, that wait until all slots of their process are empty.
        barriers: BTreeSet<(usize, usize)>,
    },
}

impl Memory {
    /// With slots, and nothing atomic.
    pub fn slots() -> Memory {
        Memory::Slots { atomic: BTreeSet::new(), barriers: BTreeSet::new() }
    }

    pub fn is_sc(&self) -> bool {
        *self == Memory::Sc
    }

    /// Does a write to the variable at this transition wait in a slot?
    pub fn delays(&self, system: &System, process: usize, transition: usize, variable: usize) -> bool {
        match self {
            Memory::Sc => false,
            Memory::Slots { atomic, .. } => {
                let site = Site { process, transition, variable };
                system.variables[variable].owner.is_none() && !atomic.contains(&site)
            }
        }
    }

    pub fn is_barrier(&self, process: usize, transition: usize) -> bool {
        match self {
            Memory::Sc => false,
            Memory::Slots { barriers, .. } => barriers.contains(&(process, transition)),
        }
    }
}

impl System {
    /// Every write to a global variable, once for each transition and variable.
    pub fn sites(&self) -> Vec<Site> {
        let mut sites = BTreeSet::new();
        for (process, p) in self.processes[..self.active()].iter().enumerate() {
            for (transition, t) in p.transitions.iter().enumerate() {
                let globals = t.targets().filter(|place| self.variables[place.variable].owner.is_none());
                sites.extend(globals.map(|place| Site { process, transition, variable: place.variable }));
            }
        }
        sites.into_iter().collect()
    }
}
