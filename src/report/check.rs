//! Is a forbidden state reachable? The answer with its trace, its proof, or the limit and what was covered;
//! and where there are several properties, what became of each.

mod properties;

use super::document::{Block, Document, Fact};
use super::{capitalised, count_of, hang, json, limit_reached, peak_memory, robust, shortened, steps};
use crate::certify::Outcome;
use crate::certify::happens_before::HappensBefore;
use crate::limits::Limits;
use crate::model::{EdgeId, Program};
use crate::query::{
    Against, Answer, Asked, Contest, Delay, EngineTurn, Languages, Model, Proof, Provenance, Question, Round,
    Trace, Traffic, Waiting,
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The worst outcome, and what became of each property.
#[derive(Clone, Copy)]
pub struct Answers<'a> {
    /// If `no hang` was asked, with ways back from where its threads wait.
    pub program: &'a Program,
    pub worst: &'a Outcome,
    pub each: &'a [(Asked, Outcome)],
    /// Formulas in these lines are numbered with the others, and told elsewhere.
    pub formulas: &'a [u32],
    /// Who waits for what, if the program hangs.
    pub waiting: &'a [Waiting],
}

impl Answers<'_> {
    /// What the worst outcome is about, as far as its reason goes.
    fn asked(&self) -> Asked {
        let verdict = self.worst.answer.verdict();
        let of_hang = |asked: &Asked| *asked == Asked::NoHang;
        let mut as_bad =
            self.each.iter().filter(|(_, o)| o.answer.verdict() == verdict).map(|(asked, _)| asked);
        let hangs = match &self.worst.answer {
            Answer::Fails(trace) => trace.against == Against::Hang,
            _ => !self.each.is_empty() && as_bad.all(of_hang),
        };
        if hangs { Asked::NoHang } else { Asked::Errors }
    }

    fn explanation(&self, asked: Asked, outcome: &Outcome) -> Vec<Block> {
        match asked {
            Asked::NoHang => hang::explanation(self.program, outcome, self.waiting),
            _ => explanation(self.program, outcome),
        }
    }

    fn reason(&self, asked: Asked, outcome: &Outcome) -> String {
        match asked {
            Asked::NoHang => hang::reason(outcome),
            _ => reason(outcome),
        }
    }
}

pub fn document<'a>(answers: Answers<'a>, file: &'a str, peak_kb: Option<u64>) -> Document<'a> {
    let Answers { program, worst: outcome, each, .. } = answers;
    Document {
        question: Question::Check,
        verdict: outcome.answer.verdict(),
        file: file.to_string(),
        explanation: Box::new(move || match each {
            [] | [_] => answers.explanation(answers.asked(), outcome),
            _ => properties::explanation(&answers),
        }),
        costs: Box::new(move || costs(program, outcome, peak_kb)),
        warnings: outcome.warnings.clone(),
        fields: Box::new(move || {
            let mut fields = fields(program, file, outcome, peak_kb);
            json::put(&mut fields, json!({ "reason": answers.reason(answers.asked(), outcome) }));
            json::put(&mut fields, json!({ "properties": properties::fields(&answers) }));
            if answers.asked() == Asked::NoHang && matches!(outcome.answer, Answer::Fails(_)) {
                json::put(&mut fields, json!({ "waiting": hang::waiting_of(program, answers.waiting) }));
            }
            fields
        }),
    }
}

/// Why the answer is what it is, in a few words.
fn reason(outcome: &Outcome) -> String {
    match &outcome.answer {
        Answer::Fails(trace) => format!("goal reached and replayed{}", under(outcome, trace)),
        Answer::Holds(proof) => proof_words(*proof),
        Answer::Unknown(limit) => limit_reached(limit),
    }
}

