//! What is said about mistakes, and where.

use super::super::read;
use super::{wrong, wrong_body};
use crate::limits::Limits;

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
    let no_cycle = "forbidden * macro b() nop endmacro macro a(x) x; b2() endmacro process text a(a(nop))";
    wrong(no_cycle, &["1:50: unknown statement `b2` (in the macro called on line 1)"]);
}

#[test]
fn cycles_and_explosions_of_macros_are_stopped() {
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
