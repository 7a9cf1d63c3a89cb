//! Extensions by hand. A path is given by its edges' numbers: an instruction has one, `if` has two, the jump
//! first.

use super::*;
use crate::engine::{self, ExplicitOptions, Options};
use crate::front::tso;
use crate::model::Expr;
use crate::query::{Answer, Limits, Model, Verdict};
use crate::semantics::replay;

fn read(source: &str) -> Extended {
    let program = tso::read(source, &[], &Limits::default()).expect("it is a program").program;
    let goal = Goal::of(&program);
    Extended { program, goal }
}

fn by(old: &Extended, thread: u16, edges: &[u32], form: Form) -> Extended {
    let edges = edges.iter().map(|e| EdgeId(*e)).collect();
    let path = DelayedPath { thread: ThreadId(thread), edges };
    extend(&old.program, &old.goal, &path, form, &Limits::default()).expect("it is a path")
}

/// Is the goal reached under SC? If so, it is under TSO in the user's program, by the projected run.
fn reached(user: &Extended, new: &Extended) -> bool {
    let options = Options { model: Model::Sc, workers: 1, ..Options::default() };
    let outcome = engine::check(&new.program, &new.goal, &options, &Limits::default());
    match outcome.expect("no internal error").answer {
        Answer::Fails(trace) => {
            let actions: Vec<Action> = trace.events.iter().map(|e| e.action).collect();
            let run = project(&new.program, &actions);
            let done = replay::perform(&user.program, Model::Tso, &user.goal, run, &Limits::default());
            let (_, against) = done.expect("the projected run is a run");
            assert!(against.is_some(), "the projected run does not reach the goal");
            true
        }
        Answer::Holds(_) => false,
        Answer::Unknown(limit) => panic!("{limit:?}"),
    }
}

/// The edges of a thread as text, with what they stand for.
fn listing(new: &Extended, thread: u16, from: usize) -> Vec<String> {
    let t = new.program.thread(ThreadId(thread));
    let edges = t.edges().skip(from).map(|(_, e)| {
        let origin = match e.origin.expect("every edge has an origin") {
            Origin::Whole(e) => format!("whole {}", e.0),
            Origin::Issue(e) => format!("issue {}", e.0),
            Origin::Flush(e) => format!("flush {}", e.0),
            Origin::Nothing => "-".to_string(),
        };
        format!("{} > {}: {} ({origin})", e.from.0, e.to.0, t.show_instr(&new.program, &e.instr))
    });
    edges.collect()
}

/// Each form, whether the goal is reached.
fn expect(source: &str, path: &[u32], exact: bool, additive: bool) {
    let user = read(source);
    for (form, expected) in [(Form::Exact, exact), (Form::Additive, additive)] {
        assert_eq!(reached(&user, &by(&user, 0, path, form)), expected, "{form:?}");
    }
}

const DEKKER: &str = "shared x, y
    thread p; store [x], 1; load r, [y]; end
    thread q; store [y], 1; load r, [x]; end
    never p.r == 0 && q.r == 0";

#[test]
fn the_papers_figure_3() {
    let user = read(DEKKER);
    assert!(!reached(&user, &user));
    let new = by(&user, 0, &[0, 1], Form::Exact);
    let expected = [
        "0 > 3: store [x], 1 (whole 0)",
        "1 > 2: load r, [y] (whole 1)",
        "3 > 1: fence (-)",
        "0 > 4: nop (issue 0)",
        "4 > 5: load r, [y] (whole 1)",
        "5 > 2: store [x], 1 (flush 0)",
    ];
    assert_eq!(listing(&new, 0, 0), expected);
    assert_eq!(listing(&new, 1, 0), ["0 > 1: store [y], 1 (whole 0)", "1 > 2: load r, [x] (whole 1)"]);
    assert!(reached(&user, &new));
    assert!(reached(&user, &by(&user, 0, &[0, 1], Form::Additive)));
    assert!(reached(&user, &by(&user, 1, &[0, 1], Form::Exact)));
}

#[test]
fn the_added_path_leaves_the_program_as_it_was() {
    let user = read(DEKKER);
    let new = by(&user, 0, &[0, 1], Form::Additive);
    let expected = [
        "0 > 1: store [x], 1 (whole 0)",
        "1 > 2: load r, [y] (whole 1)",
        "0 > 3: nop (issue 0)",
        "3 > 4: load r, [y] (whole 1)",
        "4 > 2: store [x], 1 (flush 0)",
    ];
    assert_eq!(listing(&new, 0, 0), expected);
}

