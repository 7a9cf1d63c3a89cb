//! Does a program mean the same once it has been written as a litmus test? Final states, errors and verdicts
//! before and after, under SC and under TSO, of random programs, of the bundled ones and of litmus tests.

mod common;

use common::finals::{States, everything};
use common::{SMALL, Shape, Taste, cases, program};
use overtake::engine::{self, Choice, EXPLICIT, ExplicitOptions, Options};
use overtake::front::litmus::{read_test, write};
use overtake::front::{Inexpressible, Unwritten, tso};
use overtake::model::litmus::{Litmus, Observed};
use overtake::model::{Atom, BinOp, Expr, Program, Property, PropertyKind};
use overtake::query::{Answer, Goal, Limits, Model};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What herd says of a text: the words that it knows, each label once, no place that is a sum. Its grammar in
/// short, as far as written tests use it.
mod herd {
    use std::collections::HashSet;

    const SHARED: &[&str] = &["mov", "add", "or", "xor", "inc", "dec", "cmp", "xchg"];
    const JUMPS: &[&str] = &["jmp", "je", "jne"];
    const WIDE_JUMPS: &[&str] = &["jle", "jge"];
    const LOCKED: &[&str] = &["add", "xor", "inc", "dec", "xchg"];
    const REGISTERS: &[&str] = &["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];

    fn need(fine: bool, wrong: &str) -> Result<(), String> {
        if fine { Ok(()) } else { Err(wrong.to_string()) }
    }

    pub(crate) fn reads(text: &str) -> Result<(), String> {
        let wide = match text.split(' ').next() {
            Some("X86") => false,
            Some("X86_64") => true,
            _ => return Err("no processor".to_string()),
        };
        let (_, rest) = text.split_once('{').ok_or("no initial state")?;
        let (init, rest) = rest.split_once(" }\n").ok_or("no end of the initial state")?;
        let mut names = HashSet::new();
        for item in init.split(';').map(str::trim).filter(|i| !i.is_empty()) {
            initial(item, wide, &mut names).map_err(|why| format!("{item}: {why}"))?;
        }
        let mut labels = HashSet::new();
        let mut lines = rest.lines();
        lines.next().ok_or("no threads")?;
        need(lines.clone().any(|line| line.ends_with(';')), "no instructions")?;
        for line in lines {
            match line.strip_suffix(';') {
                Some(row) => {
                    for cell in row.split('|').map(str::trim) {
                        cell_is_read(cell, wide, &names, &mut labels)
                            .map_err(|why| format!("{cell}: {why}"))?;
                    }
                }
                None => condition(line)?,
            }
        }
        need(labels.iter().all(|label| !names.contains(label)), "a label is called like a variable")
    }

    /// `x=1`, `int64_t x=1`, `int64_t a[2]={1,2}` or `0:rax=a`.
    fn initial<'a>(item: &'a str, wide: bool, names: &mut HashSet<&'a str>) -> Result<(), String> {
        let (place, value) = item.split_once('=').ok_or("no value")?;
        if let Some((thread, register)) = place.split_once(':') {
            need(is_number(thread) && is_register(register, wide), "no register")?;
            return need(names.contains(value), "no address");
        }
        let name = match place.split_once(' ') {
            Some((ty, name)) => {
                need(["int", "int64_t"].contains(&ty), "no type")?;
                name
            }
            None => place,
        };
        let name = match name.split_once('[') {
            Some((name, size)) => {
                let size: usize = size.trim_end_matches(']').parse().map_err(|_| "no size")?;
                let list = value.strip_prefix('{').and_then(|v| v.strip_suffix('}')).ok_or("no list")?;
                need(place.contains(' ') && list.split(',').count() == size, "not so many values")?;
                need(list.split(',').all(is_number), "no numbers")?;
                name
            }
            None => {
                need(is_number(value), "no number")?;
                name
            }
        };
        need(is_name(name) && names.insert(name), "no name")
    }

