//! What do the locks of libraries do? Mutexes, semaphores, barriers: waiting is trying again.

use super::super::ops::*;
use super::make::{Make, RSP, arg};
use crate::model::BinOp;

/// A mutex that waits: its kind.
const MUTEX_KIND: u64 = 16;
const MUTEX_OWNER: u64 = 8;
const MUTEX_DEPTH: u64 = 4;
const WRITER: u64 = 0x8000_0000;
const BARRIER_WANTED: u64 = 4;
const ODD_ROUND: u64 = 0x8000_0000;
const EBUSY: u64 = 16;
const ETIMEDOUT: u64 = 110;

/// Tries until nobody holds it.
fn lock_plain(m: &mut Make, at: VarExpr) {
    let again = m.here();
    let old = m.cas(at, constant(0), constant(1));
    m.jump_if(ne(old, constant(0)), again);
}

fn unlock_plain(m: &mut Make, at: VarExpr) {
    let old = m.rmw(at, 4, New::Swap(constant(0)));
    let held = m.forward_if(ne(old, constant(0)));
    m.fail("a mutex that nobody holds is unlocked");
    m.land(held);
}

/// A recursive mutex counts how often its owner holds it.
pub(super) fn lock_mutex(m: &mut Make, at: &VarExpr) {
    let kind = m.load(add(at.clone(), constant(MUTEX_KIND)), 4);
    let recursive = m.forward_if(eq(kind, constant(1)));
    lock_plain(m, at.clone());
    let done = m.forward();
    m.land(recursive);
    let (owner, depth) = (add(at.clone(), constant(MUTEX_OWNER)), add(at.clone(), constant(MUTEX_DEPTH)));
    let holder = m.load(owner.clone(), 4);
    let own = m.forward_if(eq(holder, cut(var(Var::Own), 32)));
    lock_plain(m, at.clone());
    m.store(owner, cut(var(Var::Own), 32), 4);
    let first = m.forward();
    m.land(own);
    let held = m.load(depth.clone(), 4);
    m.store(depth, cut(add(held, constant(1)), 32), 4);
    m.land(first);
    m.land(done);
}

pub(super) fn unlock_mutex(m: &mut Make, at: &VarExpr) {
    let kind = m.load(add(at.clone(), constant(MUTEX_KIND)), 4);
    let plain = m.forward_if(ne(kind, constant(1)));
    let (owner, depth) = (add(at.clone(), constant(MUTEX_OWNER)), add(at.clone(), constant(MUTEX_DEPTH)));
    let held = m.load(depth.clone(), 4);
    let last = m.forward_if(eq(held.clone(), constant(0)));
    m.store(depth, cut(sub(held, constant(1)), 32), 4);
    let done = m.forward();
    m.land(last);
    m.store(owner, constant(0), 4);
    m.land(plain);
    unlock_plain(m, at.clone());
    m.land(done);
}

