//! Litmus tests: what each instruction and condition becomes, and what is said about mistakes.

use super::*;
use crate::front::Diagnostic;
use crate::front::trial::texts;
use crate::model::{Instr, RmwOp};
use proptest::prelude::*;

/// Uses most of what a test may say.
const SAMPLE: &str = r#"X86_64 Sample+all (Tex) "a doc string { with (* braces"
Orig=PodWR Fre
Align=
{ x = 1; [y]=2; int64_t t[2]={1,-1}; 0:rax=t; P1:RBX = 0x10; uint8_t b; int *p=&x; }
 P0                  | P1                     ; (* names (* first *) *)
 movl $1,(x)         | L1: movl (x),%eax      ;
 lock xaddq %rcx,(t) | cmpl $1,%eax           ;
 movq 8(%rax),%rdx   | jne L1                 ;
 mfence              | lock cmpxchgl %ebx,(y) ;
 setg (b)            | .out: ret              ;
                     | xchgl %ebx,(x)         ;
locations [x; 0:rcx; t; b unsigned char;]
~ exists (0:rdx=-1 /\ not (1:rax=1 \/ [y]!=2) => t[1]=-1 /\ true)
with tso: ~exists;
<< not read >>
"#;

fn program(source: &str) -> Program {
    read(source, &Limits::default()).unwrap_or_else(|wrong| panic!("{source}\n{wrong:#?}")).program
}

/// A 32-bit test with one thread of one instruction.
fn single(instruction: &str) -> String {
    format!("X86 T\n{{}}\nP0;\n{instruction};\nexists (0:EAX=0)")
}

/// The messages about a test that is wrong, each with the text that it marks.
fn wrong(source: &str) -> Vec<(String, String)> {
    let errors = read(source, &Limits::default()).expect_err("the test is wrong");
    let marked = |d: &Diagnostic| d.span.clone().map_or(String::new(), |span| source[span].to_string());
    errors.diagnostics().iter().map(|d| (d.message.clone(), marked(d))).collect()
}

/// The test is refused with one message, at this place.
#[track_caller]
fn refused(source: &str, message: &str, at: &str) {
    assert_eq!(wrong(source), [(message.to_string(), at.to_string())], "{source}");
}

fn instrs(source: &str) -> Vec<Instr> {
    program(source).threads()[0].edges().map(|(_, e)| e.instr.clone()).collect()
}

#[test]
fn the_sample_is_read() {
    let (input, litmus) = read_test(SAMPLE, &Limits::default()).expect("the sample is a test");
    assert_eq!(litmus.name, "Sample+all");
    assert_eq!(litmus.kind, crate::model::PropertyKind::Never);
    assert_eq!(litmus.condition, r"0:rdx=-1 /\ not (1:rax=1 \/ y!=2) => t[1]=-1 /\ true");
    let names: Vec<&str> = litmus.observed.iter().map(|o| &o.name[..]).collect();
    assert_eq!(names, ["0:rcx", "0:rdx", "1:rax", "b", "t[0]", "t[1]", "x", "y"]);
    let warnings: Vec<&str> = input.warnings.iter().map(|w| &w.message[..]).collect();
    assert_eq!(warnings, ["what stands behind `with` is ignored"]);
    assert_eq!(input.program.threads().len(), 2);
    assert_eq!(input.program.properties()[0].line, 13);
}

#[test]
fn places_may_be_written_as_compilers_do() {
    let load = |place: &str| {
        instrs(&format!("X86_64 T\n{{int64_t t[3];}}\nP0;\nmovq {place},%rbx;\nlocations [t]")).remove(0)
    };
    for place in ["t+8(%rip)", "8+t(%rip)", "(t+8)", "8(t)", "t+16-8", "t+8"] {
        assert!(matches!(load(place), Instr::Load { addr: Expr::Const(1), .. }), "{place}");
    }
    assert_eq!(load("t-8(,%rax,8)"), load("[t+%rax*8-8]"));
}

