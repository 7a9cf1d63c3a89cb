//! Does machine code get the verdicts that its sources have? Programs in C, C++ and Rust with what was worked out by
//! hand about them, compiled in many ways. `OVERTAKE_PROGRAMS=1000` tries every way of compiling on every program.

use overtake::engine::{self, Options};
use overtake::front::Unread;
use overtake::front::elf::{self, CodeFile};
use overtake::model::{Instr, Program};
use overtake::query::{Answer, Goal, Limits, Model};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A compiler with its options.
struct Way {
    name: &'static str,
    command: &'static [&'static str],
}

const HARDENED: [&str; 3] = ["-fPIC", "-fstack-protector-all", "-fcf-protection=full"];

const OF_C: [Way; 12] = [
    Way { name: "gcc-O2", command: &["gcc", "-O2"] },
    Way { name: "gcc-O0", command: &["gcc", "-O0"] },
    Way { name: "clang-O2", command: &["clang", "-O2"] },
    Way { name: "clang-O0", command: &["clang", "-O0"] },
    Way { name: "gcc-O1", command: &["gcc", "-O1"] },
    Way { name: "gcc-O3", command: &["gcc", "-O3"] },
    Way { name: "gcc-Os", command: &["gcc", "-Os"] },
    Way { name: "gcc-hardened", command: &["gcc", "-O2", HARDENED[0], HARDENED[1], HARDENED[2]] },
    Way { name: "clang-O1", command: &["clang", "-O1"] },
    Way { name: "clang-O3", command: &["clang", "-O3"] },
    Way { name: "clang-Os", command: &["clang", "-Os"] },
    Way { name: "clang-hardened", command: &["clang", "-O2", HARDENED[0], HARDENED[1], HARDENED[2]] },
];

const OF_RUST: [Way; 4] = [
    Way { name: "rustc-2", command: &["rustc", "-Copt-level=2"] },
    Way { name: "rustc-0", command: &["rustc", "-Copt-level=0"] },
    Way { name: "rustc-3", command: &["rustc", "-Copt-level=3"] },
    Way { name: "rustc-s", command: &["rustc", "-Copt-level=s"] },
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/code")
}