fn proof_words(proof: Proof) -> String {
    match proof {
        Proof::Exhausted => {
            "no forbidden state is reachable: every state that could lead to one was visited".to_string()
        }
        Proof::Covered => {
            "no forbidden state is reachable, whatever waits in store buffers: states that cover all others were \
             visited"
                .to_string()
        }
        Proof::Infeasible => {
            "no forbidden state is reachable: the values that registers and memory can hold rule it out"
                .to_string()
        }
        Proof::Robust { delays, apart } => {
            let robust = if apart {
                "the program is robust, apart from cells that nobody really reads"
            } else {
                "the program is robust"
            };
            let none = "no forbidden state is reachable under SC";
            match delays {
                0 => format!("{none}, and {robust}: TSO adds nothing"),
                1 => format!("{none}, nor with the one delay that matters; with it built in, {robust}"),
                _ => {
                    format!("{none}, nor with the {delays} delays that matter; with them built in, {robust}")
                }
            }
        }
    }
}

/// Which memory model it takes to violate the property, as far as that is known.
fn under(outcome: &Outcome, trace: &Trace) -> &'static str {
    match (outcome.model, trace.model) {
        (Model::Tso, Model::Sc) => ", under SC already",
        _ if outcome.safe_under_sc => ", only under TSO",
        _ => "",
    }
}

/// What the verdict rests on.
fn explanation(program: &Program, outcome: &Outcome) -> Vec<Block> {
    let (model, states) = (model_name(outcome.model), outcome.stats.states);
    let reason = reason(outcome);
    let told = match &outcome.answer {
        Answer::Fails(trace) => {
            let [run, ending] = steps::trace(program, trace);
            let told = [headline(program, outcome, trace), run, ending];
            let doubt = outcome.provenance.and_then(doubt).map(Block::line);
            return told.into_iter().chain(doubt).chain(cycle(program, trace)).collect();
        }
        Answer::Holds(Proof::Exhausted | Proof::Covered) => {
            format!("Under {model}, {reason} ({states} stored).")
        }
        Answer::Holds(Proof::Infeasible) => format!("Under {model}, {reason}."),
        Answer::Holds(Proof::Robust { .. }) => format!("{} ({states} states stored).", capitalised(&reason)),
        Answer::Unknown(_) if let Some(trace) = &outcome.approximate => {
            let [run, ending] = steps::trace(program, trace);
            let told = format!(
                "Under {model}, {reason}. This run is one only if it does it in two parts, with others in between:"
            );
            return vec![Block::line(told), run, ending];
        }
        Answer::Unknown(_) => {
            format!("Under {model}, {reason}; {states} states were visited, none of them forbidden.")
        }
    };
    vec![Block::line(told)]
}

/// What the run is, and what is known beyond it: that it needs no store buffering, or which it does.
fn headline(program: &Program, outcome: &Outcome, trace: &Trace) -> Block {
    let run = format!(
        "A run of {} under {}",
        count_of(trace.events.len() as u64, "event"),
        model_name(trace.model)
    );
    if outcome.model == Model::Tso && trace.model == Model::Sc {
        return Block::line(format!("{run}, and so under TSO:"));
    }
    if !outcome.safe_under_sc {
        return Block::line(format!("{run}:"));
    }
    Block::list(vec![format!("{run}; no run under SC does this:")], delays(program, trace))
}

/// Longer runs are shown without their cycle.
const CYCLE_EVENTS: usize = 3_000;

/// For pages: what would have to come before what, if no SC run is like this one.
fn cycle(program: &Program, trace: &Trace) -> Option<Block> {
    let asked = trace.model == Model::Tso && trace.events.len() <= CYCLE_EVENTS;
    let found = asked.then(|| HappensBefore::of(&trace.events).cycle(&Limits::default()));
    let found = found?.ok().flatten()?;
    Some(Block::Cycle(robust::cycle(program, &trace.events, &found)))
}

