//! Is this a run that the axioms of a memory model allow? Plain definitions, after `[BurckhardtAlurMartin06]`.
//!
//! An execution says which edges each thread took, what its loads read, and in which order all accesses took
//! effect. Threads are followed by themselves, with the values that are claimed; then the order is held to the
//! model's rules, pair by pair, and each load to the store that it has to read from. No model is an operational
//! one here; what each of them keeps in order stands in [`ordered`].

use super::{choices, eval, modified, trap};
use crate::model::{Bytes, EdgeId, FenceKinds, Instr, Loc, Program, Reg, RmwOp, ThreadId, Value};
use crate::query::{Axioms, Trap};
use std::collections::{HashMap, HashSet};

/// What a cell can hold that nobody has written.
pub const GARBAGE: [Value; 3] = [-1, 0, 1];

/// One edge that a thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub edge: EdgeId,
    /// What an `any` picks.
    pub choice: Option<Value>,
    /// What a load reads.
    pub read: Option<Value>,
    /// A locked instruction that would write what is there: one of many rounds of waiting, of which none counts.
    pub silent: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Execution {
    pub threads: Vec<Vec<Taken>>,
    /// Accesses as thread and number of its step; together those between which nothing comes.
    pub order: Vec<Vec<(usize, usize)>>,
}

/// What an execution is held to.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub program: &'a Program,
    pub model: Axioms,
    /// What memory holds in the beginning; nothing where it can be anything.
    pub initial: &'a [Option<Value>],
    /// Cells below this one may not be accessed.
    pub first_cell: Value,
    /// Stores before which the cell must hold something else than 0.
    pub frees: &'a HashSet<(ThreadId, EdgeId)>,
}

/// How a thread goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Trap(Trap),
    /// A block is given back that is free.
    DoubleFree,
    /// A round of waiting changes memory.
    LoudWait,
}

/// A load, a store, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxiomAccess {
    pub thread: usize,
    pub step: usize,
    pub addr: Value,
    pub read: Option<Value>,
    pub written: Option<Value>,
    locked: bool,
}

/// What came of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    pub at: Vec<Loc>,
    pub registers: Vec<Vec<Value>>,
    /// In the order in which they took effect.
    pub accesses: Vec<AxiomAccess>,
    pub memory: Vec<Value>,
    /// Threads that go wrong, and how.
    pub wrong: Vec<(usize, Wrong)>,
}

/// What a thread does that memory models know of.
#[derive(Clone, Copy)]
enum Deed {
    Access(AxiomAccess),
    Fence(FenceKinds),
    Begin,
    End,
}

/// Performs the execution; a sentence if it is none.
pub fn perform(setting: &Setting<'_>, execution: &Execution) -> Result<Performed, String> {
    let program = setting.program;
    if execution.threads.len() != program.threads().len() {
        return Err("an execution has all threads".to_string());
    }
    let mut done = Performed {
        at: Vec::new(),
        registers: Vec::new(),
        accesses: Vec::new(),
        memory: Vec::new(),
        wrong: Vec::new(),
    };
    let mut deeds = Vec::new();
    for (t, taken) in execution.threads.iter().enumerate() {
        let followed = follow(setting, ThreadId(t as u16), taken)?;
        done.at.push(followed.at);
        done.registers.push(followed.registers);
        done.wrong.extend(followed.wrong.map(|wrong| (t, wrong)));
        deeds.push(followed.deeds);
    }
    let groups = groups(&deeds);
    let place = places(&deeds, &groups, execution)?;
    check_order(setting.model, &deeds, &groups, &place)?;
    let mut accesses: Vec<AxiomAccess> = deeds
        .iter()
        .flatten()
        .filter_map(|d| if let Deed::Access(access) = d { Some(*access) } else { None })
        .collect();
    accesses.sort_by_key(|a| (place[&(a.thread, a.step)], a.step));
    let mut garbage: HashMap<Value, Value> = HashMap::new();
    for access in &accesses {
        if let Some(read) = access.read {
            let seen = seen(setting.model, &accesses, &place, access);
            if !may_read(setting, seen, access.addr, read, &mut garbage) {
                return Err(format!("a load of cell {} cannot read {read}", access.addr));
            }
        }
        let edge = execution.threads[access.thread][access.step].edge;
        if setting.frees.contains(&(ThreadId(access.thread as u16), edge)) {
            let held = seen(setting.model, &accesses, &place, access);
            let held = held.or_else(|| setting.initial.get(access.addr as usize).copied().flatten());
            if held == Some(0) {
                done.wrong.push((access.thread, Wrong::DoubleFree));
            }
        }
    }
    done.memory = (0..setting.initial.len() as Value)
        .map(|cell| {
            let last = accesses.iter().rev().find(|a| a.addr == cell && a.written.is_some());
            let initial = setting.initial[cell as usize].or_else(|| garbage.get(&cell).copied()).unwrap_or(0);
            last.and_then(|a| a.written).unwrap_or(initial)
        })
        .collect();
    done.accesses = accesses;
    Ok(done)
}

