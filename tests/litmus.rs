//! Do litmus tests mean what x86 means? Final states of small tests, each found by the explorer and by the
//! plain machines of `semantics`, and by SC alone in programs with their delays built in; flags against
//! Rust's own arithmetic; and, where it is there, a corpus of tests with known answers.

mod common;

use common::finals::{States, by_definition, by_explorer, everything};
use common::plain::finals;
use common::{SMALL, Shape, Taste, cases, program};
use overtake::engine::{self, Options, Pruning};
use overtake::front::litmus::{read, read_test};
use overtake::front::tso;
use overtake::model::litmus::Litmus;
use overtake::model::{Atom, Expr, Program, Value};
use overtake::query::{Answer, Clause, Goal, Limits, Model, When};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

#[track_caller]
fn test(source: &str) -> (Program, Litmus) {
    let (input, litmus) =
        read_test(source, &Limits::default()).unwrap_or_else(|wrong| panic!("{source}\n{wrong:#?}"));
    (input.program, litmus)
}

/// The final states as text, found in both ways.
#[track_caller]
fn states(source: &str, model: Model) -> Vec<String> {
    let (program, litmus) = test(source);
    let atoms: Vec<Atom> = litmus.observed.iter().map(|o| o.atom.clone()).collect();
    let found = by_explorer(&program, &atoms, model, 1).expect("the test is small");
    assert_eq!(Some(&found), by_definition(&program, &atoms, model, 200_000).as_ref(), "{source}");
    let show = |values: &Vec<Value>| {
        let cells =
            litmus.observed.iter().zip(values).map(|(o, v)| format!("{}={}", o.name, litmus.show(o, *v)));
        cells.collect::<Vec<_>>().join(" ")
    };
    found.iter().map(show).collect()
}

/// Can the condition's predicate hold at the end? Under SC, and under TSO.
#[track_caller]
fn check(source: &str, sc: bool, tso: bool) {
    let (program, litmus) = test(source);
    let atoms: Vec<Atom> = litmus.observed.iter().map(|o| o.atom.clone()).collect();
    for (model, expected) in [(Model::Sc, sc), (Model::Tso, tso)] {
        let found = by_explorer(&program, &atoms, model, 1).expect("the test is small");
        assert_eq!(Some(&found), by_definition(&program, &atoms, model, 200_000).as_ref(), "{source}");
        assert_eq!(found.iter().any(|v| litmus.holds(&program, v)), expected, "{model:?}\n{source}");
        let options = Options { model, workers: 1, ..Options::default() };
        let outcome = engine::check(&program, &Goal::of(&program), &options, &Limits::default());
        let violated = matches!(outcome.expect("no internal error").answer, Answer::Fails(_));
        assert_eq!(violated, expected, "{model:?}\n{source}");
    }
}

/// A 32-bit test without initial state, its cells in rows.
fn x86(rows: &str, condition: &str) -> String {
    let threads = rows.lines().next().map_or(1, |row| row.split('|').count());
    let names: Vec<String> = (0..threads).map(|t| format!("P{t}")).collect();
    let rows: String = rows.lines().map(|row| format!("{row} ;\n")).collect();
    format!("X86 T\n{{}}\n{} ;\n{rows}{condition}\n", names.join("|"))
}

/// One thread of a 64-bit test.
fn alone(init: &str, lines: &str, locations: &str) -> String {
    let rows: String = lines.split(';').map(|line| format!("{} ;\n", line.trim())).collect();
    format!("X86_64 T\n{{{init}}}\nP0 ;\n{rows}locations [{locations}]\n")
}

#[test]
fn a_store_may_wait_while_a_load_overtakes_it() {
    let sb = |between: &str| {
        x86(
            &format!("MOV [x],$1 | MOV [y],$1\n{between} | {between}\nMOV EAX,[y] | MOV EAX,[x]"),
            r"exists (0:EAX=0 /\ 1:EAX=0)",
        )
    };
    check(&sb(""), false, true);
    check(&sb("MFENCE"), false, false);
    check(&sb("LFENCE"), false, true);
    check(&sb("sfence"), false, true);
    check(&sb("XCHG EBX,[z]"), false, false);
    check(&sb("LOCK INC [z]"), false, false);
    check(&sb("INC [z]"), false, true);
}