    fn cell_is_read<'a>(
        cell: &'a str,
        wide: bool,
        names: &HashSet<&str>,
        labels: &mut HashSet<&'a str>,
    ) -> Result<(), String> {
        let mut rest = cell;
        while let Some((label, after)) = rest.split_once(':') {
            need(is_name(label), "no label")?;
            need(labels.insert(label), "a label occurs twice")?;
            rest = after.trim_start();
        }
        if rest.is_empty() {
            return Ok(());
        }
        let (lock, plain) = match rest.split_at_checked(5) {
            Some((lock @ ("lock " | "LOCK "), plain)) => (lock, plain),
            _ => ("", rest),
        };
        let locked = !lock.is_empty();
        let (mnemonic, operands) = plain.split_once(' ').unwrap_or((plain, ""));
        let word = mnemonic.to_lowercase();
        let small = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() == wide || c == ' ');
        need(small(lock) && small(mnemonic), "letters of the wrong size")?;
        let word = &word[..];
        if ["mfence", "lfence", "sfence"].contains(&word) {
            return need(operands.is_empty() && !locked, "a fence alone");
        }
        if JUMPS.contains(&word) || wide && WIDE_JUMPS.contains(&word) {
            return need(is_name(operands) && !locked, "no label");
        }
        let word = match wide {
            true => word.strip_suffix(['l', 'q']).ok_or("no width")?,
            false => word,
        };
        let operands: Vec<&str> = operands.split(',').collect();
        need(operands.iter().all(|o| is_operand(o, wide, names)), "no operand")?;
        if word == "cmpxchg" {
            let fits = matches!(&operands[..], [place, new] if is_place(place, wide, names) && is_plain_register(new, wide));
            return need(wide && locked && fits, "memory and a register");
        }
        need(SHARED.contains(&word) && (!locked || LOCKED.contains(&word)), "no instruction")?;
        need(operands.len() == if ["inc", "dec"].contains(&word) { 1 } else { 2 }, "operands")
    }

    fn is_operand(o: &str, wide: bool, names: &HashSet<&str>) -> bool {
        let is_constant = |c: &str| c.parse::<i64>().is_ok_and(|c| (-(1 << 62)..1 << 62).contains(&c));
        o.strip_prefix('$').is_some_and(is_constant) || is_plain_register(o, wide) || is_place(o, wide, names)
    }

    fn is_plain_register(o: &str, wide: bool) -> bool {
        if wide { o.strip_prefix('%').is_some_and(|r| is_register(r, wide)) } else { is_register(o, wide) }
    }

    /// `(x)`, `(%rax)`, `8(%rax)`, or `[x]` and `[EAX]`.
    fn is_place(o: &str, wide: bool, names: &HashSet<&str>) -> bool {
        let brackets = if wide { ('(', ')') } else { ('[', ']') };
        let Some((offset, inner)) = o.strip_suffix(brackets.1).and_then(|o| o.split_once(brackets.0)) else {
            return false;
        };
        match offset {
            "" => names.contains(inner) || is_plain_register(inner, wide),
            offset => wide && is_number(offset) && is_plain_register(inner, wide),
        }
    }

    fn is_register(name: &str, wide: bool) -> bool {
        let of = |prefix: char| name.strip_prefix(prefix).is_some_and(|r| REGISTERS.contains(&r));
        let numbered = || {
            let number = name.strip_prefix('r').map(|n| n.strip_suffix('d').unwrap_or(n));
            number.and_then(|n| n.parse().ok()).is_some_and(|n: u8| (8..16).contains(&n))
        };
        match wide {
            true => of('r') || of('e') || numbered(),
            false => name.strip_prefix('E').is_some_and(|r| REGISTERS.contains(&&r.to_lowercase()[..])),
        }
    }

    fn is_number(text: &str) -> bool {
        text.parse::<i64>().is_ok()
    }

    /// What herd takes for a name, and for nothing else.
    fn is_name(name: &str) -> bool {
        let lower = name.to_lowercase();
        let sized = |word: &str| {
            lower.strip_prefix(word).is_some_and(|rest| ["", "b", "w", "l", "q"].contains(&rest))
        };
        let is_instruction = SHARED.iter().chain(JUMPS).chain(WIDE_JUMPS).any(|w| sized(w))
            || ["cmpxchg", "cmovc", "uxch", "shl", "nop", "ret"].iter().any(|w| sized(w))
            || ["jlt", "jgt", "js", "jns", "setnb", "mfence", "lfence", "sfence", "lock", "and"]
                .contains(&&lower[..]);
        let is_other =
            ["zf", "sf", "cf", "rip", "eip", "not", "true", "false", "exists", "forall", "final", "with"]
                .contains(&&lower[..]);
        let shape = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        shape && !is_instruction && !is_other && !is_register(&lower, true)
    }

    /// Brackets are those of single names or numbers, and `!=` comes before numbers.
    fn condition(line: &str) -> Result<(), String> {
        for (at, _) in line.match_indices("!=") {
            let right: String = line[at + 2..].chars().take_while(|c| !" )".contains(*c)).collect();
            need(is_number(&right), "`!=` before something else than a number")?;
        }
        for (at, _) in line.match_indices('[') {
            let inner: String = line[at + 1..].chars().take_while(|c| *c != ']').collect();
            need(is_name(&inner) || is_number(&inner), "brackets")?;
        }
        Ok(())
    }

    #[test]
    fn what_herd_refuses_is_refused_here() {
        let body = |init: &str, p: &str, q: &str| {
            reads(&format!("X86_64 T\n{{ {init} }}\n P0 | P1 ;\n {p} | {q} ;\nexists (x=1)\n"))
        };
        let cell = |p: &str| body("int64_t x=0; int64_t a[2]={1,2}; 0:rbx=a;", p, "");
        for fine in [
            "movq 8(%rbx),%rcx",
            "lock cmpxchgq (x),%rdx",
            "L0: L1: jge L0",
            "L0:",
            "addq $-1,%r9",
            "movl %eax,%eax",
        ] {
            assert_eq!(cell(fine), Ok(()), "{fine}");
        }
        for wrong in [
            "movq (a+8),%rcx",
            "movq a(,%rbx,8),%rcx",
            "lock cmpxchgq %rdx,(x)",
            "cmpxchgq (x),%rdx",
            "lock xaddq %rax,(x)",
            "lock orq $1,(x)",
            "jl L0",
            "sarq $1,%rax",
            "movq $x,%rax",
            "movq $9223372036854775807,%rax",
            "L0: L0: jmp L0",
        ] {
            assert!(cell(wrong).is_err(), "{wrong}");
        }
        assert!(body("int64_t x=0;", "L0: jmp L0", "L0: jmp L0").is_err());
        for name in ["add", "movq", "_x", "sf", "rax", "x+1"] {
            assert!(body(&format!("int64_t {name}=0;"), "", "").is_err(), "{name}");
        }
        let narrow = |p: &str| reads(&format!("X86 T\n{{ x=0; }}\n P0 ;\n {p} ;\n"));
        assert_eq!(narrow("LOCK ADD [x],$1"), Ok(()));
        for wrong in ["MOV [x+4],$1", "LOCK CMPXCHG [x],EBX", "JGE L0", "mov [x],$1", "MOV EAX,4[EBX]"] {
            assert!(narrow(wrong).is_err(), "{wrong}");
        }
        assert!(condition("exists (0:rax!=1:rax)").is_err() && condition("exists (x=[a[1]])").is_err());
        assert_eq!(condition(r"exists (a[1]=3 /\ not (x=[y]))"), Ok(()));
    }
}