struct Followed {
    at: Loc,
    registers: Vec<Value>,
    deeds: Vec<Deed>,
    wrong: Option<Wrong>,
}

/// One thread by itself, with the values that it is said to have read.
fn follow(setting: &Setting<'_>, t: ThreadId, taken: &[Taken]) -> Result<Followed, String> {
    let program = setting.program;
    let thread = program.thread(t);
    let mut now = Followed {
        at: thread.initial(),
        registers: vec![0; thread.registers().len()],
        deeds: Vec::new(),
        wrong: None,
    };
    for (step, one) in taken.iter().enumerate() {
        if now.wrong.is_some() {
            return Err("a thread goes on after it has gone wrong".to_string());
        }
        let edges = thread.edges_from(now.at);
        let Some((_, edge)) = edges.into_iter().find(|(id, _)| *id == one.edge) else {
            return Err("a thread takes an edge that it does not stand before".to_string());
        };
        let instr = &edge.instr;
        if !choices(instr).any(|c| c == one.choice) {
            return Err("a thread picks what it cannot pick".to_string());
        }
        let below =
            instr.address().and_then(|e| eval(&now.registers, e).ok()).filter(|a| *a < setting.first_cell);
        let wrong = trap(program, &now.registers, instr).or(below.map(Trap::OutOfRange));
        if let Some(wrong) = wrong {
            now.wrong = Some(Wrong::Trap(wrong));
            now.at = Loc::TRAP;
            continue;
        }
        let value = |e| eval(&now.registers, e).map_err(|_| "a division by zero".to_string());
        let addr = instr.address().map(value).transpose()?.unwrap_or(0);
        let access = |read, written, locked| {
            Deed::Access(AxiomAccess { thread: t.index(), step, addr, read, written, locked })
        };
        let read = || one.read.ok_or("a load reads nothing".to_string());
        let mut set: Option<(Reg, Value)> = None;
        match instr {
            Instr::Load { bytes, .. } | Instr::Store { bytes, .. } if *bytes != Bytes::WHOLE => {
                return Err("axioms know whole cells alone".to_string());
            }
            Instr::Load { dst, .. } => {
                now.deeds.push(access(Some(read()?), None, false));
                set = Some((*dst, read()?));
            }
            Instr::Store { value: e, .. } => {
                let written = value(e)?;
                now.deeds.push(access(None, Some(written), false));
            }
            Instr::Rmw { dst, op, .. } => {
                let old = read()?;
                let new = modified(&now.registers, *dst, op, old);
                let fails = match op {
                    RmwOp::Cas { old: expected, .. } => old != value(expected)?,
                    _ => false,
                };
                if one.silent && new != old {
                    now.wrong = Some(Wrong::LoudWait);
                }
                // A comparison that fails writes nothing.
                let written = (!fails && !one.silent).then_some(new);
                now.deeds.push(access(Some(old), written, true));
                set = Some((*dst, old));
            }
            Instr::Fence | Instr::Partial(_) => {
                now.deeds.extend(instr.fence_kinds().map(Deed::Fence));
            }
            Instr::Assign { dst, value: e } => set = Some((*dst, value(e)?)),
            Instr::Any { dst, .. } => set = Some((*dst, one.choice.ok_or("an `any` picks nothing")?)),
            Instr::Assume(e) if value(e)? == 0 => {
                return Err("a thread passes a condition that does not hold".to_string());
            }
            Instr::Membarrier => return Err("axioms know no `membarrier`".to_string()),
            Instr::Lock => now.deeds.push(Deed::Begin),
            Instr::Unlock => now.deeds.push(Deed::End),
            Instr::Assume(_) | Instr::Assert(_) | Instr::Nop => {}
        }
        if let Some((reg, value)) = set {
            now.registers[reg.index()] = value;
        }
        now.at = edge.to;
    }
    Ok(now)
}

/// What belongs together, for each thread: places among its deeds, from the first to the last. A block counts
/// although nothing may be in it.
struct AtomicGroup {
    thread: usize,
    deeds: std::ops::RangeInclusive<usize>,
    locked: bool,
}

fn groups(deeds: &[Vec<Deed>]) -> Vec<AtomicGroup> {
    let mut groups = Vec::new();
    for (thread, own) in deeds.iter().enumerate() {
        let mut begun: Option<usize> = None;
        for (k, deed) in own.iter().enumerate() {
            match deed {
                Deed::Begin => begun = Some(k),
                Deed::End => {
                    let first = begun.take().unwrap_or(k);
                    groups.push(AtomicGroup { thread, deeds: first..=k, locked: true });
                }
                Deed::Access(access) if begun.is_none() => {
                    groups.push(AtomicGroup { thread, deeds: k..=k, locked: access.locked });
                }
                Deed::Access(_) | Deed::Fence(_) => {}
            }
        }
        // A thread may stop inside its block.
        groups.extend(begun.map(|first| AtomicGroup { thread, deeds: first..=own.len() - 1, locked: true }));
    }
    groups
}

/// When each access takes effect.
type EffectTimes = HashMap<(usize, usize), usize>;