#[test]
fn initial_values_must_fit_their_locations() {
    let source = "X86_64 T\n{x=0x1ffffffff; int64_t y=0x1ffffffff;}\nP0;\nnop;\nlocations [x]";
    refused(source, "8589934591 does not fit into `x`, which has 32 bits", "x");
    program("X86_64 T\n{x=0x1ffffffff; y=0xffffffff; z=-2147483648}\nP0;\nmovq $1,(x);\nlocations [x]");
}

#[test]
fn a_condition_in_parentheses_needs_no_quantifier() {
    let (_, litmus) =
        read_test("X86 T\n{}\nP0;\nNOP;\nlocations [x] (x=1)", &Limits::default()).expect("it is a test");
    assert_eq!((litmus.kind, &litmus.condition[..]), (crate::model::PropertyKind::Exists, "x=1"));
}

#[test]
fn common_instructions_are_one_step_each() {
    let source = "X86 T\n{}\nP0;\nMOV [x],$1;\nMOV EAX,[x];\nMFENCE;\nXCHG EAX,[x];\nLOCK INC [x];\nMOV EBX,EAX;\nexists (0:EAX=1)";
    let steps = instrs(source);
    assert!(matches!(
        steps[..],
        [
            Instr::Store { .. },
            Instr::Load { .. },
            Instr::Fence,
            Instr::Rmw { op: RmwOp::Swap(_), .. },
            Instr::Rmw { op: RmwOp::Add(_), .. },
            Instr::Assign { .. },
        ]
    ));
    let edges =
        program(source).threads()[0].edges().map(|(_, e)| (e.line, e.text.clone())).collect::<Vec<_>>();
    assert_eq!(edges[3], (7, "XCHG EAX,[x]".to_string()));
}

#[test]
fn flags_cost_nothing_where_nobody_looks() {
    assert_eq!(instrs(&single("ADD EAX,$1")).len(), 1);
    assert_eq!(instrs(&single("ADD EAX,$1;\nSETO BL")).len(), 3);
}

#[test]
fn widths_are_cut_only_where_something_could_be_cut_off() {
    let [Instr::Assign { value, .. }] = &instrs(&single("INC EAX"))[..] else { panic!("one step") };
    assert_eq!(value.show(&|_| "EAX".to_string()), "EAX + 1");
    let endless = instrs(&single("L: INC EAX;\nJMP L"));
    let Instr::Assign { value, .. } = &endless[0] else { panic!("an assignment") };
    assert_eq!(value.show(&|_| "EAX".to_string()), "EAX + 1 << 32 >> 32");
    let endless = instrs(&single("L: LOCK INC [x];\nJMP L"));
    assert!(matches!(endless[..], [Instr::Lock, Instr::Load { .. }, Instr::Store { .. }, Instr::Unlock]));
}

#[test]
fn a_long_thread_needs_no_deep_stack() {
    assert_eq!(instrs(&single(&"ADD EAX,$1;\n".repeat(50_000))).len(), 50_000);
}

#[test]
fn an_unknown_instruction_is_named_and_others_are_offered() {
    let source = single("MOVNTI [x],EAX");
    refused(&source, "instruction `MOVNTI` is not supported", "MOVNTI");
    let help = |source: &str| {
        let unread = read(source, &Limits::default()).expect_err("it is refused");
        unread.diagnostics()[0].help.clone().expect("there is help")
    };
    let (help, near) = (help(&source), help(&single("MFENSE")));
    assert!(help.contains("MOV ") && help.contains("CMPXCHG") && help.contains("MFENCE"), "{help}");
    assert!(near.starts_with("did you mean `mfence`?"), "{near}");
}

