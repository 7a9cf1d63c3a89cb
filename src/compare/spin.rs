//! SPIN (G. J. Holzmann): reachability under SC, by a verifier that is generated and compiled for each model.
//!
//! The usual way is the strongest: local steps are joined, and a first run, counted as preparation like
//! compiling, tells how deep the stack and how large the hash table must be. Beside it there are SPIN's own
//! defaults, its compressed states, and the literal model with one step per instruction.

use super::export::Export;
use super::{Asked, Command, Discipline, Finished, Reading, Said, Verdict, Way};
use crate::front::Unwritten;
use crate::front::promela::{self, Joining};
use crate::limits::Limits;
use crate::model::Program;

pub(crate) const WAY: Way = Way {
    name: "spin",
    tool: "spin",
    usual: true,
    answers: &[Discipline::Sc],
    reads: model(|program, _, limits| promela::write(program, Joining::Joined, limits)),
    prepare: compile,
    rehearse: Some(generous),
    search: |_, rehearsal| fitted(rehearsal),
    read,
};

pub(crate) const DEFAULTS: Way = Way {
    name: "spin-defaults",
    usual: false,
    rehearse: None,
    search: |_, _| Command::other("./pan", &[]),
    ..WAY
};

pub(crate) const COLLAPSE: Way =
    Way { name: "spin-collapse", usual: false, prepare: compile_to_collapse, ..WAY };

pub(crate) const LITERAL: Way = Way {
    name: "spin-literal",
    usual: false,
    reads: model(|program, _, limits| promela::write(program, Joining::Literal, limits)),
    ..WAY
};

const fn model(write: fn(&Program, Discipline, &Limits) -> Result<String, Unwritten>) -> Export {
    Export { write: Some(write), ..Export::unwritten("Promela", "pml") }
}

fn compile(asked: &Asked) -> Vec<Command> {
    compile_with(asked, &[])
}

fn compile_to_collapse(asked: &Asked) -> Vec<Command> {
    compile_with(asked, &["-DCOLLAPSE"])
}

fn compile_with(asked: &Asked, more: &[&str]) -> Vec<Command> {
    let gcc = [&["-O3", "-w", "-DSAFETY", "-DNOFAIR"], more, &["-o", "pan", "pan.c"]].concat();
    vec![Command::tool(["-a", asked.file]), Command::other("gcc", &gcc)]
}

/// A stack and a table that are large enough for most.
fn generous() -> Command {
    Command::other("./pan", &["-m1000000", "-w24"])
}

/// A stack twice as deep and a table twice as large as the first run has shown to be needed.
fn fitted(rehearsal: Option<&Finished>) -> Command {
    let out = rehearsal.map_or("", |first| &first.out);
    let (depth, states) = (number_after(out, "depth reached "), stored(out));
    match (depth, states) {
        (Some(depth), Some(states)) => {
            let bits = u64::BITS - states.max(1).leading_zeros() + 1;
            let (stack, table) = (format!("-m{}", (2 * depth).max(1000)), format!("-w{}", bits.max(10)));
            Command::other("./pan", &[&stack, &table])
        }
        _ => generous(),
    }
}

fn number_after(out: &str, words: &str) -> Option<u64> {
    let rest = out.split(words).nth(1)?;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

/// The number in front of `states, stored`; large ones are written with an exponent.
fn stored(out: &str) -> Option<u64> {
    number_before(out, " states, stored").map(|states| states as u64)
}

/// What the states took beside the hash table, shared among them.
fn state_bytes(out: &str) -> Option<f64> {
    let mebibytes = number_before(out, "\tactual memory usage for states")?;
    Some(mebibytes * f64::from(1 << 20) / stored(out)? as f64)
}

fn number_before(out: &str, words: &str) -> Option<f64> {
    let (before, _) = out.split_once(words)?;
    before.rsplit(char::is_whitespace).next()?.parse().ok()
}

/// The verifier ends with exit code 0 even then.
pub(crate) fn is_out_of_memory(out: &str) -> bool {
    out.contains("pan: out of memory") || out.contains("pan: reached -DMEMLIM bound")
}

fn read(finished: &Finished, _: &Asked) -> Reading {
    let out = &finished.out;
    let errors = number_after(out, "errors: ");
    let said = match errors {
        Some(1..) if out.contains("assertion violated") => Said::Answer(Verdict::Violated),
        Some(0) if out.contains("max search depth too small") => {
            Said::Unknown("the search was cut off at its greatest depth".to_string())
        }
        Some(0) => Said::Answer(Verdict::Safe),
        _ => finished.failure(),
    };
    Reading { said, states: stored(out), state_bytes: state_bytes(out) }
}

#[cfg(test)]
mod tests {
    use super::super::reading;
    use super::super::testing::*;
    use super::*;

    const SAFE: &str = "
(Spin Version 6.5.2 -- 6 December 2019)
	+ Partial Order Reduction

Full statespace search for:
	never claim         	- (none specified)
	assertion violations	+

State-vector 36 byte, depth reached 81, errors: 0
     1006 states, stored
     1305 states, matched
     2311 transitions (= stored+matched)
        0 atomic steps

Stats on memory usage (in Megabytes):
    0.061	equivalent memory usage for states (stored*(State-vector + overhead))
    0.125	actual memory usage for states

pan: elapsed time 0 seconds
";
    const VIOLATED: &str = "pan:1: assertion violated !((_at0&&_at1)) (at depth 12)
pan: wrote m.pml.trail

State-vector 28 byte, depth reached 15, errors: 1
       20 states, stored
        4 states, matched
";

    #[test]
    fn errors_are_counted() {
        let said = |out: &str| read(&printed(out), &asked(Discipline::Sc, "program"));
        let safe = Reading {
            said: Said::Answer(Verdict::Safe),
            states: Some(1006),
            state_bytes: Some(131_072.0 / 1006.0),
        };
        assert_eq!(said(SAFE), safe);
        assert_eq!(said(&SAFE.replace("1006", "1.25e+08")).states, Some(125_000_000));
        let violated = Reading { said: Said::Answer(Verdict::Violated), states: Some(20), state_bytes: None };
        assert_eq!(said(VIOLATED), violated);
        let cut = SAFE.replace("(Spin", "error: max search depth too small\n(Spin");
        assert!(matches!(said(&cut).said, Said::Unknown(_)));
        // An error of another kind is no violated property.
        assert!(matches!(
            said(&VIOLATED.replace("assertion violated", "invalid end state")).said,
            Said::Failed(_)
        ));
        assert!(matches!(said("").said, Said::Failed(_)));
    }

    #[test]
    fn memory_may_run_out_with_exit_code_0() {
        let out = SAFE.replace("(Spin", "pan: out of memory\n(Spin");
        assert_eq!(reading(&WAY, &printed(&out), &asked(Discipline::Sc, "program")).said, Said::OutOfMemory);
    }

    #[test]
    fn the_first_run_fits_stack_and_table() {
        assert_eq!(fitted(Some(&printed(SAFE))).shown("spin"), "./pan -m1000 -w11");
        assert_eq!(fitted(None).shown("spin"), "./pan -m1000000 -w24");
        let prepared = (WAY.prepare)(&asked(Discipline::Sc, "program.pml"));
        assert_eq!(prepared[0].shown("spin"), "spin -a program.pml");
    }
}
