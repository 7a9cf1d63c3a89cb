//! Temporal logic: formulas and automata against the definition on lassos, models against a rival that knows
//! no machine, and the published verdicts of the corpus.
//!
//! `OVERTAKE_PROGRAMS=100000 cargo test --release --test temporal` tries more formulas and models.

mod common;

use common::dve::{CONDITIONS, Dice, PlainSpace, Taste, model, read, slots, space};
use overtake::dve::{DveExpr, Memory, Site, System};
use overtake::front::ltl::{self, Grouping};
use overtake::limits::Limits;
use overtake::model::formula::{Connective, Formula};
use overtake::query::{Answer, Verdict};
use overtake::reach::cycles::{MarkedGraph, Marks, accepting_lasso};
use overtake::semantics::dve::property_moves;
use overtake::semantics::ltl::{Word, holds};
use overtake::temporal::TemporalOptions;
use overtake::temporal::automaton::{Automaton, Letter};
use overtake::temporal::hazards::Fix;
use overtake::temporal::ltl::{TemporalFormula, formula, property};
use overtake::temporal::synthesis::{Prices, synthesise};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;

/// Larger random state spaces are left alone.
const MOST: usize = 400;

/// A word beside an automaton.
struct Beside<'a>(&'a Word, &'a Automaton);

impl Beside<'_> {
    fn letter(&self, place: usize) -> Letter {
        self.0.letters[place].iter().enumerate().map(|(i, holds)| (*holds as Letter) << i).sum()
    }
}

impl MarkedGraph for Beside<'_> {
    type Scratch = ();
    type Step = ();

    fn scratch(&self) {}

    fn sets(&self) -> Marks {
        self.1.all_marks()
    }

    fn roots(&self, _: &mut (), each: &mut impl FnMut(&[u64])) {
        each(&[0, 0]);
    }

    fn follow(&self, _: &mut (), state: &[u64], each: &mut impl FnMut(&[u64], Marks, ())) {
        let (place, own) = (state[0] as usize, state[1] as usize);
        let next = if place + 1 < self.0.letters.len() { place + 1 } else { self.0.cycle_from };
        for edge in self.1.states[own].iter().filter(|e| e.guard.admits(self.letter(place))) {
            each(&[next as u64, edge.to as u64], edge.marks, ());
        }
    }
}

fn accepts(formula: &Formula, word: &Word) -> bool {
    let automaton = Automaton::of(formula, &Limits::default()).expect("there is no limit");
    accepting_lasso(&Beside(word, &automaton), &Limits::default()).lasso.is_some()
}

#[test]
fn the_words_of_the_corpus_are_right() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/ltl/words.jsonl");
    let Ok(text) = std::fs::read_to_string(&file) else {
        eprintln!("skipped: there is no corpus of words");
        return;
    };
    let mut tried = 0;
    for row in text.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("a row is an object");
        let source = row["formula"].as_str().expect("it has a formula");
        let named = ltl::formula(source, Grouping::Explicit, &Limits::default()).expect("it is one");
        for word in row["words"].as_array().expect("it has words") {
            let part = |name: &str| {
                let letters = word[name].as_array().expect("a list of letters").iter();
                let letter = |l: &serde_json::Value| {
                    let holding = l.as_str().expect("propositions that hold");
                    named.names.iter().map(|p| holding.contains(&p[..])).collect::<Vec<bool>>()
                };
                letters.map(letter).collect::<Vec<_>>()
            };
            let prefix = part("prefix");
            let cycle_from = prefix.len();
            let word_ = Word { letters: [prefix, part("cycle")].concat(), cycle_from };
            let expected = word["holds"].as_bool();
            assert_eq!(Some(holds(&named.formula, &word_)), expected, "{source}: {word}");
            assert_eq!(Some(accepts(&named.formula, &word_)), expected, "{source}: {word}");
            tried += 1;
        }
    }
    assert!(tried > 1000, "{tried} words are all that was found");
}

