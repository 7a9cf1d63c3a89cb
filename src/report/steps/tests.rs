//! Traces made by hand, and the text they become.

use super::*;
use crate::front::tso;
use crate::limits::Limits;
use crate::model::EdgeId;
use crate::query::{Act, Action, Trap};
use crate::report::text::{self, Style};

const SB: &str = "shared x, y\nthread p0\n store [x], 1\n load r, [y]\nend\nthread p1\n store [y], 1\n load r, [x]\nend\n\
                  never p0.r == 0 && p1.r == 0\n";

fn program(source: &str) -> Program {
    tso::read(source, &[], &Limits::default()).expect("the test's source is readable").program
}

/// The event of an edge, with nothing known about it yet.
fn event(program: &Program, t: u16, edge: u32) -> Event {
    let (thread, edge) = (ThreadId(t), EdgeId(edge));
    Event {
        action: Action { thread, act: Act::Step { edge, choice: None } },
        kind: EventKind::of(&program.thread(thread).edge(edge).instr),
        edge,
        address: None,
        value: None,
        written: None,
        source: None,
        store: None,
        trap: None,
    }
}

fn access(program: &Program, t: u16, edge: u32, address: u32, value: Value) -> Event {
    let source = Some(Source::Memory);
    let event = Event { address: Some(Addr(address)), value: Some(value), ..event(program, t, edge) };
    if event.kind == EventKind::Store { event } else { Event { source, ..event } }
}

fn flush(of: &Event, store: usize) -> Event {
    let action = Action { act: Act::Flush, ..of.action };
    Event { action, kind: EventKind::Flush, store: Some(store), ..of.clone() }
}

pub fn sb() -> Program {
    program(SB)
}

pub fn sb_trace() -> Trace {
    let p = sb();
    let (x, y) = (access(&p, 0, 0, 0, 1), access(&p, 1, 0, 1, 1));
    let (r0, r1) = (access(&p, 0, 1, 1, 0), access(&p, 1, 1, 0, 0));
    let (fx, fy) = (flush(&x, 0), flush(&y, 1));
    Trace { model: Model::Tso, events: vec![x, y, r0, r1, fx, fy], against: Against::Property(0) }
}

const PLAIN: Style = Style { width: 100, wraps: false, color: false, local_steps: true };

fn told(program: &Program, run: &Trace, style: Style) -> String {
    text::blocks(&trace(program, run), style)
}

#[track_caller]
fn check(program: &Program, run: &Trace, style: Style, expected: &str) {
    let text = told(program, run, style);
    assert_eq!(text, expected.trim_start_matches('\n'), "\n{text}");
}

#[test]
fn threads_have_columns_and_flushes_name_their_stores() {
    check(
        &sb(),
        &sb_trace(),
        PLAIN,
        "
     p0            p1            line                                 buffer
  1  store [x], 1                   3  x = 1 waits in the buffer      x=1
  2                store [y], 1     7  y = 1 waits in the buffer      y=1
  3  load r, [y]                    4  r = 0, from memory
  4                load r, [x]      8  r = 0, from memory
  5  flush x                        3  x: 0 -> 1, the store in row 1  empty
  6                flush y          7  y: 0 -> 1, the store in row 2  empty

forbidden in line 10: never p0.r == 0 && p1.r == 0 (p0.r = 0, p1.r = 0)
",
    );
}

#[test]
fn a_narrow_terminal_gets_one_column() {
    check(
        &sb(),
        &sb_trace(),
        Style { width: 60, wraps: false, color: false, local_steps: true },
        "
                       line                                 buffer
  1  p0  store [x], 1     3  x = 1 waits in the buffer      x=1
  2  p1  store [y], 1     7  y = 1 waits in the buffer      y=1
  3  p0  load r, [y]      4  r = 0, from memory
  4  p1  load r, [x]      8  r = 0, from memory
  5  p0  flush x          3  x: 0 -> 1, the store in row 1  empty
  6  p1  flush y          7  y: 0 -> 1, the store in row 2  empty

forbidden in line 10: never p0.r == 0 && p1.r == 0 (p0.r = 0, p1.r = 0)
",
    );
}

#[test]
fn under_sc_a_store_changes_memory_at_once() {
    let p = program("shared x = 4\nthread p\ntop: store [x], 5\n load r, [x]\n assert r == 4\nend");
    let wrong = Event { trap: Some(Trap::Assertion), ..event(&p, 0, 2) };
    let run = Trace {
        model: Model::Sc,
        events: vec![access(&p, 0, 0, 0, 5), access(&p, 0, 1, 0, 5), wrong],
        against: Against::Trap(ThreadId(0), Trap::Assertion),
    };
    check(
        &p,
        &run,
        PLAIN,
        "
     p              line
  1  store [x], 5      3  x: 4 -> 5
  2  load r, [x]       4  r = 5, from memory
  3  assert r == 4     5  the assertion fails

error of thread p: the assertion fails in line 5: assert r == 4
",
    );
}