#[test]
fn all_mistakes_of_a_file_come_out_of_one_run() {
    let source = "X86 T\n{ 0:EAX=1; 0:EAX=2; float z; 7:EBX=1 }\nP0 | P1 ;\nFOO | MOV [x] ;\nBAR | JMP away;\nexists (3:EAX=0 /\\ x)";
    let messages: Vec<String> = wrong(source).into_iter().map(|(m, _)| m).collect();
    let all = [
        "this register is there twice",
        "`float` is no type that is known here",
        "instruction `FOO` is not supported",
        "`MOV` takes two operands, and here it has 1",
        "instruction `BAR` is not supported",
        "expected `=`, found `)`",
    ];
    for message in all {
        assert!(messages.iter().any(|m| m == message), "{message} is not among {messages:#?}");
    }
    assert!(messages.contains(&"there is no thread P7".to_string()), "{messages:#?}");
}

#[test]
fn mistakes_in_instructions_have_their_places() {
    let cases = [
        ("MOV [x],[y]", "`MOV` cannot access memory twice", "[y]"),
        ("MOV $1,EAX", "a constant cannot be written", "$1"),
        ("CMP $1,EAX", "the destination of `CMP` is a register or memory", "$1"),
        ("MOV EAX,x", "`x` is neither a register nor a place in memory", "x"),
        ("MOV EAX,", "expected an operand, found nothing", ""),
        ("MOV EAX,$4294967296", "4294967296 does not fit into 32 bits", "$4294967296"),
        ("MOV EAX,BL", "this register has 8 bits, and the instruction 32", "BL"),
        ("MOV EAX,[x", "expected `]`, found nothing", ""),
        ("MOV EAX,[EBX*3]", "the factor of a register in an address is 1, 2, 4 or 8", "EBX"),
        ("MOV EAX,[EBX+ECX+EDX]", "an address has at most two registers", "EDX"),
        ("MOV EAX,[BX]", "an address cannot be made from a register of 16 bits", "BX"),
        ("BTS AL,$1", "there is no `BTS` of 8 bits", "BTS AL,$1"),
        ("MOV EAX,[123]", "a fixed address is not supported", "[123]"),
        ("MOV EAX,[x+2]", "nothing lies 2 bytes behind the beginning of `x`", "MOV EAX,[x+2]"),
        ("MOV EAX,$12z", "`12z` is no number", "12z"),
        ("MOVQ EAX,[x]", "`MOVQ` has 64 bits, and the registers of X86 have 32", "MOVQ"),
        ("MOV EAX EBX", "expected `,` or the end of the instruction, found `EBX`", "EBX"),
        ("LOCK MOV [x],EAX", "`LOCK MOV [x],EAX` cannot have LOCK before it", "LOCK"),
        ("LOCK INC EAX", "`LOCK INC EAX` cannot have LOCK before it", "LOCK"),
        ("LOCK ADD EAX,[x]", "`LOCK ADD EAX,[x]` cannot have LOCK before it", "LOCK"),
        ("LOCK", "no instruction follows this LOCK", "LOCK"),
        ("SHL EAX,CL", "only shifts by a constant are supported", "CL"),
        ("SHL EAX,$256", "256 is no number of a bit, and none of places to shift by", "$256"),
        ("BT EAX,$-1", "-1 is no number of a bit, and none of places to shift by", "$-1"),
        ("BTS [x],EAX", "`BTS` on memory is supported with a constant bit number alone", "EAX"),
        ("XADD [x],$1", "the second operand of `XADD` is a register", "$1"),
        ("LEA EAX,EBX", "the source of an LEA is a place in memory", "EBX"),
        ("CMOVE [x],EAX", "the destination of `CMOVE` is a register", "[x]"),
        ("MOVZX EAX,[x]", "how wide the source of `MOVZX` is cannot be told", "[x]"),
        ("MFENCE EAX", "`MFENCE` takes no operands, and here it has 1", "MFENCE EAX"),
        ("MOV EAX,#1", "`#` means nothing here", "#"),
        ("JMP $1", "expected a label, found `$`", "$"),
        ("JMP Lop;\nLoop:", "unknown label `Lop`", "Lop"),
        ("L:;\nL: NOP", "label `L` is there twice in this thread", "L"),
        ("$ NOP", "expected an instruction, found `$`", "$"),
    ];
    for (instruction, message, at) in cases {
        let source = single(instruction);
        let found = wrong(&source);
        assert!(found.contains(&(message.to_string(), at.to_string())), "{instruction}: {found:#?}");
    }
}

