//! Files in Trencher's format: what each construct becomes, and what is said about mistakes. Verdicts of
//! whole programs are in `tests/readers.rs`.

use super::read;
use crate::analysis::interval;
use crate::front::trial::{complains, survives, texts};
use crate::limits::Limits;
use crate::model::{Loc, Program};
use proptest::prelude::*;

fn program(source: &str) -> Program {
    read(source, &Limits::default()).unwrap_or_else(|wrong| panic!("{wrong:?}\n{source}")).program
}

/// The edges of the first thread, as `from>to instruction`.
#[track_caller]
fn check(body: &str, expect: &[&str]) {
    let program = program(&format!("thread p initial a {body} end"));
    let thread = &program.threads()[0];
    let name = |l: Loc| thread.location(l).labels.first().cloned().unwrap_or_default();
    let edges: Vec<String> = thread
        .edges()
        .map(|(_, e)| format!("{}>{} {}", name(e.from), name(e.to), thread.show_instr(&program, &e.instr)))
        .collect();
    assert_eq!(edges, expect, "{body}");
}

#[track_caller]
fn wrong(source: &str, expect: &[&str]) {
    complains(source, read(source, &Limits::default()), expect);
}

#[test]
fn every_instruction_is_read() {
    check(
        "transition a b write 7 3 transition b c read r 3 transition c d local s + r 1 transition d e check s
         transition e f mfence transition f g noop transition g h lock transition h a unlock",
        &[
            "a>b store [m + 3], 7",
            "b>c load r, [m + 3]",
            "c>d s = r + 1",
            "d>e assume s",
            "e>f fence",
            "f>g nop",
            "g>h lock",
            "h>a unlock",
        ],
    );
}

#[test]
fn every_operator_is_prefix() {
    for op in ["==", "!=", "<", "<=", ">", ">=", "&&", "||", "+", "-", "*", "&", "/", "%"] {
        let body = format!("transition a b local r 1 transition a b local s {op} r -3");
        check(&body, &["a>b r = 1", &format!("a>b s = r {op} -3")]);
    }
    check("transition a b local r * + 1 r - r ! 2", &["a>b r = (1 + r) * (r - !2)"]);
}

#[test]
fn lines_mean_nothing_and_names_are_any_words() {
    let source = "thread q=\n\tfinal\r\nq<\ninitial 12 transition 12\n\n q< write\n1\n0 end thread end initial a final a end";
    let program = program(source);
    let names: Vec<&str> = program.threads().iter().map(|t| t.name()).collect();
    assert_eq!(names, ["q=", "end"]);
    assert_eq!(program.properties()[0].show(&program), "forbid q=@q< && end@a");
}

#[test]
fn an_operand_may_be_called_like_an_item() {
    check("transition a b read end 0 transition b c check end", &["a>b load end, [m]", "b>c assume end"]);
}

#[test]
fn comments_stand_everywhere() {
    let source = "# about — p\n#\n#tight\nthread p # here\n initial a # there\n #tight\n transition a b # between\n noop #tight\nend # last";
    assert_eq!(program(source).threads()[0].edges().count(), 1);
}

#[test]
fn constant_addresses_are_cells_wherever_they_lie() {
    check(
        "transition a b write 1 -5 transition b c write 2 2000000000 transition c d write 3 - 0 5",
        &["a>b store [m[-5]], 1", "b>c store [m[2000000000]], 2", "c>d store [m[-5]], 3"],
    );
}

#[test]
fn computed_addresses_have_all_cells_they_may_mean() {
    let source = "thread p initial a
        transition a b local i 1 transition a b local i 4
        transition b c write i * 2 i transition c d read i 0 transition d e write 1 - i 9 end";
    let program = program(source);
    assert_eq!(program.cells(), 18, "from m[-9] to m[8]");
    assert_eq!(interval::may_go_wrong(&program, &Limits::default()), Ok(false));
}

#[test]
fn addresses_without_a_bound_are_refused() {
    wrong(
        "thread p initial a\n transition a a local i + i 1\n transition a a write 1 + i 2\nend",
        &[
            "3:25: this address can lie too far away (memory has a fixed size here, of at most 65536 cells for computed addresses)",
        ],
    );
}

