//! Files in Memorax's language: what each construct becomes, and what is said about mistakes. Verdicts of whole
//! programs are in `tests/readers.rs`.

use super::read;
use crate::front::{Diagnostic, Severity, tso};
use crate::limits::Limits;
use crate::model::{Loc, Program};
use proptest::prelude::*;

fn program(source: &str) -> Program {
    read(source, &Limits::default()).unwrap_or_else(|wrong| panic!("{wrong:?}\n{source}")).program
}

/// The edges of a process, as `from>to instruction`, with labels as names, `$` for the end, and `^` for the beginning.
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

/// The complaints, as `line:column: message`, those of warnings with a `?`.
#[track_caller]
fn wrong(source: &str, expect: &[&str]) {
    let found = match read(source, &Limits::default()) {
        Ok(input) => input.warnings,
        Err(unread) => unread.diagnostics().to_vec(),
    };
    let place = |d: &Diagnostic| {
        let start = d.span.as_ref().map_or(0, |s| s.start);
        let line_start = source[..start].rfind('\n').map_or(0, |n| n + 1);
        (source[..start].matches('\n').count() + 1, source[line_start..start].chars().count() + 1)
    };
    let show = |d: &Diagnostic| {
        let ((line, column), mark) = (place(d), if d.severity == Severity::Warning { "?" } else { "" });
        let help = d.help.as_ref().map_or(String::new(), |h| format!(" ({h})"));
        format!("{line}:{column}{mark}: {}{help}", d.message)
    };
    assert_eq!(found.iter().map(show).collect::<Vec<_>>(), expect, "{source}");
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
    check("ssfence; llfence", &["^>2 nop", "2>$ nop"]);
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
fn any_integer_is_too_many_where_it_matters() {
    let help = "give it a domain of at most 65536 values, as in `[0:3]`";
    wrong(
        "forbidden *\nprocess registers $a = * text assume: $a = 0",
        &[&format!("2:19: `$a` may begin with too many values ({help})")],
    );
    wrong(
        "forbidden *\ndata x = * process text nop",
        &[&format!("2:6: `x` may begin with too many values ({help})")],
    );
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
fn macros_have_rules() {
    let with = |text: &str| format!("forbidden * {text}\nprocess text nop");
    wrong(&with("macro m() a() endmacro macro m() nop endmacro"), &["1:42: macro `m` is defined twice"]);
    wrong(&with("macro m() nop"), &["1:13: this macro has no `endmacro`"]);
    wrong(
        &with("endmacro macro $m() nop endmacro"),
        &[
            "1:13: `endmacro` without a `macro`",
            "1:28: expected the name of a macro (as in `macro add(a,b) a + b endmacro`)",
        ],
    );
    wrong(
        "forbidden * macro m(a) a endmacro process text m(1,2)",
        &["1:48: macro `m` takes 1 arguments, and is given 2"],
    );
    wrong(
        "forbidden * macro m() nop endmacro process text m",
        &[
            "1:49: macro `m` is called without parentheses (it was defined on line 1; write `m(…)`)",
            "1:49: unknown statement `m`",
        ],
    );
    let circle = "forbidden * macro b() nop endmacro macro a(x) x; b2() endmacro process text a(a(nop))";
    wrong(circle, &["1:50: unknown statement `b2` (in the macro called on line 1)"]);
}

#[test]
fn circles_and_explosions_of_macros_are_stopped() {
    wrong(
        "forbidden *\nmacro a() nop; a() endmacro\nprocess text a()",
        &["2:16: macro `a` leads back to itself"],
    );
    let mut bomb = "forbidden * macro m0() nop endmacro\n".to_string();
    for i in 1..60 {
        bomb += &format!("macro m{i}() m{0}(); m{0}() endmacro\n", i - 1);
    }
    wrong(&format!("{bomb}process text m59()"), &["61:14: the macros unfold to more than 2000000 tokens"]);
    let mut deep = "forbidden * macro m0() nop endmacro\n".to_string();
    for i in 1..5000 {
        deep += &format!("macro m{i}() m{}() endmacro\n", i - 1);
    }
    wrong(&format!("{deep}process text m4999()"), &["5001:14: these calls are nested too deeply"]);
}

#[test]
fn statements_say_what_they_lack() {
    wrong_body(
        "read $reg := flag;\nread: flag := 1;\nflag := 1;\nwrite: flag = 1;\ncas(flag, 1);\nassume: ($reg = 1);\n\
         assume: $reg == 1;\nif $reg = 0 nop;\nraed flag;\nwhile $reg do nop;\nnop nop; $reg := $reg * 2",
        &[
            "2:6: expected `:` as in `read: $r := x`, found `$reg`",
            "3:12: `read` does not write memory (`read: x = 1` waits for a value; `write: x := 1` writes one)",
            "4:1: `flag` is no register (memory is written by `write: flag := …`)",
            "5:13: expected `:=` and the value to write, found `=`",
            "6:12: expected `,` and the new value, found `)`",
            "7:15: a condition in round brackets (conditions are grouped by `[` and `]`)",
            "8:15: equality is a single `=`",
            "9:13: expected `then` and what is done, found `nop`",
            "10:1: unknown statement `raed` (did you mean `read`?)",
            "11:12: expected a comparison: `=`, `!=`, `<`, `>`, `<=` or `>=`, found `do`",
            "12:5: expected `;` before the next statement, found `nop`",
            "12:23: there is no multiplication",
        ],
    );
}

#[test]
fn names_must_mean_something() {
    wrong_body(
        "read: $reg := flagg;\nread: $regg := flag;\nL: goto LL;\nread: x[my] = 1;\nwrite: flag[0] := 1;\n$reg := flag;\nread: $reg := [7]",
        &[
            "2:15: unknown memory location `flagg` (did you mean `flag`?)",
            "3:7: unknown register `$regg` (did you mean `$reg`?)",
            "4:9: unknown label `LL` (did you mean `L`?)",
            "5:7: process 0 has no location `x` of its own",
            "6:8: process 0 has no location `flag` of its own (`flag` belongs to nobody: write it without brackets)",
            "7:9: `flag` in an expression (expressions have registers and numbers: `read: $r := flag` first)",
            "8:15: this points at nothing",
        ],
    );
    wrong(
        "forbidden CS * process(2) data own = 0 text read: own = 0; write: own[1] := 1",
        &[
            "1:11: process 0 has no label `CS`",
            "1:51: unknown memory location `own` (a process has it of its own: `own[my]`, or `own[0]` of another)",
            "1:67: there is no other process 1",
        ],
    );
}

#[test]
fn declarations_have_rules() {
    wrong(
        "forbidden *\ndata x = 0 : [1:2], y = 3 : [2:1] x = 4 // hm\nprocess registers $a = $b $a = 0 : 3 data text L: nop; L: nop; CS:",
        &[
            "2:10: the initial value lies outside the domain",
            "2:19: no comma between declarations (they stand behind each other: `x = 0 y = 1`)",
            "2:29: this domain is empty",
            "2:35: `x` is declared twice",
            "2:41: comments have another form here (a comment is written `/* … */`)",
            "3:24: expected the initial value, or `*` for any, found `$b`",
            "3:36: expected a domain, as in `[0:3]`, or `Z`, found `3`",
            "3:43: expected a memory location, as in `x = 0`, found `text`",
            "3:56: label `L` stands twice in its process",
            "3:64: no statement behind the label `CS` (write `CS: nop`)",
        ],
    );
    wrong("forbidden * process data x = 0 data y = 0 text nop", &["1:32: a second `data` section"]);
    wrong("forbidden * process(1001) text nop", &["1:21: a program has at most 1000 processes"]);
}

#[test]
fn sections_may_be_misspelt() {
    wrong(
        "forbiden CS process text CS: nop",
        &["1:1: expected `forbidden`, found `forbiden` (did you mean `forbidden`?)"],
    );
    wrong("forbidden CS proces text CS: nop", &["1:14: unknown section `proces` (did you mean `process`?)"]);
    wrong(
        "forbidden CS dta x = 0 process text CS: nop",
        &["1:14: unknown section `dta` (did you mean `data`?)"],
    );
    wrong(
        "forbidden CS * process text CS: nop proces text nop",
        &["1:37: expected `;` and a statement, or `process`, found `proces` (did you mean `process`?)"],
    );
    wrong(
        "forbidden CS process regsters $a = 0 text CS: $a := 1",
        &["1:22: expected `data`, `registers` or `text`, found `regsters` (did you mean `registers`?)"],
    );
}

#[test]
fn goals_have_one_entry_for_each_process() {
    wrong(
        "forbidden A A; process(3) text A: nop",
        &["1:16: expected a label of each process, or `*`, found `process`"],
    );
    wrong(
        "forbidden A A process(3) text A: nop",
        &[
            "1:11: a goal for 2 processes, and there are 3 (a goal has one label, or `*`, for each process; `;` stands between goals)",
        ],
    );
    wrong(
        "",
        &[
            "1:1: expected `forbidden`, found the end of the file (a file begins with the labels that must not be reached together: `forbidden CS CS`)",
        ],
    );
    wrong(
        "forbidden *",
        &[
            "1:1: there are no processes in this file (a program looks like `forbidden CS process text CS: nop`)",
        ],
    );
}

#[test]
fn locked_blocks_are_plain_inside() {
    wrong_body(
        "L: nop; locked{ goto L; A: nop; fence; either{ nop or nop } or write: flag := 1 }",
        &[
            "2:17: `goto` inside a locked block (it has `nop`, `:=`, `assume`, `read`, `write`, `cas` and locked blocks; ways part with `or`)",
            "2:25: a label inside a locked block (nobody can see a process there)",
            "2:33: `fence` inside a locked block (it has `nop`, `:=`, `assume`, `read`, `write`, `cas` and locked blocks; ways part with `or`)",
            "2:40: `either` inside a locked block (it has `nop`, `:=`, `assume`, `read`, `write`, `cas` and locked blocks; ways part with `or`)",
        ],
    );
}

#[test]
fn a_last_semicolon_and_an_open_comment_are_forgiven() {
    wrong_body("nop;", &["2:4?: a `;` stands between statements, and not behind the last one"]);
    wrong_body("nop /* and so on", &["2:5?: this comment has no end"]);
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("{ ", " }"), ("if $reg = 0 then ", ""), ("either { ", " }"), ("locked { ", " }")] {
        let deep = format!("{}nop{}", open.repeat(50_000), close.repeat(50_000));
        refused(&deep);
    }
    for (open, close) in [("(", ")"), ("-", ""), ("1 - (", ")")] {
        refused(&format!("$reg := {}1{}", open.repeat(50_000), close.repeat(50_000)));
    }
    refused(&format!("assume: {}true{}", "[".repeat(50_000), "]".repeat(50_000)));
    refused(&format!("$reg := 1{}", " + $reg".repeat(50_000)));
    let wide = " && $reg = 1".repeat(60) + " ]";
    refused(&format!("assume: {}true{}", "[ ".repeat(90), wide.repeat(90)));
}

#[track_caller]
fn refused(body: &str) {
    let source = format!("forbidden * data flag = 0 process registers $reg = 0 text {body}");
    let Err(found) = read(&source, &Limits::default()) else { panic!("accepted") };
    assert!(
        found.diagnostics().iter().any(|d| d.message.contains("too deeply") || d.message.contains("at most")),
        "{found:?}"
    );
}

#[test]
fn long_disjunctions_are_no_deep_ones() {
    let chain = format!("assume: $b = 1{}", " || $b = 2".repeat(5000));
    let source = format!("forbidden * process registers $b = 0 text {chain}");
    assert_eq!(program(&source).threads()[0].edges().count(), 1);
}

/// Uses most of the language.
const SAMPLE: &str = "forbidden A * ; * B
macro N() 1 endmacro macro get(r, p) read: r := [p] endmacro
data x = * : [0:N()] y = -2 : Z
process(1) data l = 0 registers $a = * : [0:3] text
A: get($a, $a); write: l[my] := 0 - $a; read: l[0] = 1;
if not $a = 1 && [$a < 2 || true] then goto A else { nop; fence };
either{ cas(x,0,1) or while $a != 0 do $a := $a - 1 or C: nop }
process data l = 1 text
locked{ read: x = 1; write: y := 2 or nop }; locked write: [1] := 3; syncrd: y = 2; B: assume: 1 >= 0
";

#[test]
fn the_sample_is_read_without_complaints() {
    wrong(SAMPLE, &[]);
}

/// Whatever is read can be written in the native language; whatever is not has a reason.
fn survives(source: &str) {
    match read(source, &Limits::default()) {
        Ok(input) => {
            let text = tso::write(&input.program, &Limits::default()).unwrap();
            tso::read(&text, &[], &Limits::default())
                .unwrap_or_else(|errors| panic!("{errors:?}\n{source}\n{text}"));
        }
        Err(wrong) => {
            assert!(wrong.diagnostics().iter().any(|d| d.severity == Severity::Error), "{wrong:?}\n{source}")
        }
    }
}

fn piece() -> impl Strategy<Value = String> {
    let words: Vec<String> =
        SAMPLE.split_inclusive([' ', '\n', '[', ']', ';', '(']).map(str::to_string).collect();
    prop_oneof![
        prop::sample::select(words),
        "\\PC{0,3}",
        Just("; ".to_string()),
        Just("endmacro ".to_string())
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(source in any::<String>()) {
        survives(&source);
    }

    #[test]
    fn no_mixture_of_words_makes_the_reader_panic(words in prop::collection::vec(piece(), 0..60)) {
        survives(&words.concat());
    }

    #[test]
    fn no_change_to_a_program_makes_the_reader_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, piece()), 1..5)
    ) {
        let mut source = SAMPLE.to_string();
        for (index, removed, inserted) in changes {
            let mut chars: Vec<char> = source.chars().collect();
            let at = index.index(chars.len() + 1);
            let end = (at + removed).min(chars.len());
            chars.splice(at..end, inserted.chars());
            source = chars.into_iter().collect();
        }
        survives(&source);
    }
}
