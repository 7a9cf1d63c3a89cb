//! How does the program begin? `main` runs alone, as on the processor, until something that it does matters to another
//! thread; what memory holds then is the initial state.
//!
//! How far that is nobody knows before the others are known: `main` goes on past what creates them, and notes what it
//! touches. If another thread turns out to touch the same, it is run again and stops there.

use super::bytes::{Bytes, Kind, Region};
use super::calls::{BEGIN, CONSTRUCTED, END, EXIT};
use super::exec::{Alone, CodePlace, Contexts, Creation, Exec, PathEnd, RED_ZONE, Root, World};
use super::facts::{AccessKind, CodeFacts};
use super::lift::RSP;
use super::ops::{Flags, Lifted, Var};
use super::refusal::{Refusal, Result};
use super::sink::Silent;
use super::state::State;
use super::value::Value;
use std::collections::HashMap;
use std::rc::Rc;

/// What the library keeps of a thread, behind the place that the thread's own pointer (`fs`) points to.
pub(super) const START: u64 = 0x100;
pub(super) const DONE: u64 = 0x108;
pub(super) const RESULT: u64 = 0x110;
pub(super) const ARENA: u64 = 0x118;
pub(super) const ARENA_END: u64 = 0x120;
/// Where compilers look for what guards the stack, and its value here.
const CANARY: u64 = 0x28;
const GUARD: u64 = 0x5afe_57ac_0ff1_ce00;
const BLOCK: u64 = 0x200;

const STACK: u64 = 8 << 20;
/// How many threads a program may have.
pub(super) const MOST_THREADS: usize = 100;
/// Steps of `main` alone.
const STEPS: usize = 1 << 21;
/// Steps of `main` once there are others.
const STEPS_BESIDE: usize = 1 << 14;

/// A thread's place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub own: u64,
    pub stack: (u64, u64),
}

/// How far behind a block of the heap its word is.
pub(super) fn words_behind(heap: u64) -> u64 {
    heap.next_multiple_of(0x1000) + 0x1000
}

/// Where the thread of this number is, and where its heap begins.
fn place_of(world: &World, number: usize) -> (u64, Area, u64) {
    let local = &world.image.thread_local;
    let heap = words_behind(world.heap);
    let size = (local.size + BLOCK).next_multiple_of(0x1000) + 2 * heap + STACK + 0x1000;
    let base = world.image.end + 0x1000 + size.next_multiple_of(0x1000) * number as u64;
    let own = base + local.size;
    let arena = (own + BLOCK).next_multiple_of(0x1000) + 0x1000;
    let bottom = arena + 2 * heap;
    (base, Area { own, stack: (bottom, bottom + STACK) }, arena)
}

/// What the thread of this number is known by.
pub(super) fn handle(world: &World, number: usize) -> u64 {
    place_of(world, number).1.own
}

/// Makes room for the thread of this number: its own block, its heap and its stack.
pub(super) fn area(world: &World, memory: &mut Bytes, number: usize) -> Result<Area> {
    if number >= MOST_THREADS {
        let why = format!("there are more than {MOST_THREADS} threads");
        return Err(Refusal::new(why).help("define the number of threads smaller, if it is a parameter"));
    }
    let (base, area, arena) = place_of(world, number);
    let (own, stack, heap) = (area.own, area.stack, world.heap);
    let words = arena + words_behind(heap);
    if memory.region(own).is_none() {
        memory.add_region(Region { start: base, end: own + BLOCK, kind: Kind::ThreadBlock });
        memory.add_region(Region { start: arena, end: arena + heap, kind: Kind::Heap });
        memory.add_region(Region { start: words, end: words + heap.next_multiple_of(16), kind: Kind::Words });
        memory.add_region(Region { start: stack.0, end: stack.1, kind: Kind::Stack });
        memory.write(base, &world.image.thread_local.bytes);
        for (offset, word) in
            [(0, own), (0x10, own), (CANARY, GUARD), (ARENA, arena), (ARENA_END, arena + heap)]
        {
            memory.write_number(own + offset, word, 8);
        }
    }
    Ok(area)
}

/// A function's first state: called with up to two arguments, it returns to an address.
fn called(area: &Area, arguments: [u64; 2], back: u64, memory: &mut Bytes) -> State {
    let mut state = State::default();
    let rsp = area.stack.1 - 64 - 8;
    state.put(Var::Gpr(RSP), Value::constant(rsp));
    state.put(Var::Own, Value::constant(area.own));
    state.put(Var::Gpr(7), Value::constant(arguments[0]));
    state.put(Var::Gpr(6), Value::constant(arguments[1]));
    memory.write_number(rsp, back, 8);
    state
}

/// A thread that runs a function.
pub(super) fn root(
    world: &World,
    memory: &mut Bytes,
    number: usize,
    function: u64,
    argument: u64,
) -> Result<Root> {
    let area = area(world, memory, number)?;
    let mut state = called(&area, [argument, 0], world.calls.address(END), memory);
    state.put(Var::Gpr(0), Value::constant(function));
    let start =
        CodePlace { context: Contexts::NONE, address: world.calls.address(BEGIN), op: 0, flags: Flags::Lost };
    let name = world.image.function(function).unwrap_or("thread").to_string();
    Ok(Root { name, state, start, stack: area.stack, creator: None })
}

