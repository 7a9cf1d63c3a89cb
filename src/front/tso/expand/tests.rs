//! From trees to programs: what unfolds to what.

mod mistakes;

use crate::front::Diagnostic;
use crate::front::tso::read;
use crate::limits::Limits;
use crate::model::{Atom, Loc, Program, Property, Value};

fn program(source: &str) -> Program {
    read(source, &[], &Limits::default()).unwrap_or_else(|errors| panic!("{errors:?}\n{source}")).program
}

/// The edges of the first thread as `from>to instruction`, end as `$`.
fn edges(program: &Program) -> Vec<String> {
    let thread = &program.threads()[0];
    let name = |loc: Loc| if loc == thread.end() { "$".to_string() } else { loc.0.to_string() };
    let edge = |e: &crate::model::Edge| {
        format!("{}>{} {}", name(e.from), name(e.to), thread.show_instr(program, &e.instr))
    };
    thread.edges().map(|(_, e)| edge(e)).collect()
}

fn check(body: &str, expect: &[&str]) {
    let source = format!("param N = 2\nshared x, y, a[3]\nthread p\n{body}\nend");
    assert_eq!(edges(&program(&source)), expect, "{body}");
}

/// Complaints as `line: message`, those of warnings with a `?`.
fn complaints(source: &str, found: &[Diagnostic]) -> Vec<String> {
    let line = |d: &Diagnostic| d.span.as_ref().map_or(0, |s| source[..s.start].matches('\n').count() + 1);
    let mark = |d: &Diagnostic| if d.severity == crate::front::Severity::Warning { "?" } else { "" };
    found.iter().map(|d| format!("{}{}: {}", line(d), mark(d), d.message)).collect()
}

fn check_wrong(source: &str, expect: &[&str]) {
    let found = match read(source, &[], &Limits::default()) {
        Ok(input) => input.warnings,
        Err(unread) => unread.diagnostics().to_vec(),
    };
    assert_eq!(complaints(source, &found), expect, "{source}");
}

/// The first property, unfolded.
fn predicate(source: &str) -> String {
    let program = program(source);
    let Property { kind, pred, .. } = program.properties()[0].clone();
    Property::new(kind, pred, 0).show(&program)
}

#[test]
fn properties_have_names_and_are_told_as_they_are_written() {
    let threads = "thread p[i in 0..3]; load r, [x]; on: nop; end; shared x";
    let cases = |text: &str| {
        let program = program(&format!("{threads}\n{text}"));
        let property = &program.properties()[0];
        assert_eq!(property.show(&program), text);
        let told = |atom: &Atom| program.show_atom(atom);
        let cases = property.cases.iter().map(|c| format!("{}: {}", c.indices, c.pred.show(&told)));
        (property.name.clone().unwrap_or_default(), cases.collect::<Vec<_>>())
    };
    let (name, pairs) = cases("forbid mutex: two i: p[i]@on");
    assert_eq!(name, "mutex");
    assert_eq!(pairs[1], "i = 0 and 2: p[0]@on && p[2]@on");
    assert_eq!(pairs.len(), 3);
    let (_, each) = cases("forall all: all i: all j in 1..3: p[i].r == j");
    assert_eq!(each[1], "i = 0, j = 2: !(p[0].r == 2)");
    let (name, none) = cases("forbid all i: p[i]@on");
    assert!(name.is_empty() && none.is_empty());
    let twice = format!("{threads}\nforbid a: [x]\nforbid a: [x]");
    check_wrong(&twice, &["3: property `a` is defined twice"]);
}

#[test]
fn a_branch_is_a_pair_of_assumptions() {
    check("l: if r == 1 goto l", &["0>0 assume r == 1", "0>$ assume !(r == 1)"]);
    check("if N == 2 goto l\nnop\nl:", &["0>$ assume 1", "0>1 assume 0", "1>$ nop"]);
}

#[test]
fn a_goto_is_no_step() {
    check("nop\ngoto l\nm: fence\nl: load r, [x]\ngoto m", &["0>2 nop", "1>2 fence", "2>1 load r, [x]"]);
    check("nop\nhalt", &["0>$ nop"]);
}

#[test]
fn a_cycle_of_gotos_goes_round() {
    check("l: goto l", &["0>0 nop"]);
    check("nop\nl: goto m\nm: goto l", &["0>1 nop", "1>1 nop"]);
    check("goto l\nnop\nm: goto l\nl: goto m", &["0>1 nop", "1>1 nop"]);
}

#[test]
fn a_choice_is_a_nop_per_way() {
    check("choose l, m\nl: fence\nm:", &["0>1 nop", "0>$ nop", "1>$ fence"]);
}

