//! Models in DVE: what is read, and what is said about mistakes.

use super::*;
use crate::dve::Direction;

fn ok(source: &str) -> System {
    match read(source, &Limits::default()) {
        Ok((system, _)) => system,
        Err(wrong) => panic!("{:?}", wrong.diagnostics()),
    }
}

/// The messages, and the texts that they are about.
fn wrong(source: &str) -> Vec<(String, String)> {
    let Err(unread) = read(source, &Limits::default()) else { panic!("this is read: {source}") };
    let text = |d: &Diagnostic| d.span.clone().map_or(String::new(), |s| source[s].to_string());
    unread.diagnostics().iter().map(|d| (d.message.clone(), text(d))).collect()
}

fn one(process: &str) -> String {
    format!("byte x; channel c; process P {{ {process} }} system async;")
}

#[test]
fn a_transition_without_a_source_has_that_of_the_one_before() {
    let system = ok(&one("state a, b; init a; trans a -> b {}, -> a { guard x == 1; }, b -> a {};"));
    let ends: Vec<_> = system.processes[0].transitions.iter().map(|t| (t.from, t.to)).collect();
    assert_eq!(ends, [(0, 1), (0, 0), (1, 0)]);
}

#[test]
fn lists_may_be_longer_or_shorter_than_arrays() {
    let system = ok(
        "const byte N = 2; byte a[2] = {1, N, 3}, b[3] = {N}; process P { state s; init s; } system async;",
    );
    let values: Vec<_> = system.variables.iter().map(|v| v.initial.clone()).collect();
    assert_eq!(values, [vec![2], vec![1, 2], vec![2, 0, 0]]);
}

#[test]
fn operators_bind_as_the_manual_says() {
    let system = ok(&one("state a; init a;"));
    let show = |text: &str| {
        let expr = expression(text, &system, &[], &Limits::default()).expect("it is one");
        system.show_expr(&expr)
    };
    assert_eq!(show("x == 1 or x < 2 and not x == 3"), "x == 1 or x < 2 and not x == 3");
    assert_eq!(show("(x == 1 or x < 2) and (x | 1 & 2)"), "(x == 1 or x < 2) and x | 1 & 2");
    assert_eq!(show("x - (1 - x) - 2"), "x - (1 - x) - 2");
    assert_eq!(show("x == 1 imply x == 2 imply P.a"), "not (not (x == 1) or x == 2) or P.a");
    assert_eq!(show("~x + -1 << 2"), "~x + -1 << 2");
}

#[test]
fn messages_have_parts() {
    let two = "channel {byte, int} c[2]; process P { byte x; int y; state s; init s; \
               trans s -> s { sync c!{1, 2}; }, s -> s { sync c?{x, y}; }; } system async;";
    let system = ok(two);
    let parts = |t: usize| match &system.transition(0, t).sync.as_ref().expect("it has one").direction {
        Direction::Send(values) => values.len(),
        Direction::Receive(places) => 10 + places.len(),
    };
    assert_eq!([parts(0), parts(1)], [2, 12]);
    let why = "messages on `c` have different numbers of parts".to_string();
    assert_eq!(wrong(&two.replace("{x, y}", "x"))[0].0, why);
}

#[test]
fn mistakes_have_places() {
    let found = |process: &str| wrong(&one(process)).remove(0);
    let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
    assert_eq!(found("state a; init b;"), pair("there is no state `b`", "b"));
    assert_eq!(found("state a, a; init a;"), pair("there are two states `a`", "a"));
    assert_eq!(found("byte x; state a; init a;"), pair("there are two variables `x`", "x"));
    assert_eq!(
        found("state a; init a; trans a -> a { effect y = 1; };"),
        pair("there is no variable `y`", "y")
    );
    assert_eq!(found("state a; init a; trans a -> a { guard !x; };"), pair("`!` is the mark of a send", "!"));
    assert_eq!(found("state a; init a; trans a -> a { guard x[0]; };"), pair("`x` is no array", "x"));
    assert_eq!(found("state a; trans a -> a {};"), pair("process `P` has no initial state", "P"));
    assert_eq!(
        found("state a; init a; trans a => a {};"),
        pair("probabilistic transitions are not supported", "=>")
    );
    assert_eq!(wrong("const byte N = 300; process P { state s; init s; } system async;").len(), 1);
    assert_eq!(wrong("process P { state s; init s; } system sync;")[0].1, "sync");
    assert_eq!(wrong("process P { state s; init s; } /* system async;")[0].0, "the comment does not end");
}

#[test]
fn deep_expressions_are_refused() {
    let deep = |n: usize| {
        one(&format!("state a; init a; trans a -> a {{ guard {}1{}; }};", "(".repeat(n), ")".repeat(n)))
    };
    ok(&deep(200));
    assert!(wrong(&deep(100_000))[0].0.contains("nested"));
    let wide = format!("state a; init a; trans a -> a {{ guard 1{}; }};", " + 1".repeat(10_000));
    assert!(wrong(&one(&wide))[0].0.contains("nested"));
}
