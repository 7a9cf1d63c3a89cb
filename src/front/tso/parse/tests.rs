//! What is said about files that do not follow the grammar.

use super::*;
use crate::limits::Limits;

/// The complaints about a file, each as `line: message`.
fn check(source: &str, expect: &[&str]) {
    let limits = Limits::default();
    let mut problems = Problems::new(source, &limits);
    parse(source, &mut problems);
    let line = |offset: usize| source[..offset].matches('\n').count() + 1;
    let found: Vec<String> = problems
        .shown()
        .iter()
        .map(|d| format!("{}: {}", d.span.as_ref().map_or(0, |s| line(s.start)), d.message))
        .collect();
    assert_eq!(found, expect, "{source}");
}

fn check_body(body: &str, expect: &[&str]) {
    check(&format!("thread p\n{body}\nend\n"), expect);
}

#[test]
fn every_statement_of_the_language_is_read() {
    check_body(
        "load r, [x]; store [x + 1], r * 2; fence; r = -1; r = any(0..=3); assume r; assert !r\n\
         l: goto l; if r == 1 goto l; choose l, m\n m:xchg r, [x], 1; cas r, [x], 0, 1; add r, [x], -1\n\
         lock; unlock; halt; nop",
        &[],
    );
    check("shared x, y = 3, a[4], b[3] = 7, c[4] = {1, 2}, d[2] = {}\nparam N = 2", &[]);
    check("thread p[i in 1..=N]; nop; end\nthread q[7]; end; thread r\nend", &[]);
    check_body("repeat k in 0..N { store [x], k; l: nop }\nrepeat k in 0..2 {\n}", &[]);
    check("forbid two i: p[i]@c\nnever all i in 1..=2: some j: p[i].r == [x] + 1\nexists 1\nforall 0", &[]);
}

#[test]
fn each_line_has_its_own_error() {
    check_body(
        "lod r, [x]\nload r [x]\nstore x, 1\nnop nop\ngoto 3",
        &[
            "2: unknown instruction `lod`",
            "3: expected `,` as in `load r, [x]`, found `[`",
            "4: expected `[`, found `x`",
            "5: expected the end of the line, found `nop`",
            "6: expected a label, found `3`",
        ],
    );
}

#[test]
fn a_missing_end_is_found_where_the_next_thread_begins() {
    check("thread p\nnop\nthread q\nend", &["1: thread `p` has no `end`"]);
    check("thread p\nnop\nforbid p@x\nthread q\nend", &["1: thread `p` has no `end`"]);
    check("thread p\nnop\n", &["1: thread `p` has no `end`"]);
}

#[test]
fn a_declaration_inside_a_thread_does_not_end_it() {
    check("thread p\nshared x\nnop\nend", &["2: `shared` inside a thread"]);
}

#[test]
fn a_stray_end_is_one_error() {
    check("end\nshared x", &["1: `end` without a `thread`"]);
    check("nop\nfence\nend", &["1: `nop` outside a thread"]);
}

#[test]
fn a_misspelt_declaration_still_declares() {
    check("thred p\nnop\nend", &["1: unknown declaration `thred`"]);
    check("forbiden p@l", &["1: unknown declaration `forbiden`"]);
}

#[test]
fn braces_are_matched_after_errors() {
    check_body("whlie r {\nnop\n}\nnop", &["2: unknown instruction `whlie`"]);
    check_body("repeat k in 0..3\nnop\n}", &["2: expected `{`, found the end of the line"]);
    check_body(
        "repeat k 0..3 {\nnop\n}",
        &["2: expected `in` and a range, as in `repeat k in 0..3 {`, found `0`"],
    );
    check_body("repeat k in 0..3 {\nnop", &["2: `repeat` has no `}`"]);
    check_body("nop }", &["2: `}` without a `{`"]);
}

#[test]
fn reserved_words_are_no_names() {
    check("shared end", &["1: `end` is a reserved word"]);
    check_body(
        "load add, [x]\nr = fence",
        &["2: `add` is a reserved word", "3: expected an expression, found the reserved word `fence`"],
    );
    check_body("goto: nop", &["2: `goto` is a reserved word"]);
}

