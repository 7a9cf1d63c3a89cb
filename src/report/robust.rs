//! Do SC and TSO have the same behaviours? The witness: which store was overtaken by which load, what the
//! other threads did in between, why no SC run can look like that, and the whole run.

use super::document::{Block, Cycle, CycleEdge, CycleNode, Document, Fact};
use super::table::{Align, Cell, Table, Tone};
use super::{capitalised, count_of, json, limit_reached, peak_memory, shortened, steps};
use crate::certify::{Confirmed, Robustness};
use crate::model::Program;
use crate::query::{Answer, AttackCount, Event, Limit, Model, Question, Relation, Stats, Witness};
use serde_json::{Map, Value, json};

pub fn document<'a>(
    program: &'a Program,
    file: &'a str,
    found: &'a Robustness,
    peak_kb: Option<u64>,
) -> Document<'a> {
    let facts = move || attacks(&found.attacks).into_iter().chain(spent(&found.stats, peak_kb)).collect();
    Document {
        question: Question::Robust,
        verdict: found.answer.verdict(),
        file: file.to_string(),
        explanation: Box::new(|| explanation(program, found)),
        costs: Box::new(move || vec![Block::Facts(facts())]),
        warnings: vec![],
        fields: Box::new(move || fields(program, file, found, peak_kb)),
    }
}

/// Why the answer is what it is, in a few words.
fn reason(found: &Robustness) -> String {
    match &found.answer {
        Answer::Holds(()) if found.attacks.left == 0 => {
            "the program's text leaves no store that a load could overtake with effect".to_string()
        }
        Answer::Holds(()) => "no store that a load overtakes leads to a cycle of happens-before".to_string(),
        Answer::Fails(_) => "a run that no SC run is like was found and checked".to_string(),
        Answer::Unknown(limit) => limit_reached(limit),
    }
}

/// What the verdict rests on.
fn explanation(program: &Program, found: &Robustness) -> Vec<Block> {
    let (reason, states) = (reason(found), found.stats.states);
    match &found.answer {
        Answer::Holds(()) => {
            vec![Block::line(format!("SC and TSO have the same behaviours: {reason}."))]
        }
        Answer::Fails(witness) => match &found.all {
            Some((all, limit)) => pairs(program, all, limit.as_ref()),
            None => story(program, witness),
        },
        Answer::Unknown(_) => {
            let reason = capitalised(&reason);
            vec![Block::line(format!("{reason}; {states} states were visited, and no witness was found."))]
        }
    }
}

/// Every harmful pair, and the story of the first.
fn pairs(program: &Program, all: &[Confirmed<Witness>], limit: Option<&Limit>) -> Vec<Block> {
    let one = |w: &Confirmed<Witness>| {
        let [store, load] = [w.store, w.load].map(|k| in_words(program, &w.events[k]));
        format!("{} delays {store} past {load}", program.thread(w.thread()).name())
    };
    let head = format!("{} with effect:", count_of(all.len() as u64, "store–load pair"));
    let more = limit.map(|limit| Block::line(format!("There may be more: {}.", limit_reached(limit))));
    let first = Block::line("A run for the first:");
    let listed = Block::list(vec![head], all.iter().map(one).collect());
    [listed].into_iter().chain(more).chain([first]).chain(story(program, &all[0])).collect()
}

pub fn story(program: &Program, witness: &Witness) -> Vec<Block> {
    let event = |k: usize| in_words(program, &witness.events[k]);
    let name = program.thread(witness.thread()).name();
    let delays = format!("Thread {name} delays {} past {}.", event(witness.store), event(witness.load));
    let way = on_the_way(program, &witness.events, &witness.path());
    let starred: Vec<usize> = witness.cycle.iter().map(|(k, _)| *k).collect();
    vec![
        Block::lines([delays].into_iter().chain(way).collect()),
        Block::line(
            "No SC run can look like this. Each of these steps would have to come before the next, in a cycle:",
        ),
        Block::Cycle(Cycle {
            table: Some(cycle_table(program, witness)),
            ..cycle(program, &witness.events, &witness.cycle)
        }),
        Block::line("The run, with the steps of the cycle marked:"),
        steps::run(program, Model::Tso, &witness.events, &starred),
    ]
}

