//! What if the input is nonsense, or at the edge of what is allowed? Every such program gets an answer, a
//! limit that is named, or a diagnostic: nothing panics, hangs, or is cut short in silence. Where there is a
//! verdict, the plain machine confirms it.

mod common;

use common::{Naive, naive};
use overtake::certify::Checked;
use overtake::engine::{self, Choice, EXPLICIT, Options};
use overtake::front::{ron as format, tso};
use overtake::model::Program;
use overtake::query::Reductions;
use overtake::query::{Answer, Goal, Limit, Limits, Model};

/// What `check` says of the program.
fn answer(program: &Program, model: Model) -> Checked {
    let options = Options { model, workers: 1, ..Options::default() };
    let limits = Limits { states: Some(100_000), ..Limits::default() };
    engine::check(program, &Goal::of(program), &options, &limits).expect("no internal error").answer
}

/// The program is read, and under both models the answer is the expected one and the plain machine's.
#[track_caller]
fn check(source: &str, expect: Naive) {
    let program = tso::read(source, &[], &Limits::default())
        .unwrap_or_else(|wrong| panic!("{source}\n{wrong:?}"))
        .program;
    for model in [Model::Sc, Model::Tso] {
        let found = match answer(&program, model) {
            Answer::Fails(_) => Naive::Violated,
            Answer::Holds(_) => Naive::Safe,
            Answer::Unknown(_) => Naive::Unknown,
        };
        assert_eq!(found, expect, "{model:?}\n{source}");
        assert_eq!(naive(&program, &Goal::of(&program), model, None, 100_000), expect, "{model:?}\n{source}");
    }
}

/// The program is refused, with these words.
#[track_caller]
fn refused(source: &str, says: &str) {
    let Err(wrong) = tso::read(source, &[], &Limits::default()) else { panic!("accepted:\n{source}") };
    let messages: Vec<&str> = wrong.diagnostics().iter().map(|d| &d.message[..]).collect();
    assert!(messages.iter().any(|m| m.contains(says)), "{messages:?} for\n{source}");
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    refused("", "no threads");
    refused("\0\x01\x02", "");
    refused("thread p\n goto nowhere\nend\n", "unknown label `nowhere`");
    refused("thread p\n nop\nend\nthread p\n nop\nend\n", "defined twice");
    refused("thread p\n r = 1 / 0\nend\n", "division by zero");
    refused("param N = N\nthread p\n nop\nend\n", "before it has a value");
    refused("param N = M\nparam M = N\nthread p\n nop\nend\n", "before it has a value");
    refused("thread p[i in 1..=0]\n nop\nend\n", "no threads `p`");
    refused("thread p[i in 0..1001]\n nop\nend\n", "at most 1000 threads");
    refused("shared x[99999999999]\nthread p\n nop\nend\n", "cells");
    refused("thread p\n r = any(0..1000000000)\nend\n", "more than 65536 values");
    refused("thread p\n r = any(3..3)\nend\n", "no value in this range");
    refused("shared x = 9223372036854775808\nthread p\n nop\nend\n", "64 bits");
    refused("thread p\nrepeat k in 0..100000000000 { nop }\nend\n", "more than 1000000 instructions");
}

#[test]
fn deep_nesting_is_refused_and_long_chains_are_not() {
    for (open, close) in [("(", ")"), ("-", ""), ("!", ""), ("1 + (", ")")] {
        let deep = format!("thread p\n r = {}1{}\nend\n", open.repeat(5000), close.repeat(5000));
        refused(&deep, "too deeply");
    }
    refused(
        &format!("thread p\n{}nop{}\nend\n", "repeat k in 0..1 { ".repeat(5000), " }".repeat(5000)),
        "deeply",
    );
    let chain =
        format!("shared x\nthread p\n load r, [x]\nend\nforbid {}p.r == 1", "p.r == 1 || ".repeat(5000));
    check(&chain, Naive::Safe);
}

