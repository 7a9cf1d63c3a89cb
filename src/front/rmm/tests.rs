//! Files in Memorax's language: what each construct becomes. What is said about mistakes is in `mistakes`;
//! that no text makes the reader panic, in `any_text`. Verdicts of whole programs are in `tests/readers.rs`.

mod any_text;
mod mistakes;

use super::read;
use crate::front::trial::complains;
use crate::limits::Limits;
use crate::model::{Loc, Program};

fn program(source: &str) -> Program {
    read(source, &Limits::default()).unwrap_or_else(|wrong| panic!("{wrong:?}\n{source}")).program
}

/// The edges of a process, as `from>to instruction`, with labels as names, `$` for the end, and `^` for the
/// beginning.
fn edges(program: &Program, process: usize) -> Vec<String> {
    let thread = &program.threads()[process];
    let name = |l: Loc| match thread.location(l).labels.first() {
        Some(label) => label.clone(),
        None if l == thread.end() => "$".to_string(),
        None if l == thread.initial() => "^".to_string(),
        None => l.0.to_string(),
    };
    let edge = |e: &crate::model::Edge| {
        format!("{}>{} {}", name(e.from), name(e.to), thread.show_instr(program, &e.instr))
    };
    thread.edges().map(|(_, e)| edge(e)).collect()
}

/// What the statements of one process become, beside another process.
#[track_caller]
fn check(body: &str, expect: &[&str]) {
    let source = format!(
        "forbidden * * data x = 0 : [0:1] y = 0 : [0:3] z = 0
         process data l = 0 registers $a = 0 : [0:1] $b = 0 $c = 0 : [0:3] text {body} process data l = 0 text nop"
    );
    assert_eq!(edges(&program(&source), 0), expect, "{body}");
}

#[track_caller]
fn wrong(source: &str, expect: &[&str]) {
    complains(source, read(source, &Limits::default()), expect);
}

/// Mistakes in the statements of a process, which begin on line 2.
#[track_caller]
fn wrong_body(body: &str, expect: &[&str]) {
    wrong(&format!("forbidden * data flag = 0 process registers $reg = 0 text\n{body}"), expect);
}

#[test]
fn reads_and_writes() {
    check("read: $b := z", &["^>$ load $b, [z]"]);
    check("write: z := $b - 1", &["^>$ store [z], $b - 1"]);
    check("read: z = $b + 1", &["^>2 load $, [z]", "2>$ assume $ == $b + 1"]);
}

#[test]
fn values_outside_a_domain_block() {
    check("read: $a := x", &["^>$ load $a, [x]"]);
    check("read: $a := y", &["^>2 load $a, [y]", "2>$ assume $a <= 1"]);
    check("read: $a := z", &["^>2 load $a, [z]", "2>$ assume $a >= 0 && $a <= 1"]);
    check("$a := $a + 1", &["^>2 $a = $a + 1", "2>$ assume $a <= 1"]);
    check("$c := $a + 1", &["^>$ $c = $a + 1"]);
    check("write: x := $a", &["^>$ store [x], $a"]);
    check("write: x := 2", &["^>2 assume 2 <= 1", "2>$ store [x], 2"]);
    check("write: x := -$a", &["^>2 assume -$a >= 0", "2>$ store [x], -$a"]);
}

#[test]
fn locked_writes_and_cas_are_single_instructions() {
    for text in [
        "locked write: z := 1",
        "syncwr: z := 1",
        "locked{ write: z := 1 }",
        "locked{ locked write: z := 1 }",
    ] {
        check(text, &["^>$ xchg $, [z], 1"]);
    }
    for text in ["cas(z, $a, 1)", "locked{cas(z,$a,1)}"] {
        check(text, &["^>2 cas $, [z], $a, 1", "2>$ assume $ == $a"]);
    }
    check("cas(x,0,$c)", &["^>2 assume $c <= 1", "2>3 cas $, [x], 0, $c", "3>$ assume $ == 0"]);
}

#[test]
fn fences_have_their_meaning_under_tso() {
    check("fence", &["^>$ fence"]);
    check("ssfence; llfence", &["^>2 fence ss", "2>$ fence ll"]);
    check("slocked write: z := 1", &["^>$ store [z], 1"]);
    check("syncrd: $b := z; syncrd: z = 2", &["^>2 load $b, [z]", "2>3 load $, [z]", "3>$ assume $ == 2"]);
}