/// What the thread of a path does between its ends, if anything.
pub(super) fn on_the_way(program: &Program, events: &[Event], path: &[usize]) -> Option<String> {
    let between = shortened(path[1..path.len() - 1].iter().map(|&k| in_words(program, &events[k])));
    (!between.is_empty()).then(|| format!("On the way: {}.", between.join(", ")))
}

/// The cycle as a graph: events that are one step are one node.
pub(super) fn cycle(program: &Program, events: &[Event], cycle: &[(usize, Relation)]) -> Cycle {
    // Begun where a node does, with the first in the run that does.
    let begins = |k: &usize| cycle[(k + cycle.len() - 1) % cycle.len()].1 != Relation::Same;
    let begin = (0..cycle.len()).filter(begins).min_by_key(|&k| cycle[k].0);
    let (mut graph, start) = (Cycle::default(), begin.unwrap_or(0));
    let mut leaving = Vec::new();
    let mut joined = false;
    for k in (start..cycle.len()).chain(0..start) {
        let (event, relation) = cycle[k];
        if !joined {
            let thread = program.thread(events[event].thread()).name().to_string();
            graph.nodes.push(CycleNode { thread, text: String::new(), rows: vec![] });
        }
        graph.nodes.last_mut().expect("one has just been begun").rows.push(event);
        joined = relation == Relation::Same;
        if !joined {
            leaving.push((event, relation, cycle[(k + 1) % cycle.len()].0));
        }
    }
    let count = graph.nodes.len();
    let edge = |(from, (event, relation, next)): (usize, (usize, Relation, usize))| CycleEdge {
        from,
        to: (from + 1) % count,
        name: relation.name(),
        words: format!("row {} {}", event + 1, leads(program, events, event, relation, next)),
    };
    graph.edges = leaving.into_iter().enumerate().map(edge).collect();
    for node in &mut graph.nodes {
        node.rows.sort_unstable();
        node.text = plain(program, &events[node.rows[0]]);
    }
    graph
}

/// The happens-before cycle, one row for each of its events, beginning with the delayed store.
fn cycle_table(program: &Program, witness: &Witness) -> Table {
    let mut cycle = witness.cycle.clone();
    let first = |wanted: &dyn Fn(usize) -> bool| cycle.iter().position(|(k, _)| wanted(*k));
    let store = first(&|k| k == witness.store);
    let start = store.or_else(|| first(&|k| witness.events[k].store == Some(witness.store)));
    cycle.rotate_left(start.unwrap_or(0));
    let mut table = Table::new(vec![Align::Left, Align::Right, Align::Left, Align::Left, Align::Left]);
    for (i, &(k, relation)) in cycle.iter().enumerate() {
        let next = cycle[(i + 1) % cycle.len()].0;
        let closed = if i + 1 == cycle.len() { ": the cycle is closed" } else { "" };
        table.row(vec![
            Cell::new("row", Tone::Quiet),
            Cell::new((k + 1).to_string(), Tone::Quiet),
            Cell::new(program.thread(witness.events[k].thread()).name(), Tone::Head),
            Cell::new(plain(program, &witness.events[k]), Tone::Plain),
            Cell::new(format!("{}{closed}", leads(program, &witness.events, k, relation, next)), Tone::Plain),
        ]);
    }
    table
}

/// An instruction of the user's file, with its line.
pub(super) fn in_words(program: &Program, event: &Event) -> String {
    let line = program.thread(event.thread()).edge(event.edge).line;
    match line {
        0 => format!("`{}`", plain(program, event)),
        line => format!("`{}` (line {})", plain(program, event), program.place(line)),
    }
}

fn plain(program: &Program, event: &Event) -> String {
    let thread = program.thread(event.thread());
    steps::instruction(program, thread, event)
}