#[test]
fn stores_stay_in_order_and_so_do_loads() {
    let mp = "MOV [x],$1 | MOV EAX,[y]\nMOV [y],$1 | MOV EBX,[x]";
    check(&x86(mp, r"exists (1:EAX=1 /\ 1:EBX=0)"), false, false);
    let lb = "MOV EAX,[x] | MOV EAX,[y]\nMOV [y],$1 | MOV [x],$1";
    check(&x86(lb, r"exists (0:EAX=1 /\ 1:EAX=1)"), false, false);
    let two = "MOV [x],$1 | MOV [y],$1\nMOV [y],$2 | MOV [x],$2";
    check(&x86(two, r"exists (x=1 /\ y=1)"), false, false);
    let r = "MOV [x],$1 | MOV [y],$2\nMOV [y],$1 | MOV EAX,[x]";
    check(&x86(r, r"exists (y=2 /\ 1:EAX=0)"), false, true);
    let s = "MOV [x],$2 | MOV EAX,[y]\nMOV [y],$1 | MOV [x],$1";
    check(&x86(s, r"exists (1:EAX=1 /\ x=2)"), false, false);
}

#[test]
fn all_threads_see_stores_in_one_order() {
    let iriw = "MOV [x],$1 | MOV [y],$1 | MOV EAX,[x] | MOV EAX,[y]\n | | MOV EBX,[y] | MOV EBX,[x]";
    let condition = r"exists (2:EAX=1 /\ 2:EBX=0 /\ 3:EAX=1 /\ 3:EBX=0)";
    check(&x86(iriw, condition), false, false);
}

#[test]
fn a_thread_reads_its_own_waiting_store() {
    let rows = "MOV [x],$1 | MOV [y],$1\nMOV EAX,[x] | MOV EAX,[y]\nMOV EBX,[y] | MOV EBX,[x]";
    check(&x86(rows, r"exists (0:EAX=1 /\ 0:EBX=0 /\ 1:EAX=1 /\ 1:EBX=0)"), false, true);
}

#[test]
fn quantifiers_ask_for_the_predicate_or_its_opposite() {
    let rows = "MOV [x],$1 | MOV EAX,[x]";
    check(&x86(rows, "~exists (1:EAX=1)"), true, true);
    let (program, litmus) = test(&x86(rows, r"forall (1:EAX=0 \/ 1:EAX=1)"));
    let outcome = engine::check(&program, &Goal::of(&program), &Options::default(), &Limits::default());
    assert!(matches!(outcome.expect("no internal error").answer, Answer::Holds(_)));
    assert_eq!(litmus.condition, r"1:EAX=0 \/ 1:EAX=1");
}

#[test]
fn locked_instructions_are_indivisible_and_others_are_not() {
    for (instruction, unlocked) in [
        ("INC [x]", true),
        ("ADD [x],$1", true),
        ("SUB [x],$-1", true),
        ("LOCK INC [x]", false),
        ("LOCK ADD [x],$1", false),
        ("LOCK SUB [x],$-1", false),
        ("LOCK ; ADD [x],$1", false),
    ] {
        // A stray `;` ends a row, so both threads are written in one column each.
        if instruction.contains(';') {
            let one = format!("X86 T\n{{}}\nP0 ;\n{instruction} ;\nMOV EAX,[x] ;\nexists (0:EAX=1)");
            check(&one, true, true);
        } else {
            check(&x86(&format!("{instruction} | {instruction}"), "exists (x=1)"), unlocked, unlocked);
        }
    }
    let toggles = |lock: &str| x86(&format!("{lock} OR [x],$1 | {lock} OR [x],$2"), "exists (x=3)");
    check(&toggles(""), true, true);
    let lost = |lock: &str| x86(&format!("{lock} OR [x],$1 | {lock} XOR [x],$2"), r"exists (x=1 \/ x=2)");
    check(&lost(""), true, true);
    check(&lost("LOCK"), false, false);
    let bits = |lock: &str| x86(&format!("{lock} BTS [x],$3 | {lock} BTS [x],$0"), "exists (x!=9)");
    check(&bits(""), true, true);
    check(&bits("LOCK"), false, false);
    check(&x86("LOCK DEC [x] | LOCK AND [x],$0", r"exists (x=-1)"), true, true);
    check(&x86("LOCK NOT [x] | LOCK NEG [x]", r"exists (x=1 \/ x=-1)"), true, true);
}