#[test]
fn mistakes_around_the_program_have_their_places() {
    let cases = [
        ("", "this file is empty", ""),
        ("ARM T\n{}\nP0;\nNOP;", "`ARM` is no architecture that is known here", "ARM"),
        ("X86 T\nP0;\nNOP;", "this test has no initial state", "X86"),
        ("X86 {}\nP0;\nNOP;", "this test has no name", "X86"),
        ("X86 T\n{ x=1;\nP0;\nNOP;", "this `{` is never closed", "{"),
        ("X86 T\n{} (* x\nP0;\nNOP;", "this comment never ends", "(*"),
        ("X86 T\n{}\nA;\nNOP;", "`A` is no name for a thread", "A"),
        ("X86 T\n{}\nP0|P0;\nNOP|NOP;", "thread `P0` is there twice", "P0"),
        ("X86 T\n{}\nP0|P1;\nNOP;", "this row has 1 cell, and there are 2 threads", "NOP"),
        ("X86 T\n{}\nP0;\nNOP\nexists (x=1)", "this row does not end with `;`", "NOP"),
        ("X86 T\n{x=1;x=2}\nP0;\nNOP;", "location `x` is there twice", "x"),
        ("X86 T\n{x=}\nP0;\nNOP;", "expected a number, found nothing", ""),
        ("X86 T\n{x 1}\nP0;\nNOP;", "`x` is no type that is known here", "x"),
        ("X86 T\n{=1}\nP0;\nNOP;", "expected a location or a register, found `=`", "="),
        ("X86 T\n{int t[0]}\nP0;\nNOP;", "an array has from 1 to 1048576 elements", "0"),
        ("X86 T\n{int t[1]={1,2}}\nP0;\nNOP;", "2 values for 1 elements", "1"),
        ("X86 T\n{0:EAX=9999999999}\nP0;\nNOP;", "9999999999 does not fit into 32 bits", "0:EAX=9999999999"),
        ("X86 T\n{0:AL=1}\nP0;\nNOP;", "`AL` is a part of a register", "AL"),
        ("X86 T\n{0:ZF=2}\nP0;\nNOP;", "a flag is 0 or 1", "0:ZF=2"),
        ("X86 T\n{}\nP0;\nNOP;\nexists (0:rip=1)", "`rip` is not a register here", "rip"),
        ("X86 T\n{}\nP0;\nNOP;\nexists (0:RAX=1)", "`RAX` is not a register here", "RAX"),
        ("X86_64 T\n{}\nP0;\nnop;\nexists (0:eax=1)", "`eax` is a part of a register", "eax"),
        ("X86 T\n{}\nP0;\nNOP;\nexists (1:EAX=1)", "there is no thread P1", "1:EAX"),
        ("X86 T\n{}\nP0;\nNOP;\nexists (x=1", r"expected `/\`, `\/` or `)`, found nothing", ""),
        (
            "X86 T\n{}\nP0;\nNOP;\nexists x=1 y=1",
            r"expected `/\`, `\/` or the end of the condition, found `y`",
            "y",
        ),
        ("X86 T\n{}\nP0;\nNOP;\nfilter (x=1)", "`filter` is not supported", "filter"),
        ("X86 T\n{int t[2]}\nP0;\nNOP;\nexists (t=1)", "`t` is an array", "t"),
        ("X86 T\n{int t[2]}\nP0;\nNOP;\nexists (t[2]=1)", "`t` has no element 2", "t"),
        ("X86 T\n{}\nP0;\nNOP;\nlocations [x", "expected `;` or `]`, found nothing", ""),
        (
            "X86_64 T\n{}\nP0;\nmovl $1,(x);\nmovq $1,(x);",
            "`x` has 32 bits, and this is an access of 64 bits",
            "(x)",
        ),
        ("X86_64 T\n{}\nP0;\nmovl (%rax,%ebx),%ecx;", "the registers of an address have the same width", "%"),
        (
            "X86_64 T\n{int64_t x}\nP0;\nmovl $1,(x);",
            "`x` has 64 bits, and this is an access of 32 bits",
            "(x)",
        ),
    ];
    for (source, message, at) in cases {
        let found = wrong(source);
        assert!(found.contains(&(message.to_string(), at.to_string())), "{source}: {found:#?}");
    }
}