#[test]
fn a_file_without_final_states_asks_nothing() {
    assert!(program("thread p initial a end").properties().is_empty());
    let one = "thread p initial a final a end\nthread q initial a end";
    wrong(one, &["2:8?: thread `q` has no final state"]);
    assert!(program(one).properties().is_empty());
}

#[test]
fn a_thousand_final_states_are_no_deep_predicate() {
    let source: String = (0..1000).map(|i| format!("thread p{i} initial a final a end\n")).collect();
    assert!(program(&source).properties()[0].pred.depth() < 20);
}

#[test]
fn every_mistake_of_a_file_is_found() {
    wrong(
        "thread p\n initial a\n transition a b raed r 0\n transition a b write 1\n transition a b local r 3x\n tranition a b noop\n transition a\nend\n",
        &[
            "3:17: unknown instruction `raed` (did you mean `read`?)",
            "4:24: expected the address to write to, behind the value, found the end of the line",
            "5:25: `3x` is no number",
            "6:2: `tranition` begins nothing (did you mean `transition`?)",
            "7:14: expected the state that the transition leads to, found the end of the line",
        ],
    );
}

#[test]
fn operators_have_their_own_names() {
    let check = |op: &str| format!("thread p initial a transition a b check {op} 1 1 end");
    wrong(&check("="), &["1:41: `=` is no operator (did you mean `==`?)"]);
    wrong(&check("|"), &["1:41: `|` is no operator"]);
    wrong(&check("<=>"), &["1:41: `<=>` is no operator (did you mean `<=`?)"]);
}

#[test]
fn instructions_of_other_languages_are_translated() {
    wrong(
        "thread p initial a transition a b store 1 0 end",
        &["1:35: unknown instruction `store` (did you mean `write`?)"],
    );
}

#[test]
fn threads_must_be_whole() {
    wrong(
        "",
        &[
            "1:1: there are no threads in this file (a program looks like `thread p  initial q0  transition q0 q1 noop  end`)",
        ],
    );
    wrong(
        "thread p\n initial a\nthread p\n initial a end",
        &["1:1: thread `p` has no `end`", "3:8: thread `p` is defined twice"],
    );
    wrong("thread p end", &["1:8: thread `p` has no initial state (say where it begins: `initial q0`)"]);
    wrong("thraed p\n initial a end", &["1:1: `thraed` outside a thread (did you mean `thread`?)"]);
    wrong(
        "end\nthread p initial a end noop noop",
        &["1:1: `end` without a `thread`", "2:24: `noop` outside a thread"],
    );
    wrong("thread", &["1:7: expected the name of a thread, found the end of the file"]);
}

#[test]
fn numbers_fit_32_bits() {
    check("transition a b local r -2147483648", &["a>b r = -2147483648"]);
    wrong(
        "thread p initial a transition a b local r +2147483648 end",
        &["1:43: `+2147483648` does not fit 32 bits"],
    );
}

#[test]
fn doubtful_names_are_warnings() {
    wrong(
        "thread p\n initial q0i\n transition q0 q1 read flag 0\n transition q1 q2 check flga\nend",
        &[
            "2:10?: no transition names the initial state `q0i` (did you mean `q0`?)",
            "4:25?: register `flga` is read but never set (did you mean `flag`?)",
        ],
    );
}

#[test]
fn a_second_initial_state_replaces_the_first() {
    wrong(
        "thread p initial a initial b transition b a noop end",
        &["1:28?: a second initial state replaces the first"],
    );
}

#[test]
fn deep_expressions_are_refused() {
    let deep = format!("thread p initial a transition a b check {} 1 end", "! ".repeat(100_000));
    let Err(found) = read(&deep, &Limits::default()) else { panic!("accepted") };
    assert!(found.diagnostics()[0].message.contains("levels deep"), "{found:?}");
}

/// Uses the whole language.
const SAMPLE: &str = "# note
thread p initial a final b
transition a b write + 1 r 3 transition b c read r & r 7 transition c a check ! == r -1
transition a a lock transition a b unlock transition b b mfence transition a c noop transition c c local s / r 2
end
thread q initial x final x end
";

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(source in texts(SAMPLE, &[' ', '\n'], &["\n", "end\n"])) {
        survives(&source, read(&source, &Limits::default()));
    }
}