/// What leads from an event of the cycle to the next.
fn leads(program: &Program, events: &[Event], from: usize, relation: Relation, to: usize) -> String {
    let (event, next, row) = (&events[from], &events[to], to + 1);
    let cell = event.address.map_or("memory".to_string(), |a| program.cell_name(a));
    match relation {
        Relation::ProgramOrder => format!("comes before row {row} in its thread"),
        Relation::Membarrier => {
            format!("comes before row {row}, with a `membarrier` of one for both threads")
        }
        Relation::Same if event.store == Some(to) => {
            format!("is where the store of row {row} reaches memory")
        }
        Relation::Same if next.store == Some(from) => format!("reaches memory in row {row}"),
        Relation::Same => format!("is in one block with row {row}, and so one step"),
        Relation::ReadsFrom => format!("writes {cell}, which row {row} reads"),
        Relation::Coherence => format!("writes {cell} before row {row} does"),
        Relation::FromRead => format!("reads {cell} as it was before row {row} writes it"),
    }
}

/// What any one search cost.
pub(super) fn spent(s: &Stats, peak_kb: Option<u64>) -> Vec<Fact> {
    let facts = [
        Fact::new("states", s.states),
        Fact::new("transitions", s.transitions),
        Fact::new("workers", s.workers),
        Fact::new("time", format!("{:.3} s", s.time.as_secs_f64())),
    ];
    facts.into_iter().chain(peak_memory(peak_kb)).collect()
}

/// What became of the attacks.
fn attacks(a: &AttackCount) -> [Fact; 5] {
    [
        Fact::new("attacks", format!("{} pairs of a store and a load", a.total)),
        Fact::part("fenced", format!("{}, or without a way from the store to the load", a.fenced)),
        Fact::part("private", format!("{}, where no other thread takes part", a.private)),
        Fact::part("acyclic", format!("{}, without a chain of conflicts back to the store", a.acyclic)),
        Fact::part("searched", a.left),
    ]
}

fn fields(program: &Program, file: &str, found: &Robustness, peak_kb: Option<u64>) -> Map<String, Value> {
    let mut fields = json::common(Question::Robust, found.answer.verdict(), file, &found.stats, peak_kb);
    let mut put = |more: Value| json::put(&mut fields, more);
    put(json!({
        "model": Model::Tso.name(),
        "reason": reason(found),
        "attacks": json::attacks(&found.attacks),
    }));
    match &found.answer {
        Answer::Fails(witness) => put(json!({ "witness": witness_fields(program, witness) })),
        Answer::Unknown(limit) => put(json!({ "limit": json::limit_name(limit) })),
        Answer::Holds(()) => {}
    }
    if let Some((all, limit)) = &found.all {
        let witnesses: Value = all.iter().map(|w| witness_fields(program, w)).collect();
        put(json!({ "witnesses": witnesses, "all_witnesses": limit.is_none() }));
    }
    fields
}