#[test]
fn comparisons_of_constants_are_made_beforehand() {
    let user = read(
        "shared x, y
        thread p; store [x], 1; store [x], 2; load a, [x]; load b, [y]; end
        forbid p.a == 1",
    );
    let new = by(&user, 0, &[0, 1, 2, 3], Form::Exact);
    let steps = listing(&new, 0, 5);
    assert_eq!(
        steps[..4],
        [
            "0 > 6: nop (issue 0)",
            "6 > 7: nop (issue 1)",
            "7 > 8: a = 2 (whole 2)",
            "8 > 9: load b, [y] (whole 3)",
        ]
    );
}

#[test]
fn a_load_sees_the_newest_of_two_buffered_stores() {
    let source = |value: i64| {
        format!(
            "shared x, y
            thread p; a = any(0..2); store [x + a], 1; store [x], 2; load b, [x]; load c, [y]; end
            forbid p.b == {value}"
        )
    };
    expect(&source(1), &[1, 2, 3, 4], false, false);
    expect(&source(2), &[1, 2, 3, 4], true, true);
}

#[test]
fn a_computed_address_is_compared_and_tested_at_run_time() {
    let user = read(
        "shared x, y
        thread p; a = any(0..3); store [a], a + 1; load r, [1]; end
        thread q; store [y], 7; load s, [x]; end
        exists p.r == 2 && q.s == 1",
    );
    let new = by(&user, 0, &[1, 2], Form::Exact);
    let expected = [
        "1 > 6: addr1 = a (issue 1)",
        "6 > 7: val1 = a + 1 (-)",
        "7 > 5: assert addr1 >= 0 && addr1 < 2 (-)",
        "5 > 9: assume 1 == addr1 (-)",
        "5 > 10: assume 1 != addr1 (-)",
        "9 > 8: r = val1 (whole 2)",
        "10 > 8: load r, [y] (whole 2)",
        "8 > 3: store [addr1], val1 (flush 1)",
    ];
    assert_eq!(listing(&new, 0, 4), expected);
    // The third choice goes wrong, when the store is issued.
    assert!(reached(&user, &new));
}

#[test]
fn a_load_goes_wrong_where_the_users_load_does() {
    let source = "shared x, y
        thread p; a = any(0..2); store [x], 1; load r, [1 / a]; end
        forbid 0";
    expect(source, &[1, 2], true, true);
}

#[test]
fn a_goal_between_two_loads_is_found() {
    // At L the store is in memory, and was not when q looked first.
    let source = "shared x, y, z
        thread p
            store [x], 1
            load a, [y]
        L:  nop
            load b, [z]
        end
        thread q; store [y], 1; load s, [x]; assume s == 0; load u, [x]; assume u == 1
        M:  nop; end
        forbid p@L && q@M && p.a == 0";
    let user = read(source);
    assert!(!reached(&user, &user));
    expect(source, &[0, 1, 2, 3], true, true);
}

#[test]
fn a_way_back_is_there_where_the_path_blocks() {
    // The store reaches memory while its thread is stuck for good.
    let source = "shared x, y, z
        thread p; a = 7; store [x], 1; load a, [y]; assume a == 1; load b, [z]; end
        thread q; store [y], 1; load s, [x]; assume s == 0; load u, [x]; assume u == 1
        M:  nop; end
        forbid q@M && p.a == 0";
    let user = read(source);
    assert!(!reached(&user, &user));
    expect(source, &[1, 2, 3, 4], true, false);
}

#[test]
fn a_way_back_is_there_before_a_step_that_the_goal_sees() {
    let source = "shared x, y, z
        thread p; a = 7; store [x], 1; load a, [y]; a = 8; load b, [z]; end
        thread q; store [y], 1; load s, [x]; assume s == 0; load u, [x]; assume u == 1
        M:  nop; end
        forbid q@M && p.a == 0";
    let user = read(source);
    assert!(!reached(&user, &user));
    expect(source, &[1, 2, 3, 4], true, true);
    let store = source.replace("a = 8", "store [z], 1").replace("p.a == 0", "p.a == 0 && [z] == 0");
    expect(&store, &[1, 2, 3, 4], true, true);
}

#[test]
fn a_store_may_reach_memory_between_two_loads() {
    let source = "shared x, y, z
        thread p; store [x], 1; load a, [y]; load b, [z]; end
        thread q; store [y], 1; load s, [x]; load u, [x]; store [z], 1; end
        never p.a == 0 && p.b == 1 && q.s == 0 && q.u == 1";
    let user = read(source);
    assert!(!reached(&user, &user));
    expect(source, &[0, 1, 2], true, false);
}