fn random_formula(dice: &mut Dice, depth: usize, next: bool) -> Formula {
    let below = |dice: &mut Dice| random_formula(dice, depth - 1, next);
    match if depth == 0 { dice.roll(3) } else { dice.roll(14) } {
        0..=2 => Formula::Proposition(dice.roll(3)),
        3 => below(dice).negated(),
        4 => Formula::Finally(Box::new(below(dice))),
        5 => Formula::Globally(Box::new(below(dice))),
        6 if next => Formula::Next(Box::new(below(dice))),
        6 => {
            if dice.one_in(2) {
                Formula::True
            } else {
                Formula::False
            }
        }
        n => {
            use Connective::*;
            let connective = [And, Or, Implies, Iff, Until, WeakUntil, Release, Xor][n % 8];
            Formula::binary(connective, below(dice), below(dice))
        }
    }
}

fn random_word(dice: &mut Dice) -> Word {
    let length = 1 + dice.roll(6);
    let letter = |dice: &mut Dice| (0..3).map(|_| dice.one_in(2)).collect();
    let letters = (0..length).map(|_| letter(dice)).collect();
    Word { letters, cycle_from: dice.roll(length) }
}

/// The rival: the model by its plain definition beside the automaton, as a graph with state numbers.
struct Rival {
    /// Edges with their marks; sets are those of the automaton, then one for each slot.
    edges: Vec<Vec<(usize, Marks)>>,
    sets: usize,
}

fn letter(system: &System, propositions: &[DveExpr], state: &overtake::dve::Configuration) -> Letter {
    let holds = |e: &DveExpr| state.value(system, None, e).expect("conditions have values") != 0;
    propositions.iter().enumerate().map(|(i, e)| (holds(e) as Letter) << i).sum()
}

impl Rival {
    fn new(space: &PlainSpace, letters: &[Letter], automaton: &Automaton, fair: bool) -> Rival {
        let all: Vec<_> = space.states.iter().flatten().flat_map(|s| s.slots.keys().copied()).collect();
        let slots: HashSet<_> = all.into_iter().filter(|_| fair).collect();
        let number = |state: usize, own: usize| state * automaton.states.len() + own;
        let mut edges = vec![vec![]; space.states.len() * automaton.states.len()];
        for (s, state) in space.states.iter().enumerate() {
            let Some(state) = state else { continue };
            let empty = slots.iter().enumerate().filter(|(_, slot)| !state.slots.contains_key(slot));
            let marks: Marks = empty.map(|(i, _)| 1 << (automaton.sets + i)).sum();
            let stutter = vec![s];
            let next: Vec<usize> = match &space.edges[s][..] {
                [] => stutter,
                some => some.iter().map(|(_, to)| *to).filter(|to| space.states[*to].is_some()).collect(),
            };
            for (own, moves) in automaton.states.iter().enumerate() {
                for edge in moves.iter().filter(|e| e.guard.admits(letters[s])) {
                    let to = next.iter().map(|to| (number(*to, edge.to), edge.marks | marks));
                    edges[number(s, own)].extend(to);
                }
            }
        }
        Rival { edges, sets: automaton.sets + slots.len() }
    }

    /// Nested depth-first search, on a copy of the graph for each set.
    fn accepts(&self) -> bool {
        let copies = self.sets + 1;
        let next = |node: usize| {
            let (state, copy) = (node / copies, node % copies);
            let edges = self.edges[state].iter();
            edges.map(move |&(to, marks)| {
                let from = if copy == self.sets { 0 } else { copy };
                let met = (from..self.sets).take_while(|set| marks >> set & 1 != 0).count();
                to * copies + from + met
            })
        };
        let (mut blue, mut red) = (HashSet::from([0]), HashSet::new());
        let mut path: Vec<(usize, Vec<usize>)> = vec![(0, next(0).collect())];
        while let Some((node, left)) = path.last_mut() {
            if let Some(to) = left.pop() {
                if blue.insert(to) {
                    path.push((to, next(to).collect()));
                }
                continue;
            }
            let node = *node;
            path.pop();
            if node % copies != self.sets {
                continue;
            }
            let mut todo = vec![node];
            while let Some(from) = todo.pop() {
                for to in next(from) {
                    if to == node {
                        return true;
                    }
                    if red.insert(to) {
                        todo.push(to);
                    }
                }
            }
        }
        false
    }
}