pub(super) fn locks(name: &str, m: &mut Make) -> bool {
    match name {
        "pthread_mutex_init" => {
            m.store(arg(0), constant(0), 4);
            m.store(add(arg(0), constant(MUTEX_DEPTH)), constant(0), 4);
            m.store(add(arg(0), constant(MUTEX_OWNER)), constant(0), 4);
            m.store(add(arg(0), constant(MUTEX_KIND)), constant(0), 4);
            let none = m.forward_if(eq(arg(1), constant(0)));
            let kind = m.load(arg(1), 4);
            m.store(add(arg(0), constant(MUTEX_KIND)), kind, 4);
            m.land(none);
            m.give(constant(0));
        }
        "pthread_mutexattr_init" => {
            m.store(arg(0), constant(0), 4);
            m.give(constant(0));
        }
        "pthread_mutexattr_settype" => {
            m.store(arg(0), cut(arg(1), 32), 4);
            m.give(constant(0));
        }
        "pthread_mutex_lock" | "__pthread_mutex_lock" | "mtx_lock" => {
            lock_mutex(m, &arg(0));
            m.give(constant(0));
        }
        "pthread_mutex_unlock" | "__pthread_mutex_unlock" | "mtx_unlock" => {
            unlock_mutex(m, &arg(0));
            m.give(constant(0));
        }
        "pthread_mutex_trylock" | "__pthread_mutex_trylock" => {
            let kind = m.load(add(arg(0), constant(MUTEX_KIND)), 4);
            let plain = m.forward_if(ne(kind, constant(1)));
            let why = "pthread_mutex_trylock of a recursive mutex is not covered";
            m.ops.push(MicroOp::Special(Special::Refuse(why.to_string(), None)));
            m.land(plain);
            let old = m.cas(arg(0), constant(0), constant(1));
            m.give(binary(BinOp::Mul, ne(old, constant(0)), constant(EBUSY)));
        }
        "pthread_mutex_destroy"
        | "pthread_mutexattr_destroy"
        | "pthread_spin_destroy"
        | "pthread_rwlock_destroy"
        | "pthread_barrier_destroy"
        | "pthread_cond_destroy"
        | "sem_destroy"
        | "pthread_cond_init"
        | "pthread_cond_signal"
        | "pthread_cond_broadcast"
        | "pthread_attr_init"
        | "pthread_attr_destroy"
        | "pthread_attr_setdetachstate"
        | "pthread_attr_setstacksize"
        | "pthread_detach"
        | "pthread_condattr_init"
        | "pthread_condattr_destroy"
        | "pthread_condattr_setclock"
        | "pthread_setconcurrency"
        | "pthread_setcanceltype"
        | "pthread_setcancelstate"
        | "pthread_setname_np" => m.give(constant(0)),
        "pthread_spin_init" | "pthread_rwlock_init" => {
            m.store(arg(0), constant(0), 4);
            m.give(constant(0));
        }
        "pthread_spin_lock" => {
            lock_plain(m, arg(0));
            m.give(constant(0));
        }
        "pthread_spin_unlock" => {
            m.store(arg(0), constant(0), 4);
            m.give(constant(0));
        }
        "pthread_spin_trylock" => {
            let old = m.cas(arg(0), constant(0), constant(1));
            m.give(binary(BinOp::Mul, ne(old, constant(0)), constant(EBUSY)));
        }
        "pthread_rwlock_rdlock" | "pthread_rwlock_tryrdlock" => {
            let tries = name == "pthread_rwlock_tryrdlock";
            let again = m.here();
            let now = m.load(arg(0), 4);
            let held = eq(now.clone(), constant(WRITER));
            let busy = match tries {
                true => Some(m.forward_if(held)),
                false => {
                    m.jump_if(held, again);
                    None
                }
            };
            let old = m.cas(arg(0), now.clone(), add(now.clone(), constant(1)));
            m.jump_if(ne(old, now), again);
            m.give(constant(0));
            if let Some(busy) = busy {
                m.land(busy);
                m.give(constant(EBUSY));
            }
        }
        "pthread_rwlock_wrlock" => {
            let again = m.here();
            let old = m.cas(arg(0), constant(0), constant(WRITER));
            m.jump_if(ne(old, constant(0)), again);
            m.give(constant(0));
        }
        "pthread_rwlock_trywrlock" => {
            // Who sees that it is held does not try: that is no fence.
            let now = m.load(arg(0), 4);
            let busy = m.forward_if(ne(now, constant(0)));
            let old = m.cas(arg(0), constant(0), constant(WRITER));
            let late = m.forward_if(ne(old, constant(0)));
            m.give(constant(0));
            m.land(busy);
            m.land(late);
            m.give(constant(EBUSY));
        }
        "pthread_rwlock_unlock" => {
            let now = m.load(arg(0), 4);
            let free = m.forward_if(ne(now.clone(), constant(0)));
            m.fail("a lock that nobody holds is unlocked");
            m.land(free);
            let reader = m.forward_if(ne(now, constant(WRITER)));
            m.rmw(arg(0), 4, New::Swap(constant(0)));
            m.give(constant(0));
            m.land(reader);
            m.rmw(arg(0), 4, New::Update(cut(sub(var(Var::Old), constant(1)), 32)));
            m.give(constant(0));
        }
        "pthread_barrier_init" => {
            m.store(arg(0), constant(0), 4);
            m.store(add(arg(0), constant(BARRIER_WANTED)), cut(arg(2), 32), 4);
            m.give(constant(0));
        }
        // How many wait, and above that whether the round is an odd one: who waits is of that round.
        "pthread_barrier_wait" => {
            let wanted = m.load(add(arg(0), constant(BARRIER_WANTED)), 4);
            let more = add(var(Var::Old), constant(1));
            let round = and(var(Var::Old), constant(ODD_ROUND));
            let is_last = eq(sub(more.clone(), round.clone()), wanted.clone());
            let next = choose(is_last, xor(round, constant(ODD_ROUND)), more);
            let old = m.rmw(arg(0), 4, New::Update(next));
            let round = m.kept(and(old.clone(), constant(ODD_ROUND)));
            let waits = m.forward_if(ne(sub(add(old, constant(1)), round.clone()), wanted));
            m.give(constant(0xffff_ffff));
            m.land(waits);
            let again = m.here();
            let then = m.load(arg(0), 4);
            m.jump_if(eq(and(then, constant(ODD_ROUND)), round), again);
            m.give(constant(0));
        }
        // It may always wake up without a signal.
        "pthread_cond_wait" | "pthread_cond_timedwait" | "pthread_cond_clockwait" => {
            m.ops.push(MicroOp::Wait);
            unlock_mutex(m, &arg(1));
            lock_mutex(m, &arg(1));
            if name == "pthread_cond_wait" {
                m.give(constant(0));
            } else {
                let late = m.temp();
                m.ops.push(MicroOp::Any { dst: late, lo: 0, hi: 1 });
                m.give(binary(BinOp::Mul, var(late), constant(ETIMEDOUT)));
            }
        }
        "sem_init" => {
            m.store(arg(0), cut(arg(2), 32), 4);
            m.give(constant(0));
        }
        "sem_wait" | "sem_trywait" => {
            let again = m.here();
            let now = m.load(arg(0), 4);
            let none = eq(now.clone(), constant(0));
            let busy = match name == "sem_trywait" {
                true => Some(m.forward_if(none)),
                false => {
                    m.jump_if(none, again);
                    None
                }
            };
            let old = m.cas(arg(0), now.clone(), sub(now.clone(), constant(1)));
            m.jump_if(ne(old, now), again);
            m.give(constant(0));
            if let Some(busy) = busy {
                m.land(busy);
                m.give(constant(0xffff_ffff));
            }
        }
        "sem_post" => {
            m.rmw(arg(0), 4, New::Update(cut(add(var(Var::Old), constant(1)), 32)));
            m.give(constant(0));
        }
        "sem_getvalue" => {
            let now = m.load(arg(0), 4);
            m.store(arg(1), now, 4);
            m.give(constant(0));
        }
        "pthread_once" => {
            let again = m.here();
            let now = m.load(arg(0), 4);
            let done = m.forward_if(eq(now, constant(2)));
            let old = m.cas(arg(0), constant(0), constant(1));
            m.jump_if(ne(old, constant(0)), again);
            let function = m.kept(arg(1));
            // What it returns to lets the others go on.
            for value in [arg(0), constant(m.once)] {
                m.set(RSP, sub(var(RSP), constant(8)));
                m.store(var(RSP), value, 8);
            }
            m.ops.push(MicroOp::Call(function));
            m.land(done);
            m.give(constant(0));
        }
        _ => return false,
    }
    true
}