#[test]
fn an_exchange_with_memory_is_locked_by_itself() {
    for row in ["XCHG [x],EAX | XCHG [y],EAX", "XCHG EAX,[x] | LOCK XCHG EAX,[y]"] {
        let rows = format!("MOV EAX,$1 | MOV EAX,$1\n{row}\nMOV EBX,[y] | MOV EBX,[x]");
        check(&x86(&rows, r"exists (0:EBX=0 /\ 1:EBX=0)"), false, false);
    }
}

#[test]
fn only_one_thread_wins_a_compare_and_exchange() {
    let rows = "MOV EBX,$1 | MOV EBX,$2\nLOCK CMPXCHG [x],EBX | LOCK CMPXCHG [x],EBX\nSETE CL | SETE CL";
    check(&x86(rows, r"exists (0:ECX=1 /\ 1:ECX=1)"), false, false);
    check(&x86(rows, r"exists (0:ECX=0 /\ 1:ECX=0)"), false, false);
    check(&x86(rows, r"exists (0:ECX=0 /\ 0:EAX=2 /\ x=2)"), true, true);
    let tickets = "MOV EAX,$1 | MOV EAX,$1\nLOCK XADD [x],EAX | LOCK XADD [x],EAX";
    check(&x86(tickets, r"exists (0:EAX=1:EAX)"), false, false);
    check(&x86(tickets, r"exists (x<>2)"), false, false);
}

#[test]
fn a_lock_made_of_exchanges_excludes() {
    let acquire = "L: MOV EAX,$1 | L: MOV EAX,$1\nXCHG EAX,[l] | XCHG EAX,[l]\nCMP EAX,$0 | TEST EAX,EAX\nJNE L | JNZ L";
    let body = "INC [x] | INC [x]\nMOV [l],$0 | MOV [l],$0";
    check(&x86(&format!("{acquire}\n{body}"), "exists (x=1)"), false, false);
    check(&x86(&format!("{acquire}\n{body}"), "exists (x=2)"), true, true);
}

#[test]
fn loops_wait_for_other_threads() {
    let rows = "MOV [x],$7 | L: MOV EAX,[f]\nMOV [f],$1 | CMP EAX,$1\n | JNE L\n | MOV EBX,[x]";
    check(&x86(rows, "exists (1:EBX=0)"), false, false);
    check(&x86(rows, "exists (1:EBX=7)"), true, true);
    let skip = "MOV EAX,$1\nJMP End\nMOV EAX,$2\nEnd:";
    assert_eq!(states(&x86(skip, "locations [0:EAX]"), Model::Tso), ["0:EAX=1"]);
    assert_eq!(states(&x86("MOV EAX,$1\nRET\nMOV EAX,$2", "locations [0:EAX]"), Model::Tso), ["0:EAX=1"]);
}

#[test]
fn registers_hold_addresses() {
    let swap = "X86 T\n{0:EAX=x; p=y; y=5;}\nP0 ;\nMOV [EAX],$1 ;\nMOV EBX,[p] ;\nMOV ECX,[EBX] ;\nlocations [x;0:EAX;0:EBX;0:ECX]";
    assert_eq!(states(swap, Model::Tso), ["0:EAX=x 0:EBX=y 0:ECX=5 x=1"]);
    let array = alone(
        "int64_t t[3]={4,5,-6}; 0:rax=t; 0:rbx=1",
        "movq 8(%rax,%rbx,8),%rcx; movq $9,(%rax); leaq t(%rip),%rdx; movq (t),%rsi",
        "0:rcx;0:rsi;t",
    );
    assert_eq!(states(&array, Model::Tso), ["0:rcx=-6 0:rsi=9 t[0]=9 t[1]=5 t[2]=-6"]);
    let mixed = alone(
        "int64_t p=x; x=3",
        "movq (p),%rax; movl (%rax),%ebx; movq $x,%rcx; cmpq %rax,%rcx; sete %dl",
        "0:rbx;0:rdx",
    );
    assert_eq!(states(&mixed, Model::Tso), ["0:rbx=3 0:rdx=1"]);
    // A pointer that another thread publishes.
    let publish = "X86 T\n{p=x; y=0;}\nP0 | P1 ;\nMOV [y],$1 | MOV EAX,[p] ;\nMOV [p],$y | MOV EBX,[EAX] ;\nexists (1:EAX=y /\\ 1:EBX=0)";
    check(publish, false, false);
}

