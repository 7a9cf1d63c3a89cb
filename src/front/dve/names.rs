//! Who is meant by a name of a model: processes, their states, and variables of processes or of all.

use crate::dve::System;
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct Names {
    variables: HashMap<Option<usize>, HashMap<String, usize>>,
    processes: HashMap<String, usize>,
    states: Vec<HashMap<String, usize>>,
}

impl Names {
    pub(crate) fn of(system: &System) -> Names {
        let mut names = Names::default();
        for (number, variable) in system.variables.iter().enumerate() {
            names.add_variable(variable.owner, &variable.name, number);
        }
        for (number, process) in system.processes.iter().enumerate() {
            names.processes.insert(process.name.clone(), number);
            let states = process.states.iter().enumerate();
            names.states.push(states.map(|(state, s)| (s.name.clone(), state)).collect());
        }
        names
    }

    pub(crate) fn add_variable(&mut self, owner: Option<usize>, name: &str, number: usize) {
        self.variables.entry(owner).or_default().insert(name.to_string(), number);
    }

    /// What the process, or nobody, sees under the name.
    pub(crate) fn variable(&self, process: Option<usize>, name: &str) -> Option<usize> {
        let of = |owner| self.variables.get(&owner)?.get(name).copied();
        of(process).or_else(|| of(None))
    }

    pub(crate) fn process(&self, name: &str) -> Option<usize> {
        self.processes.get(name).copied()
    }

    pub(crate) fn state(&self, process: usize, name: &str) -> Option<usize> {
        self.states[process].get(name).copied()
    }
}