#[test]
fn memory_does_not_count_while_stores_are_pending() {
    // Behind the load the store is still issued: that y was read and x not written is no drained state.
    let source = "shared x, y
        thread p
            store [x], 1
            load a, [y]
        L:  load b, [y]
        end
        thread q; store [y], 1; end
        forbid p.a == 1 && [x] == 0";
    expect(source, &[0, 1, 2], false, false);
    let other = source.replace("[x] == 0", "[x] == 1");
    expect(&other, &[0, 1, 2], true, true);
}

#[test]
fn where_a_thread_is_not_counts_outside_the_emulation_only() {
    // With x in memory the thread is at L or M, also while it waits at the fence behind the store.
    let source = "shared x, y
        thread p
            store [x], 1
        L:  load a, [y]
        M:  assume 0
        end
        forbid [x] == 1 && !p@L && !p@M";
    expect(source, &[0, 1], false, false);
}

#[test]
fn a_path_may_go_round_a_loop() {
    // q sees both values of x after p has read y twice.
    let source = "shared x, y
        thread p
        L:  n = n + 1
            store [x], n
            load a, [y]
            if a == 0 && n < 2 goto L
        end
        thread q; store [y], 1; load s, [x]; load t, [x]; end
        never p.n == 2 && p.a == 0 && q.s == 0 && q.t == 1";
    let user = read(source);
    assert!(!reached(&user, &user));
    let new = by(&user, 0, &[1, 2, 3, 0, 1, 2], Form::Exact);
    assert!(reached(&user, &new));
    // Delayed past one load only, the first store is in memory too early.
    assert!(!reached(&user, &by(&user, 0, &[1, 2], Form::Exact)));
}

/// A loop with a store, beside which another edge leaves the loop. p stores twice, the first time too late
/// for what it reads then.
fn with_an_edge_beside_the_store(rest: &str) -> Extended {
    let source = "shared x, y, z
        thread p
        L:  n = n + (n < 3); store [x], n; load a, [y]; c = c * 4 & 15 | a; goto L
            d = 1; load b, [z]
        end
        thread q; store [y], 1; fence; load s, [x]; load u, [x]; store [y], 2; end
        never p.n == 3 && q.s == 0 && ";
    let mut parts = read(&format!("{source}{rest}")).program.to_parts();
    parts.threads[0].edges[4].from = parts.threads[0].edges[1].from;
    let program = Program::new(parts).expect("it is a program");
    Extended { goal: Goal::of(&program), program }
}

#[test]
fn a_store_that_the_path_passes_by_may_reach_memory_at_once() {
    let user = with_an_edge_beside_the_store("q.u == 2 && p.c == 2");
    assert!(!reached(&user, &user));
    assert!(reached(&user, &by(&user, 0, &[1, 2, 3, 0, 4, 5], Form::Exact)));
}

#[test]
fn a_store_that_the_path_passes_by_may_be_delayed_like_the_first() {
    let user = with_an_edge_beside_the_store("q.u == 1 && p.c == 0");
    assert!(!reached(&user, &user));
    let new = by(&user, 0, &[1, 2, 3, 0, 4, 5], Form::Exact);
    let options = Options { workers: 1, explicit: ExplicitOptions { buffer: Some(3) }, ..Options::default() };
    let outcome = engine::check(&new.program, &new.goal, &options, &Limits::default());
    assert_eq!(outcome.expect("no internal error").answer.verdict(), Verdict::Fails);
}

#[test]
fn a_delay_is_made_longer_by_the_next_extension() {
    let source = "shared x, y, z
        thread p; store [x], 1; load a, [y]; load b, [z]; end
        thread q; store [z], 1; load s, [x]; end
        never p.b == 0 && q.s == 0";
    let user = read(source);
    let once = by(&user, 0, &[0, 1], Form::Exact);
    assert!(!reached(&user, &once));
    let flush = listing(&once, 0, 0).iter().position(|e| e.contains("flush")).expect("it is flushed") as u32;
    let twice = by(&once, 0, &[flush, 2], Form::Exact);
    assert!(reached(&user, &twice));
    let origins: Vec<String> = listing(&twice, 0, once.program.threads()[0].edges().count());
    assert!(origins.contains(&"6 > 8: nop (-)".to_string()), "{origins:?}");
    assert!(origins.iter().any(|e| e.ends_with("store [x], 1 (flush 0)")), "{origins:?}");
}