#[test]
fn a_number_is_no_address() {
    // Where no address can come, no number is one, not even the number that an address has in the model.
    let holds = |number: Value| {
        format!(
            "X86 T\n{{ int8_t b; int t[2]; 0:ESI=t; }}\nP0 ;\nMOV EAX,${number} ;\nMOV [t+EBX*4],EAX ;\nMOVZX EBX,[b] ;\nlocations [0:EAX;0:ESI;t]\nexists (0:EAX=t \\/ t[0]=b \\/ 0:EAX=b)"
        )
    };
    let (_, litmus) = test(&holds(0));
    let addresses: Vec<Value> = litmus.symbols.iter().map(|(address, _)| *address).collect();
    for number in addresses.into_iter().chain([1 << 30, 0x4800_0000, 0x5000_0000]) {
        let source = holds(number);
        let expected = format!("0:EAX={number} 0:ESI=t t[0]={number} t[1]=0");
        assert_eq!(states(&source, Model::Tso), [expected]);
        check(&source, false, false);
    }
    // Nor is a number of the condition, where an address may come.
    let (_, litmus) = test("X86 T\n{ 0:EAX=x }\nP0 ;\nNOP ;\nlocations [0:EAX]");
    for number in [litmus.symbols[0].0, litmus.symbols[0].0 + 8, -litmus.symbols[0].0] {
        for (row, found) in [("NOP".to_string(), false), (format!("MOV EAX,${number}"), true)] {
            let source = format!("X86 T\n{{ 0:EAX=x }}\nP0 ;\n{row} ;\nexists (0:EAX={number})");
            check(&source, found, found);
            check(&source.replace(&format!("EAX={number}"), "EAX=x"), !found, !found);
        }
    }
}

#[test]
fn an_access_through_a_wrong_address_is_an_error_of_the_program() {
    for lines in [
        "movl (%rax),%ebx",
        "movl 4(%rcx),%ebx",
        "movl 2(%rcx),%ebx",
        "movq (%rcx),%rbx",
        "movl -4(%rcx),%ebx",
    ] {
        let (program, _) = test(&alone("0:rcx=x", lines, "x"));
        let outcome = engine::check(&program, &Goal::of(&program), &Options::default(), &Limits::default());
        assert!(matches!(outcome.expect("no internal error").answer, Answer::Fails(_)), "{lines}");
        let found = engine::outcomes(&program, &[], &Options::default(), &Limits::default());
        assert!(found.goes_wrong && found.states.is_ok_and(|s| s.is_empty()), "{lines}");
    }
}

#[test]
fn parts_of_registers_are_registers_too() {
    let parts = "movq $-1,%rax; movb $0,%ah; movq $-1,%rbx; movl $5,%ebx; movq $-1,%rcx; movw $0,%cx; movzbl %ch,%edx; movsbl %cl,%esi; movsbq %bl,%rdi";
    let shown = "0:rax;0:rbx;0:rcx;0:rdx;0:rsi;0:rdi";
    let expected = ["0:rax=-65281 0:rbx=5 0:rcx=-65536 0:rdx=0 0:rsi=0 0:rdi=5"];
    assert_eq!(states(&alone("", parts, shown), Model::Tso), expected);
    let narrow = alone(
        "uint8_t b=200; int8_t c=-1; int16_t d",
        "movb (b),%al; addb %al,(b); movsbl (c),%ebx; movw %bx,(d); movzbl (c),%ecx",
        "0:rax;0:rbx;0:rcx;b;c;d",
    );
    assert_eq!(states(&narrow, Model::Tso), ["0:rax=200 0:rbx=4294967295 0:rcx=255 b=144 c=-1 d=-1"]);
}