/// Does some lasso of at most so many steps violate the formula? Fair ones alone, if that is asked.
fn brute(space: &PlainSpace, letters: &[Letter], formula: &Formula, fair: bool, most: usize) -> bool {
    fn extend(
        space: &PlainSpace,
        path: &mut Vec<usize>,
        most: usize,
        bad: &dyn Fn(&[usize], usize) -> bool,
    ) -> bool {
        let last = path[path.len() - 1];
        let next: Vec<usize> = match &space.edges[last][..] {
            [] => vec![last],
            some => some.iter().map(|(_, to)| *to).filter(|to| space.states[*to].is_some()).collect(),
        };
        for to in next {
            if path.iter().enumerate().any(|(i, s)| *s == to && bad(path, i)) {
                return true;
            }
            path.push(to);
            let found = path.len() <= most && extend(space, path, most, bad);
            path.pop();
            if found {
                return true;
            }
        }
        false
    }
    let bad = |path: &[usize], cycle_from: usize| {
        let bits = |s: &usize| (0..3).map(|p| letters[*s] >> p & 1 != 0).collect();
        let word = Word { letters: path.iter().map(bits).collect(), cycle_from };
        let cycle: Vec<_> = path[cycle_from..].iter().flat_map(|s| &space.states[*s]).collect();
        let drained = |slot| cycle.iter().any(|s| !s.slots.contains_key(slot));
        let is_fair = cycle.iter().flat_map(|s| s.slots.keys()).all(drained);
        (is_fair || !fair) && !holds(formula, &word)
    };
    extend(space, &mut vec![0], most, &bad)
}

fn told(bad: bool) -> Verdict {
    if bad { Verdict::Fails } else { Verdict::Holds }
}

fn taste(dice: &mut Dice, property: bool) -> Taste {
    Taste { errors: dice.one_in(3), channels: dice.one_in(3), property }
}

proptest! {
    #![proptest_config(common::cases(2_000))]

    #[test]
    fn automata_accept_the_words_on_which_formulas_hold(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let (formula, word) = (random_formula(&mut dice, 4, true), random_word(&mut dice));
        let expected = holds(&formula, &word);
        prop_assert_eq!(accepts(&formula, &word), expected, "{} on {:?}", formula, word);
        prop_assert_eq!(accepts(&formula.clone().negated(), &word), !expected, "! {} on {:?}", formula, word);
    }

    #[test]
    fn a_formula_reads_as_it_is_shown(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let formula = random_formula(&mut dice, 4, true);
        let again = ltl::formula(&formula.to_string(), Grouping::Explicit, &Limits::default());
        let again = again.expect("it is a formula");
        let numbers: Vec<usize> = again.names.iter().map(|n| n[1..].parse().expect("a number")).collect();
        let renumbered = again.show();
        prop_assert!(numbers.len() <= 3);
        prop_assert_eq!(renumbered, formula.to_string());
    }
}