/// Why there may be a simpler run, if that is so.
fn doubt(provenance: Provenance) -> Option<&'static str> {
    match provenance {
        Provenance::Searched { fewest_delays: true } => None,
        Provenance::Searched { fewest_delays: false } => {
            Some("There may be a run with fewer delays: that search would have been too large.")
        }
        Provenance::Shortened => Some(
            "There may be a simpler run: that search would have been too large, so this is the one that was \
             found, made shorter.",
        ),
    }
}

/// Which stores of the run are overtaken by which loads, in words.
fn delays(program: &Program, trace: &Trace) -> Vec<String> {
    shortened(trace.delays().into_iter().map(|(store, load)| {
        let thread = program.thread(trace.events[store].thread());
        let say = |k: usize| steps::instruction(program, thread, &trace.events[k]);
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
fn costs(program: &Program, outcome: &Outcome, peak_kb: Option<u64>) -> Vec<Block> {
    let s = &outcome.stats;
    let kept = match s.languages {
        Some(languages) => Fact::new("buffers", languages_words(languages)),
        None => {
            let packed = 8 * s.words;
            Fact::new(
                "per state",
                format!("{:.1} bytes, of them {packed} for the packed state", s.bytes_per_state),
            )
        }
    };
    let mut facts = vec![
        Fact::new("engine", outcome.engine),
        Fact::new("states", s.states),
        Fact::new("transitions", s.transitions),
        kept,
        Fact::new("workers", s.workers),
        Fact::new("time", seconds(s.time)),
    ];
    if let Some(Traffic { processes, messages, bytes }) = s.traffic {
        let sent = format!("{processes}, which sent {} and {bytes} bytes", count_of(messages, "message"));
        facts.push(Fact::new("processes", sent));
    }
    if let Some(contest) = s.contest {
        facts.push(Fact::new("side by side", side_by_side(contest, outcome.engine)));
    }
    if s.interchangeable > 0 {
        facts.push(Fact::new("symmetry", format!("{} interchangeable threads", s.interchangeable)));
    }
    let one_by_one = s.languages.is_none() && (s.rounds.is_empty() || s.longest_buffer > 0);
    if outcome.model == Model::Tso && one_by_one {
        facts.push(Fact::new("buffers", format!("{} stores at most", s.longest_buffer)));
    }
    facts.extend(peak_memory(peak_kb));
    let rounds = s.rounds.iter().enumerate().map(|(k, r)| round(program, k + 1, r));
    [Block::Facts(facts)].into_iter().chain(turns(&s.turns)).chain(rounds).collect()
}

/// Who was asked, and why, if it was more than one engine.
fn turns(taken: &[EngineTurn]) -> Option<Block> {
    let say = |t: &EngineTurn| format!("{}: {} ({})", t.engine, t.why, count_of(t.states, "state"));
    (taken.len() > 1).then(|| Block::list(vec!["turns:".to_string()], taken.iter().map(say).collect()))
}

/// What the languages of buffer contents came to.
fn languages_words(Languages { largest, accelerated, depth }: Languages) -> String {
    let (automata, cycles) = (count_of(largest as u64, "state"), count_of(accelerated, "cycle"));
    format!("automata of {automata} at most, {cycles} accelerated, depth {depth}")
}

/// What ran side by side, and which of it had the answer.
fn side_by_side(contest: Contest, engine: &str) -> String {
    let Contest { runs, candidates, won_by } = contest;
    let winner = won_by.map_or(format!("the engine `{engine}` won"), |k| format!("candidate {k} won"));
    format!("{runs} runs, of them {} of the lazy engine; {winner}", count_of(candidates as u64, "candidate"))
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// What one round of refinement came to.
fn round(program: &Program, number: usize, r: &Round) -> Block {
    let head = format!("round {number}: {} locations, {} edges", r.locations, r.edges);
    let mut items = vec![format!("SC check: {} states, {}", r.states, seconds(r.time))];
    if r.attacks.total > 0 {
        let (all, refuted) = (r.attacks.total, r.attacks.total - r.attacks.left);
        items.push(format!(
            "oracle: {all} attacks, {refuted} of them refuted by the text, {} states, {}",
            r.oracle_states,
            seconds(r.oracle_time)
        ));
    }
    items.extend(r.delays.iter().map(|delay| built_in(program, delay)));
    Block::list(vec![head], items)
}

fn built_in(program: &Program, delay: &Delay) -> String {
    let thread = program.thread(delay.thread);
    let say = |edge: EdgeId| {
        let edge = thread.edge(edge);
        let words = program.words(thread, edge);
        match program.place(edge.line) {
            _ if edge.text.is_empty() && program.code(edge.line).is_none() => words,
            place => format!("{words} (line {place})"),
        }
    };
    let (store, load) = (say(delay.store), say(delay.load));
    format!("built in: {} delays {store} past {load}, {} instructions", thread.name(), delay.length)
}

fn fields(program: &Program, file: &str, outcome: &Outcome, peak_kb: Option<u64>) -> Map<String, Value> {
    let verdict = outcome.answer.verdict();
    let mut fields = json::common(Question::Check, verdict, file, &outcome.stats, peak_kb);
    let mut put = |more: Value| json::put(&mut fields, more);
    put(json!({
        "model": outcome.model.name(),
        "engine": outcome.engine,
        "iterations": outcome.stats.iterations,
        "longest_buffer": outcome.stats.longest_buffer,
        "warnings": outcome.warnings,
    }));
    if let Some(Contest { runs, candidates, won_by }) = outcome.stats.contest {
        put(json!({ "contest": { "runs": runs, "candidates": candidates, "won_by": won_by } }));
    }
    if let Some(Languages { largest, accelerated, depth }) = outcome.stats.languages {
        put(json!({ "automata": { "largest": largest, "accelerated": accelerated, "depth": depth } }));
    }
    if !outcome.stats.turns.is_empty() {
        let told = |t: &EngineTurn| json!({ "engine": t.engine, "why": t.why, "states": t.states });
        put(json!({ "turns": outcome.stats.turns.iter().map(told).collect::<Value>() }));
    }
    if !outcome.stats.rounds.is_empty() {
        let rounds: Value = outcome.stats.rounds.iter().map(|r| round_fields(program, r)).collect();
        put(json!({ "rounds": rounds }));
    }
    match &outcome.answer {
        Answer::Fails(trace) => put(json!({
            "against": against(program, trace),
            "trace_model": trace.model.name(),
            "safe_under_sc": outcome.safe_under_sc,
            "delays": delay_fields(trace),
            "fewest_delays": outcome.provenance == Some(Provenance::Searched { fewest_delays: true }),
            "shortened": outcome.provenance == Some(Provenance::Shortened),
            "trace": json::events(program, &trace.events),
        })),
        Answer::Unknown(limit) => {
            put(json!({ "limit": json::limit_name(limit) }));
            if let Some(trace) = &outcome.approximate {
                put(
                    json!({ "trace_model": trace.model.name(), "trace": json::events(program, &trace.events) }),
                );
            }
        }
        Answer::Holds(_) => {}
    }
    fields
}

/// Which stores of the trace are overtaken by which loads.
fn delay_fields(trace: &Trace) -> Value {
    trace.delays().into_iter().map(|(store, load)| json!({ "store": store, "load": load })).collect()
}

/// One round of the lazy engine.
fn round_fields(program: &Program, round: &Round) -> Value {
    let delay = |d: &Delay| {
        let thread = program.thread(d.thread);
        json!({
            "thread": thread.name(),
            "store_line": program.place(thread.edge(d.store).line).line,
            "load_line": program.place(thread.edge(d.load).line).line,
            "length": d.length,
        })
    };
    json!({
        "locations": round.locations,
        "edges": round.edges,
        "states": round.states,
        "time_ms": json::milliseconds(round.time),
        "attacks": json::attacks(&round.attacks),
        "oracle_states": round.oracle_states,
        "oracle_time_ms": json::milliseconds(round.oracle_time),
        "delays": round.delays.iter().map(delay).collect::<Vec<_>>(),
    })
}

fn against(program: &Program, trace: &Trace) -> Value {
    match trace.against {
        Against::Property(index) => {
            let property = &program.properties()[index];
            let line = program.place(property.line).line;
            let indices = steps::failing_case(program, trace).map(|case| case.indices.as_str());
            json!({ "line": line, "text": property.show(program), "indices": indices })
        }
        Against::Hang => json!({ "text": "no hang" }),
        Against::Trap(t, error) => json!({ "thread": program.thread(t).name(), "trap": json::trap(error) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certify::{self, Checked};
    use crate::query::{Action, Goal, Limit, Limits, Stats};
    use crate::report::steps::tests::{sb, sb_trace};
    use crate::report::text::{self, Style};

    fn with(answer: Checked) -> Outcome {
        let (model, engine, stats) = (Model::Tso, "lazy", Stats::default());
        let (provenance, approximate) = (None, None);
        Outcome {
            answer,
            model,
            engine,
            safe_under_sc: false,
            provenance,
            approximate,
            stats,
            warnings: vec![],
        }
    }

    fn violated() -> Outcome {
        let (program, goal) = (sb(), Goal::of(&sb()));
        let actions: Vec<Action> = sb_trace().events.iter().map(|e| e.action).collect();
        let trace = certify::run(&program, &goal, Model::Tso, &actions, &Limits::default());
        with(Answer::Fails(trace.expect("the run is one")))
    }

    fn head(outcome: Outcome, trace: &Trace) -> String {
        text::blocks(
            &[headline(&sb(), &outcome, trace)],
            Style { width: 100, wraps: false, color: false, local_steps: true },
        )
    }

    #[test]
    fn delays_stand_below_the_sentence() {
        let expected = "A run of 6 events under TSO; no run under SC does this:\n  \
                        p0 delays `store [x], 1` past `load r, [y]`\n  \
                        p1 delays `store [y], 1` past `load r, [x]`\n";
        assert_eq!(head(Outcome { safe_under_sc: true, ..violated() }, &sb_trace()), expected);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(head(violated(), &sb_trace()), "A run of 6 events under TSO:\n");
        let sc = Trace { model: Model::Sc, ..sb_trace() };
        assert_eq!(head(violated(), &sc), "A run of 6 events under SC, and so under TSO:\n");
        let asked = Outcome { model: Model::Sc, ..violated() };
        assert_eq!(head(asked, &sc), "A run of 6 events under SC:\n");
    }

    fn object(outcome: &Outcome, peak_kb: Option<u64>) -> Value {
        let each = [(Asked::Property(0), outcome.clone())];
        let program = sb();
        let answers = Answers { program: &program, worst: outcome, each: &each, formulas: &[], waiting: &[] };
        json::render(&document(answers, "sb.tso", peak_kb))
    }

    #[test]
    fn a_violation_carries_its_trace_and_its_property() {
        let value = object(&violated(), Some(7));
        assert_eq!(value["verdict"], "violated");
        assert_eq!(value["peak_kb"], 7);
        assert_eq!(value["trace"].as_array().map(Vec::len), Some(6));
        assert_eq!(value["against"]["text"], "never p0.r == 0 && p1.r == 0");
        assert_eq!(value["trace"][2]["source"], "memory");
    }

    #[test]
    fn what_is_unknown_names_its_limit() {
        let value = object(&with(Answer::Unknown(Limit::States(9))), None);
        assert_eq!(value["limit"], "states");
        assert_eq!(value["reason"], "the limit of 9 states was reached");
        let value = object(&with(Answer::Holds(Proof::Exhausted)), None);
        assert_eq!(value["verdict"], "safe");
        assert!(value.get("trace").is_none());
    }
}