#[test]
fn arithmetic_wraps_at_its_width() {
    let wide = "X86 T\n{x=2147483647; 0:EAX=-2147483648}\nP0 ;\nLOCK INC [x] ;\nDEC EAX ;\nMOV EBX,$0xffffffff ;\nlocations [x;0:EAX;0:EBX]";
    assert_eq!(states(wide, Model::Tso), ["0:EAX=2147483647 0:EBX=-1 x=-2147483648"]);
    let down = alone("", "lock decl (x); movl (x),%eax; negl %eax", "x;0:rax");
    assert_eq!(states(&down, Model::Tso), ["0:rax=1 x=-1"]);
    let many = "X86 T\n{}\nP0 ;\nL: LOCK ADD [x],$0x40000000 ;\nJNZ L ;\nlocations [x]";
    assert_eq!(states(many, Model::Tso), ["x=0"]);
}

#[test]
fn a_shift_by_nothing_writes_its_destination_and_no_flag() {
    let shown = "0:rdx;0:rax";
    for shift in ["shll $0", "sarl $0", "shrl $32", "sall $64"] {
        let lines = format!("cmpl $1,%eax; {shift},%edx; setc %al");
        let source = alone("0:rdx=9223372036854775807", &lines, shown);
        assert_eq!(states(&source, Model::Tso), ["0:rax=1 0:rdx=4294967295"], "{shift}");
    }
    // All 64 bits, or 16 of them, are what they were.
    let whole = alone("0:rdx=-2; 0:rax=-3", "sarq $64,%rdx; shlw $32,%ax", shown);
    assert_eq!(states(&whole, Model::Tso), ["0:rax=-3 0:rdx=-2"]);
    // Five bits of the count are enough to shift everything out of a narrow operand.
    let out = alone("0:rdx=-1; 0:rax=-65152", "shlw $20,%dx; sarb $9,%al; setc %ah; negb %ah", shown);
    assert_eq!(states(&out, Model::Tso), ["0:rax=-1 0:rdx=-65536"]);
    // In memory it is a load and a store, between which others may store.
    let lost = |x: &str| format!("X86 T\n{{}}\nP0 | P1 ;\nSHL [x],$0 | MOV [x],$1 ;\nexists ({x})");
    check(&lost("x=0"), true, true);
}

#[test]
fn numbers_of_bits_go_round() {
    let bits = alone("x=0", "btsl $33,%eax; lock btsl $36,(x); btcq $65,%rbx", "0:rax;0:rbx;x");
    assert_eq!(states(&bits, Model::Tso), ["0:rax=2 0:rbx=2 x=16"]);
}

#[test]
fn what_does_not_tell_its_width_goes_by_the_location() {
    let array = |init: &str, lines: &str| {
        let source = format!("X86 T\n{{ {init} }}\nP0 ;\n{lines} ;\nlocations [t;0:EBX]");
        states(&source, Model::Tso)
    };
    for place in ["[t+2]", "[t+EAX*2]", "[EAX*2+t]", "[t+ECX]", "[t+ECX*2-2]", "[ECX+t]"] {
        let init = "int16_t t[3]={5,-32768,7}; 0:EAX=1; 0:ECX=2";
        let lines = format!("DEC {place} ;\nMOVZX EBX,{place}");
        assert_eq!(array(init, &lines), ["0:EBX=32767 t[0]=5 t[1]=32767 t[2]=7"], "{place}");
    }
    assert_eq!(
        array("uint8_t t[2]={255,255}; 0:EAX=1", "ADD [t+EAX],$1 ;\nSHR [t+EAX-1],$1"),
        ["0:EBX=0 t[0]=127 t[1]=0"]
    );
    // Without a type it is the other accesses that tell, wherever they stand.
    for lines in ["MOV [t],$-1 ;\nMOV BX,[t]", "MOV [t+EAX],$-1 ;\nMOV BX,[t]"] {
        assert_eq!(array("", lines), ["0:EBX=65535 t=-1"], "{lines}");
    }
}

#[test]
fn flags_that_a_test_begins_with_count_for_all_conditions() {
    for (flags, less) in [("", 0), ("0:SF=1;", 1), ("0:OF=1;", 1), ("0:SF=1; 0:OF=1;", 0)] {
        let source = alone(flags, "setl %al; setge %bl; cmovll %ecx,%edx", "0:rax;0:rbx");
        assert_eq!(states(&source, Model::Tso), [format!("0:rax={less} 0:rbx={}", 1 - less)], "{flags}");
    }
}

