//! The same program under SC, for SPIN: one process per thread, memory in global variables.
//!
//! SPIN is the measure of an SC search, so the model is what somebody who knows SPIN would write by hand: the
//! smallest types that hold the values, a load and the branch on it as one guard, registers back at 0 when
//! they no longer matter, processes that block at their end and never die. Every instruction is one atomic
//! step; only steps that no other process and no property can see are joined to the one before (`steps` has
//! the rules and [`Joining::Literal`] switches it off). A `forbid` becomes an assertion inside each step that
//! changes one of its atoms: locations it names get a global flag, set and cleared by the steps that enter
//! and leave, which keeps SPIN's partial order reduction sound without remote references or a monitor process
//! (`watch`). Waiting for ever is no error, so whatever may block is a valid end state. Not here: store
//! buffers. The model has none.

mod expr;
mod layout;
mod steps;
mod watch;

use super::{Inexpressible, Unwritten};
use crate::analysis::interval::Intervals;
use crate::analysis::liveness::Live;
use crate::limits::Limits;
use crate::model::{Instr, Loc, Program, ThreadId};
use layout::PromelaLayout;
use std::collections::HashSet;
use std::fmt::Write;
use steps::{Composer, PromelaStep};
use watch::Watch;

const FORMAT: &str = "Promela";

/// SPIN's own bound on processes.
const MAX_PROCESSES: usize = 255;

/// How instructions become steps of SPIN's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// Steps that nobody else can see are joined to the one before.
    Joined,
    /// One step per instruction.
    Literal,
}

pub fn write(program: &Program, joining: Joining, limits: &Limits) -> Result<String, Unwritten> {
    if program.threads().len() > MAX_PROCESSES {
        let why = format!("SPIN runs at most {MAX_PROCESSES} processes");
        let construct = format!("{} threads", program.threads().len());
        return Err(Inexpressible { format: FORMAT, place: "the program".into(), construct, why }.into());
    }
    crate::front::only_ours(program, FORMAT)?;
    expr::check(program)?;
    let intervals = Intervals::of(program, limits)?;
    let watch = Watch::of(program);
    let layout = PromelaLayout::of(program, &intervals, &|t, r| watch.always(t, r));
    let live = Live::of(program, &watch.registers(program), |_, _| false, limits)?;
    let mut processes = String::new();
    if watch.violated_at_start(program) {
        processes.push_str("\nactive proctype violated_at_start() {\n    assert(false)\n}\n");
    }
    for t in program.thread_ids() {
        let locks = program.thread(t).edges().any(|(_, e)| e.instr == Instr::Lock);
        let (layout, watch, live, intervals) = (&layout, &watch, &live, &intervals);
        let composer = Composer { program, t, layout, watch, live, intervals, joining, locks };
        processes.push_str(&process(&composer, limits)?);
    }
    let scratch = if processes.contains(" scratch = ") { "hidden int scratch;\n" } else { "" };
    let globals = layout.declarations(program) + &watch.declarations(program, &layout) + scratch;
    limits.reserve(processes.len())?;
    Ok(header(&layout) + &globals + &processes)
}

fn header(layout: &PromelaLayout) -> String {
    let mut text = String::from(
        "/* The program under sequential consistency. To run it:\n     \
         spin -a FILE && gcc -O3 -DSAFETY -DNOFAIR -o pan pan.c && ./pan -m1000000 -w24\n   \
         An assertion violated is a property violated. Values here are C's int at most: a computation\n   \
         that leaves 32 bits goes wrong here and not in the original.",
    );
    if !layout.beyond_int.is_empty() {
        let _ = write!(text, " This may happen to:\n   {}", comment(&layout.beyond_int.join(", ")));
    }
    text.push_str(" */\n\n");
    text
}

fn process(composer: &Composer, limits: &Limits) -> Result<String, Unwritten> {
    let (program, t, layout) = (composer.program, composer.t, composer.layout);
    let places = places(composer, limits)?;
    let blocking = blocking(program.thread(t).graph().node_count(), &places);
    let words =
        |step: &PromelaStep| step.text().split(|c: char| !is_word(c)).map(str::to_string).collect::<Vec<_>>();
    let used: HashSet<String> = places.iter().flat_map(|(_, steps)| steps).flat_map(words).collect();
    let mut text = format!("\nactive proctype {}() {{\n", layout.process(t));
    text.push_str(&composer.watch.locals(program, layout, t, &used));
    for (loc, steps) in &places {
        limits.spend(PLACE)?;
        text.push_str(&place(program, t, *loc, steps, &blocking));
    }
    limits.reserve(text.len())?;
    text.push_str("}\n");
    Ok(text)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What it costs to write a step, in steps of an analysis.
const PLACE: usize = 100;

/// The locations where the process can stand between steps, and its steps there; the first is where it
/// begins.
fn places(composer: &Composer, limits: &Limits) -> Result<Vec<(Loc, Vec<PromelaStep>)>, Unwritten> {
    let thread = composer.program.thread(composer.t);
    let mut seen = vec![false; thread.graph().node_count()];
    seen[thread.initial().index()] = true;
    let (mut places, mut todo) = (Vec::new(), vec![thread.initial()]);
    while let Some(loc) = todo.pop() {
        let steps = composer.steps(loc)?;
        limits.spend(PLACE * (1 + steps.len()))?;
        for step in steps.iter().rev() {
            if !std::mem::replace(&mut seen[step.to.index()], true) {
                todo.push(step.to);
            }
        }
        places.push((loc, steps));
    }
    Ok(places)
}

/// Where a process may wait for ever: SPIN is told by the name of the label.
fn blocking(count: usize, places: &[(Loc, Vec<PromelaStep>)]) -> Vec<bool> {
    let mut blocking = vec![false; count];
    for (loc, steps) in places {
        blocking[loc.index()] = steps.iter().all(|s| !s.guards.is_empty());
    }
    blocking
}

fn label(loc: Loc, blocking: &[bool]) -> String {
    let word = if blocking[loc.index()] { "end" } else { "at" };
    format!("{word}{}", loc.0)
}

fn place(program: &Program, t: ThreadId, loc: Loc, steps: &[PromelaStep], blocking: &[bool]) -> String {
    let labels = &program.thread(t).location(loc).labels;
    let names =
        if labels.is_empty() { String::new() } else { format!(" /* {} */", comment(&labels.join(", "))) };
    let mut text = format!("{}:{names}\n", label(loc, blocking));
    if steps.is_empty() {
        text.push_str("    false;\n");
        return text;
    }
    text.push_str("    if\n");
    for step in steps {
        let go = format!("goto {}", label(step.to, blocking));
        let _ = writeln!(text, "    :: {}; {go}{}", step.text(), note(step));
    }
    text.push_str("    fi;\n");
    text
}

fn note(step: &PromelaStep) -> String {
    match (step.line, step.source.as_str()) {
        (0, "") => String::new(),
        (0, source) => format!("  /* {} */", comment(source)),
        (line, source) => format!("  /* {line}: {} */", comment(source)),
    }
}

/// Text that cannot end the comment it stands in.
fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests;