fn skipped(why: &str) {
    // Not by a macro: what those print is kept back where tests pass.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// The object file, unless there is no such compiler.
fn compiled(way: &Way, source: &Path, flags: &[String], folder: &Path) -> Option<Vec<u8>> {
    let extension = source.extension().and_then(|e| e.to_str());
    let compiler = match (way.command[0], extension) {
        ("gcc", Some("cpp")) => "g++",
        ("clang", Some("cpp")) => "clang++",
        (compiler, _) => compiler,
    };
    let object = folder.join("program.o");
    let mut command = Command::new(compiler);
    command.args(&way.command[1..]).arg("-g").args(flags).arg(source).arg("-o").arg(&object);
    match compiler {
        "rustc" => command.args([
            "--edition=2021",
            "--crate-type=lib",
            "--emit=obj",
            "-Cpanic=abort",
            "-Crelocation-model=static",
            "-Ccodegen-units=1",
        ]),
        _ => command.arg("-c"),
    };
    let output = command.output().ok()?;
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(std::fs::read(object).expect("the compiler has written it"))
}

fn read(bytes: &[u8]) -> Result<Program, String> {
    let files = [CodeFile { name: "program.o", bytes }];
    match elf::read(&files, &elf::Options::default(), &Limits::default()) {
        Ok(input) => Ok(input.program),
        Err(Unread::Wrong(wrong)) => Err(wrong[0].message.clone()),
        Err(Unread::Limit(limit)) => Err(format!("{limit:?}")),
    }
}

fn word<P, E>(answer: Answer<P, E>, words: [&str; 2]) -> String {
    match answer {
        Answer::Holds(_) => words[0].to_string(),
        Answer::Fails(_) => words[1].to_string(),
        Answer::Unknown(limit) => format!("unknown: {limit:?}"),
    }
}

/// What is said under TSO and SC, and of robustness.
fn answers(program: &Program) -> [String; 3] {
    let limits = || Limits { states: Some(200_000), ..Limits::default() };
    let check = |model| {
        let options = Options { model, workers: 1, ..Options::default() };
        let outcome =
            engine::check(program, &Goal::of(program), &options, &limits()).expect("no internal error");
        word(outcome.answer, ["safe", "violated"])
    };
    let options = Options { workers: 1, ..Options::default() };
    let robust = engine::robust(program, &options, &limits()).expect("no internal error");
    [check(Model::Tso), check(Model::Sc), word(robust.answer, ["true", "false"])]
}

#[test]
fn every_way_of_compiling_has_the_verdict_of_the_source() {
    let Ok(list) = std::fs::read_to_string(corpus().join("expected.jsonl")) else {
        return skipped("the programs in C are not there");
    };
    let wanted: usize = std::env::var("OVERTAKE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let folder = std::env::temp_dir().join(format!("overtake-code-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room for object files");
    let (mut objects, mut refused, mut open, mut wrong) = (0, Vec::new(), 0, Vec::new());
    for (n, line) in list.lines().enumerate() {
        let expected: Value = serde_json::from_str(line).expect("it is JSON");
        let file = expected["file"].as_str().expect("a file has a name");
        let flags: Vec<String> = serde_json::from_value(expected["flags"].clone()).expect("flags are words");
        let ways: &[Way] = if file.ends_with(".rs") { &OF_RUST } else { &OF_C };
        // Each program in some way or other, unless all are asked for.
        let few = if wanted >= 1000 { ways.len() } else { wanted.min(ways.len()) };
        for way in (0..few).map(|k| &ways[(n + k) % ways.len()]) {
            let Some(bytes) = compiled(way, &corpus().join(file), &flags, &folder) else {
                skipped(&format!("{file} by {}: there is no such compiler", way.name));
                continue;
            };
            objects += 1;
            let what = format!("{file} {} {}", flags.join(" "), way.name);
            let program = match read(&bytes) {
                Ok(program) => program,
                Err(why) => {
                    refused.push(format!("{what}: {why}"));
                    continue;
                }
            };
            let except = &expected["except"][way.name];
            let want = ["tso", "sc", "robust"].map(|key| {
                let value = if except[key].is_null() { &expected[key] } else { &except[key] };
                value.as_str().map_or_else(|| value.to_string(), str::to_string)
            });
            for (got, want) in answers(&program).into_iter().zip(want) {
                match got.starts_with("unknown") {
                    // What robustness is where accesses have several sizes is for no engine to say.
                    true if program.mixes_sizes() => {}
                    true => open += 1,
                    false if got != want => wrong.push(format!("{what}: {got} instead of {want}")),
                    false => {}
                }
            }
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let few = objects / 50 + 4;
    assert!(refused.len() <= few, "{} of {objects} are refused:\n{}", refused.len(), refused.join("\n"));
    assert!(open <= few, "{open} questions have no answer");
}

#[test]
fn what_is_no_code_is_refused() {
    let object = {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
        bytes
    };
    let mut aarch64 = object.clone();
    aarch64[16] = 1;
    aarch64[18] = 183;
    aarch64[20] = 1;
    aarch64[52] = 64;
    let mut small = object.clone();
    small[4] = 1;
    let cases: [(&[u8], &str); 5] = [
        (b"\x7fELF", "cannot be read"),
        (&object[..20], "cannot be read"),
        (&small, "32-bit"),
        (&aarch64, "not for x86-64"),
        (b"!<arch>\n", "no object file that is asked for"),
    ];
    for (bytes, why) in cases {
        let said = read(bytes).expect_err("it is no program");
        assert!(said.contains(why), "{said}");
    }
}

/// What is said of a program in C that is written here, under TSO, SC, and of robustness; or why it is refused. Nothing
/// if there is no compiler.
fn of_c(source: &str) -> Option<Result<[String; 3], String>> {
    Some(read(&object_of(source)?).map(|program| answers(&program)))
}

fn object_of(source: &str) -> Option<Vec<u8>> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("overtake-c-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room for object files");
    let file = folder.join("program.c");
    std::fs::write(&file, source).expect("the source is small");
    let way = Way { name: "gcc-O1", command: &["gcc", "-O1", "-w"] };
    let bytes = compiled(&way, &file, &[], &folder);
    let _ = std::fs::remove_dir_all(&folder);
    if bytes.is_none() {
        skipped("there is no gcc");
    }
    bytes
}

const TWO_THREADS: &str = "
    #include <assert.h>
    #include <pthread.h>
    #include <stdint.h>
    #include <stdlib.h>
    static void *left(void *);
    static void *right(void *);
    int main(void) {
        pthread_t a, b;
        pthread_create(&a, 0, left, 0);
        pthread_create(&b, 0, right, 0);
        pthread_join(a, 0);
        pthread_join(b, 0);
        extern void finally(void);
        finally();
        return 0;
    }
    ";

#[test]
fn parts_of_a_word_are_stored_alone_and_loaded_together() {
    let source = "
        static union { volatile uint64_t all; volatile uint32_t half[2]; } word;
        static volatile uint64_t seen[2];
        static void *left(void *unused) { word.half[0] = 1; FENCE; seen[0] = word.all; return 0; }
        static void *right(void *unused) { word.half[1] = 1; FENCE; seen[1] = word.all; return 0; }
        void finally(void) { assert(!(seen[0] == 1 && seen[1] == 1ull << 32)); }";
    for (fence, tso) in [("", "violated"), ("__asm__ volatile(\"mfence\" ::: \"memory\")", "safe")] {
        let source = TWO_THREADS.to_string() + &source.replace("FENCE", fence);
        let Some(said) = of_c(&source) else { return };
        let [under_tso, under_sc, robust] = said.expect("both halves are one cell");
        assert_eq!((&under_tso[..], &under_sc[..]), (tso, "safe"), "{fence}");
        assert_eq!(robust, "unknown: MixedSizes");
    }
}

#[test]
fn a_locked_instruction_changes_its_part_alone() {
    let source = "
        static union { volatile uint64_t all; volatile uint32_t half[2]; volatile uint8_t byte[8]; } word;
        static void *left(void *unused) { __atomic_fetch_add(&word.half[0], 1, 5); OTHER; return 0; }
        static void *right(void *unused) { __atomic_fetch_add(&word.half[0], 0xffffffff, 5); return 0; }
        void finally(void) { assert(word.all == EXPECTED); }";
    let others = [
        ("word.byte[7] = 2", "0x0200000000000000"),
        ("word.half[1] = 7", "0x0000000700000000"),
        ("(void)0", "0"),
        ("__atomic_fetch_or(&word.all, 1ull << 40, 5)", "1ull << 40"),
        ("uint32_t old = 0; __atomic_compare_exchange_n(&word.half[1], &old, 5, 0, 5, 5)", "5ull << 32"),
    ];
    for (other, expected) in others {
        let source = TWO_THREADS.to_string() + source;
        let Some(said) = of_c(&source.replace("OTHER", other).replace("EXPECTED", expected)) else { return };
        let [tso, sc, _] = said.expect("a locked instruction can change a part");
        assert_eq!((&tso[..], &sc[..]), ("safe", "safe"), "{other}");
        let wrong = source.replace("OTHER", other).replace("EXPECTED", "0x123456");
        let [tso, sc, _] = of_c(&wrong).expect("gcc is there").expect("it is the same");
        assert_eq!((&tso[..], &sc[..]), ("violated", "violated"), "{other}");
    }
}

#[test]
fn parts_that_were_never_written_are_not_guessed() {
    let source = "
        static uint64_t *volatile shared;
        static void *left(void *unused) {
            uint64_t *block = malloc(8);
            *(volatile uint32_t *)block = 1;
            shared = block;
            return 0;
        }
        static void *right(void *unused) {
            uint64_t *block = shared;
            if (block) assert(*(volatile uint64_t *)block == 1);
            return 0;
        }
        void finally(void) {}";
    let Some(said) = of_c(&(TWO_THREADS.to_string() + source)) else { return };
    let why = said.expect_err("half of the word is never written");
    assert!(why.contains("before it is written") && why.contains("in `right`"), "{why}");
}

/// Whether an access in parts decides, and the verdict if it does not.
const IN_PARTS: &str = "unknown: InParts";

#[test]
fn what_crosses_a_border_of_eight_bytes_may_be_seen_half_done() {
    let source = "
        static struct __attribute__((packed, aligned(64))) { char before[SHIFT]; volatile uint64_t word; } block;
        static void *left(void *unused) { block.word = -1; return 0; }
        static void *right(void *unused) { uint64_t seen = block.word; assert(SAID); return 0; }
        void finally(void) { assert(LAST); }";
    let cases = [
        // Half of the store is seen, either half, or all of it, or nothing.
        ("60", "seen == 0 || seen == -1ull", "1", IN_PARTS),
        ("4", "seen == 0 || seen == -1ull || seen == 0xffffffff", "1", IN_PARTS),
        ("4", "seen == 0 || seen == -1ull || seen == 0xffffffffull << 32", "1", IN_PARTS),
        ("4", "(uint32_t)seen == 0 || (uint32_t)seen == 0xffffffff", "1", "safe"),
        ("60", "seen != -1ull", "1", "violated"),
        ("60", "seen != 0", "1", "violated"),
        ("60", "1", "block.word == -1ull", "safe"),
        ("60", "1", "block.word == 0", "violated"),
        // Within eight bytes there are no halves.
        ("8", "seen == 0 || seen == -1ull", "1", "safe"),
    ];
    for (shift, said, last, verdict) in cases {
        let source = source.replace("SHIFT", shift).replace("SAID", said).replace("LAST", last);
        let Some(told) = of_c(&(TWO_THREADS.to_string() + &source)) else { return };
        let [tso, sc, robust] = told.expect("it is covered");
        let word = |told: &str| if told.starts_with(IN_PARTS) { IN_PARTS } else { told }.to_string();
        assert_eq!([word(&tso), word(&sc)], [verdict; 2], "{source}");
        assert_eq!(word(&robust), if shift == "8" { "true" } else { IN_PARTS }, "{source}");
    }
}

#[test]
fn what_stands_for_never_written_is_in_no_part() {
    let source = "
        static char *volatile shared;
        static void *left(void *unused) {
            char *block = malloc(16);
            shared = block;
            *(volatile uint64_t *)(block + 4) = 1;
            return 0;
        }
        static void *right(void *unused) {
            char *block = shared;
            if (block) assert(*(volatile uint64_t *)(block + 4) == 1);
            return 0;
        }
        void finally(void) {}";
    let Some(said) = of_c(&(TWO_THREADS.to_string() + source)) else { return };
    let why = said.expect_err("it may not be written yet");
    assert!(why.contains("before it is written"), "{why}");
}

#[test]
fn sixteen_bytes_are_two_halves_in_either_order() {
    let source = "
        typedef long long pair __attribute__((vector_size(16)));
        static union { volatile pair all; volatile uint64_t half[2]; } block;
        static void *left(void *unused) { block.all = (pair){ 1, 1 }; return 0; }
        static void *right(void *unused) {
            uint64_t a = block.half[FIRST], b = block.half[1 - FIRST];
            assert(SAID);
            return 0;
        }
        void finally(void) { assert(block.half[0] == 1 && block.half[1] == 1); }";
    let cases = [
        ("0", "!(a && !b)", IN_PARTS),
        ("1", "!(a && !b)", IN_PARTS),
        ("0", "a <= 1 && b <= 1", "safe"),
        ("0", "a != 2", "safe"),
    ];
    for (first, said, verdict) in cases {
        let source = source.replace("FIRST", first).replace("SAID", said);
        let Some(told) = of_c(&(TWO_THREADS.to_string() + &source)) else { return };
        let [tso, sc, _] = told.expect("it is covered");
        let word = |told: &str| if told.starts_with(IN_PARTS) { IN_PARTS } else { told }.to_string();
        assert_eq!([word(&tso), word(&sc)], [verdict; 2], "{source}");
    }
}

#[test]
fn a_lock_that_cannot_be_had_is_no_fence() {
    let source = "
        static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
        static volatile int x, y, seen_x, seen_y;
        __attribute__((constructor)) static void begin(void) { TAKEN; }
        static void *left(void *unused) { x = 1; pthread_rwlock_trywrlock(&lock); seen_y = y; return 0; }
        static void *right(void *unused) { y = 1; pthread_rwlock_trywrlock(&lock); seen_x = x; return 0; }
        void finally(void) { assert(seen_x || seen_y); }";
    for taken in ["pthread_rwlock_wrlock(&lock)", "pthread_rwlock_rdlock(&lock)"] {
        let Some(said) = of_c(&(TWO_THREADS.to_string() + &source.replace("TAKEN", taken))) else { return };
        let [tso, sc, _] = said.expect("it is covered");
        assert_eq!((&tso[..], &sc[..]), ("violated", "safe"), "{taken}");
    }
}

#[test]
fn a_barrier_lets_as_many_pass_as_it_waits_for() {
    let source = "
        #include <assert.h>
        #include <pthread.h>
        static pthread_barrier_t barrier;
        static int passed;
        static void *run(void *unused) {
            pthread_barrier_wait(&barrier);
            assert(__atomic_fetch_add(&passed, 1, 5) < MOST);
            return 0;
        }
        int main(void) {
            pthread_t threads[3];
            pthread_barrier_init(&barrier, 0, 2);
            for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, run, 0);
            pthread_join(threads[0], 0);
            return 0;
        }";
    for (most, verdict) in [("2", "safe"), ("1", "violated")] {
        let Some(said) = of_c(&source.replace("MOST", most)) else { return };
        let [tso, sc, _] = said.expect("it is covered");
        assert_eq!([&tso[..], &sc[..]], [verdict; 2], "{most}");
    }
}

#[test]
fn a_block_that_grows_keeps_what_is_in_it() {
    let source = "
        static void *left(void *unused) {
            volatile int *block = malloc(4);
            block[0] = 7;
            volatile int *larger = realloc((void *)block, 8);
            larger[1] = 8;
            assert(SAID);
            free((void *)larger);
            return 0;
        }
        static void *right(void *unused) { free(realloc(0, 4)); return 0; }
        void finally(void) {}";
    for (said, verdict) in
        [("larger[0] == 7", "safe"), ("larger[0] != 7", "violated"), ("block[0] == 7", "violated")]
    {
        for reuse in BOTH {
            let source = TWO_THREADS.to_string() + &source.replace("SAID", said);
            let Some((told, _)) = with_heap(&source, reuse) else { return };
            assert_eq!(told, [verdict; 2], "{said} {reuse:?}");
        }
    }
}

#[test]
fn a_stack_may_be_anywhere() {
    let source = "
        static long own[512] __attribute__((aligned(16)));
        static volatile int worked;
        __attribute__((used, noinline)) static void work(void) { worked = 1; }
        __attribute__((constructor)) static void begin(void) {
            __asm__ volatile(\"mov %%rsp, %%rbx; mov %0, %%rsp; call work; mov %%rbx, %%rsp\"
                             : : \"r\"(own + 512) : \"rbx\", \"rax\", \"memory\", \"cc\");
        }
        static void *left(void *unused) { assert(worked); return 0; }
        static void *right(void *unused) { worked = 1; return 0; }
        void finally(void) {}";
    let Some(said) = of_c(&(TWO_THREADS.to_string() + source)) else { return };
    let [tso, sc, _] = said.expect("it is covered");
    assert_eq!((&tso[..], &sc[..]), ("safe", "safe"));
}

#[test]
fn the_low_bits_of_a_sum_are_made_of_low_bits() {
    // What stands above sixteen bits of a register was never written, and is not stored.
    let source = "
        static volatile uint16_t word;
        static void *left(void *unused) {
            uint16_t old, new;
            __asm__ volatile(\"mov %2, %%ax; 1: mov %%ax, %%cx; OP; lock cmpxchg %%cx, %2; jne 1b; mov %%ax, %0; mov %%cx, %1\"
                             : \"=m\"(old), \"=m\"(new), \"+m\"(word) : : \"rax\", \"rcx\", \"rdx\", \"memory\", \"cc\");
            assert(new == WANTED);
            return 0;
        }
        static void *right(void *unused) { return (void *)(long)word; }
        void finally(void) { assert(word == WANTED); }";
    let cases = [
        ("mov $5, %%dx; or %%edx, %%ecx", "5", "safe"),
        ("mov $5, %%dx; lea 2(%%rcx,%%rdx), %%ecx", "7", "safe"),
        ("mov $5, %%dx; sub %%edx, %%ecx; neg %%ecx", "5", "safe"),
        ("mov $5, %%dx; xor %%edx, %%ecx; not %%ecx", "0xfffa", "safe"),
        ("mov $5, %%dx; or %%edx, %%ecx; shr $1, %%ecx", "2", "violated"),
    ];
    for (op, wanted, verdict) in cases {
        let source = source.replace("OP", op).replace("WANTED", wanted);
        let Some(said) = of_c(&(TWO_THREADS.to_string() + &source)) else { return };
        let [tso, sc, _] = said.expect("it is covered");
        assert_eq!([&tso[..], &sc[..]], [verdict; 2], "{op}");
    }
}

#[test]
fn what_is_added_was_initialised() {
    let source = "
        static volatile uint16_t word;
        static void *left(void *unused) {
            uint64_t old;
            __asm__ volatile(\"SET; lock xadd %%dx, %1; movzwl %%dx, %%edx; mov %%rdx, %0\"
                             : \"=m\"(old), \"+m\"(word) : : \"rdx\", \"memory\", \"cc\");
            assert(old == 0);
            return 0;
        }
        static void *right(void *unused) { return (void *)(long)word; }
        void finally(void) { assert(word SAID); }";
    let cases = [
        ("or $-1, %%edx", "== 0xffff", "safe"),
        ("or $-1, %%edx", "!= 0xffff", "violated"),
        ("mov $3, %%dx", "== 3", "safe"),
        // Nobody knows what is in rdx at first.
        ("nop", "== 0", "violated"),
    ];
    for (set, said, verdict) in cases {
        let source = source.replace("SET", set).replace("SAID", said);
        let Some(told) = of_c(&(TWO_THREADS.to_string() + &source)) else { return };
        let [tso, sc, _] = told.expect("it is covered");
        assert_eq!([&tso[..], &sc[..]], [verdict; 2], "{set} {said}");
    }
}

/// The same with `--heap`, and whether there is a warning.
fn with_heap(source: &str, reuse: elf::Reuse) -> Option<([String; 2], bool)> {
    let bytes = object_of(source)?;
    let options = elf::Options { reuse, ..elf::Options::default() };
    let files = [CodeFile { name: "program.o", bytes: &bytes }];
    let input = elf::read(&files, &options, &Limits::default()).expect("it is covered");
    let [tso, sc, _] = answers(&input.program);
    Some(([tso, sc], !input.warnings.is_empty()))
}

const BOTH: [elf::Reuse; 2] = [elf::Reuse::Reuse, elf::Reuse::Fresh];

#[test]
fn memory_that_was_given_back_is_not_to_be_used() {
    let source = "
        static int *volatile shared;
        static volatile int ready, done;
        static void *left(void *unused) {
            int *block = malloc(sizeof(int));
            *block = 1;
            shared = block;
            ready = 1;
            WAIT
            free(block);
            return 0;
        }
        static void *right(void *unused) {
            if (ready) { volatile int seen = *(volatile int *)shared; (void)seen; }
            done = 1;
            return 0;
        }
        void finally(void) {}";
    for (wait, verdict) in [("", "violated"), ("while (!done) ;", "safe")] {
        for reuse in BOTH {
            let source = TWO_THREADS.to_string() + &source.replace("WAIT", wait);
            let Some((said, warned)) = with_heap(&source, reuse) else { return };
            assert_eq!(said, [verdict; 2], "{wait} {reuse:?}");
            assert_eq!(warned, reuse == elf::Reuse::Fresh);
        }
    }
}

#[test]
fn memory_is_given_back_once() {
    let source = "
        static int *volatile shared;
        static void *left(void *unused) { int *own = TAKE; if (own) free(own); return 0; }
        static void *right(void *unused) { int *own = TAKE; if (own) free(own); return 0; }
        __attribute__((constructor)) static void begin(void) { shared = malloc(sizeof(int)); }
        void finally(void) {}";
    let atomic = "__atomic_exchange_n(&shared, 0, 5)";
    for (take, verdict) in [("shared; shared = 0", "violated"), (atomic, "safe")] {
        for reuse in BOTH {
            let source = TWO_THREADS.to_string() + &source.replace("TAKE", take);
            let Some((said, _)) = with_heap(&source, reuse) else { return };
            assert_eq!(said, [verdict; 2], "{take} {reuse:?}");
        }
    }
    let inside = "
        static void *left(void *unused) { int *block = malloc(8); *block = 1; free(block + 1); return 0; }
        static void *right(void *unused) { return 0; }
        void finally(void) {}";
    let Some((said, _)) = with_heap(&(TWO_THREADS.to_string() + inside), BOTH[0]) else { return };
    assert_eq!(said, ["violated"; 2], "what is given back has to be a block");
}

/// Two blocks lie on a stack. One thread takes both, gives the upper one back and puts a new one on the stack: if that has
/// the same address, a thread that was late takes the stack for unchanged, and puts on it what was taken.
const STACK: &str = "
    struct node { struct node *next; };
    static struct node *top, *upper, *lower, *volatile taken;
    static void push(struct node *node) {
        struct node *old = __atomic_load_n(&top, 5);
        do node->next = old; while (!__atomic_compare_exchange_n(&top, &old, node, 0, 5, 5));
    }
    __attribute__((constructor)) static void begin(void) {
        push(lower = malloc(sizeof(struct node)));
        push(upper = malloc(sizeof(struct node)));
    }
    static void *left(void *unused) {
        struct node *old = __atomic_load_n(&top, 5);
        if (old == upper) __atomic_compare_exchange_n(&top, &old, lower, 0, 5, 5);
        return 0;
    }
    static void *right(void *unused) {
        struct node *old = upper;
        if (!__atomic_compare_exchange_n(&top, &old, lower, 0, 5, 5)) return 0;
        old = lower;
        if (!__atomic_compare_exchange_n(&top, &old, 0, 0, 5, 5)) return 0;
        taken = lower;
        free(upper);
        push(malloc(sizeof(struct node)));
        return 0;
    }
    void finally(void) { assert(!taken || top != taken); }";

#[test]
fn an_address_that_is_used_again_confuses_a_stack() {
    for (reuse, verdict) in [(elf::Reuse::Reuse, "violated"), (elf::Reuse::Fresh, "safe")] {
        let Some((said, warned)) = with_heap(&(TWO_THREADS.to_string() + STACK), reuse) else { return };
        assert_eq!(said, [verdict; 2], "{reuse:?}");
        assert_eq!(warned, reuse == elf::Reuse::Fresh);
    }
}

#[test]
fn a_block_that_is_given_out_again_holds_nothing() {
    let source = "
        static volatile int seen;
        static int *volatile shared;
        static void *left(void *unused) {
            int *block = malloc(sizeof(int));
            *(volatile int *)block = 1;
            shared = block;
            free(block);
            block = malloc(sizeof(int));
            BEGIN
            if (*(volatile int *)block == 2) seen = 1;
            return 0;
        }
        static void *right(void *unused) { return shared ? 0 : &seen; }
        void finally(void) {}";
    for (begin, verdict) in [("", "violated"), ("*(volatile int *)block = 3;", "safe")] {
        let source = TWO_THREADS.to_string() + &source.replace("BEGIN", begin);
        let Some((said, _)) = with_heap(&source, elf::Reuse::Reuse) else { return };
        assert_eq!(said, [verdict; 2], "{begin}");
    }
}

#[test]
fn giving_back_is_no_fence() {
    let source = "
        static volatile int x, y, seen[2];
        static int *blocks[2];
        __attribute__((constructor)) static void begin(void) {
            blocks[0] = malloc(sizeof(int));
            blocks[1] = malloc(sizeof(int));
        }
        static void *left(void *unused) {
            x = 1;
            free(blocks[0]);
            blocks[0] = malloc(sizeof(int));
            seen[0] = y;
            return 0;
        }
        static void *right(void *unused) {
            y = 1;
            free(blocks[1]);
            blocks[1] = malloc(sizeof(int));
            seen[1] = x;
            return 0;
        }
        void finally(void) { assert(seen[0] || seen[1]); }";
    for reuse in BOTH {
        let Some((said, _)) = with_heap(&(TWO_THREADS.to_string() + source), reuse) else { return };
        assert_eq!(said, ["violated", "safe"], "{reuse:?}");
    }
}

#[test]
fn eight_bytes_are_exchanged_with_their_halves_in_order() {
    let source = "
        static volatile uint64_t word = 0x0000000500000006;
        static void *left(void *unused) {
            __asm__ volatile(\"mov $5, %%edx; mov $6, %%eax; mov $7, %%ecx; mov $8, %%ebx; lock cmpxchg8b %0\"
                             : \"+m\"(word) : : \"rax\", \"rbx\", \"rcx\", \"rdx\", \"memory\", \"cc\");
            return 0;
        }
        static void *right(void *unused) { return (void *)word; }
        void finally(void) { assert(word == WANTED); }";
    for (wanted, verdict) in [("0x0000000700000008", "safe"), ("0x0000000800000007", "violated")] {
        let Some(said) = of_c(&(TWO_THREADS.to_string() + &source.replace("WANTED", wanted))) else { return };
        let [tso, sc, _] = said.expect("it is covered");
        assert_eq!([&tso[..], &sc[..]], [verdict; 2], "{wanted}");
    }
}

#[test]
fn a_bit_may_be_far_from_its_address() {
    let source = "
        static volatile uint32_t row[4];
        static void *left(void *unused) {
            __asm__ volatile(\"mov %1, %%eax; lock btsl %%eax, %0\" : \"+m\"(row[2]) : \"i\"(BIT) : \"rax\", \"memory\", \"cc\");
            return 0;
        }
        static void *right(void *unused) { __atomic_fetch_or(&row[2], 1u << 31, 5); return 0; }
        void finally(void) { assert(WANTED); }";
    let cases = [
        ("3", "row[2] == ((1u << 31) | 8)", "safe"),
        ("33", "row[3] == 2 && row[2] == 1u << 31", "safe"),
        ("-1", "row[1] == 1u << 31 && row[2] == 1u << 31", "safe"),
        ("-64", "row[0] == 1 && row[2] == 1u << 31", "safe"),
        ("33", "row[2] == ((1u << 31) | 2)", "violated"),
    ];
    for (bit, wanted, verdict) in cases {
        let source = source.replace("BIT", bit).replace("WANTED", wanted);
        let Some(said) = of_c(&(TWO_THREADS.to_string() + &source)) else { return };
        let [tso, sc, _] = said.expect("it is covered");
        assert_eq!([&tso[..], &sc[..]], [verdict; 2], "{bit} {wanted}");
    }
}

#[test]
fn a_thread_may_repeat_an_instruction_as_often_as_it_knows() {
    let source = "
        static volatile uint64_t ready, row[40];
        static void *left(void *unused) {
            uint64_t own[40], *from = own, *to = (uint64_t *)row, n = 40;
            __asm__ volatile(\"rep stosq\" : \"+D\"(from), \"+c\"(n) : \"a\"(7ul) : \"memory\");
            n = 40; from = own;
            __asm__ volatile(\"rep movsq\" : \"+D\"(to), \"+S\"(from), \"+c\"(n) : : \"memory\");
            ready = 1;
            return 0;
        }
        static void *right(void *unused) { if (ready) assert(row[39] == 7 && row[0] == SAID); return 0; }
        void finally(void) {}";
    for (said, verdict) in [("7", "safe"), ("0", "violated")] {
        let Some(told) = of_c(&(TWO_THREADS.to_string() + &source.replace("SAID", said))) else { return };
        let [tso, sc, _] = told.expect("the numbers of times are known");
        assert_eq!([&tso[..], &sc[..]], [verdict; 2], "{said}");
    }
}

#[test]
fn numbers_of_eight_bytes_that_are_not_negative_are_divided() {
    let source = "
        static volatile uint32_t x = 7;
        static volatile long seen;
        static void *left(void *unused) { seen = (long)x / (long)(x + 1ul); return 0; }
        static void *right(void *unused) { x = x * x + 0x80000000u; return 0; }
        void finally(void) { assert(seen SAID); }";
    for (said, verdict) in [(">= 0", "safe"), ("== 5", "violated")] {
        let Some(told) = of_c(&(TWO_THREADS.to_string() + &source.replace("SAID", said))) else { return };
        let [tso, sc, _] = told.expect("it is covered");
        assert_eq!([&tso[..], &sc[..]], [verdict; 2], "{said}");
    }
}

#[test]
fn instructions_are_listed_by_address() {
    let source = "
        static volatile int x, y;
        static void *left(void *unused) {
            while (!x) { if (y == 2) y = 3; else if (y == 4) x = 5; }
            y = x;
            return 0;
        }
        static void *right(void *unused) { x = 1; y = 2; return 0; }
        void finally(void) {}";
    let Some(bytes) = object_of(&(TWO_THREADS.to_string() + source)) else { return };
    let program = read(&bytes).expect("it is covered");
    let offset = |at: &str| {
        let (function, offset) = at.split_once("+0x")?;
        (function == "left").then(|| u64::from_str_radix(offset, 16).expect("it is written in hex"))
    };
    let offsets: Vec<u64> = program.code_lines().iter().filter_map(|line| offset(&line.at)).collect();
    assert!(offsets.len() > 5 && offsets.is_sorted(), "{offsets:?}");
    for (_, edge) in program.threads().iter().flat_map(|thread| thread.edges()) {
        let stored = matches!(edge.instr, Instr::Store { .. });
        let code = program.code(edge.line).expect("every edge is of an instruction");
        assert!(!stored || !code.asm.starts_with("cmp") && !code.asm.starts_with('j'), "{}", code.asm);
    }
}