#[test]
fn registers_of_32_bits_make_addresses_of_32_bits() {
    let source = alone(
        "int t[3]={4,5,6}; 0:rax=t; 0:rbx=0xffffffff",
        "leaq -1(%ebx,%ebx,2),%rcx; movl 8(%eax,%ebx,4),%edx; leal 1(%rbx),%esi; movl t+8(,%ebx,8),%edi",
        "0:rcx;0:rdx;0:rsi;0:rdi",
    );
    assert_eq!(states(&source, Model::Tso), ["0:rcx=4294967292 0:rdx=5 0:rsi=0 0:rdi=4"]);
}

/// A condition on ZF, SF, CF and OF.
type Holds = fn([bool; 4]) -> bool;

/// What Rust's arithmetic says of an instruction: the result, and ZF, SF, CF, OF.
fn native(op: &str, a: i64, b: i64, bits: u32) -> (i64, [bool; 4]) {
    let unused = 64 - bits;
    let wide = |v: i64| i128::from(v << unused >> unused);
    let unsigned = |v: i64| i128::from((v as u64) << unused >> unused);
    let (exact, bare) = match op {
        "add" => (wide(a) + wide(b), unsigned(a) + unsigned(b)),
        "sub" | "cmp" => (wide(a) - wide(b), unsigned(a) - unsigned(b)),
        "and" | "test" => (wide(a & b), unsigned(a & b)),
        "or" => (wide(a | b), unsigned(a | b)),
        _ => (wide(a ^ b), unsigned(a ^ b)),
    };
    let result = (exact as i64) << unused >> unused;
    let carry = bare < 0 || bare >> bits != 0;
    (result, [result == 0, result < 0, carry, i128::from(result) != exact])
}

#[test]
fn flags_are_those_of_the_processor() {
    let conditions: [(&str, Holds); 14] = [
        ("e", |[z, ..]| z),
        ("ne", |[z, ..]| !z),
        ("b", |[_, _, c, _]| c),
        ("ae", |[_, _, c, _]| !c),
        ("be", |[z, _, c, _]| c || z),
        ("a", |[z, _, c, _]| !c && !z),
        ("l", |[_, s, _, o]| s != o),
        ("ge", |[_, s, _, o]| s == o),
        ("le", |[z, s, _, o]| z || s != o),
        ("g", |[z, s, _, o]| !z && s == o),
        ("s", |[_, s, ..]| s),
        ("ns", |[_, s, ..]| !s),
        ("o", |[_, _, _, o]| o),
        ("no", |[_, _, _, o]| !o),
    ];
    for (bits, letter) in [(8, 'b'), (32, 'l'), (64, 'q')] {
        let (least, most) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
        let numbers = [0, 1, -1, 2, most, least, least + 1];
        let pairs = numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b)));
        for ((a, b), op) in
            pairs.flat_map(|p| ["add", "sub", "cmp", "and", "test", "or", "xor"].map(|op| (p, op)))
        {
            let ty = format!("int{bits}_t");
            let register = match bits {
                8 => "%al",
                32 => "%eax",
                _ => "%rax",
            };
            let init = format!("{ty} m={a}; {ty} n={b};");
            let bytes: String = conditions.iter().map(|(cc, _)| format!("int8_t f{cc};")).collect();
            let set: String = conditions.iter().map(|(cc, _)| format!("; set{cc} (f{cc})")).collect();
            let lines = format!("mov{letter} (n),{register}; {op}{letter} {register},(m){set}");
            let names: String = conditions.iter().map(|(cc, _)| format!("f{cc};")).collect();
            let (program, litmus) = test(&alone(&(init + &bytes), &lines, &format!("m;{names}")));
            let atoms: Vec<Atom> = litmus.observed.iter().map(|o| o.atom.clone()).collect();
            let found = by_explorer(&program, &atoms, Model::Sc, 1).expect("one thread ends");
            let values: Vec<&Vec<Value>> = found.iter().collect();
            let [values] = values[..] else { panic!("one thread has one final state") };
            let (result, flags) = native(op, a, b, bits);
            for (column, value) in litmus.observed.iter().zip(values) {
                let expected = match column.name.strip_prefix('f') {
                    Some(cc) => {
                        let (_, holds) =
                            conditions.iter().find(|(name, _)| *name == cc).expect("it is listed");
                        holds(flags).to_string().replace("true", "1").replace("false", "0")
                    }
                    None if matches!(op, "cmp" | "test") => a.to_string(),
                    None => result.to_string(),
                };
                let shown = litmus.show(column, *value).to_string();
                assert_eq!(shown, expected, "{} after {op}{letter} {a}, {b}", column.name);
            }
        }
    }
}