#[test]
fn an_empty_thread_is_at_its_end() {
    let program = program("thread p\nl:\nend\nforbid p@l");
    let thread = &program.threads()[0];
    assert_eq!((thread.initial(), thread.location(thread.end()).labels.len()), (thread.end(), 1));
}

#[test]
fn constants_are_folded() {
    check("store [a + N], 3 * N - -1", &["0>$ store [a + 2], 7"]);
    check("r = r + (1 + 1)", &["0>$ r = r + 2"]);
    check("r = -9223372036854775808 - 1", &["0>$ r = 9223372036854775807"]);
    check("r = N == 2 || 1 / 0", &["0>$ r = 1"]);
    check("r = 0 && q / 0", &["0>$ r = 0"]);
    check("r = r / 0", &["0>$ r = r / 0"]);
}

#[test]
fn shared_names_are_addresses() {
    check("r = a + 1; load q, [r]", &["0>1 r = 3", "1>$ load q, [r]"]);
    let program = program("shared x = 5, p = x, q = a + 1, a[2] = {q}\nthread t\nend");
    assert_eq!(program.initial_memory(), [5, 0, 4, 2, 0]);
}

#[test]
fn registers_are_numbered_as_they_appear() {
    let program = program("shared x\nthread p\ncas b, [x + d], c, a\nb = 1; d = 1; c = 1; a = 1\nend");
    assert_eq!(program.threads()[0].registers(), ["b", "d", "c", "a"]);
}

#[test]
fn repeat_unrolls_with_labels_of_its_own() {
    check(
        "repeat k in 0..N {\nif r == k goto next\nr = k\nnext:\n}",
        &[
            "0>2 assume r == 0",
            "0>1 assume !(r == 0)",
            "1>2 r = 0",
            "2>$ assume r == 1",
            "2>3 assume !(r == 1)",
            "3>$ r = 1",
        ],
    );
    check("repeat k in 3..3 { nop }", &[]);
    check("repeat j in 0..2 { repeat k in 0..j { r = j + k } }", &["0>$ r = 1"]);
    check("repeat k in 0..2 { goto out }\nnop\nout: fence", &["0>1 nop", "1>$ fence"]);
}

#[test]
fn a_label_in_a_repeat_means_any_copy() {
    let source = "thread p\nrepeat k in -1..2 { l: nop }\nl_0: nop\nend\nforbid p@";
    let program = program(&format!("{source}l"));
    let Some(Atom::At(_, locs)) = first_atom(&program) else { panic!("not a place") };
    assert_eq!(locs.len(), 3);
    assert_eq!(predicate(&format!("{source}l")), "forbid (p@l_m1 || p@l_0_ || p@l_1)");
    assert_eq!(predicate(&format!("{source}l_1")), "forbid p@l_1");
    assert_eq!(predicate(&format!("{source}l_0")), "forbid p@l_0");
}

fn first_atom(program: &Program) -> Option<Atom> {
    let mut found = None;
    program.properties()[0].pred.for_each_atom(&mut |a| found = found.take().or(Some(a.clone())));
    found
}

#[test]
fn templates_make_threads() {
    let program =
        program("param N = 3\nshared a[4]\nthread p[i in 1..=N]\nstore [a + i], i\nend\nthread p[9]\nend");
    let names: Vec<&str> = program.threads().iter().map(|t| t.name()).collect();
    assert_eq!(names, ["p[1]", "p[2]", "p[3]", "p[9]"]);
    assert_eq!(edges(&program), ["0>$ store [a + 1], 1"]);
}

#[test]
fn texts_are_as_written_with_constants_filled_in() {
    let source = "param N = 3\nshared a[9]\nthread p[i in -1..0]\nl:  store   [a+N],\ti - r // c\nif r == N goto l\nr = 0\nend";
    let program = program(source);
    let texts: Vec<(u32, &str)> =
        program.threads()[0].edges().map(|(_, e)| (e.line, e.text.as_str())).collect();
    let branch = (5, "if r == 3 goto l");
    assert_eq!(texts, [(4, "store [a+3], (-1) - r"), branch, branch, (6, "r = 0")]);
}

#[test]
fn defines_take_precedence() {
    let source = "param N = 3\nparam M = N + 1\nshared a[M]\nthread p\nend";
    let cells = |defines: &[(&str, Value)]| {
        let defines: Vec<_> = defines.iter().map(|(n, v)| (n.to_string(), *v)).collect();
        let read = read(source, &defines, &Limits::default());
        read.map(|input| input.program.cells()).map_err(|e| complaints(source, e.diagnostics()))
    };
    assert_eq!(cells(&[]), Ok(4));
    assert_eq!(cells(&[("N", 5)]), Ok(6));
    assert_eq!(cells(&[("N", 5), ("M", 1), ("M", 2)]), Ok(2));
    assert_eq!(
        cells(&[("K", 5)]),
        Err(vec!["0: `-D K=…` sets a parameter that the file does not declare".to_string()])
    );
}