#[test]
fn a_path_may_issue_what_an_extension_issues_already() {
    // The second path begins before the first one's store and goes through its emulation.
    let source = "shared w, x, y, z
        thread p; store [w], 1; store [x], 1; load a, [y]; load b, [z]; end
        thread q; store [y], 1; store [z], 1; load s, [w]; load t, [x]; end
        never p.a == 0 && p.b == 0 && q.s == 0 && q.t == 0";
    let user = read(source);
    let once = by(&user, 0, &[1, 2], Form::Exact);
    assert!(!reached(&user, &once));
    let edges = listing(&once, 0, 0);
    let number = |text: &str| edges.iter().position(|e| e.contains(text)).expect("it is there") as u32;
    let path = [0, number("(issue 1)"), number("(issue 1)") + 1, number("(flush 1)"), 3];
    let twice = by(&once, 0, &path, Form::Exact);
    assert!(reached(&user, &twice));
}

#[test]
fn names_of_registers_are_new() {
    let user = read(
        "shared addr1, y
        thread p; val1 = any(0..2); store [val1], val1; load r, [y]; end
        forbid p.r == 2",
    );
    let new = by(&user, 0, &[1, 2], Form::Exact);
    assert_eq!(new.program.threads()[0].registers(), ["val1", "r", "addr2", "val2"]);
}

#[test]
fn many_extensions_do_not_make_a_deep_goal() {
    let source = "shared x, y
        thread p; store [x], 1; load a, [y]; end
        thread q; store [y], 1; load a, [x]; end
        forbid [x] == 1 && [y] == 1 && p.a == 0 && q.a == 0";
    let user = read(source);
    let depth = |e: &Extended| e.goal.clauses[0].pred.depth();
    let mut now = by(&by(&user, 0, &[0, 1], Form::Additive), 1, &[0, 1], Form::Additive);
    let before = depth(&now);
    for _ in 0..10 {
        now = by(&by(&now, 0, &[0, 1], Form::Additive), 1, &[0, 1], Form::Additive);
    }
    assert_eq!(depth(&now), before);
    assert!(reached(&user, &now));
}

#[test]
fn a_path_too_long_for_the_registers_is_refused() {
    let user = read(
        "shared x, y
        thread p; L: n = n + 1; store [x], n; if n goto L; load r, [y]; end
        forbid p.r == 1",
    );
    let mut edges = vec![EdgeId(1)];
    for _ in 0..MAX_REGISTERS {
        edges.extend([2, 0, 1].map(EdgeId));
    }
    edges.extend([3, 4].map(EdgeId));
    let path = DelayedPath { thread: ThreadId(0), edges };
    let refused = extend(&user.program, &user.goal, &path, Form::Exact, &Limits::default()).err();
    assert_eq!(refused, Some(Refused::TooManyRegisters("p".to_string())));
}

#[test]
fn the_emulation_is_as_long_as_the_path() {
    let user = read(
        "shared x, y
        thread p; L: n = n + 1; store [x], n; load r, [y]; if r goto L; end
        forbid p.r == 1 && [x] == 3",
    );
    let size = |rounds: usize| {
        let mut edges = vec![1, 2];
        for _ in 0..rounds {
            edges.extend([3, 0, 1, 2]);
        }
        by(&user, 0, &edges, Form::Exact).program.threads()[0].graph().edge_count()
    };
    assert_eq!(size(30) - size(20), size(20) - size(10));
}

#[test]
fn an_expression_is_defined_unless_it_divides_by_zero() {
    let e = |text: &str| {
        let source = format!(
            "shared x
            thread p; a = 0; b = 0; load r, [{text}]; end
            forbid 0"
        );
        read(&source).program.threads()[0].edge(EdgeId(2)).instr.address().expect("a load").clone()
    };
    for text in ["a / b", "a && 1 / b", "a || 1 % b", "-(a / b) + a", "(a / b) / (b / a)"] {
        let (e, condition) = (e(text), e(text).defined());
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let env = |r: &crate::model::Reg| if r.0 == 0 { a } else { b };
            let defined = condition.eval(&env).expect("the condition has a value") != 0;
            assert_eq!(defined, e.eval(&env).is_ok(), "{text} at {a}, {b}");
        }
    }
    assert_eq!(e("a / 2").defined(), Expr::Const(1));
}