#[test]
fn nesting_is_limited_and_long_lists_are_not() {
    let test = |condition: &str| format!("X86 T\n{{}}\nP0;\nNOP;\nexists {condition}");
    for deep in [
        format!("{}x=1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}x=1", "~".repeat(5000)),
        format!("x=1{}", " => x=1".repeat(5000)),
    ] {
        let found = wrong(&test(&deep));
        assert_eq!(found[0].0, "the condition is nested too deeply");
    }
    program(&test(&format!("x=1{}", r" \/ x=1".repeat(5000))));
}

#[test]
fn large_tests_are_read_in_time_that_grows_with_them() {
    let count = 20_000;
    let labels: String = (0..count).map(|i| format!("L{i}: JMP L{} ;\n", count - 1 - i)).collect();
    program(&format!("X86 T\n{{}}\nP0;\n{labels}exists (0:EAX=0)"));
    let locations: String = (0..count).map(|i| format!("x{i}={i};")).collect();
    let sum: Vec<String> = (0..count).map(|i| format!("x{i}={i}")).collect();
    program(&format!("X86 T\n{{{locations}}}\nP0;\nNOP;\nexists ({})", sum.join(r" /\ ")));
    program("X86 T\n{int t[1000000]; 0:EAX=t}\nP0;\nNOP;\nlocations [t]");
    let threads: Vec<String> = (0..count).map(|t| format!("P{t}")).collect();
    let found =
        wrong(&format!("X86 T\n{{}}\n{};\nNOP{};\nexists (x=1)", threads.join("|"), "|".repeat(count - 1)));
    assert_eq!(found[0].0, "at most 1000 threads are supported");
}

#[test]
fn a_bare_location_on_the_right_is_an_address() {
    let source = "X86 T\n{y=1}\nP0;\nMOV EAX,[y];\nexists (0:EAX=y)";
    let input = read(source, &Limits::default()).expect("it is a test");
    assert!(input.warnings[0].message.starts_with("`y` is the address of `y` here"), "{:?}", input.warnings);
    let contents = source.replace("0:EAX=y", "0:EAX=[y]");
    assert!(read(&contents, &Limits::default()).expect("it is a test").warnings.is_empty());
}

/// Read, with places for all that is said; or refused, with places.
fn survives(source: &str) {
    let read = read(source, &Limits::default());
    let found = read.map(|input| input.warnings).unwrap_or_else(|unread| unread.diagnostics().to_vec());
    for diagnostic in found {
        let span = diagnostic.span.unwrap_or(0..0);
        assert!(source.get(span).is_some(), "{}\n{source}", diagnostic.message);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(
        source in texts(SAMPLE, &[' ', '\n', '[', '(', ',', ':', ';', '|'], &["\n", "X86 T {} P0;"])
    ) {
        survives(&source);
        survives(&format!("X86 T\n{{}}{source}"));
        survives(&format!("X86_64 T\n{{{source}"));
    }
}
