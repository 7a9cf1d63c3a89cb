//! The switches of the reductions, one for each row of their table, and `--no-static` for what the text
//! settles.

use crate::query::Reductions;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

const HEADING: &str = "Reductions (each is on; the answer is the same without)";
const STATIC: &str = "no-static";
const WITHOUT_STATIC: &str =
    "Searches what the program's text refutes too: delays, unless by a fence, branches and properties";

/// What was switched off.
#[derive(Clone, Debug)]
pub(crate) struct Without {
    pub reductions: Reductions,
    pub no_static: bool,
}

impl Args for Without {
    fn augment_args(command: Command) -> Command {
        let switch = |name: &'static str, help: &'static str| {
            Arg::new(name).long(name).help(help).help_heading(HEADING).action(ArgAction::SetTrue)
        };
        let rows = Reductions::TABLE.iter().map(|r| switch(r.switch, r.without).aliases(r.alias));
        command.args(rows).arg(switch(STATIC, WITHOUT_STATIC))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Without::augment_args(command)
    }
}

impl FromArgMatches for Without {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Without, clap::Error> {
        let mut without = Without { reductions: Reductions::ALL, no_static: false };
        without.update_from_arg_matches(matches)?;
        Ok(without)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for reduction in Reductions::TABLE.iter().filter(|r| matches.get_flag(r.switch)) {
            *(reduction.field)(&mut self.reductions) = false;
        }
        self.no_static |= matches.get_flag(STATIC);
        Ok(())
    }
}