#[test]
fn a_locked_block_with_a_write_is_a_lock_block() {
    check(
        "locked{ read: $b := z; write: z := $b + 1 or assume: $a = 0 }",
        &["^>2 lock", "2>4 load $b, [z]", "4>3 store [z], $b + 1", "2>3 assume $a == 0", "3>$ unlock"],
    );
    check(
        "locked{ cas(z,0,1); { locked{ nop or write: z := 2 } } }",
        &[
            "^>2 lock",
            "2>5 load $, [z]",
            "5>6 assume $ == 0",
            "6>4 store [z], 1",
            "4>3 nop",
            "4>3 store [z], 2",
            "3>$ unlock",
        ],
    );
}

#[test]
fn a_locked_block_without_a_write_is_no_fence() {
    check(
        "locked{ read: z = 1; $b := 2 or nop }",
        &["^>3 load $, [z]", "3>2 assume $ == 1", "2>$ $b = 2", "^>$ nop"],
    );
    check(
        "locked{ read: z = 1; read: y = 1 }",
        &[
            "^>2 lock",
            "2>5 load $, [z]",
            "5>4 assume $ == 1",
            "4>6 load $, [y]",
            "6>3 assume $ == 1",
            "3>$ unlock",
        ],
    );
    wrong_body(
        "write: flag := 1; locked{ read: flag = 1; read: flag = 0 }",
        &[
            "2:19: this block reads several locations at once, and writes none (such a block is no fence, and that cannot be expressed; put a `fence` before it if it may be one)",
        ],
    );
    wrong_body("write: flag := 1; fence; locked{ read: flag = 1; read: flag = 0 }", &[]);
}

#[test]
fn locals_are_named_from_where_one_stands() {
    let source = "forbidden * * *
        process(2) data l = 1 text write: l[my] := 1; write: l[0] := 2; write: l[1] := 3
        process data l = 2 text write: l[my] := 1; write: l[0] := 2; write: l[1] := 3";
    let program = program(source);
    let stores =
        |p| edges(&program, p).iter().map(|e| e.split_once(' ').unwrap().1.to_string()).collect::<Vec<_>>();
    assert_eq!(stores(0), ["store [l[0]], 1", "store [l[1]], 2", "store [l[2]], 3"]);
    assert_eq!(stores(1), ["store [l[1]], 1", "store [l[0]], 2", "store [l[2]], 3"]);
    assert_eq!(stores(2), ["store [l[2]], 1", "store [l[0]], 2", "store [l[1]], 3"]);
    assert_eq!(program.initial_memory(), [1, 1, 2]);
}

#[test]
fn pointers_count_the_globals() {
    check("write: [1] := 2", &["^>$ store [y], 2"]);
    check("read: $b := [$a]", &["^>$ load $b, [$a]"]);
    check("read: $b := [$c - 1]", &["^>2 assume $c - 1 >= 0", "2>$ load $b, [$c - 1]"]);
    check("write: [$a] := $c", &["^>2 assume $a == 0 && $c <= 1 || $a == 1", "2>$ store [$a], $c"]);
}

#[test]
fn control_flow() {
    check(
        "L: if $a = 0 then goto L else { nop; M: nop }; fence",
        &["L>L assume $a == 0", "L>4 assume !($a == 0)", "4>M nop", "M>3 nop", "3>$ fence"],
    );
    check(
        "if $a = 0 then nop; fence",
        &["^>3 assume $a == 0", "3>2 nop", "^>2 assume !($a == 0)", "2>$ fence"],
    );
    check("while $a < 1 do $a := 1", &["^>2 assume $a < 1", "^>$ assume !($a < 1)", "2>^ $a = 1"]);
    check("L: nop; goto L", &["L>L nop"]);
    check("goto L; L: nop", &["^>L nop", "L>$ nop"]);
}