#[test]
fn numbers_out_of_range_are_errors() {
    check_body("r = -9223372036854775808; r = 0xffffffffffffffff", &[]);
    check_body("r = 9223372036854775808", &["2: `9223372036854775808` does not fit 64 bits"]);
    check_body("r = 12ab", &["2: `12ab` is not a number"]);
}

#[test]
fn unclosed_brackets_are_named() {
    check_body(
        "load r, [x\nr = (1 + 2",
        &["2: expected `]`, found the end of the line", "3: expected `)`, found the end of the line"],
    );
    check(
        "shared a[3\nshared b = {1\n",
        &["1: expected `]`, found the end of the line", "2: expected `}`, found the end of the line"],
    );
}

#[test]
fn depth_is_bounded_and_length_is_not() {
    let many = 100_000;
    check_body(
        &format!("r = {}1{}", "(".repeat(many), ")".repeat(many)),
        &["2: this expression is nested too deeply"],
    );
    check_body(&format!("r = {}1", "- ".repeat(many)), &["2: this expression is nested too deeply"]);
    check_body(&format!("r = 1{}", " + 1".repeat(many)), &[]);
    check(&format!("never {}1", "all i: ".repeat(many)), &["1: too many quantifiers"]);
    let nested = format!("{}{}", "repeat k in 0..1 {\n".repeat(33), "}\n".repeat(33));
    check_body(&nested, &["34: `repeat` is nested too deeply"]);
}

#[test]
fn garbage_is_reported_once_per_run_and_nothing_follows_from_it() {
    check_body(
        "load r, [x] $$\nr = ? + 1\nnop",
        &["2: `$$` means nothing here", "3: expected an expression, found `?`"],
    );
    check("\0\0", &["1: `\\0\\0` means nothing here"]);
    check("thread p\r\nnop\r\nend\r\n", &[]);
}

#[test]
fn labels_have_no_index() {
    check_body("l[3]: nop", &["2: labels have no index"]);
}

/// The advice that comes with the first complaint.
fn advice(body: &str) -> String {
    let source = format!("thread p\n{body}\nend\n");
    let limits = Limits::default();
    let mut problems = Problems::new(&source, &limits);
    parse(&source, &mut problems);
    problems.shown().first().and_then(|d| d.help.clone()).unwrap_or_default()
}

#[test]
fn habits_of_other_languages_get_advice() {
    let locked = "`add [x], 2` changes memory, and is locked";
    assert_eq!(advice("r += 2"), format!("write `r = r + 2` for a register; {locked}"));
    assert_eq!(advice("r--").split(';').next(), Some("write `r = r - 1` for a register"));
    assert_eq!(advice("r *= 3"), "write `r = r * 3` for a register");
    assert_eq!(advice("[x] |= 1"), "write `or [x], 1`, which is locked, or load, compute and store");
    assert_eq!(advice("[x + 1] = 1"), "write `store [x + 1], 1`");
    assert_eq!(advice("lock add [x], 1"), "`add` is locked by itself: leave out `lock`");
    let either = "`add r, [x], 1` or `add [x], 1` changes memory; `x = x + 1` changes a register";
    assert_eq!(advice("add x, 1"), either);
    assert_eq!(
        advice("inc x"),
        either.replace("add r, [x], 1", "inc r, [x]").replace("add [x], 1", "inc [x]")
    );
    assert_eq!(advice("if r = 1 goto l"), "write `==`");
    assert_eq!(advice("nop\nend\nnever p.r = 1\nthread q\n"), "write `==`");
}

#[test]
fn blocks_and_calls_are_matched() {
    check_body("if r { nop\nnop", &["2: `if` has no `}`"]);
    check_body("if r {\nnop\n}\nelse {\nnop", &["5: `else` has no `}`"]);
    check_body("while {\nnop\n}", &["2: expected an expression, found `{`"]);
    check_body("f(1, 2\nnop", &["2: expected `)`, found the end of the line"]);
    check("inline f(x)\nnop\nthread p\nend", &["1: inline `f` has no `end`"]);
    check("thread p\nnop\ninline f(x)\nend", &["1: thread `p` has no `end`"]);
    check("struct s { }\nstruct t { a b }", &["1: struct `s` has no fields", "2: expected `}`, found `b`"]);
    let nested = format!("{}{}", "while 1 {\n".repeat(33), "}\n".repeat(33));
    check_body(&nested, &["34: `while` is nested too deeply"]);
}