#[test]
fn quantifiers_unfold() {
    let threads = "thread p[i in 1..=3]\nc: r = 1\nend\nthread q\nc: nop\nend\n";
    let check = |query: &str, expect: &str| assert_eq!(predicate(&format!("{threads}{query}")), expect);
    check("forbid all i: p[i]@c", "forbid p[1]@c && p[2]@c && p[3]@c");
    check("forbid some i: p[i].r == i", "forbid p[1].r == 1 || p[2].r == 2 || p[3].r == 3");
    check("forbid two i: p[i]@c", "forbid p[1]@c && p[2]@c || p[1]@c && p[3]@c || p[2]@c && p[3]@c");
    check("never all i in 1..=2: p[i].r == 0 || q@c", "never (p[1].r == 0 || q@c) && (p[2].r == 0 || q@c)");
    check(
        "never all i in 1..=2: some j in 1..=2: p[i].r == j",
        "never (p[1].r == 1 || p[1].r == 2) && (p[2].r == 1 || p[2].r == 2)",
    );
    check("never all i in 1..1: q@c", "never 1");
    check("never some i in 1..1: q@c", "never 0");
}

#[test]
fn registers_in_what_is_folded_away_can_be_asked_for() {
    let source = "param N = 0\nthread p\nr = N != 0 && s == 1\nif 0 && 8 / q goto on\non:\nend\nnever p.s == 1 || p.q == 1";
    assert_eq!(predicate(source), "never p.s == 1 || p.q == 1");
}

#[test]
fn two_of_two_hundred_stay_shallow() {
    let program = program("thread p[i in 0..200]\nc: nop\nend\nforbid two i: p[i]@c");
    assert!(program.properties()[0].pred.depth() < 20);
}

#[test]
fn long_disjunctions_are_no_deep_ones() {
    let program = program(&format!("thread p\nr = 1\nend\nnever p.r == 0{}", " || p.r == 2".repeat(5000)));
    assert!(program.properties()[0].pred.depth() < 20);
}

#[test]
fn deep_expressions_fit_a_small_stack() {
    let mut deep = "r".to_string();
    for _ in 0..500 {
        deep = format!("({deep}*1+1<<1<1==1&1^1|1&&1||1)");
    }
    let source = format!("thread p\nr = {deep}\nend");
    assert!(read(&source, &[], &Limits::default()).is_err());
}

#[test]
fn blocks_are_jumps() {
    check("while r == 0 { load r, [x] }", &["0>1 assume r == 0", "0>$ assume !(r == 0)", "1>0 load r, [x]"]);
    check(
        "if r == 1 { fence }\nelse if r == 2 {\nnop } else { halt }\nstore [x], 1",
        &[
            "0>1 assume r == 1",
            "0>2 assume !(r == 1)",
            "1>4 fence",
            "2>3 assume r == 2",
            "2>$ assume !(r == 2)",
            "3>4 nop",
            "4>$ store [x], 1",
        ],
    );
    check("while 1 { }", &["0>0 assume 1", "0>$ assume 0"]);
    check("if r { l: nop }\ngoto l", &["0>1 assume r", "0>1 assume !r", "1>1 nop"]);
}

#[test]
fn locked_instructions_need_no_register() {
    check(
        "inc [x]; dec r, [x]; sub [x], r; xchg [y], 2; cas [y], 0, 1; add [x], 3",
        &[
            "0>1 add unused, [x], 1",
            "1>2 add r, [x], -1",
            "2>3 add unused, [x], -r",
            "3>4 xchg unused, [y], 2",
            "4>5 cas unused, [y], 0, 1",
            "5>$ add unused, [x], 3",
        ],
    );
    check(
        "and r, [x], 3; or [x], 4; xor s, [x], r",
        &["0>1 and r, [x], 3", "1>2 or unused, [x], 4", "2>$ xor s, [x], r"],
    );
    check("unused = 1; inc [x]", &["0>1 unused = 1", "1>$ add unused_, [x], 1"]);
}

#[test]
fn widths_cut_values() {
    check("store8 [x], 511", &["0>$ store [x], 255"]);
    check("load16 r, [x]; pause", &["0>1 load unused, [x]", "1>2 r = unused & 65535", "2>$ nop"]);
    check("store32 [x], r; load64 r, [x]", &["0>1 store [x], r & 4294967295", "1>$ load r, [x]"]);
    let program = program("shared x\nthread p\nload8 r, [x]\nend");
    assert!(program.threads()[0].location(Loc(1)).within, "no fence fits into a load");
}