fn places(deeds: &[Vec<Deed>], groups: &[AtomicGroup], execution: &Execution) -> Result<EffectTimes, String> {
    let mut place: EffectTimes = HashMap::new();
    for (k, together) in execution.order.iter().enumerate() {
        for access in together {
            if place.insert(*access, k).is_some() {
                return Err("an access takes effect twice".to_string());
            }
        }
    }
    let mut all = 0;
    for group in groups {
        let own = deeds[group.thread][group.deeds.clone()].iter();
        let own: Vec<(usize, usize)> = own
            .filter_map(|d| if let Deed::Access(a) = d { Some((a.thread, a.step)) } else { None })
            .collect();
        all += own.len();
        if let Some(first) = own.first() {
            let together = place.get(first).map(|k| &execution.order[*k]);
            if together.is_none_or(|t| t.len() != own.len() || own.iter().any(|a| !t.contains(a))) {
                return Err("an access is not where it belongs in the order".to_string());
            }
        }
    }
    if all == place.len() { Ok(place) } else { Err("the order has accesses that do not happen".to_string()) }
}

/// Does the model keep these two groups of a thread in order, the first being the earlier one?
pub fn ordered(
    model: Axioms,
    first: &[(AxiomAccess, usize)],
    second: &[(AxiomAccess, usize)],
    fences: &[(FenceKinds, usize)],
) -> bool {
    first.iter().any(|(a, before)| {
        second.iter().any(|(b, behind)| {
            let (loads, stores) = (a.read.is_some(), a.written.is_some());
            let (then_loads, then_stores) = (b.read.is_some(), b.written.is_some());
            let kept = match model {
                Axioms::Sc => true,
                Axioms::Tso => loads || then_stores,
                Axioms::Pso | Axioms::PsoSparc => loads || a.addr == b.addr && then_stores,
                Axioms::Relaxed => a.addr == b.addr && then_stores,
            };
            let between = |f: &&(FenceKinds, usize)| (before..behind).contains(&&f.1);
            kept || fences
                .iter()
                .filter(between)
                .any(|(f, _)| f.orders((loads, stores), (then_loads, then_stores)))
        })
    })
}

fn check_order(
    model: Axioms,
    deeds: &[Vec<Deed>],
    groups: &[AtomicGroup],
    place: &EffectTimes,
) -> Result<(), String> {
    let with_places = |group: &AtomicGroup| -> Vec<(AxiomAccess, usize)> {
        let own = group.deeds.clone().map(|k| (deeds[group.thread][k], k));
        own.filter_map(|(d, k)| if let Deed::Access(a) = d { Some((a, k)) } else { None }).collect()
    };
    for (thread, own) in deeds.iter().enumerate() {
        let all: Vec<&AtomicGroup> = groups.iter().filter(|g| g.thread == thread).collect();
        let fences: Vec<(FenceKinds, usize)> = own
            .iter()
            .enumerate()
            .filter_map(|(k, d)| if let Deed::Fence(kinds) = d { Some((*kinds, k)) } else { None })
            .collect();
        for (i, first) in all.iter().enumerate() {
            for (j, second) in all.iter().enumerate().skip(i + 1) {
                let (a, b) = (with_places(first), with_places(second));
                let drains = matches!(model, Axioms::Tso | Axioms::Pso);
                // What waits for all earlier stores stands between what is before and what is behind it.
                let apart = drains && all[i..=j].iter().any(|g| g.locked);
                let kept = apart || ordered(model, &a, &b, &fences);
                let (Some((x, _)), Some((y, _))) = (a.first(), b.first()) else { continue };
                if kept && place[&(x.thread, x.step)] >= place[&(y.thread, y.step)] {
                    return Err("two accesses take effect in the wrong order".to_string());
                }
            }
        }
    }
    Ok(())
}

/// What an access that reads sees: the last store before it in the order, or of its own thread.
fn seen(model: Axioms, accesses: &[AxiomAccess], place: &EffectTimes, reader: &AxiomAccess) -> Option<Value> {
    let at = |a: &AxiomAccess| (place[&(a.thread, a.step)], a.step);
    let visible = |s: &&AxiomAccess| {
        let earlier = s.thread == reader.thread && s.step < reader.step;
        let together = place[&(s.thread, s.step)] == place[&(reader.thread, reader.step)];
        let forwarded = earlier && (model != Axioms::Sc || together);
        s.addr == reader.addr && s.written.is_some() && (forwarded || !together && at(s) < at(reader))
    };
    accesses.iter().filter(visible).max_by_key(|s| at(s)).and_then(|s| s.written)
}

fn may_read(
    setting: &Setting<'_>,
    seen: Option<Value>,
    addr: Value,
    read: Value,
    garbage: &mut HashMap<Value, Value>,
) -> bool {
    match (seen, setting.initial.get(addr as usize).copied().flatten()) {
        (Some(value), _) | (None, Some(value)) => value == read,
        (None, None) => GARBAGE.contains(&read) && *garbage.entry(addr).or_insert(read) == read,
    }
}