/// The program as a test that herd reads, if it can be written.
fn for_herd(program: &Program) -> Result<String, Unwritten> {
    let text = write(program, "T", None, &Limits::default())?;
    herd::reads(&text).unwrap_or_else(|why| panic!("herd refuses it: {why}\n{text}"));
    Ok(text)
}

const MODELS: [Model; 2] = [Model::Sc, Model::Tso];

/// What a written test says its names stand for: `0:EAX` or a location, and what it was in the program.
fn names(text: &str, program: &Program) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for comment in text.lines().filter_map(|l| l.strip_prefix("(* ")?.strip_suffix(" *)")) {
        let mut thread = None;
        for part in comment.split(", ") {
            let part = match part.split_once(": ") {
                Some((number, rest)) => {
                    thread = Some((number[1..].to_string(), number.to_string()));
                    rest
                }
                None => part,
            };
            let (here, there) = part.split_once(" is ").expect("a comment says what something is");
            match &thread {
                Some((number, name)) => names.insert(format!("{number}:{here}"), format!("{name}.{there}")),
                None if program.threads().iter().any(|t| t.name() == there) => {
                    thread = Some((here[1..].to_string(), there.to_string()));
                    names.insert(here.to_string(), there.to_string())
                }
                None => names.insert(here.to_string(), there.to_string()),
            };
        }
    }
    names
}