/// Loads that may wait, and stores.
const OPEN: Shape = Shape { blocks: false, ..SMALL };
const READING: Shape = Shape { taste: Taste::Reading, ..SMALL };

proptest! {
    #![proptest_config(cases(160))]

    /// Random programs of the native language: loops, blocks, choices, errors.
    #[test]
    fn the_explorer_finds_the_final_states_of_the_plain_machines(
        shown in prop_oneof![program(SMALL), program(OPEN), program(READING), program(Shape { loops: false, ..READING })],
        chosen in prop::collection::vec(any::<bool>(), 40),
    ) {
        let everything = everything(&shown.0);
        let some = everything.iter().zip(chosen.iter().cycle()).filter(|(_, c)| **c).map(|(a, _)| a.clone());
        for observed in [everything.clone(), some.collect(), vec![]] {
            for model in [Model::Sc, Model::Tso] {
                let Some(plain) = by_definition(&shown.0, &observed, model, 5_000) else { continue };
                for workers in [1, 2] {
                    let found = by_explorer(&shown.0, &observed, model, workers);
                    prop_assert_eq!(Some(&plain), found.as_ref());
                }
            }
        }
    }
}

/// Both readings of TSO, and the explorer, agree on final states and on which of them need frozen stores.
fn ends_alike(program: &Program) -> Result<(), TestCaseError> {
    let observed = everything(program);
    let some: Vec<Atom> = observed.iter().step_by(2).cloned().collect();
    for observed in [observed, some] {
        let Some(mut plain) = finals(program, &observed, 5_000) else { continue };
        plain.frozen.retain(|values| !plain.drained.contains(values));
        let all: States = plain.drained.union(&plain.frozen).cloned().collect();
        let defined = by_definition(program, &observed, Model::Tso, 10_000);
        prop_assert_eq!(Some(&all), defined.as_ref());
        for (pruning, workers) in [(Pruning::Off, 1), (Pruning::On, 2)] {
            let options = Options { pruning, workers, ..Options::default() };
            let found = engine::outcomes(program, &observed, &options, &Limits::default());
            prop_assert_eq!(Ok(&all), found.states.as_ref());
            prop_assert_eq!(&plain.frozen, &found.frozen);
        }
    }
    Ok(())
}

#[test]
fn a_thread_that_ends_inside_a_block_freezes_the_others() {
    let program = |source: &str| tso::read(source, &[], &Limits::default()).expect("a program").program;
    let source =
        "shared x, y; thread p; store [x], 1; end; thread q; lock; store [y], 1; fence; halt; unlock; end";
    ends_alike(&program(source)).expect("all agree");
    let observed = everything(&program(source));
    let found = engine::outcomes(&program(source), &observed, &Options::default(), &Limits::default());
    assert_eq!(found.states.as_ref().map(BTreeSet::len), Ok(2));
    assert_eq!(found.frozen, States::from([vec![0, 1]]));
    // What is frozen need not be observed.
    ends_alike(&program("shared x, y, z; thread p; store [z], 1; end; thread q; lock; halt; end"))
        .expect("all agree");
}

proptest! {
    #![proptest_config(cases(15))]

    #[test]
    fn final_states_inside_blocks_are_those_of_a_second_reading(
        any in program(Shape { unfinished: true, ..SMALL }),
        dense in program(Shape { unfinished: true, loops: false, taste: Taste::Dense, ..SMALL }),
    ) {
        ends_alike(&any.0)?;
        ends_alike(&dense.0)?;
    }
}

proptest! {
    #![proptest_config(cases(15))]

    #[test]
    fn final_states_of_several_sizes_are_those_of_a_second_reading(
        mixed in program(Shape { mixed: true, loops: false, ..SMALL }),
    ) {
        ends_alike(&mixed.0)?;
    }
}