#[test]
fn a_branch_that_begins_with_a_label_or_a_loop_begins_apart() {
    check("either{ CS: assume: false or nop }", &["^>CS nop", "CS>$ assume 0", "^>$ nop"]);
    check(
        "either{ while $a = 0 do nop or nop }",
        &["^>2 nop", "2>3 assume $a == 0", "2>$ assume !($a == 0)", "3>2 nop", "^>$ nop"],
    );
    check(
        "L: either{ goto L or { goto M } or either{ nop or fence } }; M: nop",
        &["L>M nop", "L>M nop", "L>M fence", "M>$ nop"],
    );
}

#[test]
fn steps_are_shown_as_written() {
    let source = "forbidden * macro w(x) while $a=0&&[true] do{ write:x:=$a+1; cas( x ,0, 1) } endmacro
        data x = 0 process data y = 0 registers $a = 0 text\n w(y[my]);\n locked{nop or write: [ 0 ] := 1; nop}";
    let program = program(source);
    let mut shown: Vec<(u32, &str)> =
        program.threads()[0].edges().map(|(_, e)| (e.line, &e.text[..])).collect();
    shown.dedup();
    let [condition, write, cas] = ["while $a = 0 && [true]", "write: y[my] := $a + 1", "cas(y[my], 0, 1)"];
    let block = ["locked", "nop", "write: [0] := 1", "nop", "locked"].map(|text| (4, text));
    assert_eq!(shown, [&[(1, condition), (1, write), (1, cas)][..], &block].concat());
}

#[test]
fn conditions_group_by_brackets() {
    check(
        "assume: not $a = 0 && [$b < 1 || true] || -($a - 1) != 2 + $b",
        &["^>$ assume !($a == 0) && ($b < 1 || 1) || -($a - 1) != 2 + $b"],
    );
}

#[test]
fn registers_begin_with_their_values_where_they_matter() {
    let source = "forbidden * data x = 3 process registers $a = 2 $b = * : [1:4] $c = * $d = 5 text
        L: write: x := $a + $b; $c := 1; write: x := $c; goto L";
    let text = edges(&program(source), 0);
    assert_eq!(text[text.len() - 2..], ["^>5 $a = 2", "5>L $b = any(1..=4)"].map(String::from), "{text:?}");
}

#[test]
fn memory_of_any_value_is_filled_before_all_else() {
    let program =
        program("forbidden L * data x = 0 y = * : [0:2] process text L: read: y = 1 process text nop");
    assert_eq!(
        edges(&program, 2),
        ["^>1 value = any(0..=2)", "1>2 xchg old, [y], value", "2>$ xchg old, [filled], 1"]
    );
    assert_eq!(edges(&program, 1)[1..], ["^>3 load filled, [filled]", "3>1 assume filled"].map(String::from));
    assert_eq!(program.properties()[0].show(&program), "forbid P0@L");
}

#[test]
fn every_goal_is_a_property() {
    let program = program("forbidden A * ; * A process(2) text nop; A: nop");
    let shown: Vec<String> = program.properties().iter().map(|p| p.show(&program)).collect();
    assert_eq!(shown, ["forbid P0@A", "forbid P1@A"]);
}

#[test]
fn macros_stand_for_tokens() {
    let source = "forbidden A B macro N() 2 endmacro data x = 0 : [0:N()] y = 0
        macro field(p) [p-1] endmacro
        macro set(p, v) write: field(p) := v; field2(p) endmacro
        macro field2(p) nop endmacro
        macro add(a, b) (a) + b endmacro
        macro p(label, reg) process registers reg = 1 text set(reg, add(add(reg, 1), 1)); label: nop endmacro
        p(A, $r)
        p(B, $s); fence";
    let program = program(source);
    let stores: Vec<String> = edges(&program, 1).into_iter().filter(|e| e.contains("store")).collect();
    assert_eq!(stores.len(), 1);
    assert!(stores[0].ends_with("store [$s - 1], $s + 1 + 1"), "{stores:?}");
    assert!(edges(&program, 1).iter().any(|e| e.ends_with("$ fence")));
    assert_eq!(program.properties()[0].show(&program), "forbid P0@A && P1@B");
}

#[test]
fn long_disjunctions_are_no_deep_ones() {
    let chain = format!("assume: $b = 1{}", " || $b = 2".repeat(5000));
    let source = format!("forbidden * process registers $b = 0 text {chain}");
    assert_eq!(program(&source).threads()[0].edges().count(), 1);
}