/// For every column of the written test what it is in the program. Cells keep their order.
fn columns(text: &str, program: &Program, litmus: &Litmus) -> Vec<Atom> {
    let (names, atoms) = (names(text, program), everything(program));
    let called = |atom: &Atom| match atom {
        Atom::Reg(t, r) => {
            let thread = program.thread(*t);
            format!("{}.{}", thread.name(), thread.register_name(*r))
        }
        Atom::Mem(a) => program.cell_name(*a),
        Atom::At(..) => unreachable!("locations are not observed"),
    };
    let atom = |column: &Observed| match column.name.split_once(':') {
        Some((number, register)) => {
            let thread = format!("P{number}");
            let same = || format!("{}.{register}", names.get(&thread).unwrap_or(&thread));
            let wanted = names.get(&column.name).cloned().unwrap_or_else(same);
            let found = atoms.iter().find(|a| called(a) == wanted);
            found.unwrap_or_else(|| panic!("the program does not have {wanted}\n{text}")).clone()
        }
        None => {
            let there = names.get(&column.name);
            assert!(there.is_none_or(|there| *there == called(&column.atom)), "{}\n{text}", column.name);
            column.atom.clone()
        }
    };
    litmus.observed.iter().map(atom).collect()
}

/// Final states, whether something goes wrong, and the verdict; `None` if that takes too long.
fn behaviour(program: &Program, observed: &[Atom], model: Model) -> Option<(States, bool, bool)> {
    // Where loops fill buffers without end, states are few and large.
    let buffer = (model == Model::Tso).then_some(8);
    let options = Options {
        model,
        explicit: ExplicitOptions { buffer },
        engine: Choice::Only(&EXPLICIT),
        workers: 1,
        ..Options::default()
    };
    let limits = Limits { states: Some(3_000), ..Limits::default() };
    let found = engine::outcomes(program, observed, &options, &limits);
    let outcome = engine::check(program, &Goal::of(program), &options, &limits).expect("no internal error");
    let violated = match outcome.answer {
        Answer::Fails(_) => true,
        Answer::Holds(_) => false,
        Answer::Unknown(_) => return None,
    };
    Some((found.states.ok()?, found.goes_wrong, violated))
}

/// Compares the program with what is read back; how many models could be compared.
fn same(program: &Program, text: &str, original: Option<&Litmus>) -> usize {
    let (input, litmus) =
        read_test(text, &Limits::default()).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}"));
    assert_eq!(input.warnings, [], "{text}");
    let there: Vec<Atom> = litmus.observed.iter().map(|o| o.atom.clone()).collect();
    let here = match original {
        Some(original) => {
            let names = |l: &Litmus| l.observed.iter().map(|o| o.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(original), names(&litmus), "{text}");
            original.observed.iter().map(|o| o.atom.clone()).collect()
        }
        None => columns(text, program, &litmus),
    };
    let mut compared = 0;
    for model in MODELS {
        let (before, after) = (behaviour(program, &here, model), behaviour(&input.program, &there, model));
        if let (Some(before), Some(after)) = (before, after) {
            assert_eq!(
                before,
                after,
                "{model:?}\n{}\n{text}",
                tso::write(program, &Limits::default()).unwrap()
            );
            compared += 1;
        }
    }
    compared
}

fn native(source: &str) -> Program {
    tso::read(source, &[], &Limits::default()).unwrap_or_else(|wrong| panic!("{wrong:#?}")).program
}

/// Written, read back and compared; the text.
#[track_caller]
fn round(source: &str) -> String {
    let program = native(source);
    let text = for_herd(&program).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(same(&program, &text, None), 2, "{text}");
    text
}