#[test]
fn errors_of_a_program_are_violations() {
    check("shared x\nthread p\n store [5], 1\nend\n", Naive::Violated);
    check("shared x\nthread p\n load r, [x - 1]\nend\n", Naive::Violated);
    check("shared x\nthread p\n load r, [x]\n store [r - 1], 0\nend\n", Naive::Violated);
    check("shared x[2]\nthread p\n load r, [x]\n xchg r, [x + r + 2], 0\nend\n", Naive::Violated);
    check("shared x\nthread p\n load r, [x]\n r = 1 / r\nend\n", Naive::Violated);
    check("shared x\nthread p\n load r, [x]\n cas s, [x], 0, 1 % r\nend\n", Naive::Violated);
    check("shared x = 2\nthread p\n load r, [x]\n r = 1 / r\nend\n", Naive::Safe);
    check("shared x\nthread p\n load r, [x]\n r = r != 0 && 1 / r\nend\n", Naive::Safe);
}

#[test]
fn numbers_wrap_at_both_ends() {
    check(
        "shared x = 9223372036854775807, y = -9223372036854775808
         thread p
             load r, [x]
             r = r + 1
             load s, [y]
             assert r == s
             s = s / -1
             assert s == r
             t = s % -1
             assert t == 0
             u = 1 << 63
             assert u == r
             u = u >> 63
             assert u == -1
             u = 1 << 64
             assert u == 1
             add r, [x], 1
             load r, [x]
             assert r == s
         end",
        Naive::Safe,
    );
    check("shared x = 0xffffffffffffffff\nthread p\n load r, [x]\n assert r != -1\nend\n", Naive::Violated);
}

#[test]
fn threads_that_do_nothing_count_all_the_same() {
    check("shared x\nthread p\nend\nthread q\nend\nforbid [x] == 0\n", Naive::Violated);
    check("shared x\nthread p\nend\nexists [x] == 0\n", Naive::Violated);
    check("shared x\nthread p\nend\nforall [x] == 0\n", Naive::Safe);
    check("shared x\nthread p\n assume 0\nend\nthread q\n assume 0\nend\nexists [x] == 0\n", Naive::Safe);
    check("shared x\nthread p\n assume 0\nend\nthread q\n assume 0\nend\nforbid [x] == 0\n", Naive::Violated);
    check("shared x\nthread p\nl: goto l\nend\nforall [x] == 1\n", Naive::Safe);
    check(
        "shared x\nthread p\nl: goto l\nend\nthread q\n store [x], 1\nend\nforbid [x] == 1\n",
        Naive::Violated,
    );
}

#[test]
fn blocks_need_not_be_well_formed() {
    let reader = "thread q\n load r, [x]\nend\n";
    let with = |p: &str, property: &str| format!("shared x\nthread p\n{p}\nend\n{reader}{property}\n");
    check(&with("lock; store [x], 1", "exists q.r == 1"), Naive::Safe);
    check(&with("lock; store [x], 1", "exists q.r == 0"), Naive::Violated);
    check(&with("lock; store [x], 1", "forbid [x] == 1"), Naive::Violated);
    check(&with("unlock; store [x], 1", "forbid [x] == 1"), Naive::Safe);
    check(&with("lock; lock; store [x], 1", "forbid [x] == 1"), Naive::Safe);
    check(&with("lock; store [x], 1; unlock; unlock; store [x], 2", "forbid [x] == 2"), Naive::Safe);
    check(&with("l: lock; store [x], 1; store [x], 0; unlock; goto l", "forbid q.r == 1"), Naive::Safe);
    check(&with("l: lock; goto l", "forbid q.r == 1"), Naive::Safe);
}

#[test]
fn goals_may_hold_at_once_and_look_at_anything() {
    check("shared x\nthread p\n store [x], 1\nend\nforbid [x] == 0\n", Naive::Violated);
    check(
        "shared x\nthread p\n r = 5\n store [x], 1\n r = 6\nend\nforbid p.r == 5 && [x] == 1\n",
        Naive::Violated,
    );
    check(
        "shared x\nthread p\n r = 5\n r = 6\n store [x], 1\nend\nforbid p.r == 5 && [x] == 1\n",
        Naive::Safe,
    );
}

#[test]
fn two_hundred_threads_get_an_answer() {
    let source = "shared x\nthread p[i in 1..=200]\n store [x], i\nend\n";
    let found = |property: &str| {
        let program = tso::read(&format!("{source}{property}\n"), &[], &Limits::default())
            .expect("it is readable")
            .program;
        answer(&program, Model::Tso)
    };
    assert!(matches!(found("forbid [x] == 200"), Answer::Fails(_)));
    assert!(matches!(found("never [x] == 0"), Answer::Unknown(_)));
}