proptest! {
    #![proptest_config(common::cases(400))]

    #[test]
    fn models_are_judged_as_the_rival_judges_them(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let taste = taste(&mut dice, false);
        let text = model(&mut dice, taste);
        let system = read(&text);
        let memory = if dice.one_in(2) { Memory::Sc } else { slots(&mut dice, &system) };
        let Some(space) = space(&system, &memory, MOST) else { return Ok(()) };
        let conditions: Vec<DveExpr> = (0..3)
            .map(|_| overtake::front::dve::expression(dice.pick(&CONDITIONS), &system, &[], &Limits::default()))
            .collect::<Result<_, _>>()
            .expect("they are expressions");
        let next = dice.one_in(3);
        let asked = random_formula(&mut dice, 3, next);
        let fair = !memory.is_sc() && !dice.one_in(4);
        let letters: Vec<Letter> = space.states.iter()
            .map(|s| s.as_ref().map_or(0, |s| letter(&system, &conditions, s)))
            .collect();
        let automaton = Automaton::of(&asked.clone().negated(), &Limits::default()).expect("there is no limit");
        let rival = Rival::new(&space, &letters, &automaton, fair).accepts();
        let temporal = TemporalFormula { formula: asked.clone(), propositions: conditions };
        for por in [false, true] {
            let options = TemporalOptions { memory: memory.clone(), workers: 1, fair, por };
            let outcome = formula(&system, &temporal, &options, &Limits::default()).expect("what is found is confirmed");
            prop_assert_eq!(outcome.answer.verdict(), told(rival), "{}\n{:?} {} fair {} por {}", text, memory, asked, fair, por);
        }
        if brute(&space, &letters, &asked, fair, 5) {
            prop_assert!(rival, "{}\n{:?} {} fair {}", text, memory, asked, fair);
        }
    }

    #[test]
    fn property_processes_are_judged_as_the_rival_judges_them(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let taste = taste(&mut dice, true);
        let text = model(&mut dice, taste);
        let system = read(&text);
        let Some(space) = space(&system, &Memory::Sc, MOST) else { return Ok(()) };
        let own = system.processes.len() - 1;
        let states = system.processes[own].states.len();
        // Nested search needs no more than a graph with one set, so the property process makes its own.
        let mut edges = vec![vec![]; space.states.len() * states];
        for (s, state) in space.states.iter().enumerate() {
            let Some(state) = state else { continue };
            let next: Vec<usize> = match &space.edges[s][..] {
                [] => vec![s],
                some => some.iter().map(|(_, to)| *to).filter(|to| space.states[*to].is_some()).collect(),
            };
            for q in 0..states {
                let mut here = state.clone();
                here.at[own] = q;
                let marks = system.processes[own].states[q].accepting as Marks;
                for (_, to) in property_moves(&system, &here) {
                    let to = to.expect("guards have values");
                    edges[s * states + q].extend(next.iter().map(|n| (n * states + to, marks)));
                }
            }
        }
        let rival = Rival { edges, sets: 1 }.accepts();
        let options = TemporalOptions { memory: Memory::Sc, workers: 1, fair: false, por: true };
        let outcome = property(&system, &options, &Limits::default()).expect("what is found is confirmed");
        prop_assert_eq!(outcome.answer.verdict(), told(rival), "{}", text);
    }
}

