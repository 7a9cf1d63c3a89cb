//! What can go without anybody noticing? Steps that do nothing, and values that nobody looks at.

use crate::model::program::ThreadParts;
use crate::model::{Edge, Instr, Loc, Reg};
use std::collections::HashSet;

pub(super) fn tidy(mut parts: ThreadParts) -> ThreadParts {
    drop_dead(&mut parts);
    skip_nops(&mut parts);
    drop_unreachable(&mut parts);
    parts
}

/// Assignments to registers that are not read before they are set again become steps that do nothing.
fn drop_dead(parts: &mut ThreadParts) {
    let count = parts.locations.len();
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (n, edge) in parts.edges.iter().enumerate() {
        incoming[edge.to.index()].push(n);
        outgoing[edge.from.index()].push(n);
    }
    let mut live: Vec<HashSet<Reg>> = vec![HashSet::new(); count];
    let mut todo: Vec<usize> = (0..count).collect();
    let mut waits = vec![true; count];
    while let Some(at) = todo.pop() {
        waits[at] = false;
        let mut now: HashSet<Reg> = HashSet::new();
        for edge in outgoing[at].iter().map(|n| &parts.edges[*n]) {
            now.extend(before(edge, &live[edge.to.index()]));
        }
        if now == live[at] {
            continue;
        }
        live[at] = now;
        for from in incoming[at].iter().map(|n| parts.edges[*n].from.index()) {
            if !waits[from] {
                waits[from] = true;
                todo.push(from);
            }
        }
    }
    for edge in &mut parts.edges {
        let dead = match &edge.instr {
            Instr::Assign { dst, .. } | Instr::Any { dst, .. } => !live[edge.to.index()].contains(dst),
            _ => false,
        };
        if dead {
            edge.instr = Instr::Nop;
        }
    }
}

/// What is read from here on.
fn before(edge: &Edge, behind: &HashSet<Reg>) -> HashSet<Reg> {
    let mut live = behind.clone();
    let target = edge.instr.target();
    if let Instr::Assign { dst, .. } = &edge.instr
        && !behind.contains(dst)
    {
        return live;
    }
    target.iter().for_each(|dst| {
        live.remove(dst);
    });
    edge.instr.uses(|reg| {
        live.insert(reg);
    });
    live
}

/// Whoever comes to a place from which one step leads that does nothing goes on at once.
fn skip_nops(parts: &mut ThreadParts) {
    let count = parts.locations.len();
    let mut only: Vec<Option<Loc>> = vec![None; count];
    let mut ways = vec![0; count];
    for edge in &parts.edges {
        ways[edge.from.index()] += 1;
        only[edge.from.index()] = (edge.instr == Instr::Nop).then_some(edge.to);
    }
    let target = |start: Loc| {
        let (mut at, mut steps) = (start, 0);
        while let Some(next) = only[at.index()].filter(|_| ways[at.index()] == 1) {
            // A cycle of nothing stays as it is.
            if steps > count {
                return start;
            }
            (at, steps) = (next, steps + 1);
        }
        at
    };
    let targets: Vec<Loc> = (0..count as u32).map(|n| target(Loc(n))).collect();
    for edge in &mut parts.edges {
        edge.to = targets[edge.to.index()];
    }
    parts.initial = targets[parts.initial.index()];
}

fn drop_unreachable(parts: &mut ThreadParts) {
    let count = parts.locations.len();
    let mut outgoing: Vec<Vec<Loc>> = vec![Vec::new(); count];
    for edge in &parts.edges {
        outgoing[edge.from.index()].push(edge.to);
    }
    let mut seen = vec![false; count];
    let mut todo = vec![parts.initial];
    while let Some(at) = todo.pop() {
        if !std::mem::replace(&mut seen[at.index()], true) {
            todo.extend(&outgoing[at.index()]);
        }
    }
    seen[parts.end.index()] = true;
    let mut numbers = vec![Loc(0); count];
    for (next, n) in (0..count).filter(|n| seen[*n]).enumerate() {
        numbers[n] = Loc(next as u32);
    }
    let edges = std::mem::take(&mut parts.edges);
    parts.edges = edges.into_iter().filter(|e| seen[e.from.index()]).collect();
    for edge in &mut parts.edges {
        edge.from = numbers[edge.from.index()];
        edge.to = numbers[edge.to.index()];
    }
    let locations = std::mem::take(&mut parts.locations);
    parts.locations = locations.into_iter().enumerate().filter(|(n, _)| seen[*n]).map(|(_, l)| l).collect();
    parts.initial = numbers[parts.initial.index()];
    parts.end = numbers[parts.end.index()];
    let used: HashSet<Reg> = parts
        .edges
        .iter()
        .flat_map(|e| {
            let mut all: Vec<Reg> = e.instr.target().into_iter().collect();
            e.instr.exprs().iter().for_each(|x| x.for_each_atom(&mut |r| all.push(*r)));
            all
        })
        .collect();
    renumber(parts, &used);
}

/// Registers that nothing names go.
fn renumber(parts: &mut ThreadParts, used: &HashSet<Reg>) {
    let names = std::mem::take(&mut parts.registers);
    let mut numbers = vec![Reg(0); names.len()];
    for (n, name) in names.into_iter().enumerate() {
        if used.contains(&Reg(n as u16)) {
            numbers[n] = Reg(parts.registers.len() as u16);
            parts.registers.push(name);
        }
    }
    for edge in &mut parts.edges {
        rename(&mut edge.instr, &|r| numbers[r.index()]);
    }
}

fn rename(instr: &mut Instr, new: &impl Fn(Reg) -> Reg) {
    match instr {
        Instr::Load { dst, .. }
        | Instr::Assign { dst, .. }
        | Instr::Any { dst, .. }
        | Instr::Rmw { dst, .. } => {
            *dst = new(*dst);
        }
        _ => {}
    }
    match instr {
        Instr::Load { addr, .. } => *addr = addr.map_atoms(&|r| new(*r)),
        Instr::Store { addr, value, .. } => {
            *addr = addr.map_atoms(&|r| new(*r));
            *value = value.map_atoms(&|r| new(*r));
        }
        Instr::Assign { value, .. } => *value = value.map_atoms(&|r| new(*r)),
        Instr::Assume(e) | Instr::Assert(e) => *e = e.map_atoms(&|r| new(*r)),
        Instr::Rmw { addr, op, .. } => {
            *addr = addr.map_atoms(&|r| new(*r));
            for operand in op.operands_mut() {
                *operand = operand.map_atoms(&|r| new(*r));
            }
        }
        _ => {}
    }
}
