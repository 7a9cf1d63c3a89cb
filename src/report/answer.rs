//! The answer for people: the verdict on a line of its own, then why, then, if asked for, what it cost.

use super::table::Tone;
use super::{capitalised, count_of, first_line, reason, shortened, text};
use crate::model::Program;
use crate::query::{Answer, Delay, Model, Outcome, Proof, Round, Trace};
use std::fmt::Write;

/// The first line: `safe`, `violated` or `unknown`, behind the file's name if there are several files.
pub fn verdict(outcome: &Outcome, file: Option<&str>, color: bool) -> String {
    let tone = match outcome.answer {
        Answer::Safe(_) => Tone::Good,
        Answer::Violated(_) => Tone::Bad,
        Answer::Unknown(_) => Tone::Doubtful,
    };
    first_line(outcome.verdict(), tone, file, color)
}

/// What the verdict rests on: the trace, the proof, or the limit and what was covered.
pub fn explanation(program: &Program, outcome: &Outcome, style: text::Style) -> String {
    let (model, states) = (model_name(outcome.model), outcome.stats.states);
    let reason = reason(outcome);
    match &outcome.answer {
        Answer::Violated(trace) => {
            format!("{}\n{}", headline(program, outcome, trace), text::trace(program, trace, style))
        }
        Answer::Safe(Proof::Exhausted) => format!("Under {model}, {reason} ({states} stored).\n"),
        Answer::Safe(Proof::Infeasible) => format!("Under {model}, {reason}.\n"),
        Answer::Safe(Proof::Robust { .. }) => format!("{} ({states} states stored).\n", capitalised(&reason)),
        Answer::Unknown(_) => {
            format!("Under {model}, {reason}; {states} states were visited, none of them forbidden.\n")
        }
    }
}

/// What the run is, and what is known beyond it: that it needs no store buffering, or which it does.
fn headline(program: &Program, outcome: &Outcome, trace: &Trace) -> String {
    let run = format!(
        "A run of {} under {}",
        count_of(trace.events.len() as u64, "event"),
        model_name(trace.model)
    );
    if outcome.model == Model::Tso && trace.model == Model::Sc {
        return format!("{run}, and so under TSO:\n");
    }
    if !trace.safe_under_sc {
        return format!("{run}:\n");
    }
    let mut text = format!("{run}; no run under SC does this:\n");
    for delay in delays(program, trace) {
        let _ = writeln!(text, "  {delay}");
    }
    text
}

/// Which stores of the run are overtaken by which loads, in words.
fn delays(program: &Program, trace: &Trace) -> Vec<String> {
    shortened(trace.delays().into_iter().map(|(store, load)| {
        let thread = program.thread(trace.events[store].thread());
        let say = |k: usize| text::instruction(program, thread, &trace.events[k]);
        format!("{} delays `{}` past `{}`", thread.name(), say(store), say(load))
    }))
}

fn model_name(model: Model) -> &'static str {
    match model {
        Model::Sc => "SC",
        Model::Tso => "TSO",
    }
}

/// What the search cost.
pub fn costs(program: &Program, outcome: &Outcome, peak_kb: Option<u64>) -> String {
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
    if s.interchangeable > 0 {
        let _ = writeln!(text, "symmetry      {} interchangeable threads", s.interchangeable);
    }
    if outcome.model == Model::Tso && (s.rounds.is_empty() || s.longest_buffer > 0) {
        let _ = writeln!(text, "buffers       {} stores at most", s.longest_buffer);
    }
    if let Some(kb) = peak_kb {
        let _ = writeln!(text, "peak memory   {:.1} MiB", kb as f64 / 1024.0);
    }
    for (k, r) in s.rounds.iter().enumerate() {
        text += &round(program, k + 1, r);
    }
    text
}

/// What one round of refinement came to.
fn round(program: &Program, number: usize, r: &Round) -> String {
    let seconds = |t: std::time::Duration| format!("{:.3} s", t.as_secs_f64());
    let mut text = format!(
        "\nround {number}: {} locations, {} edges\n  SC check: {} states, {}\n",
        r.locations,
        r.edges,
        r.states,
        seconds(r.time)
    );
    if r.attacks.total > 0 {
        let a = &r.attacks;
        let _ = writeln!(
            text,
            "  oracle: {} attacks, {} of them refuted by the text, {} states, {}",
            a.total,
            a.total - a.left,
            r.oracle_states,
            seconds(r.oracle_time)
        );
    }
    for Delay { thread, store, load, length } in &r.delays {
        let thread = program.thread(*thread);
        let say = |e| {
            let edge = thread.edge(e);
            match edge.text.is_empty() {
                true => thread.show_instr(program, &edge.instr),
                false => format!("{} (line {})", edge.text, edge.line),
            }
        };
        let _ = writeln!(
            text,
            "  built in: {} delays {} past {}, {length} instructions",
            thread.name(),
            say(*store),
            say(*load)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Stats;
    use crate::report::text::tests::{sb, sb_trace};

    fn head(model: Model, trace: Trace) -> String {
        let answer = Answer::Violated(trace.clone());
        let outcome = Outcome { answer, model, engine: "lazy", stats: Stats::default(), warnings: vec![] };
        headline(&sb(), &outcome, &trace)
    }

    #[test]
    fn delays_stand_below_the_sentence() {
        let trace = Trace { safe_under_sc: true, ..sb_trace() };
        let expected = "A run of 6 events under TSO; no run under SC does this:\n  \
                        p0 delays `store [x], 1` past `load r, [y]`\n  \
                        p1 delays `store [y], 1` past `load r, [x]`\n";
        assert_eq!(head(Model::Tso, trace), expected);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(head(Model::Tso, sb_trace()), "A run of 6 events under TSO:\n");
        let sc = Trace { model: Model::Sc, ..sb_trace() };
        assert_eq!(head(Model::Tso, sc.clone()), "A run of 6 events under SC, and so under TSO:\n");
        assert_eq!(head(Model::Sc, sc), "A run of 6 events under SC:\n");
    }
}
