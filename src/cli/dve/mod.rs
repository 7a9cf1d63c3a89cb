//! What the commands do with a DVE model: one file for each of them, behind the same words as for programs.

pub(crate) mod check;
pub(crate) mod fence;
pub(crate) mod replay;
pub(crate) mod show;
mod typed;

use super::input::DveSource;
use super::terminal::Terminal;
use super::{Exit, ModelArg};
use crate::dve::{Memory, Site, System};
use clap::Args;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use typed::Typed;

// What can be asked of models, and, as far as formulas go, of programs. (No doc comments on arguments: clap would take
// them for the purpose of every command that has them.)
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "DVE models")]
pub(crate) struct DveArgs {
    /// Can the model come to a state in which nothing can happen?
    #[arg(long)]
    deadlock: bool,
    #[command(flatten)]
    formula: FormulaArgs,
    /// With --ltl: lets writes wait in their slots for ever and, in programs, threads and buffers
    #[arg(long)]
    no_fairness: bool,
    #[command(flatten)]
    given: GivenArgs,
}

// What is asked of infinite runs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FormulaArgs {
    /// Does this formula, over names that --define gives or conditions in braces, hold on all runs? Or those of
    /// a .ltl file?
    #[arg(long, value_name = "FORMULA")]
    pub ltl: Option<String>,
}

// What is asked of a repaired model.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "DVE models")]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    formula: FormulaArgs,
    /// Lets writes wait in their slots for ever
    #[arg(long)]
    no_fairness: bool,
}

// What is atomic and what is a barrier, under --model slots.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GivenArgs {
    /// With --model slots: these writes are atomic; a line for each, process:transition:variable
    #[arg(long, value_name = "FILE")]
    atomic: Option<PathBuf>,
    /// With --model slots: this transition waits until all slots of its process are empty (several times for
    /// several)
    #[arg(long, value_name = "PROCESS:TRANSITION")]
    barrier: Vec<String>,
}

impl DveArgs {
    pub(crate) fn ltl(&self) -> Option<&str> {
        self.formula.ltl.as_deref()
    }

    pub(crate) fn no_fairness(&self) -> bool {
        self.no_fairness
    }

    /// The first option that was given and that is for models alone.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            (self.deadlock, "--deadlock"),
            (self.given.atomic.is_some(), "--atomic"),
            (!self.given.barrier.is_empty(), "--barrier"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

/// The memory that a model runs on, and its name.
fn memory(
    system: &System,
    model: Option<ModelArg>,
    given: &GivenArgs,
) -> Result<(Memory, &'static str), String> {
    match model {
        Some(ModelArg::Slots) => Ok((given.slots(system)?, "slots")),
        Some(ModelArg::Tso | ModelArg::Pso | ModelArg::PsoSparc | ModelArg::Relaxed) => {
            Err("--model tso and weaker ones are for programs; DVE models have sc and slots".to_string())
        }
        None | Some(ModelArg::Sc) if given.atomic.is_some() || !given.barrier.is_empty() => {
            Err("under --model sc every write is atomic, and every transition a barrier".to_string())
        }
        None | Some(ModelArg::Sc) => Ok((Memory::Sc, "sc")),
    }
}

impl GivenArgs {
    fn slots(&self, system: &System) -> Result<Memory, String> {
        let mut atomic = BTreeSet::new();
        if let Some(file) = &self.atomic {
            let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
            for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let site = site(system, line.trim());
                atomic.insert(site.map_err(|why| format!("{}:{}: {why}", file.display(), i + 1))?);
            }
        }
        let barriers = self.barrier.iter().map(|text| transition(system, text));
        Ok(Memory::Slots { atomic, barriers: barriers.collect::<Result<_, _>>()? })
    }
}

/// `P_0:2:x`: the writes of this transition to this variable.
fn site(system: &System, text: &str) -> Result<Site, String> {
    let (place, name) = text
        .rsplit_once(':')
        .ok_or_else(|| format!("`{text}` is no write: it has to be process:transition:variable"))?;
    let (process, transition) = transition(system, place)?;
    let sites = system.sites().into_iter();
    let mut here = sites.filter(|s| (s.process, s.transition) == (process, transition));
    let named = |s: &Site| system.variables[s.variable].name == name.trim();
    here.find(named).ok_or_else(|| format!("transition {place} does not write a global variable `{name}`"))
}

/// `P_0:2`.
fn transition(system: &System, text: &str) -> Result<(usize, usize), String> {
    let wrong = || format!("`{text}` is no transition: it has to be process:number");
    let (name, number) = text.rsplit_once(':').ok_or_else(wrong)?;
    let number: usize = number.trim().parse().map_err(|_| wrong())?;
    let process = system.processes[..system.active()].iter().position(|p| p.name == name.trim());
    let process = process.ok_or_else(|| format!("there is no process `{}`", name.trim()))?;
    let count = system.processes[process].transitions.len();
    if number < count {
        return Ok((process, number));
    }
    Err(format!("process `{}` has {count} transitions, counted from 0, and no number {number}", name.trim()))
}

fn refused(file: &Path, why: &str, terminal: &Terminal) -> Exit {
    terminal.error(&format!("{}: {why}", file.display()));
    Exit::BadInput
}