#[test]
fn what_does_not_fit_is_named() {
    let source =
        "shared x[1048576]\nthread p\n r = any(0..2)\n store [x + r * 500000], 1\nend\nforbid [x] == 2\n";
    let program = tso::read(source, &[], &Limits::default()).expect("it is readable").program;
    assert!(!matches!(answer(&program, Model::Tso), Answer::Fails(_)));
    let wide =
        "shared x[100000]\nthread p\n r = any(0..100000 / 2)\n store [x + r], r\nend\nforbid [x] == 2\n";
    let program = tso::read(wide, &[], &Limits::default()).expect("it is readable").program;
    assert!(!matches!(answer(&program, Model::Tso), Answer::Fails(_)));
    let options =
        Options { engine: Choice::Only(&EXPLICIT), reductions: Reductions::NONE, ..Options::default() };
    let outcome = engine::check(&program, &Goal::of(&program), &options, &Limits::default());
    let answer = outcome.expect("no internal error").answer;
    assert!(matches!(answer, Answer::Unknown(Limit::StateSize(_))), "{answer:?}");
}

/// These once took time that grew with the square or the cube of the program, and no limit ended them.
#[test]
fn preparing_a_large_program_ends() {
    let registers = 1500;
    let loads: String = (0..registers).map(|i| format!(" load r{i}, [x]\n")).collect();
    let sum: Vec<String> = (0..registers).step_by(40).map(|i| format!("r{i}")).collect();
    let many_registers = format!(
        "shared x\nthread p\n{loads} store [x], {}\nend\nthread q\n load a, [x]\n store [x], a + 1\nend\nforbid [x] == -5\n",
        sum.join(" + ")
    );
    let many_places = "shared x\nthread p\nrepeat k in 0..3000 {\nl: load r, [x]\nif r goto m\nm: nop\n}\nend\nforbid p@l && p.r == 3\n";
    let cells = 20_000;
    let copies: String =
        (0..cells).map(|i| format!(" load r, [a + {}]\n store [a + {i}], r\n", i + 1)).collect();
    let wandering = format!("shared a[{cells}], b = 1\nthread p\n{copies}end\nforbid [a] == 5\n");
    for source in [&many_registers[..], many_places, &wandering] {
        let program = tso::read(source, &[], &Limits::default()).expect("it is readable").program;
        assert!(!matches!(answer(&program, Model::Sc), Answer::Fails(_)));
    }
}

#[test]
fn models_with_holes_are_refused() {
    let sb = "shared x, y\nthread p\n store [x], 1\n load r, [y]\nend\nexists p.r == 0\n";
    let program = tso::read(sb, &[], &Limits::default()).expect("it is readable").program;
    let text = format::write(&program, &Limits::default()).unwrap();
    assert!(format::read(&text, &Limits::default()).is_ok());
    for end in (0..text.len() - 2).step_by(7) {
        assert!(format::read(&text[..end], &Limits::default()).is_err(), "{end} bytes are enough");
    }
    let nested = format!("{}Const(1){}", "Unary(Not, ".repeat(3000), ")".repeat(3000));
    for (from, to) in [
        ("to: 1", "to: 999"),
        ("from: 0", "from: 4294967295"),
        ("from: 0", "from: -1"),
        ("dst: 0", "dst: 7"),
        ("end: 2", "end: 0"),
        ("initial: 0", "initial: 3"),
        ("Const(1)", "Const(9223372036854775808)"),
        ("Const(1)", "Const(NaN)"),
        ("Const(1)", "Const(inf)"),
        ("Const(1)", "Const(1.5)"),
        ("Const(1)", "Atom(60000)"),
        ("Const(1)", &nested),
    ] {
        assert!(text.contains(from), "{from} is gone from\n{text}");
        assert!(format::read(&text.replacen(from, to, 1), &Limits::default()).is_err(), "{from} became {to}");
    }
    for junk in ["", "(", "()", "[[[", "NaN", &"(".repeat(100_000), &"[".repeat(100_000)] {
        assert!(format::read(junk, &Limits::default()).is_err());
    }
}