#[test]
fn a_load_from_the_own_buffer_names_the_store() {
    let p = program(
        "shared x\nthread p\n store [x], 1\n load r, [x]\n if r == 1 goto out\n nop\nout: nop\nend\nforbid p@out",
    );
    let load = Event { source: Some(Source::Buffer(0)), ..access(&p, 0, 1, 0, 1) };
    let events = vec![access(&p, 0, 0, 0, 1), load, event(&p, 0, 2)];
    let run = Trace { model: Model::Tso, events, against: Against::Property(0) };
    check(
        &p,
        &run,
        PLAIN,
        "
     p                   line                                      buffer
  1  store [x], 1           3  x = 1 waits in the buffer           x=1
  2  load r, [x]            4  r = 1, from its own store in row 1
  3  if r == 1 goto out     5  r == 1 is true

forbidden in line 9: forbid p@out
",
    );
}

#[test]
fn blocks_and_locked_instructions_are_visible() {
    let p = program(
        "shared x\nthread p\n lock\n store [x], 1\n unlock\nend\nthread q\n i = 2\n add r, [x], i\nend\nexists [x] == 3",
    );
    let (store, add) = (access(&p, 0, 1, 0, 1), Event { written: Some(3), ..access(&p, 1, 1, 0, 1) });
    let assign = Event { value: Some(2), ..event(&p, 1, 0) };
    let done = flush(&store, 1);
    let events = vec![event(&p, 0, 0), store, assign, done, event(&p, 0, 2), add];
    let run = Trace { model: Model::Tso, events, against: Against::Property(0) };
    check(
        &p,
        &run,
        PLAIN,
        "
     p               q              line                                 buffer
  1  ┌ lock                            3
  2  │ store [x], 1                    4  x = 1 waits in the buffer      x=1
  3  │               i = 2             8  i = 2
  4  │ flush x                         4  x: 0 -> 1, the store in row 2  empty
  5  └ unlock                          5
  6                  add r, [x], i     9  r = 1, from memory; x: 1 -> 3

reachable, as asked in line 11: exists [x] == 3 ([x] = 3)
",
    );
}

#[test]
fn an_access_outside_memory_is_named_at_its_row() {
    let p = program("shared x\nthread p\n i = any(0..9)\n store [x + i], 1\nend");
    let choice = Event { value: Some(7), ..event(&p, 0, 0) };
    let wrong = Event { trap: Some(Trap::OutOfRange(7)), ..event(&p, 0, 1) };
    let against = Against::Trap(ThreadId(0), Trap::OutOfRange(7));
    let run = Trace { model: Model::Tso, events: vec![choice, wrong], against };
    let text = told(&p, &run, PLAIN);
    assert!(text.contains("store [x + i], 1     4  address 7 lies outside the shared memory"), "{text}");
}

#[test]
fn colour_is_there_only_if_asked_for() {
    let coloured =
        told(&sb(), &sb_trace(), Style { width: 100, wraps: false, color: true, local_steps: true });
    assert!(coloured.contains("\u{1b}["));
    assert!(!told(&sb(), &sb_trace(), PLAIN).contains('\u{1b}'));
}

#[test]
fn object_code_is_told_by_its_source_its_function_and_its_disassembly() {
    use crate::model::CodeLine;
    use crate::model::code::CodeCall;
    let mut parts = sb().to_parts();
    for (n, edge) in parts.threads.iter_mut().flat_map(|t| &mut t.edges).enumerate() {
        edge.line = n as u32 + 1;
        edge.text.clear();
        parts.code.push(CodeLine {
            function: "left".to_string(),
            at: format!("left+{:#x}", 4 * n),
            asm: format!("mov{n}"),
            file: (n == 0).then(|| "sb.c".to_string()),
            line: if n == 0 { 14 } else { 0 },
            column: 5,
            source: (n == 0).then(|| "  x = 1;".to_string()),
            parted: false,
            calls: vec![CodeCall {
                function: "put".to_string(),
                inlined: true,
                line: 20,
                ..CodeCall::default()
            }],
        });
    }
    let program = Program::new(parts).unwrap();
    let rows = walked(&program, Model::Tso, &sb_trace().events, &[]).0.rows;
    let first = &rows[0];
    assert_eq!((first.line.as_str(), first.text.as_str(), first.asm.as_str()), ("sb.c:14", "x = 1;", "mov0"));
    let second = &rows[1];
    assert_eq!((second.line.as_str(), second.text.as_str(), second.asm.as_str()), ("left+0x8", "mov2", ""));
    let event = crate::report::json::event(&program, &sb_trace().events[0]);
    assert_eq!((&event["file"], &event["line"], &event["asm"]), (&"sb.c".into(), &14.into(), &"mov0".into()));
    assert_eq!(event["calls"], serde_json::json!([{"function": "put", "inlined": true, "line": 20}]));
    let unknown = crate::report::json::event(&program, &sb_trace().events[1]);
    assert_eq!((unknown.get("file"), &unknown["at"]), (None, &"left+0x8".into()));
}