/// A model of the corpus with the formulas of its file, and what was published of L2, L3 and L4.
#[test]
fn published_verdicts_are_met() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/dve");
    let Ok(table) = std::fs::read_to_string(folder.join("beem-counts.csv")) else {
        eprintln!("skipped: there is no corpus of DVE models");
        return;
    };
    let most = std::env::var("OVERTAKE_STATES").ok().and_then(|n| n.parse().ok()).unwrap_or(40_000u64);
    let mut tried = 0;
    for row in table.lines().skip(1).filter(|row| row.contains("N=3") || row.contains("N=2")) {
        let n = if row.contains("N=3") { 3 } else { 2 };
        let mut words = row.split(',');
        let (name, number) = (words.next().expect("a name"), words.next().expect("a number"));
        let states = row.split(",yes,").next().and_then(|r| r.rsplit(',').next()?.parse::<u64>().ok());
        if states.is_none_or(|states| states > most) || row.starts_with("anderson,1") {
            continue;
        }
        let text = std::fs::read_to_string(folder.join(format!("{name}.{number}.dve"))).expect("a model");
        let formulas =
            std::fs::read_to_string(folder.join(format!("ltl/{name}.N{n}.ltl"))).expect("formulas");
        let system = read(&text);
        let file = ltl::properties(&formulas, Grouping::Explicit, &Limits::default()).expect("formulas");
        let limits = Limits::default();
        let define = |(name, text): &(String, String)| {
            (
                name.clone(),
                overtake::front::dve::expression(text, &system, &[], &limits).expect("an expression"),
            )
        };
        let definitions: Vec<(String, DveExpr)> = file.definitions.iter().map(define).collect();
        for (i, property) in file.properties.iter().enumerate() {
            let key = format!("{}{}=", if i == 0 { "R" } else { "L" }, i + 1);
            let published = row.split(&key).nth(1).expect("a verdict").split('(').next();
            let expected = match (i, published) {
                (0, Some("yes")) | (1.., Some("no")) => Verdict::Fails,
                (0, Some("no")) | (1.., Some("yes")) => Verdict::Holds,
                _ => continue,
            };
            let value =
                |name: &String| definitions.iter().find(|(n, _)| n == name).expect("it is defined").1.clone();
            let propositions = property.names.iter().map(value).collect();
            let asked = TemporalFormula { formula: property.formula.clone(), propositions };
            let options = TemporalOptions { memory: Memory::Sc, workers: 1, fair: false, por: true };
            let outcome = formula(&system, &asked, &options, &limits).expect("what is found is confirmed");
            assert_eq!(outcome.answer.verdict(), expected, "{name}.{number}: {}", property.show());
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried} verdicts are all that was found");
}

#[test]
fn a_lasso_says_where_its_cycle_begins() {
    let system = read(
        "byte x; process P { state a, b; init a; trans a -> b { effect x = 1; }, b -> b {}; } system async;",
    );
    let x = overtake::front::dve::expression("x == 0", &system, &[], &Limits::default()).expect("one");
    let asked = TemporalFormula {
        formula: Formula::Globally(Box::new(Formula::Finally(Box::new(Formula::Proposition(0))))),
        propositions: vec![x],
    };
    let options = TemporalOptions { memory: Memory::Sc, workers: 1, fair: false, por: true };
    let outcome = formula(&system, &asked, &options, &Limits::default()).expect("it is confirmed");
    let Answer::Fails(run) = outcome.answer else { panic!("x stays 1") };
    assert_eq!((run.steps.len(), run.cycle_from), (2, Some(1)));
}

/// Two processes write and then look at each other's variable; a third tells whether both found nothing.
const SB: &str = "byte x, y;
process P { byte r; state a, b, end; init a; trans a -> b { effect x = 1; }, b -> end { effect r = y; }; }
process Q { byte r; state a, b, end; init a; trans a -> b { effect y = 1; }, b -> end { effect r = x; }; }
system async;";

/// A message and a flag.
const MP: &str = "byte data, flag;
process P { state a, b, end; init a; trans a -> b { effect data = 1; }, b -> end { effect flag = 1; }; }
process Q { byte r; state a, b, end; init a; trans a -> b { guard flag == 1; }, b -> end { effect r = data; }; }
system async;";

fn sets(source: &str, condition: &str, prices: Prices) -> Option<Vec<Vec<String>>> {
    let system = read(source);
    let bad = overtake::front::dve::expression(condition, &system, &[], &Limits::default()).expect("one");
    let never = Formula::Globally(Box::new(Formula::Proposition(0).negated()));
    let asked = TemporalFormula { formula: never, propositions: vec![bad] };
    let options = TemporalOptions { memory: Memory::slots(), workers: 1, fair: true, por: true };
    let found = synthesise(&system, &[asked], prices, 100, &options, &Limits::default()).expect("confirmed");
    let Answer::Holds(enough) = found.answer else { return None };
    assert!(enough.optimal && !enough.more);
    let name = |fix: &Fix| match fix {
        Fix::Atomic(s) => format!("{}:{}", system.processes[s.process].name, s.transition),
        Fix::Barrier(p, t) => format!("{}|{t}", system.processes[*p].name),
    };
    Some(enough.sets.iter().map(|set| set.iter().map(name).collect()).collect())
}