/// Store, path and load as events; the trace, and the cycle by the events' places in it.
fn witness_fields(program: &Program, witness: &Witness) -> Value {
    let of = |k: usize| json::event(program, &witness.events[k]);
    let cycle = |(k, relation): &(usize, Relation)| json!({ "event": k, "relation": relation.name() });
    json!({
        "thread": program.thread(witness.thread()).name(),
        "store": of(witness.store),
        "path": witness.path().into_iter().map(of).collect::<Vec<_>>(),
        "load": of(witness.load),
        "at": { "store": witness.store, "load": witness.load },
        "trace": json::events(program, &witness.events),
        "cycle": witness.cycle.iter().map(cycle).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{self, Options};
    use crate::front::tso;
    use crate::query::Limits;
    use crate::report::steps::tests::{sb, sb_trace};
    use crate::report::text::{self, Style};

    const STYLE: Style = Style { width: 100, wraps: false, color: false, local_steps: true };

    /// The witness that is found, up to the run.
    #[track_caller]
    fn check(source: &str, expected: &str) {
        let program =
            tso::read(source, &[], &Limits::default()).expect("the test's source is readable").program;
        let options = Options { workers: 1, ..Options::default() };
        let robustness = engine::robust(&program, &options, &Limits::default()).expect("no bug in overtake");
        let text = text::blocks(&explanation(&program, &robustness), STYLE);
        let told = text.split("\nThe run").next().unwrap_or_default();
        assert_eq!(told, expected.trim_start_matches('\n'), "\n{text}");
    }

    #[test]
    fn a_story_begins_and_ends_with_the_delayed_store() {
        let (program, trace) = (sb(), sb_trace());
        use Relation::*;
        // As the graph may give it: from anywhere.
        let cycle =
            vec![(5, Same), (1, ProgramOrder), (3, FromRead), (4, Same), (0, ProgramOrder), (2, FromRead)];
        let witness = Witness { events: trace.events, store: 0, load: 2, cycle };
        let expected = "\
Thread p0 delays `store [x], 1` (line 3) past `load r, [y]` (line 4).

No SC run can look like this. Each of these steps would have to come before the next, in a cycle:

  row  1  p0  store [x], 1  comes before row 3 in its thread
  row  3  p0  load r, [y]   reads y as it was before row 6 writes it
  row  6  p1  flush y       is where the store of row 2 reaches memory
  row  2  p1  store [y], 1  comes before row 4 in its thread
  row  4  p1  load r, [x]   reads x as it was before row 5 writes it
  row  5  p0  flush x       is where the store of row 1 reaches memory: the cycle is closed

The run, with the steps of the cycle marked:

        p0            p1            line                                 buffer
  *  1  store [x], 1                   3  x = 1 waits in the buffer      x=1
  *  2                store [y], 1     7  y = 1 waits in the buffer      y=1
  *  3  load r, [y]                    4  r = 0, from memory
  *  4                load r, [x]      8  r = 0, from memory
  *  5  flush x                        3  x: 0 -> 1, the store in row 1  empty
  *  6                flush y          7  y: 0 -> 1, the store in row 2  empty
";
        let text = text::blocks(&story(&program, &witness), STYLE);
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn steps_on_the_way_are_counted_and_not_repeated() {
        let source = "shared x, y\nthread p\n repeat k in 0..9 {\n store [x], 1\n }\n load r, [y]\nend\n\
                      thread q\n store [y], 1\n fence\n load r, [x]\nend\n";
        check(
            source,
            "
Thread p delays `store [x], 1` (line 4) past `load r, [y]` (line 6).
On the way: `store [x], 1` (line 4) (8 times).

No SC run can look like this. Each of these steps would have to come before the next, in a cycle:

  row   1  p  store [x], 1  comes before row 10 in its thread
  row  10  p  load r, [y]   reads y as it was before row 12 writes it
  row  12  q  flush y       is where the store of row 11 reaches memory
  row  11  q  store [y], 1  comes before row 14 in its thread
  row  14  q  load r, [x]   reads x as it was before row 15 writes it
  row  15  p  flush x       is where the store of row 1 reaches memory: the cycle is closed
",
        );
    }

    #[test]
    fn a_block_is_one_step() {
        let source = "shared x, y; thread t1; lock; load r, [x]; store [y], 1; unlock; end; \
                      thread t2; store [x], 2; load s, [y]; end";
        check(
            source,
            "
Thread t2 delays `store [x], 2` (line 1) past `load s, [y]` (line 1).

No SC run can look like this. Each of these steps would have to come before the next, in a cycle:

  row  1  t2  store [x], 2  comes before row 2 in its thread
  row  2  t2  load s, [y]   reads y as it was before row 6 writes it
  row  6  t1  flush y       is in one block with row 4, and so one step
  row  4  t1  load r, [x]   reads x as it was before row 8 writes it
  row  8  t2  flush x       is where the store of row 1 reaches memory: the cycle is closed
",
        );
    }

    #[test]
    fn who_reads_and_who_writes_last_is_said() {
        let source = "shared x, y; thread p; store [x], 1; load r, [y]; end; thread q; store [y], 1; end; \
                      thread s; load r, [y]; store [x], 2; end";
        check(
            source,
            "
Thread p delays `store [x], 1` (line 1) past `load r, [y]` (line 1).

No SC run can look like this. Each of these steps would have to come before the next, in a cycle:

  row  1  p  store [x], 1  comes before row 2 in its thread
  row  2  p  load r, [y]   reads y as it was before row 4 writes it
  row  4  q  flush y       writes y, which row 5 reads
  row  5  s  load r, [y]   comes before row 6 in its thread
  row  6  s  store [x], 2  reaches memory in row 7
  row  7  s  flush x       writes x before row 8 does
  row  8  p  flush x       is where the store of row 1 reaches memory: the cycle is closed
",
        );
    }
}
