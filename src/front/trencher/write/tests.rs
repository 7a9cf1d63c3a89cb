//! The text of small programs. That what we write keeps the grammar, and means the same under SC, is asked of
//! all bundled programs in `tests/trencher.rs`.

use super::{divided, write};
use crate::analysis::interval::Interval;
use crate::front::tso;
use crate::limits::Limits;
use crate::model::{BinOp, Program};

fn program(source: &str) -> Program {
    tso::read(source, &[], &Limits::default()).expect("the test's source is readable").program
}

#[track_caller]
fn check(source: &str, parts: &[&str]) {
    let text = write(&program(source), &Limits::default()).expect("Trencher can say this");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[track_caller]
fn refused(source: &str, parts: &[&str]) {
    let said = write(&program(source), &Limits::default()).expect_err("Trencher cannot say this").to_string();
    for part in parts {
        assert!(said.contains(part), "no `{part}` in `{said}`");
    }
}

#[test]
fn one_location_for_each_thread_becomes_final() {
    let source = "shared x\nthread p\n store [x], 1\ncs: load r, [x]\nend\nthread q\nfinal: nop\nend\n";
    let text = format!("{source}forbid p@cs && q@final");
    check(&text, &["thread p\ninitial s0\nfinal s1_cs\n", "transition s0 s1_cs write 1 0", "final s0_final"]);
    check(&format!("{source}forbid p@cs"), &["# without final states: the forbid leaves out a thread"]);
    check(&format!("{source}never p.r == 0"), &["# without final states: `never`"]);
}

#[test]
fn an_assert_leads_to_a_state_without_a_way_out_and_takes_the_question_away() {
    let source = "shared x\nthread p\ncs: load r, [x]\n assert r == 0\nend\nforbid p@cs";
    let check_fails = "transition s1 error check ! == r0_r 0";
    check(source, &[check_fails, "# without final states: an error of thread p"]);
}

#[test]
fn a_locked_instruction_is_a_block() {
    check(
        "shared x\nthread p\n xchg r, [x], 1\nend",
        &[
            "transition s0 between1 lock",
            "transition between1 between2 read r0_r 0",
            "transition between2 between3 write 1 0",
            "transition between3 s1 unlock",
        ],
    );
    check(
        "shared x\nthread p\n cas r, [x], r, r + 1\nend",
        &["read old 0", "check == old r0_r", "write + r0_r 1 0", "check != old r0_r", "s1 local r0_r old"],
    );
    check(
        "shared x\nthread p\n rmw r, [x], (r + 1) & 3\nend",
        &["lock", "read r0_r 0", "write & + r0_r 1 3 0", "unlock"],
    );
    check(
        "shared x, y\nthread p\n rmw r, [x + (r & 1)], r + 1\nend",
        &["local old + 0 & r0_r 1", "read r0_r old", "write + r0_r 1 old"],
    );
}

#[test]
fn a_locked_instruction_inside_a_block_is_refused() {
    let source = "shared x\nthread p\n lock\n add r, [x], 1\n unlock\nend";
    refused(source, &["thread `p`, line 4: `add r, [x], 1`", "wait for its own thread"]);
}

#[test]
fn initial_values_are_set_by_a_thread_that_everyone_waits_for() {
    check(
        "shared x, y = 7\nthread p\n load r, [y]\nend",
        &[
            "thread initial_values\ninitial s0\ntransition s0 s1 write 7 1\ntransition s1 s2 write 1 2",
            "initial begin\ntransition begin between1 read ready 2\ntransition between1 s0 check ready",
        ],
    );
}

#[test]
fn a_choice_is_a_transition_for_each_value() {
    let source = "shared x\nthread p\n r = any(-1..=1)\n store [x], r\nend";
    check(source, &["local r0_r -1\n", "local r0_r 0\n", "local r0_r 1\n"]);
    // However many: a program has no choice that is too large.
    check("shared x\nthread p\n r = any(0..1000)\n store [x], r\nend", &["local r0_r 999\n"]);
}

#[test]
fn robustness_is_asked_without_divisions() {
    let store = |e: &str| {
        format!(
            "shared x\nthread p\n r = any(0..=6)\n load s, [x]\n store [x], {e}\nend\nthread q\nstore [x], s - 1\nend"
        )
    };
    check(&store("r % 4"), &["write & r0_r 3 0\n"]);
    check(&store("s % 2"), &["write - & r1_s 1 * 2 && < r1_s 0 != 0 & r1_s 1 0\n"]);
    check(&store("r / 3"), &["write + >= r0_r 3 >= r0_r 6 0\n"]);
    check(&store("r % 5"), &["write - r0_r * 5 >= r0_r 5 0\n"]);
    check(&store("r / 9"), &["write 0 0\n"]);
    refused(&store("s / 2"), &["no division", "thread `p`, line 5"]);
    refused(&store("r % -5"), &["no division"]);
    let goal = "shared x\nthread p\n load r, [x]\n store [x], r % 3\nl: nop\nend\nforbid p@l";
    check(goal, &["write % r0_r 3 0"]);
}

#[test]
fn divisions_that_are_spelled_out_have_the_same_value() {
    for by in [1, 2, 3, 4, 7, 8] {
        for (lo, hi) in [(0, 20), (3, 9), (-20, 20)] {
            for op in [BinOp::Div, BinOp::Rem] {
                for x in lo..=hi {
                    let Some(text) = divided(op, &x.to_string(), Interval { lo, hi }, by) else {
                        assert!(lo < 0, "{op:?} {by}");
                        continue;
                    };
                    assert_eq!(value(&mut text.split(' ')), op.apply(x, by).expect("not by zero"), "{text}");
                }
            }
        }
    }
}

/// The value of an expression of numbers in prefix form.
fn value<'a>(words: &mut impl Iterator<Item = &'a str>) -> i64 {
    let word = words.next().expect("another operand");
    if let Ok(number) = word.parse() {
        return number;
    }
    let (a, b) = (value(words), value(words));
    match word {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "&" => a & b,
        ">=" => (a >= b).into(),
        "<" => (a < b).into(),
        "!=" => (a != b).into(),
        "&&" => (a != 0 && b != 0).into(),
        other => panic!("the version without divisions does not know `{other}`"),
    }
}

#[test]
fn missing_operators_are_spelled_out_or_refused() {
    let store = |e: &str| format!("shared x\nthread p\n load r, [x]\n store [x], {e}\nend");
    check(&store("r | 6"), &["write - + r0_r 6 & r0_r 6 0"]);
    check(&store("~r"), &["write - - 0 r0_r 1 0"]);
    check(&store("r << 4"), &["write * r0_r 16 0"]);
    refused(&store("r >> 1"), &["line 4", "no shift to the right"]);
    refused(&store("6 / r"), &["a division by zero"]);
    refused(&store("0x100000000"), &["32 bits"]);
}

#[test]
fn nested_bitwise_operators_are_refused_before_they_explode() {
    let deep = format!("r{}", " | r".repeat(200));
    refused(&format!("shared x\nthread p\n load r, [x]\n store [x], {deep}\nend"), &["nested too deeply"]);
}

#[test]
fn an_address_that_may_lie_outside_is_checked_first() {
    let source = "shared a[4]\nthread p\n i = any(0..9)\n store [a + i], 1\nend";
    check(
        source,
        &["error check || < + 0 r0_i 0 >= + 0 r0_i 4", "between1 check && >= + 0 r0_i 0 < + 0 r0_i 4"],
    );
}
