//! Do instructions mean what the processor makes of them? Random snippets of one thread run on this machine,
//! and are explored as litmus tests; every register, variable and flag must be the same. `OVERTAKE_PROGRAMS`
//! widens it.

#[path = "../common/mod.rs"]
mod common;
mod generate;
mod machine;
mod snippet;
mod state;
mod text;

use common::{cases, finals::by_explorer};
use machine::Left;
use overtake::engine::{self, Options};
use overtake::front::litmus::{read_test, write};
use overtake::model::litmus::{Litmus, Observed};
use overtake::model::{Atom, Value};
use overtake::query::{Answer, Goal, Limits, Model};
use snippet::{Arch, FLAGS, Snippet, Unit};
use state::{Known, State};
use std::collections::BTreeMap;
use std::io::Write;
use text::{Asked, litmus, register};

/// Snippets that share one program.
const BATCH: usize = 500;

#[test]
fn snippets_do_what_the_processor_does() {
    let wanted = u64::from(cases(800).cases);
    let snippets: Vec<Snippet> = (0..wanted).map(generate::snippet).collect();
    'arch: for arch in [Arch::X86, Arch::X86_64] {
        let own: Vec<&Snippet> = snippets.iter().filter(|s| s.arch == arch).collect();
        let mut written = 0;
        for batch in own.chunks(BATCH) {
            match compared(batch) {
                Ok(Compared { wrong, written: more }) => {
                    if let Some((n, _)) = wrong.first() {
                        let (least, others) = (shrunk(batch[*n].clone()), wrong.len() - 1);
                        panic!("{least}\n{others} others of {} disagree as well", batch.len());
                    }
                    written += more;
                }
                Err(why) => {
                    // Not by a macro: what those print is kept back where tests pass.
                    let _ = writeln!(std::io::stderr(), "skipped: no {arch:?} snippets were run, {why}");
                    continue 'arch;
                }
            }
        }
        assert!(written > own.len() / 5, "only {written} of {} can be written", own.len());
    }
}

/// What came of a batch of snippets.
struct Compared {
    /// The places of those that mean something else here than on the processor, each with what is wrong.
    wrong: Vec<(usize, String)>,
    /// How many were also written as tests and read again.
    written: usize,
}

fn compared(snippets: &[&Snippet]) -> Result<Compared, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("this is no x86-64 with Linux".to_string());
    }
    let Some(first) = snippets.first() else { return Ok(Compared { wrong: vec![], written: 0 }) };
    let left = machine::run(snippets, first.arch)?;
    let mut compared = Compared { wrong: vec![], written: 0 };
    for (n, (snippet, left)) in snippets.iter().zip(&left).enumerate() {
        match compare(snippet, left) {
            Ok(written) => compared.written += written as usize,
            Err(why) => compared.wrong.push((n, why)),
        }
    }
    Ok(compared)
}

/// What is wrong with a snippet, or whether it was written, too.
fn compare(snippet: &Snippet, left: &Left) -> Result<bool, String> {
    let end = snippet.end().expect("snippets are made so that nothing open is looked at");
    let expected = shown(snippet, &end, left);
    let source = litmus(snippet, &Asked { flags: end.defined, condition: "" });
    same(&source, &expected)?;
    // The same as a question.
    let condition = condition(snippet, &end, &expected);
    let source = litmus(snippet, &Asked { flags: end.defined, condition: &condition });
    let (input, _) =
        read_test(&source, &Limits::default()).map_err(|wrong| format!("{source}\n{wrong:#?}"))?;
    let options = Options { workers: 1, ..Options::default() };
    let outcome = engine::check(&input.program, &Goal::of(&input.program), &options, &Limits::default());
    match outcome.expect("no internal error").answer {
        Answer::Holds(_) => written(snippet, &expected),
        answer => Err(format!("{source}\n{answer:?}")),
    }
}

/// What final states are to show, by the names of the columns.
fn shown(snippet: &Snippet, end: &State, left: &Left) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let bits = snippet.arch.bits();
    let address = |number: u64| {
        let (var, offset) = left.variable_at(number)?;
        Some(if offset == 0 { format!("v{var}") } else { format!("v{var}+{offset}") })
    };
    let show = |known: Known, number: u64, signed: bool, bits: u32| {
        let name = if matches!(known, Known::Data | Known::Number(_)) { None } else { address(number) };
        let extended = (number as i64) << (64 - bits) >> (64 - bits);
        name.unwrap_or_else(|| if signed { extended.to_string() } else { number.to_string() })
    };
    for (reg, _) in &snippet.registers {
        let value = show(end.registers[*reg], left.register(*reg, bits), true, bits);
        all.insert(format!("0:{}", register(snippet.arch, *reg)), value);
    }
    for (v, variable) in snippet.variables.iter().enumerate() {
        for element in 0..variable.init.len() {
            let number = left.element(v, element, variable.bits);
            let value = show(Known::Data, number, variable.signed, variable.bits);
            let index = if variable.init.len() == 1 { String::new() } else { format!("[{element}]") };
            all.insert(format!("v{v}{index}"), value);
        }
    }
    if snippet.pointer.is_some() {
        let v = snippet.variables.len();
        all.insert(format!("v{v}"), show(end.pointer, left.element(v, 0, bits), true, bits));
    }
    for (n, (flag, bit)) in FLAGS.iter().enumerate() {
        if end.defined & bit != 0 {
            all.insert(format!("0:{flag}"), left.flag(n).to_string());
        }
    }
    all
}