#[test]
fn known_models_need_what_they_are_known_to_need() {
    let (atomic, barrier) =
        (Prices { atomic: Some(1), barrier: None }, Prices { atomic: None, barrier: Some(1) });
    let both = "P.end and Q.end and P->r == 0 and Q->r == 0";
    assert_eq!(sets(SB, both, atomic), Some(vec![vec!["P:0".to_string(), "Q:0".to_string()]]));
    assert_eq!(sets(SB, both, barrier), Some(vec![vec!["P|1".to_string(), "Q|1".to_string()]]));
    assert_eq!(sets(MP, "Q.end and Q->r == 0", atomic), Some(vec![vec!["P:0".to_string()]]));
    assert_eq!(sets(MP, "Q.end and Q->r == 0", barrier), Some(vec![vec!["P|1".to_string()]]));
    assert_eq!(sets(SB, "P.end", atomic), None, "it happens under SC already");
    let cheap = Prices { atomic: Some(3), barrier: Some(1) };
    assert_eq!(sets(SB, both, cheap), sets(SB, both, barrier));
}

proptest! {
    #![proptest_config(common::cases(100))]

    /// Against every combination of changes.
    #[test]
    fn the_fewest_changes_are_the_fewest(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let taste = Taste { errors: false, channels: dice.one_in(3), property: false };
        let text = model(&mut dice, taste);
        let system = read(&text);
        let sites = system.sites();
        if sites.len() > 7 || space(&system, &Memory::slots(), MOST).is_none() {
            return Ok(());
        }
        let conditions = ["P0.s1", "P1.s1", "P0.s0 and P1.s1", "P0->l == 1"];
        let propositions: Vec<DveExpr> = (0..3)
            .map(|_| overtake::front::dve::expression(dice.pick(&conditions), &system, &[], &Limits::default()))
            .collect::<Result<_, _>>()
            .expect("they are expressions");
        let formula_ = if dice.one_in(2) {
            Formula::Globally(Box::new(random_formula(&mut dice, 1, false)))
        } else {
            random_formula(&mut dice, 3, false)
        };
        let asked = TemporalFormula { formula: formula_, propositions };
        let options = |memory: Memory| {
            let fair = !memory.is_sc();
            TemporalOptions { memory, workers: 1, fair, por: true }
        };
        let holds = |memory: Memory| {
            let outcome = formula(&system, &asked, &options(memory), &Limits::default());
            outcome.expect("what is found is confirmed").answer.verdict() == Verdict::Holds
        };
        let subset = |bits: usize| {
            let chosen = sites.iter().enumerate().filter(|(i, _)| bits >> i & 1 != 0).map(|(_, s)| *s);
            chosen.collect::<BTreeSet<Site>>()
        };
        let good: Vec<BTreeSet<Site>> = (0..1 << sites.len())
            .map(subset)
            .filter(|atomic| holds(Memory::Slots { atomic: atomic.clone(), barriers: BTreeSet::new() }))
            .collect();
        let least = good.iter().map(BTreeSet::len).min();
        let expected: BTreeSet<BTreeSet<Site>> = good.into_iter().filter(|s| Some(s.len()) == least).collect();
        let prices = Prices { atomic: Some(1), barrier: None };
        let found = synthesise(&system, std::slice::from_ref(&asked), prices, 1_000, &options(Memory::slots()), &Limits::default());
        let found: Option<BTreeSet<BTreeSet<Site>>> = match found.expect("confirmed").answer {
            Answer::Holds(enough) => {
                let site = |fix: &Fix| if let Fix::Atomic(site) = fix { *site } else { unreachable!() };
                Some(enough.sets.iter().map(|set| set.iter().map(site).collect()).collect())
            }
            Answer::Fails(_) => None,
            Answer::Unknown(limit) => panic!("{limit:?}"),
        };
        let expected = holds(Memory::Sc).then_some(expected);
        prop_assert_eq!(found, expected, "{}\n{}", text, asked.formula);
    }
}
