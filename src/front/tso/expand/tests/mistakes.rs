//! What is said about files that make no sense?

use super::*;

#[test]
fn properties_name_their_mistakes() {
    let threads = "shared x\nthread p\ncrit: r = 1\nend\nthread q[i in 1..=2]\nc: r = 1\nend\nthread o[i in 1..=3]\nc: nop\nend\n";
    let check = |query: &str, expect: &str| {
        let source = format!("{threads}{query}");
        check_wrong(&source, &[&format!("11: {expect}")]);
    };
    check("never p.s == 1", "thread `p` has no register `s`");
    check("never p@crti", "thread `p` has no label `crti`");
    check("never pp@crit", "unknown thread `pp`");
    check("never q@c", "which of the threads `q`?");
    check("never q[3]@c", "there is no thread `q[3]`");
    check("never p[1]@crit", "thread `p` has no index");
    check("never r == 1", "unknown name `r`");
    check("never [x + 1] == 1", "there is no memory at address 1");
    check("never [p.r] == 1", "expected a constant");
    check("never x[0] == 1", "`x[0]` has no value");
    check("never 1 / p.r == 1", "this property divides by something that may be zero");
    check("forbid two i: q[i]@c && o[i]@c", "threads `q` and `o` have different indices");
    check("forbid two i: p@crit", "no thread here has the index `i`");
    check("forbid all i in 0..4000000: p@crit", "this property unfolds to too many cases");
}

#[test]
fn second_declarations_are_errors() {
    check_wrong(
        "shared x\nparam x = 1\nshared y, y\nthread p\nend\nthread p\nend\nthread q[i in 1..=2]\nend\nthread q[2]\nl: nop\nl: nop\nend",
        &[
            "2: `x` is declared twice",
            "3: `y` is declared twice",
            "6: thread `p` is defined twice",
            "10: thread `q[2]` is defined twice",
            "12: label `l` stands twice in its thread",
        ],
    );
}

#[test]
fn declarations_are_checked() {
    check_wrong("thread p[i in 1..=0]\nend\nforbid two i: p[i]@l && p@l", &["1: there are no threads `p`"]);
    check_wrong(
        "shared a[0], b[2] = {1, 2, 3}\nthread p\nend",
        &["1: `a` cannot have 0 cells", "1: `b` has 2 cells, and 3 initial values"],
    );
    check_wrong(
        "shared a[N]\nparam N = M\nparam M = M + 1\nthread p\nr = K\nend",
        &[
            "1: parameter `N` is used before it has a value",
            "2: parameter `M` is used before it has a value",
            "3: parameter `M` is used before it has a value",
            "5?: register `K` is read but never assigned",
        ],
    );
    check_wrong("thread p\nr = N\nend\nparam N = 1", &["2: parameter `N` is used before it has a value"]);
    check_wrong("", &["0: there are no threads in this file"]);
    check_wrong("// nothing\n# here", &["0: there are no threads in this file"]);
    check_wrong("param Z = 0\nparam N = 1 / Z\nthread p\nr = N\nend", &["2: division by zero"]);
    check_wrong(
        "shared a[1000000], b[1000000]\nthread p\nend",
        &["1: the shared memory has more than 1048576 cells"],
    );
    check_wrong("thread p[i in 0..1001]\nend", &["1: a program has at most 1000 threads"]);
}

#[test]
fn assignments_need_registers() {
    check_wrong(
        "param N = 1\nshared x\nthread p[i in 0..2]\nx = 3\nload x, [x]\nN = 2\ni = 2\nrepeat k in 0..2 { k = 1 }\nend",
        &[
            "4: `x` is a shared variable, not a register",
            "5: `x` is a shared variable, not a register",
            "6: `N` is a parameter, and keeps its value",
            "7: `i` is an index or counter, and keeps its value",
            "8: `k` is an index or counter, and keeps its value",
        ],
    );
}

#[test]
fn doubtful_things_are_warnings() {
    check_wrong(
        "shared flag0\nthread p\nload r, [flagg0]\nend",
        &["3?: register `flagg0` is read but never assigned"],
    );
    check_wrong(
        "thread p\ngoto l\nnop\nnop\nl: halt\nfence\nend",
        &["3?: this instruction can never run", "6?: this instruction can never run"],
    );
    check_wrong("shared x\nthread p\nend\nnever x == 1", &["4?: this compares the address of `x`"]);
}

#[test]
fn labels_must_be_in_reach() {
    check_wrong(
        "thread p\nrepeat k in 0..2 { l: nop }\ngoto l\ngoto m\nend",
        &["3: unknown label `l`", "4?: this instruction can never run", "4: unknown label `m`"],
    );
}

#[test]
fn what_explodes_is_stopped() {
    let body = |body: &str| format!("shared x\nthread p[i in 0..100]\n{body}\nend");
    let nested = "repeat a in 0..100000 { repeat b in 0..100000 { repeat c in 0..100000 {";
    check_wrong(&body(&format!("{nested} }} }} }}")), &["3: this `repeat` goes round too often"]);
    check_wrong(
        &body(&format!("{nested} nop }} }} }}")),
        &["3: the program unfolds to more than 1000000 instructions"],
    );
    check_wrong(
        &body("repeat k in -9223372036854775808..=9223372036854775807 { l: }"),
        &["3: this `repeat` goes round too often"],
    );
    check_wrong(
        &body(&format!("r = r{}", " + r".repeat(300))),
        &["3: this expression is nested more than 256 levels deep"],
    );
}

#[test]
fn calls_are_checked() {
    let with = |rest: &str| format!("shared x\ninline f(a)\na = 1\nend\n{rest}");
    check_wrong(&with("thread p\nf(1)\nend"), &["3: `a` stands for `1` here"]);
    check_wrong(&with("thread p\nf(r, s)\nend"), &["6: `f` takes 1 argument, and gets 2"]);
    check_wrong(&with("thread p\ng(r)\nend"), &["6: there is no inline `g`"]);
    check_wrong("inline f()\nf()\nend\nthread p\nf()\nend", &["2: `f` calls itself"]);
    check_wrong("inline f()\ngoto l\nend\nthread p\nl: f()\nend", &["2: unknown label `l`"]);
    check_wrong(
        "inline f(a, a)\nend\ninline f()\nend\nthread p\nend",
        &["1: parameter `a` stands twice", "3: inline `f` is defined twice"],
    );
    let doubling: String = (1..30).map(|i| format!("inline f{i}()\nf{0}(); f{0}()\nend\n", i + 1)).collect();
    let source = format!("{doubling}inline f30()\nend\nthread p\nf1()\nend");
    assert!(read(&source, &[], &Limits::default()).is_err(), "2^29 calls");
}