/// The one final state of a test is this one.
fn same(source: &str, expected: &BTreeMap<String, String>) -> Result<(), String> {
    let (litmus, values) = last(source)?;
    let differ = |(o, v): (&Observed, &Value)| {
        let (shown, there) = (litmus.show(o, *v).to_string(), &expected[&o.name]);
        (shown != *there).then(|| format!("{}={shown}, on the processor {there}", o.name))
    };
    let differ: Vec<String> = litmus.observed.iter().zip(&values).filter_map(differ).collect();
    match differ[..] {
        [] => Ok(()),
        _ => Err(format!("{source}\n{}", differ.join("\n"))),
    }
}

/// The test, and the values of its columns in its one final state.
fn last(source: &str) -> Result<(Litmus, Vec<Value>), String> {
    let (input, litmus) =
        read_test(source, &Limits::default()).map_err(|wrong| format!("{source}\n{wrong:#?}"))?;
    let atoms: Vec<Atom> = litmus.observed.iter().map(|o| o.atom.clone()).collect();
    let found = by_explorer(&input.program, &atoms, Model::Tso, 1).ok_or(format!("{source}\nno end"))?;
    match &found.into_iter().collect::<Vec<_>>()[..] {
        [values] => Ok((litmus, values.clone())),
        others => Err(format!("{source}\n{} final states", others.len())),
    }
}

/// A condition that must hold at the end: everything is as expected, and no number is an address.
fn condition(snippet: &Snippet, end: &State, expected: &BTreeMap<String, String>) -> String {
    // Elements other than the first have no name in conditions.
    let named = expected.iter().filter(|(_, value)| !value.contains('+'));
    let mut all: Vec<String> = named.map(|(name, value)| format!("{name}={value}")).collect();
    let numbers = snippet
        .registers
        .iter()
        .filter(|(reg, _)| matches!(end.registers[*reg], Known::Data | Known::Number(_)));
    for (reg, _) in numbers {
        let register = register(snippet.arch, *reg);
        all.extend((0..snippet.variables.len()).map(|v| format!("0:{register}!=v{v}")));
    }
    format!("forall ({})", all.join(r" /\ "))
}

/// The test means the same once it has been written and read again; whether it can be written.
fn written(snippet: &Snippet, expected: &BTreeMap<String, String>) -> Result<bool, String> {
    // Flags are registers of the program and would get other names.
    let source = litmus(snippet, &Asked { flags: 0, condition: "" });
    let (input, test) =
        read_test(&source, &Limits::default()).map_err(|wrong| format!("{source}\n{wrong:#?}"))?;
    let Ok(text) = write(&input.program, "", Some(&test), &Limits::default()) else { return Ok(false) };
    let name = |text: &str| text.split(' ').next().map(str::to_string);
    let same = match name(&text) == name(&source) {
        true => same(&text, expected),
        false => last(&text).and_then(|(_, mut there)| {
            // For another processor variables may be written as one array: then their order is another.
            let (_, mut here) = last(&source)?;
            let registers = snippet.registers.len();
            here[registers..].sort();
            there[registers..].sort();
            if here == there { Ok(()) } else { Err(format!("{text}\n{there:?}\nwas {here:?}")) }
        }),
    };
    same.map(|()| true).map_err(|why| format!("{source}\nwritten:\n{why}"))
}

/// What is wrong with the smallest part of a snippet that disagrees too.
fn shrunk(mut least: Snippet) -> String {
    let first = |snippets: &[Snippet]| {
        let snippets: Vec<&Snippet> = snippets.iter().collect();
        let wrong = compared(&snippets).expect("snippets were run before").wrong;
        wrong.into_iter().next()
    };
    loop {
        let smaller = without_one(&least.units).into_iter().map(|units| Snippet { units, ..least.clone() });
        let smaller: Vec<Snippet> = smaller.filter(|s| s.end().is_some()).collect();
        match first(&smaller) {
            Some((n, _)) => least = smaller[n].clone(),
            None => return first(&[least]).expect("it disagreed before").1,
        }
    }
}

/// All lists with one unit less, also inside others.
fn without_one(units: &[Unit]) -> Vec<Vec<Unit>> {
    let mut all = Vec::new();
    for n in 0..units.len() {
        let with = |instead: Vec<Unit>| [&units[..n], &instead, &units[n + 1..]].concat();
        all.push(with(vec![]));
        if let Unit::Skip(condition, body) = &units[n] {
            all.push(with(body.clone()));
            all.extend(without_one(body).into_iter().map(|body| with(vec![Unit::Skip(*condition, body)])));
        }
    }
    all
}