#[track_caller]
fn refused(source: &str) -> String {
    match for_herd(&native(source)) {
        Err(Unwritten::Inexpressible(Inexpressible { why, .. })) => why,
        Err(limit) => panic!("{limit}"),
        Ok(text) => panic!("{text}"),
    }
}

#[test]
fn a_plain_test_looks_as_one_would_write_it() {
    let text = round(
        "shared x, y\nthread P0\nstore [x], 1\nfence\nload EAX, [y]\nend\nthread P1\nstore [y], 1\nload EAX, [x]\nend\nexists P0.EAX == 0 && P1.EAX == 0",
    );
    let expected = "X86 T\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MFENCE      | MOV EAX,[x] ;\n MOV EAX,[y] |             ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    assert_eq!(text, expected);
}

#[test]
fn what_needs_64_bits_has_them() {
    let text = round(
        "shared x = 5000000000\nthread p\nload r, [x]\nr = r * 3 - 7\nstore [x], r\nend\nexists p.r != 0 && [x] == 1",
    );
    assert!(text.starts_with("X86_64 T\n") && text.contains("int64_t x=5000000000;"), "{text}");
    let many: String = (0..12).map(|i| format!("load r{i}, [x]\n")).collect();
    let asked: Vec<String> = (0..12).map(|i| format!("p.r{i} == 0")).collect();
    let text = round(&format!("shared x\nthread p\n{many}end\nexists {}", asked.join(" && ")));
    assert!(text.starts_with("X86_64 T\n"), "{text}");
}