/// Where `main` stands when it is not alone any more.
pub(super) struct Beginning {
    pub memory: Bytes,
    pub roots: Vec<Root>,
    pub contexts: Contexts,
    pub beside: Beside,
    /// What is known of the heap.
    pub facts: CodeFacts,
}

/// What `main` did while others were there, by its steps.
#[derive(Default)]
pub(super) struct Beside {
    pub touched: Vec<(usize, u64, u8, AccessKind)>,
    /// The classes of blocks of the heap.
    pub asked: Vec<(usize, u64)>,
}

/// How far `main` is run.
#[derive(Clone, Copy)]
pub(super) struct Most {
    /// Steps behind the first creation of a thread.
    pub steps: usize,
    /// Blocks of memory that it gives back.
    pub frees: usize,
}

/// Runs constructors and `main`.
pub(super) fn run_alone(
    world: &World,
    lifted: &mut HashMap<(u64, Flags), Rc<Lifted>>,
    main: u64,
    most: Most,
) -> Result<Beginning> {
    let mut facts = CodeFacts::default();
    let mut memory = world.image.bytes.clone();
    let area = area(world, &mut memory, 0)?;
    let mut contexts = Contexts::default();
    let mut created = Vec::new();
    let mut beside = Beside::default();
    let constructed = world.calls.address(CONSTRUCTED);
    let place = |address| CodePlace { context: Contexts::NONE, address, op: 0, flags: Flags::Lost };
    let arguments = arguments(&mut memory, &area);
    let mut jobs: Vec<(u64, u64)> = world.image.constructors.iter().map(|at| (*at, constructed)).collect();
    jobs.push((main, world.calls.address(EXIT)));
    for (function, back) in jobs {
        let state = called(&area, arguments, back, &mut memory);
        let (stack, end) = (area.stack, back);
        let run = MainAlone { world, lifted: &mut *lifted, facts: &mut facts, stack, most, end };
        let (state, stands) =
            run.go(state, place(function), &mut memory, &mut contexts, &mut created, &mut beside)?;
        if function != main && stands.address == constructed {
            continue;
        }
        if function != main {
            return Err(
                Refusal::new("a constructor does what cannot be run before `main`").at(stands.address)
            );
        }
        if let Some(rsp) = state.known(Var::Gpr(RSP)) {
            memory.forget_all(area.stack.0, rsp.saturating_sub(RED_ZONE).min(area.stack.1));
        }
        let root = Root { name: "main".to_string(), state, start: stands, stack: area.stack, creator: None };
        let mut roots = vec![root];
        for (number, creation) in created.iter().enumerate() {
            let creation: &Creation = creation;
            roots.push(self::root(world, &mut memory, number + 1, creation.function, creation.argument)?);
        }
        return Ok(Beginning { memory, roots, contexts, beside, facts });
    }
    unreachable!("`main` is the last job")
}

/// `main` is called with the program's name alone.
fn arguments(memory: &mut Bytes, area: &Area) -> [u64; 2] {
    let at = area.stack.1 - 48;
    memory.write(at, b"program\0");
    memory.write_number(at + 8, at, 8);
    memory.write_number(at + 16, 0, 8);
    [1, at + 8]
}

struct MainAlone<'r, 'a> {
    world: &'r World<'a>,
    lifted: &'r mut HashMap<(u64, Flags), Rc<Lifted>>,
    facts: &'r mut CodeFacts,
    stack: (u64, u64),
    most: Most,
    end: u64,
}

impl MainAlone<'_, '_> {
    fn go(
        self,
        mut state: State,
        mut place: CodePlace,
        memory: &mut Bytes,
        contexts: &mut Contexts,
        created: &mut Vec<Creation>,
        done: &mut Beside,
    ) -> Result<(State, CodePlace)> {
        let (mut steps, mut beside) = (0, 0);
        loop {
            let others = !created.is_empty();
            steps += 1;
            beside += usize::from(others);
            if place.address == self.end
                || steps > STEPS
                || others && (beside > self.most.steps || beside > STEPS_BESIDE)
            {
                return Ok((state, place));
            }
            let frees = self.most.frees.saturating_sub(self.facts.frees_alone());
            let mut log = Alone { touched: vec![], asked: vec![], frees };
            let mut asked = None;
            let number = created.len() + 1;
            let world = self.world;
            let before = state.clone();
            let mut create = |creation: Creation| {
                asked = Some(creation);
                Ok(handle(world, number))
            };
            let mut exec = Exec {
                world,
                thread: 0,
                stack: self.stack,
                contexts: &mut *contexts,
                memory: &mut *memory,
                facts: &mut *self.facts,
                created: &mut create,
                alone: Some(&mut log),
                lifted: &mut *self.lifted,
            };
            let stop = exec.run(place, state, &mut Silent)?;
            if let Some(creation) = asked {
                created.push(creation);
                area(world, memory, number)?;
            }
            if others {
                let touched = log.touched.into_iter();
                done.touched.extend(touched.map(|(at, bytes, access)| (beside, at, bytes, access)));
                done.asked.extend(log.asked.into_iter().map(|class| (beside, class)));
            }
            match stop {
                PathEnd::Next(ways) => match <[_; 1]>::try_from(ways) {
                    Ok([way]) => (place, state) = (way.place, way.state),
                    Err(_) => return Ok((before, place)),
                },
                PathEnd::NotAlone => return Ok((before, place)),
            }
        }
    }
}
