//! The answer for people: the verdict on a line of its own, then why, then, if asked for, what it cost.

use super::table::{Color, Tone, paint};
use super::{reason, text};
use crate::model::Program;
use crate::verdict::{Answer, Model, Outcome};
use std::fmt::Write;

/// The first line: `safe`, `violated` or `unknown`, behind the file's name if there are several files.
pub fn verdict(outcome: &Outcome, file: Option<&str>, color: bool) -> String {
    let tone = match outcome.answer {
        Answer::Safe(_) => Tone::Good,
        Answer::Violated(_) => Tone::Bad,
        Answer::Unknown(_) => Tone::Doubtful,
    };
    let color = if color { Color::On } else { Color::Off };
    let verdict = paint(outcome.verdict(), tone, color);
    match file {
        Some(file) => format!("{file}: {verdict}\n"),
        None => format!("{verdict}\n"),
    }
}

/// What the verdict rests on: the trace, the proof, or the limit and what was covered.
pub fn explanation(program: &Program, outcome: &Outcome, style: text::Style) -> String {
    let model = model_name(outcome.model);
    let states = outcome.stats.states;
    match &outcome.answer {
        Answer::Violated(trace) => {
            let events = trace.events.len();
            let plural = if events == 1 { "" } else { "s" };
            format!(
                "A run of {events} event{plural} under {model}:\n\n{}",
                text::trace(program, trace, style)
            )
        }
        Answer::Safe(_) => format!("Under {model}, {} ({states} stored).\n", reason(outcome)),
        Answer::Unknown(_) => {
            format!(
                "Under {model}, {}; {states} states were visited, none of them forbidden.\n",
                reason(outcome)
            )
        }
    }
}

fn model_name(model: Model) -> &'static str {
    match model {
        Model::Sc => "SC",
        Model::Tso => "TSO",
    }
}

/// What the search cost.
pub fn costs(outcome: &Outcome, peak_kb: Option<u64>) -> String {
    let s = &outcome.stats;
    let mut text = format!(
        "\nengine        {}\nstates        {}\ntransitions   {}\nper state     {:.1} bytes, of them {} for the packed state\n\
         workers       {}\ntime          {:.3} s\n",
        outcome.engine,
        s.states,
        s.transitions,
        s.bytes_per_state,
        8 * s.words,
        s.workers,
        s.time.as_secs_f64(),
    );
    if outcome.model == Model::Tso {
        let _ = writeln!(text, "buffers       {} stores at most", s.longest_buffer);
    }
    if let Some(kb) = peak_kb {
        let _ = writeln!(text, "peak memory   {:.1} MiB", kb as f64 / 1024.0);
    }
    text
}