#[test]
fn loops_branches_and_locked_instructions_are_the_processors() {
    let text = round(
        "shared l, n\nthread p\nagain: xchg r, [l], 1\nif r != 0 goto again\nload r, [n]\nr = r + 1\nstore [n], r\nstore [l], 0\nend\n\
         thread q\nagain: cas r, [l], 0, 1\nif r != 0 goto again\nadd s, [n], 2\nstore [l], 0\nend\nforall [n] == 3",
    );
    for word in ["xchgq", "lock cmpxchgq (l),%rdx", "lock addq $2,(n)", "cmpq", "jne L0"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    // herd has no addition that gives the old value back.
    let text = round(
        "shared n\nthread p\nadd r, [n], r + 2\nend\nthread q\nr = 3\nadd r, [n], r\nend\nexists p.r == 3 && q.r == 0 && [n] == 5",
    );
    assert_eq!(text.matches("lock cmpxchgq").count(), 2, "{text}");
    let text = round(
        "shared n = 3\nthread p\nrmw r, [n], (r + 1) & 3\nend\nthread q\nrmw r, [n], 5 - r\nend\nexists p.r == 3 && q.r == 0 && [n] == 5",
    );
    assert_eq!(text.matches("lock cmpxchgq").count(), 2, "{text}");
}

#[test]
fn labels_are_told_apart_in_the_whole_test() {
    let spin = "l: load r, [L1]\nif r == 0 goto l\nend\n";
    let text = round(&format!("shared L1 = 1\nthread p\n{spin}thread q\n{spin}exists p.r == 1"));
    assert!(text.contains(" L0: MOV EAX,[L1] | L2: MOV EAX,[L1] "), "{text}");
}

#[test]
fn arrays_at_known_places_are_variables() {
    let text = round(
        "shared a[2] = {1, 2}, a_0\nthread p\nload r, [a + 1]\nstore [a], 3\nend\nexists p.r == 2 && [a] == 3",
    );
    assert!(text.contains("(* a_0 is a[0] *)") && text.contains("a_0=1; a_1=2; a_0_2=0;"), "{text}");
    assert!(text.contains("MOV EAX,[a_1]") && text.contains("(0:EAX=2 /\\ a_0=3)"), "{text}");
}

#[test]
fn computed_addresses_are_elements() {
    let text = round(
        "shared x, a[3] = {4, 5, 6}\nthread p\nload i, [x]\nload r, [a + (i & 1) + 1]\nstore [a + i], 7\nend\nthread q\nstore [x], 1\nend\nexists p.r == 5 && [a] == 7",
    );
    assert!(text.contains("int64_t a[3]={4,5,6}; 0:rcx=a;") && text.contains("movq $7,(%rdx)"), "{text}");
    // A computed address that is always the same one needs no array.
    let text = round("shared x, y\nthread p\nload r, [x]\nload s, [r + 1]\nend\nexists p.s == 0");
    assert!(text.contains("MOV EBX,[y]") || text.contains("movq (y),%rbx"), "{text}");
    // Nothing to do is an empty row.
    round("shared x\nthread p\nend\nexists [x] == 0");
    // Whatever an address may hit becomes one array.
    let text = round(
        "shared x, y = 1, z\nthread p\nload r, [y]\nload s, [r]\nstore [(r & 1) + 1], 2\nend\nthread q\nstore [y], 0\nend\nexists p.s == 1 && [z] == 2",
    );
    assert!(text.contains("int64_t x_y_z[3]={0,1,0};"), "{text}");
    // herd takes a place outside memory for one more place, where it would be an error.
    let at = |address: &str| {
        format!(
            "shared x, y = 1\nthread p\nload r, [y]\nload s, [{address}]\nend\nthread q\nstore [y], 2\nend\nexists p.s == 1"
        )
    };
    round(&at("~r & 1"));
    for address in ["r - 2", "r + 2", "r * 2305843009213693952 * 4", "r << 61"] {
        assert!(refused(&at(address)).contains("none of the memory"));
    }
}

#[test]
fn expressions_are_computed_as_the_program_does() {
    for e in [
        "r + s * 5",
        "-r - ~s",
        "r * -7 + s * 0",
        "(r << 3) - s * 10",
        "!r * 7",
        "(r < s) + (r == 3) * 2",
        "r && s || !r",
        "r ^ s | r & 6",
        "s - (r - (s - r))",
        "r >= s && s != 1",
        "r <= s || s > 2",
        "s * 8 - r",
        "r & 4294967295",
        "r + 9223372036854775807 - s * -9223372036854775807",
    ] {
        round(&format!(
            "shared x, y = -5\nthread p\nload r, [x]\nload s, [y]\nr = {e}\nif r > 2 goto l\ns = {e}\nl: store [x], s + 1\nend\n\
             thread q\nstore [x], 3\nstore [x], -9\nend\nexists p.r == 1 && p.s == 2 && [x] == 3"
        ));
    }
}

#[test]
fn conditions_say_what_properties_say() {
    let asks = |property: &str| {
        let text = round(&format!(
            "shared x, y\nthread p\nstore [x], 1\nload r, [y]\nend\nthread q\nstore [y], 2\nload r, [x]\nend\n{property}"
        ));
        text.lines().last().expect("there is a condition").to_string()
    };
    assert_eq!(asks("never p.r == [y] || !(q.r == p.r)"), r"~exists (0:EAX=[y] \/ not (1:EAX=0:EAX))");
    assert_eq!(asks("forall p.r && !q.r"), r"forall (0:EAX!=0 /\ 1:EAX=0)");
    assert_eq!(asks("exists q.r < 1"), "exists (1:EAX=0)");
    assert_eq!(asks("exists p.r + q.r == 3"), r"exists (0:EAX=2 /\ 1:EAX=1)");
    assert_eq!(asks("exists (p.r == 0) == 0"), "exists (not (0:EAX=0))");
    assert_eq!(asks("exists (p.r == 7) > 3"), "exists (false)");
    // Several become one.
    assert_eq!(
        asks("never p.r == 0 && q.r == 0\nforall [x] == 1"),
        r"~exists (0:EAX=0 /\ 1:EAX=0 \/ not (x=1))"
    );
    assert!(refused("shared x\nthread p\nl: load r, [x]\nadd s, [x], 1\ngoto l\nend\nthread q\nload r, [x]\nend\nexists q.r < 3").contains("too many values"));
}

#[test]
fn what_a_test_cannot_say_has_a_reason() {
    let body = |lines: &str| refused(&format!("shared x, y\nthread p\n{lines}\nend\nexists [x] == 1"));
    assert!(refused("shared x\nthread p\nl: store [x], 1\nend\nforbid p@l").contains("final states"));
    assert!(body("assert x == 0").contains("final states"));
    assert!(body("r = any(0..3)").contains("chooses a value"));
    assert!(body("choose a, b\na: store [x], 1\nb: nop").contains("chooses between steps"));
    assert!(body("lock\nstore [x], 1\nstore [y], 1\nunlock").contains("no blocks"));
    assert!(body("load r, [x]\nr = r / 3").contains("divisions"));
    assert!(body("load r, [x]\nr = r >> 1").contains("needs `sar`, which herd does not have for X86_64"));
    assert!(body("load r, [x]\nstore [y], r\nr = r * r").contains("needs `imul`"));
    assert!(body("load r, [7]").contains("none of the memory"));
    assert!(body("load r, [x]\nr = 1 << r").contains("shifts"));
    let many: String = (0..17).map(|i| format!("load r{i}, [x]\n")).collect();
    assert!(body(&many).contains("has 16"));
}

#[test]
fn names_that_mean_something_else_are_changed() {
    let text = round(
        "shared eax, exists_, rip, P7\nthread mine\nstore [eax], 1\nload al, [rip]\nend\nthread yours\nstore [rip], 1\nload r, [eax]\nend\nexists mine.al == 0 && yours.r == 0 && [P7] == 0",
    );
    assert!(text.contains("v_eax=0; exists_=0; v_rip=0; v_P7=0;"), "{text}");
}

/// Small random programs; few choices are made in those that are wanted here, and everything is looked at in
/// the end.
fn random(shape: Shape, wanted: u32) {
    let mut runner = TestRunner::new(cases(wanted));
    let (mut written, mut compared) = (0, 0);
    for _ in 0..cases(wanted).cases {
        let tree = program(shape).new_tree(&mut runner).expect("programs are made without rejection");
        let mut parts = tree.current().0.to_parts();
        let program = Program::new(parts.clone()).expect("it was one");
        let differs = |atom: Atom| Expr::binary(BinOp::Ne, Expr::Atom(atom), Expr::Const(77));
        let all = everything(&program).into_iter().map(differs);
        let pred = all.reduce(|a, b| Expr::binary(BinOp::And, a, b)).expect("there is something");
        let everything = Property::new(PropertyKind::Forall, pred, 0);
        // Both the program's own question, if it can be asked, and one that looks at everything.
        parts.properties.retain(|p| p.kind != PropertyKind::Forbid);
        let own = Program::new(parts.clone()).expect("a property less");
        parts.properties = vec![everything];
        let all = Program::new(parts).expect("another property");
        for program in [own, all] {
            if let Ok(text) = for_herd(&program) {
                written += 1;
                compared += same(&program, &text, None);
            }
        }
    }
    // Far fewer than are usually written: chance alone is not to fail the test.
    assert!(
        written > wanted as usize / 50 && compared > written,
        "{written} were written, {compared} compared"
    );
}

#[test]
fn random_programs_mean_the_same() {
    random(SMALL, 300);
}

#[test]
fn random_programs_without_loops_mean_the_same() {
    random(Shape { loops: false, lines: (2, 4), taste: Taste::Dense, ..SMALL }, 300);
}

#[test]
fn wild_random_programs_mean_the_same() {
    random(Shape { taste: Taste::Wild, lines: (1, 4), ..SMALL }, 400);
}

#[test]
fn arrays_of_random_programs_mean_the_same() {
    random(Shape { cells: 8, lines: (1, 4), threads: (2, 2), registers: 3, ..SMALL }, 100);
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = folder.read_dir().expect("a folder").map(|f| f.expect("readable").path());
    let mut files: Vec<PathBuf> = entries.filter(|f| f.extension().is_some_and(|e| e == extension)).collect();
    files.sort();
    files
}

#[test]
fn bundled_programs_mean_the_same() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let (mut all, mut written) = (0, 0);
    for folder in programs.read_dir().expect("programs are bundled").map(|f| f.expect("readable").path()) {
        if !folder.is_dir() {
            continue;
        }
        for file in files(&folder, "tso") {
            all += 1;
            let program = native(&std::fs::read_to_string(&file).expect("readable"));
            match for_herd(&program) {
                Ok(text) => {
                    written += 1;
                    same(&program, &text, None);
                }
                Err(why) => assert!(!folder.ends_with("litmus"), "{}: {why}", file.display()),
            }
        }
    }
    assert!(written >= 35, "{written} of {all} bundled programs can be written as litmus tests");
}

