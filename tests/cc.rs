//! What do compilers make of a source, and what is said of it? `overtake cc`, and assembly as text. Where there is no
//! compiler, the tests say that they are skipped.

#[path = "common/ran.rs"]
mod ran;

use ran::*;
use std::io::Write;
use std::process::Command;

const HANDOFF: &str = "examples/code/handoff.c";

/// Says so if there is no such program.
fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !there {
        // Not by a macro: what those print is kept back where tests pass.
        let _ = writeln!(std::io::stderr(), "skipped: there is no {program}");
    }
    there
}

fn with_compiler(args: &[&str], compiler: &str) -> Ran {
    Ran::new(command(args).env("CC", compiler).output().expect("the binary starts"))
}

#[test]
fn each_level_has_an_answer_and_the_worst_decides() {
    for compiler in ["gcc", "clang"].into_iter().filter(|compiler| is_there(compiler)) {
        let ran = with_compiler(&["cc", HANDOFF, "--levels", "O0,O2,O2", "--json"], compiler);
        assert_eq!(ran.code, VIOLATED, "{}", ran.err);
        let answer = &ran.objects()[0];
        let levels: Vec<_> = answer["levels"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|l| (&l["level"], &l["verdict"]))
            .collect();
        let both = [("O0", "violated"), ("O2", "violated")].map(|(l, v)| (l.into(), v.into()));
        assert_eq!(levels, both.each_ref().map(|(l, v): &(serde_json::Value, serde_json::Value)| (l, v)));
        assert_eq!((&answer["command"], &answer["verdict"]), (&"cc".into(), &"violated".into()));
        let shows_source =
            |event: &serde_json::Value| event["file"].as_str().is_some_and(|f| f.ends_with("handoff.c"));
        assert!(answer["trace"].as_array().expect("a run").iter().any(shows_source));
        let fixed = with_compiler(&["cc", HANDOFF, "-q", "--", "-O1", "-DFIXED"], compiler);
        assert_eq!((fixed.code, &fixed.out[..]), (0, "-O1: safe\n"), "{}", fixed.err);
    }
}

#[test]
fn differences_between_levels_come_first() {
    if !is_there("gcc") {
        return;
    }
    // The code tells the levels apart by itself, so that no compiler's taste matters.
    let source = "
#include <pthread.h>
#include <stdlib.h>
volatile int x, y, r, s;
#ifdef __OPTIMIZE__
#define FENCE()
#else
#define FENCE() __sync_synchronize()
#endif
void *left(void *a) { x = 1; FENCE(); r = y; return a; }
void *right(void *a) { y = 1; FENCE(); s = x; return a; }
int main(void) {
    pthread_t p, q;
    pthread_create(&p, 0, left, 0);
    pthread_create(&q, 0, right, 0);
    pthread_join(p, 0);
    pthread_join(q, 0);
    if (r == 0 && s == 0) abort();
    return 0;
}
";
    let path = file("differs.c", source.as_bytes());
    let ran = with_compiler(&["cc", path.to_str().expect("a plain name"), "--levels", "O0,O1", "-q"], "gcc");
    let told = "levels differ: safe at -O0, violated at -O1\n\n-O0: safe\n\n-O1: violated\n";
    assert_eq!((ran.code, &ran.out[..]), (VIOLATED, told), "{}", ran.err);
}

#[test]
fn several_sources_are_one_program() {
    if !is_there("gcc") {
        return;
    }
    let main = file(
        "two-main.c",
        b"#include <assert.h>\nint two(void);\nint main(void) { assert(two() == 3); return 0; }\n",
    );
    let two = file("two-two.c", b"int two(void) { return 2; }\n");
    let names = [&main, &two].map(|path| path.to_str().expect("a plain name"));
    let ran = with_compiler(&["cc", names[0], names[1], "--levels", "O0", "-q"], "gcc");
    assert_eq!((ran.code, &ran.out[..]), (VIOLATED, "-O0: violated\n"), "{}", ran.err);
}

#[test]
fn what_does_not_compile_is_said_in_the_compilers_words() {
    let broken = file("broken.c", b"int main(void) { return nothing; }\n");
    let broken = broken.to_str().expect("a plain name");
    let ran = with_compiler(&["cc", broken, "--json"], "no-such-compiler");
    assert_eq!(ran.code, BAD_INPUT);
    assert!(ran.err.contains("there is no `no-such-compiler`, which $CC names"), "{}", ran.err);
    assert_eq!(ran.objects()[0]["verdict"], "error");
    for (args, why) in [
        (&["cc", HANDOFF, "--levels", "O9"][..], "`O9` is no level"),
        (&["cc", HANDOFF, "--levels", "O1", "--", "-O2"], "and so does --levels"),
        (&["cc", "README.md"], "is not that of a source"),
        (&["cc", "nothing.c"], "nothing.c"),
        (&["check", HANDOFF], "`overtake cc` does that"),
    ] {
        let ran = overtake(args);
        assert_eq!(ran.code, BAD_INPUT, "{args:?}");
        assert!(ran.err.contains(why), "{args:?}: {}", ran.err);
    }
    if is_there("gcc") {
        let ran = with_compiler(&["cc", broken], "gcc");
        assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""));
        assert!(ran.err.contains("broken.c:1") && ran.err.contains("nothing"), "{}", ran.err);
    }
}

