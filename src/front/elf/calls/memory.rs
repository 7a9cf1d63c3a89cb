//! What do functions do that give memory out, take it back, copy it or fill it?

use super::super::ops::*;
use super::super::threads::{ARENA, ARENA_END};
use super::make::{Make, arg};
use crate::model::BinOp;

/// A block of the thread's own arena, or one that was given back.
fn allocate(m: &mut Make, length: &VarExpr, align: Option<&VarExpr>) -> VarExpr {
    let arena = add(var(Var::Own), constant(ARENA));
    let start = m.load(arena.clone(), 8);
    let start = m.kept(start);
    let taken = align.map_or(length.clone(), |align| add(length.clone(), align.clone()));
    // Each block has room behind it that belongs to nobody.
    let rounded = m.kept(and(add(taken, constant(31)), constant(!15)));
    let next = m.kept(add(start.clone(), rounded.clone()));
    let limit = m.load(add(var(Var::Own), constant(ARENA_END)), 8);
    let fits = m.forward_if(negated(below(limit, next.clone(), 64)));
    let why = "the heap of this thread is used up";
    let help = "give more with --heap-size, or does a loop allocate without bound?";
    m.ops.push(MicroOp::Special(Special::Refuse(why.to_string(), Some(help.to_string()))));
    m.land(fits);
    m.store(arena, next, 8);
    let (fresh, class) = match align {
        None => (start, rounded),
        Some(align) => {
            let up = sub(align.clone(), constant(1));
            (m.kept(and(add(start, up.clone()), not(up))), add(rounded, shl(align.clone(), constant(32))))
        }
    };
    let dst = m.temp();
    let request = BlockRequest { dst, fresh, length: length.clone(), class };
    m.ops.push(MicroOp::Special(Special::Allocate(request)));
    var(dst)
}

/// What gives memory back.
const FREES: [&str; 7] =
    ["free", "cfree", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm", "_ZdlPvmSt11align_val_t"];

pub(super) fn memory(name: &str, m: &mut Make) -> bool {
    match name {
        "malloc" | "_Znwm" | "_Znam" | "_ZnwmRKSt9nothrow_t" | "valloc" => {
            let block = allocate(m, &arg(0), None);
            m.give(block);
        }
        "calloc" => {
            let length = m.kept(binary(BinOp::Mul, arg(0), arg(1)));
            let block = allocate(m, &length, None);
            let fill = Special::Fill { to: block.clone(), byte: constant(0), length };
            m.ops.push(MicroOp::Special(fill));
            m.give(block);
        }
        "aligned_alloc" | "memalign" | "posix_memalign" => {
            let (align, length) = if name == "posix_memalign" { (arg(1), arg(2)) } else { (arg(0), arg(1)) };
            let block = allocate(m, &length, Some(&align));
            if name == "posix_memalign" {
                m.store(arg(0), block, 8);
                m.give(constant(0));
            } else {
                m.give(block);
            }
        }
        // It goes to another place, as it may.
        "realloc" => {
            let block = allocate(m, &arg(1), None);
            let none = m.forward_if(eq(arg(0), constant(0)));
            let dst = m.temp();
            let kept = Special::BlockLength { dst, at: arg(0), most: arg(1) };
            m.ops.push(MicroOp::Special(kept));
            m.ops.push(MicroOp::Special(Special::Copy { to: block.clone(), from: arg(0), length: var(dst) }));
            m.ops.push(MicroOp::Special(Special::Free(arg(0))));
            m.land(none);
            m.give(block);
        }
        _ if FREES.contains(&name) => {
            m.ops.push(MicroOp::Special(Special::Free(arg(0))));
            m.give_nothing();
        }
        "memcpy" | "memmove" | "__memcpy_chk" | "__memmove_chk" => {
            m.ops.push(MicroOp::Special(Special::Copy { to: arg(0), from: arg(1), length: arg(2) }));
            m.give(arg(0));
        }
        "memset" | "__memset_chk" => {
            m.ops.push(MicroOp::Special(Special::Fill { to: arg(0), byte: arg(1), length: arg(2) }));
            m.give(arg(0));
        }
        "bzero" | "explicit_bzero" => {
            m.ops.push(MicroOp::Special(Special::Fill { to: arg(0), byte: constant(0), length: arg(1) }));
            m.give_nothing();
        }
        "strlen" => {
            let dst = m.temp();
            m.ops.push(MicroOp::Special(Special::Length { dst, at: arg(0) }));
            m.give(var(dst));
        }
        _ => return false,
    }
    true
}