#[test]
fn constants_cannot_be_set_from_outside() {
    let source = "const N = 2\nparam M = N + 1\nshared a[M]\nthread p\nend";
    assert_eq!(program(source).cells(), 3);
    let define = |name: &str| read(source, &[(name.to_string(), 5)], &Limits::default());
    assert_eq!(define("M").expect("a parameter").program.cells(), 5);
    let wrong = define("N").expect_err("a constant");
    assert_eq!(wrong.diagnostics()[0].help.as_deref(), Some("`N` is a constant; `param N = …` can be set"));
}

#[test]
fn a_call_has_registers_and_labels_of_its_own() {
    let source = "shared l, m\n\
        inline acquire(l, out)\nagain: xchg r, [l], 1\nif r != 0 goto again\nout = r + 1\nend\n\
        thread p\nr = 7\nacquire(m, got)\nagain: acquire(l, got)\nend\n\
        forbid p@acquire.again && p@again";
    let text = program(source);
    assert_eq!(
        edges(&text),
        [
            "0>1 r = 7",
            "1>2 xchg acquire_r_1, [m], 1",
            "2>1 assume acquire_r_1 != 0",
            "2>3 assume !(acquire_r_1 != 0)",
            "3>4 got = acquire_r_1 + 1",
            "4>5 xchg acquire_r_2, [l], 1",
            "5>4 assume acquire_r_2 != 0",
            "5>6 assume !(acquire_r_2 != 0)",
            "6>$ got = acquire_r_2 + 1",
        ]
    );
    let texts: Vec<&str> = text.threads()[0].edges().map(|(_, e)| e.text.as_str()).collect();
    assert_eq!([texts[1], texts[4]], ["xchg r, [m], 1", "got = r + 1"]);
    assert_eq!(
        predicate(source),
        "forbid (p@acquire_again_1 || p@again) && p@again",
        "the second call begins where the thread has a label of its own"
    );
}

#[test]
fn fields_are_addresses() {
    let source = "struct node { value, next }\nshared head = n, n[2 * node]\nthread p\nload r, [head]\n\
        store [r.next], n.value\nend\nnever [n.next] == 1 && p.r == 2";
    let read = program(source);
    assert_eq!(edges(&read), ["0>1 load r, [head]", "1>$ store [r + 1], 1"]);
    assert_eq!((read.cells(), predicate(source).as_str()), (5, "never [n + 1] == 1 && p.r == 2"));
    check_wrong(
        "struct a { x, y }\nstruct b { y, y }\nthread p\nr = 1\nr = r.y + r.z\nend",
        &["2: field `y` stands twice in its struct", "5: which field `y`?", "5: no struct has a field `z`"],
    );
}

#[test]
fn threads_have_memory_of_their_own() {
    let source = "shared x\nthread p[i in 1..=2]\nlocal own[i] = i, next\nstore [own + 1], x; load r, [next]\nend\n\
        never [p[2].own + 1] == 2 && [p[1].next] == 0";
    let read = program(source);
    assert_eq!(read.initial_memory(), [0, 1, 0, 2, 2, 0]);
    assert_eq!(edges(&read)[0], "0>1 store [p[1].next], 0");
    assert_eq!(predicate(source), "never [p[2].own + 1] == 2 && [p[1].next] == 0");
    check_wrong(
        "thread p\nlocal a, a\nrepeat k in 0..1 { local b }\nend",
        &["2: `a` is declared twice", "3: `local` stands in a thread, outside braces"],
    );
}

#[test]
fn new_words_are_names_where_names_can_stand() {
    let words = [
        "const",
        "struct",
        "inline",
        "include",
        "local",
        "while",
        "else",
        "pause",
        "sub",
        "inc",
        "dec",
        "and",
        "or",
        "xor",
        "rmw",
        "load8",
        "store32",
        "membarrier",
    ];
    for word in words {
        let source = format!("param {word} = 1\nthread p\nr = {word}\nend",);
        assert_eq!(edges(&program(&source)), ["0>$ r = 1"], "{word}");
        let source = format!(
            "shared {word}\nthread {word}\n{word}: load r, [{word}]\nif r goto {word}\nend\nforbid {word}@{word}",
        );
        assert_eq!(program(&source).threads()[0].edges().count(), 3, "{word}");
        let source =
            format!("shared x\nthread p\n{word} = 1; xchg {word}, [x], {word}\nend\nnever p.{word} == 1");
        assert_eq!(predicate(&source), format!("never p.{word} == 1"));
    }
}