#[test]
fn assembly_is_assembled_first() {
    if !is_there("as") {
        return;
    }
    let function = |name: &str, own: &str, other: &str, seen: &str| {
        format!(
            "{name}:\n\tmovl $1, {own}(%rip)\n\tmovl {other}(%rip), %eax\n\tmovl %eax, {seen}(%rip)\n\tret\n"
        )
    };
    let data = |name: &str| format!("{name}:\t.long 0\n");
    let functions = function("left", "x", "y", "seen0") + &function("right", "y", "x", "seen1");
    let text = functions + ".data\n" + &["x", "y", "seen0", "seen1"].map(data).concat();
    let path = file("pasted.s", text.as_bytes());
    let name = path.to_str().expect("a plain name");
    let never = "seen0:4 == 0 && seen1:4 == 0";
    let ran = overtake(&["check", name, "--thread", "left", "--thread", "right", "--never", never, "-q"]);
    assert_eq!((ran.code, &ran.out[..]), (VIOLATED, "violated\n"), "{}", ran.err);
    let ran = overtake(&[
        "check", name, "--thread", "left", "--thread", "right", "--never", never, "-q", "--model", "sc",
    ]);
    assert_eq!((ran.code, &ran.out[..]), (0, "safe\n"), "{}", ran.err);
    let wrong = file("wrong.s", b"main:\n\tfrobnicate %eax\n");
    let ran = overtake(&["check", wrong.to_str().expect("a plain name")]);
    assert_eq!(ran.code, BAD_INPUT);
    assert!(ran.err.contains("wrong.s:2") && ran.err.contains("frobnicate"), "{}", ran.err);
}

#[test]
fn bundled_object_files_need_no_compiler() {
    for (name, code, word) in [("handoff", VIOLATED, "violated\n"), ("handoff-fixed", 0, "safe\n")] {
        let ran = overtake(&["check", "-q", &format!("examples/code/{name}.o")]);
        assert_eq!((ran.code, &ran.out[..]), (code, word), "{}", ran.err);
    }
}

#[test]
fn an_instruction_that_two_threads_run_takes_one_fence() {
    let object = "examples/code/handoff.o";
    let ran = overtake(&["fence", object, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let fences = ran.objects()[0]["fences"].as_array().expect("a list").clone();
    assert_eq!(fences.len(), 1, "{fences:?}");
    assert_eq!((&fences[0]["copies"], &fences[0]["line"]), (&2.into(), &21.into()), "{fences:?}");
    let each = overtake(&["fence", object, "--json", "--per-thread"]).objects();
    assert_eq!(each[0]["fences"].as_array().map(Vec::len), Some(2));
    assert!(overtake(&["fence", object]).out.contains("memory_order_seq_cst"));

    if !is_there("as") {
        return;
    }
    let text = b".globl left,right\nleft: movl $1,x(%rip)\n movl y(%rip),%eax\n movl %eax,a(%rip)\n ret\n\
        right: movl $1,y(%rip)\n movl x(%rip),%eax\n movl %eax,b(%rip)\n ret\n\
        .comm x,4\n.comm y,4\n.comm a,4\n.comm b,4\n";
    let source = file("fences.s", text);
    let asked = ["--thread", "left", "--thread", "right", "--never", "a == 0 && b == 0"];
    let ran = overtake(&[&["fence", source.to_str().expect("a plain name")], &asked[..]].concat());
    assert_eq!(ran.first_line(), "found", "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("2 fences"), "{}", ran.out);
}

#[test]
fn what_is_left_out_of_an_answer_is_said_in_it() {
    if !is_there("gcc") {
        return;
    }
    let source = "
#include <pthread.h>
#include <stdlib.h>
static int *volatile shared;
void *left(void *a) { int *block = malloc(4); shared = block; free(block); return a; }
int main(void) {
    pthread_t p;
    pthread_create(&p, 0, left, 0);
    int *block = malloc(4);
    if (shared == block) abort();
    pthread_join(p, 0);
    return 0;
}
";
    let path = file("again.c", source.as_bytes());
    let (path, page) = (path.to_str().expect("a plain name"), file("again.html", b""));
    let page = page.to_str().expect("a plain name");
    let ask =
        |more: &[&str]| with_compiler(&[&["cc", path, "--levels", "O1", "--json"], more].concat(), "gcc");
    let ran = ask(&[]);
    assert_eq!((ran.code, &ran.objects()[0]["warnings"]), (VIOLATED, &serde_json::json!([])), "{}", ran.err);
    let ran = ask(&["--heap", "fresh", "--html", page]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let warnings = &ran.objects()[0]["warnings"];
    assert!(warnings[0].as_str().is_some_and(|said| said.contains("(ABA) is not found")), "{warnings}");
    assert!(std::fs::read_to_string(page).expect("a page").contains("(ABA) is not found"));
    let ran = ask(&["--heap", "never"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("there are reuse and fresh"), "{}", ran.err);
}