/// Litmus tests come back with their names and what they show.
#[track_caller]
fn again(source: &str) -> String {
    let (input, litmus) =
        read_test(source, &Limits::default()).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{source}"));
    let text = write(&input.program, "", Some(&litmus), &Limits::default())
        .unwrap_or_else(|why| panic!("{why}\n{source}"));
    assert!(same(&input.program, &text, Some(&litmus)) > 0, "{source}\n{text}");
    let (_, litmus_again) = read_test(&text, &Limits::default()).expect("it was read before");
    assert_eq!(litmus.name, litmus_again.name);
    text
}

#[test]
fn litmus_tests_come_back() {
    let sb = "X86 SB\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    assert_eq!(again(sb), sb);
    let wide = "X86_64 SB+xchg\n{ x=0; y=0; }\n P1            | P3            ;\n movq $1,%rax  | movl $1,(y)   ;\n xchgl %eax,(x) | movl (x),%eax ;\nlocations [x;]\nforall (1:rax=0 \\/ 3:rax=1)\n";
    assert!(again(wide).contains("xchgl %eax,(x)"));
    // Addresses and arrays.
    let array = "X86_64 A\n{ int64_t t[2]={1,-1}; 0:rax=t; int64_t p=&t; x=3 }\n P0 ;\n movq 8(%rax),%rbx ;\n movq (p),%rcx ;\n movq %rbx,(%rcx) ;\n leaq 8(t),%rdx ;\n movq $x,%rsi ;\n movl (%rsi),%edi ;\n incl %edi ;\n movl %edi,x(%r8) ;\nlocations [t; 0:rcx; 0:rdx; 0:rdi; x]\n";
    let text = again(array);
    assert!(text.contains("movq $t,%rax") && text.contains("int64_t p=t;"), "{text}");
    // Locked instructions without a result, with flags, and of every width.
    for (init, line) in [
        ("", "lock orl $6,(x)"),
        ("", "lock decl (x)"),
        ("", "lock negl (x)"),
        ("x=5", "lock btsl $3,(x)"),
        ("uint8_t x=250", "lock addb $7,(x)"),
        ("int16_t x=-3", "lock xaddw %ax,(x)"),
        ("x=-1", "lock incl (x)"),
        ("int64_t x=-1", "lock subq %rax,(x)"),
        ("x=4", "lock cmpxchgl %ebx,(x)"),
        ("int8_t x=-7", "notb (x)"),
    ] {
        again(&format!(
            "X86_64 T\n{{ {init}; 0:rax=5; 1:rax=2; 0:rbx=4; 1:rbx=9 }}\n P0 | P1 ;\n {line} | {line} ;\n sete %cl | sets %cl ;\n{}\nlocations [x; 0:rax; 1:rax; 0:rcx; 1:rcx]\n",
            ""
        ));
    }
    // Arithmetic that wraps at 32 bits.
    let wraps = "X86 W\n{ x=2147483647; }\n P0 | P1 ;\n L: LOCK INC [x] | MOV EAX,[x] ;\n JG L | SHL EAX,1 ;\nexists (x=-2147483648 /\\ 1:EAX!=2)\n";
    assert!(again(wraps).starts_with("X86 W\n"));
}

/// All tests of the corpus, if the machine has it.
#[test]
fn the_corpus_comes_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/litmus");
    if !folder.is_dir() {
        eprintln!("skipped: there is no corpus at {}", folder.display());
        return;
    }
    let sources = files(&folder, "litmus").into_iter().map(|f| std::fs::read_to_string(f).expect("readable"));
    // A written test asks for general registers, so the instruction pointer does not keep its name.
    let kept = |s: &String| read_test(s, &Limits::default()).is_ok() && !s.contains(":rip");
    let readable: Vec<String> = sources.filter(kept).collect();
    readable.iter().for_each(|source| drop(again(source)));
    assert!(readable.len() > 800, "{}", readable.len());
}