/// The final states under TSO by way of SC: those of the program with every delay built in that can matter.
/// `None` if that is too much.
fn by_extension(program: &Program, observed: &[Atom]) -> Option<States> {
    let clauses = vec![Clause { when: When::Final, pred: Expr::Const(1), property: 0 }];
    let goal = Goal { clauses, ..Goal::default() };
    let options = Options { workers: 1, ..Options::default() };
    let limits = Limits { states: Some(50_000), ..Limits::default() };
    let extended = engine::extended(program, &goal, &options, &limits, u64::MAX).expect("no internal error");
    let extended = extended.ok()?;
    let found = by_definition(&extended, observed, Model::Sc, 50_000)?;
    assert_eq!(Some(&found), by_explorer(&extended, observed, Model::Sc, 1).as_ref());
    Some(found)
}

const STRAIGHT: Shape = Shape { loops: false, lines: (2, 6), ..SMALL };
/// Little variety, many meetings.
const DENSE: Shape = Shape { taste: Taste::Dense, lines: (2, 5), ..STRAIGHT };

proptest! {
    #![proptest_config(cases(100))]

    /// Without loops delays come to an end.
    #[test]
    fn delays_built_in_show_under_sc_what_tso_shows(shown in prop_oneof![program(STRAIGHT), program(DENSE)]) {
        let observed = everything(&shown.0);
        let plain = by_definition(&shown.0, &observed, Model::Tso, 20_000);
        if let (Some(plain), Some(extended)) = (plain, by_extension(&shown.0, &observed)) {
            prop_assert_eq!(plain, extended);
        }
    }
}

#[test]
fn delays_built_in_show_under_sc_what_tso_shows_of_bundled_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/litmus");
    let mut differ = 0;
    for file in folder.read_dir().expect("programs are bundled").map(|f| f.expect("readable").path()) {
        let source = std::fs::read_to_string(&file).expect("readable");
        if file.extension().is_some_and(|e| e == "tso") {
            let program =
                tso::read(&source, &[], &Limits::default()).expect("bundled programs are readable").program;
            let observed = everything(&program);
            let plain = by_definition(&program, &observed, Model::Tso, 200_000).expect("it is small");
            assert_eq!(Some(&plain), by_extension(&program, &observed).as_ref(), "{}", file.display());
            differ += (Some(plain) != by_definition(&program, &observed, Model::Sc, 200_000)) as usize;
        }
    }
    assert!(differ >= 5, "only {differ} programs have more final states under TSO than under SC");
}

/// Tests with known answers, if the machine has them.
#[test]
fn the_corpus_has_its_known_final_states() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/litmus");
    let Ok(expected) = std::fs::read_to_string(folder.join("expected.jsonl")) else {
        eprintln!("skipped: there is no corpus at {}", folder.display());
        return;
    };
    let (mut right, mut refused) = (0, vec![]);
    for line in expected.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("each line is an object");
        let file = row["file"].as_str().expect("it names its file");
        let source = std::fs::read_to_string(folder.join(file)).expect("the test is there");
        if read(&source, &Limits::default()).is_err() {
            refused.push(file.to_string());
            continue;
        }
        for (model, name) in [(Model::Sc, "sc"), (Model::Tso, "tso")] {
            assert_eq!(corpus_states(&source, model), expected_states(&row[name]), "{file} {name}");
            right += 1;
        }
    }
    assert!(refused.is_empty(), "{refused:?}");
    assert!(right > 1600, "{right} are all that were compared");
}

fn corpus_states(source: &str, model: Model) -> BTreeSet<String> {
    let (program, litmus) = test(source);
    let atoms: Vec<Atom> = litmus.observed.iter().map(|o| o.atom.clone()).collect();
    let found = by_explorer(&program, &atoms, model, 1).expect("the test is small");
    let show = |values: &Vec<Value>| {
        let cells =
            litmus.observed.iter().zip(values).map(|(o, v)| format!("{}={};", o.name, litmus.show(o, *v)));
        cells.collect::<Vec<_>>().join(" ")
    };
    found.iter().map(show).collect()
}

fn expected_states(of_model: &serde_json::Value) -> BTreeSet<String> {
    let states = of_model["states"].as_array().expect("states are listed");
    states.iter().map(|s| s.as_str().expect("a state is text").to_string()).collect()
}
