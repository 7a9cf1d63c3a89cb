//! What do functions of libraries do? One table: each is a few operations, as instructions are.
//!
//! Each has the weakest meaning that is true of every implementation: no fence that the real function does not always
//! have. Waiting is trying again. What is not in the table is refused, for an empty body would be a guess. The table is one file.

use super::ops::*;
use super::refusal::{Refusal, Result};
use super::threads::{ARENA, ARENA_END, DONE, RESULT, START};
use std::collections::{BTreeMap, HashSet};

const RAX: Var = Var::Gpr(0);
const RCX: Var = Var::Gpr(1);
const RDX: Var = Var::Gpr(2);
const RSP: Var = Var::Gpr(4);
const RSI: Var = Var::Gpr(6);
const RDI: Var = Var::Gpr(7);

/// A thread's function has returned.
pub(super) const END: &str = "<thread end>";
/// `main`, or a constructor, has returned.
pub(super) const EXIT: &str = "<exit>";
pub(super) const CONSTRUCTED: &str = "<constructed>";
/// A thread begins: its function is in rax.
pub(super) const BEGIN: &str = "<thread start>";
const NOWHERE: &str = "<nowhere>";
const ONCE: &str = "<once>";

/// Places that no file defines.
pub(super) const INTERNAL: [&str; 6] = [END, EXIT, CONSTRUCTED, BEGIN, NOWHERE, ONCE];

/// What the user says of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stub {
    Noop,
    Fail,
    Any,
}

pub(super) struct Calls<'a> {
    pub stubs: &'a BTreeMap<String, Stub>,
    pub fail_at: &'a HashSet<String>,
    addresses: BTreeMap<u64, String>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        stubs: &'a BTreeMap<String, Stub>,
        fail_at: &'a HashSet<String>,
        libraries: &BTreeMap<u64, String>,
    ) -> Calls<'a> {
        Calls { stubs, fail_at, addresses: libraries.clone() }
    }

    pub(super) fn address(&self, name: &str) -> u64 {
        self.addresses.iter().find(|(_, n)| *n == name).map_or(0, |(address, _)| *address)
    }

    /// Where control goes when it goes where nothing is.
    pub(super) fn nowhere(&self) -> u64 {
        self.address(NOWHERE)
    }

    /// What the function does.
    pub(super) fn routine(&self, name: &str) -> Result<Lifted> {
        let plain = name.split('@').next().unwrap_or(name);
        let mut make = Make { once: self.address(ONCE), ..Make::default() };
        if let Some(stub) = self.stubs.get(plain) {
            match stub {
                Stub::Noop => make.give(constant(0)),
                Stub::Fail => make.fail(&format!("`{plain}` is called")),
                Stub::Any => {
                    make.ops.push(MicroOp::Any { dst: Var::Temp(0), lo: 0, hi: 1 });
                    make.give(var(Var::Temp(0)));
                }
            }
            return Ok(make.done(0));
        }
        if self.fail_at.contains(plain) || fails(plain) {
            make.fail(&format!("`{plain}` is called"));
            return Ok(make.done(0));
        }
        match body(plain, &mut make) {
            true => Ok(make.done(self.address(ONCE))),
            false => {
                let why = format!("the function `{plain}` is not defined by any file, and not known");
                let help = format!(
                    "link the file that defines it, or say what it does: --stub {plain}=noop|fail|any"
                );
                Err(Refusal::new(why).help(help))
            }
        }
    }
}

/// Is the function known, so that no definition of it is looked at?
pub(super) fn is_known(name: &str) -> bool {
    fails(name) || body(name, &mut Make::default())
}

/// Does calling the function mean that something is wrong?
fn fails(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "__assert_fail",
        "__assert",
        "__assert_perror_fail",
        "abort",
        "reach_error",
        "__VERIFIER_error",
        "__stack_chk_fail",
        "_ZSt9terminatev",
        "__cxa_pure_virtual",
        "__cxa_throw",
        "__fortify_fail",
        "__chk_fail",
        "rust_begin_unwind",
        "rust_eh_personality",
    ];
    NAMES.contains(&name)
        || name.contains("core9panicking")
        || name.contains("9panicking") && name.contains("3std")
        || name.starts_with("_ZSt") && name.contains("__throw_")
        || name.contains("alloc5alloc18handle_alloc_error")
        || name.contains("unwrap_failed")
        || name.contains("expect_failed")
}

/// Operations in the making.
#[derive(Default)]
struct Make {
    ops: Vec<MicroOp>,
    temps: u8,
    /// Where what `pthread_once` calls returns to.
    once: u64,
}

impl Make {
    fn temp(&mut self) -> Var {
        self.temps += 1;
        Var::Temp(self.temps - 1)
    }

    fn here(&self) -> OpLabel {
        self.ops.len() as OpLabel
    }

    fn load(&mut self, addr: VarExpr, bytes: u8) -> VarExpr {
        let dst = self.temp();
        self.ops.push(MicroOp::Load { dst, addr, bytes });
        var(dst)
    }

    fn store(&mut self, addr: VarExpr, value: VarExpr, bytes: u8) {
        self.ops.push(MicroOp::Store { addr, value, bytes });
    }

    fn rmw(&mut self, addr: VarExpr, bytes: u8, new: New) -> VarExpr {
        let dst = self.temp();
        self.ops.push(MicroOp::Rmw { dst, addr, bytes, new });
        var(dst)
    }

    fn cas(&mut self, addr: VarExpr, old: VarExpr, new: VarExpr) -> VarExpr {
        self.rmw(addr, 4, New::Cas { old, new })
    }

    fn jump_if(&mut self, condition: VarExpr, to: OpLabel) {
        self.ops.push(MicroOp::If(condition, to));
    }

    /// A jump forward, to be patched.
    fn forward_if(&mut self, condition: VarExpr) -> usize {
        self.ops.push(MicroOp::If(condition, 0));
        self.ops.len() - 1
    }

    fn forward(&mut self) -> usize {
        self.ops.push(MicroOp::Goto(0));
        self.ops.len() - 1
    }

    fn land(&mut self, from: usize) {
        let here = self.here();
        if let MicroOp::If(_, label) | MicroOp::Goto(label) = &mut self.ops[from] {
            *label = here;
        }
    }

    fn fail(&mut self, why: &str) {
        self.ops.push(MicroOp::Fail(why.to_string()));
    }

    fn set(&mut self, to: Var, value: VarExpr) {
        self.ops.push(MicroOp::Set(to, value));
    }

    fn kept(&mut self, value: VarExpr) -> VarExpr {
        let temp = self.temp();
        self.set(temp, value);
        var(temp)
    }

    /// Returns the value. What a function may change, it has changed.
    fn give(&mut self, value: VarExpr) {
        self.set(RAX, value);
        self.leave();
    }

    /// Returns nothing that anybody may look at.
    fn give_nothing(&mut self) {
        self.set(RAX, nobody());
        self.leave();
    }

    fn leave(&mut self) {
        let lost = [1, 2, 6, 7, 8, 9, 10, 11].map(Var::Gpr).into_iter();
        for lost in lost.chain((0..16).flat_map(|n| [Var::Xmm(n, 0), Var::Xmm(n, 1)])) {
            self.set(lost, nobody());
        }
        let back = self.load(var(RSP), 8);
        self.set(RSP, add(var(RSP), constant(8)));
        self.ops.push(MicroOp::Return(back));
    }

    fn done(self, next: u64) -> Lifted {
        Lifted { ops: self.ops, flags: Flags::Lost, next }
    }
}

fn arg(n: usize) -> VarExpr {
    var([RDI, RSI, RDX, RCX, Var::Gpr(8), Var::Gpr(9)][n])
}

/// A mutex that waits: its kind.
const MUTEX_KIND: u64 = 16;
const MUTEX_OWNER: u64 = 8;
const MUTEX_DEPTH: u64 = 4;
const WRITER: u64 = 0x8000_0000;
const EBUSY: u64 = 16;
const ETIMEDOUT: u64 = 110;

/// Adds what the function does; false if nobody knows.
fn body(name: &str, m: &mut Make) -> bool {
    match name {
        BEGIN => {
            let wait = m.here();
            let started = m.load(add(var(Var::Own), constant(START)), 8);
            m.jump_if(eq(started, constant(0)), wait);
            m.ops.push(MicroOp::Jump(var(RAX)));
        }
        END => end_thread(m, var(RAX)),
        EXIT | CONSTRUCTED | "exit" | "_exit" | "_Exit" | "quick_exit" => m.ops.push(MicroOp::Stop),
        NOWHERE => m.fail("control goes where no code is"),
        ONCE => {
            let control = m.load(var(RSP), 8);
            m.set(RSP, add(var(RSP), constant(8)));
            m.rmw(control, 4, New::Swap(constant(2)));
            m.give(constant(0));
        }
        "pthread_create" => {
            let create = Special::Create { handle: arg(0), function: arg(2), argument: arg(3) };
            m.ops.push(MicroOp::Special(create));
            m.give(constant(0));
        }
        "pthread_join" => {
            m.ops.push(MicroOp::Wait);
            join(m, arg(0));
            let none = m.forward_if(eq(arg(1), constant(0)));
            let result = m.load(add(arg(0), constant(RESULT)), 8);
            m.store(arg(1), result, 8);
            m.land(none);
            m.give(constant(0));
        }
        "pthread_exit" => end_thread(m, arg(0)),
        "pthread_self" => m.give(var(Var::Own)),
        "pthread_equal" => m.give(eq(arg(0), arg(1))),
        "__tls_get_addr" => {
            let offset = m.load(add(arg(0), constant(8)), 8);
            m.give(add(var(Var::Own), offset));
        }
        _ => return locks(name, m) || memory(name, m) || others(name, m) || cpp(name, m),
    }
    true
}

fn end_thread(m: &mut Make, result: VarExpr) {
    m.store(add(var(Var::Own), constant(RESULT)), result, 8);
    m.rmw(add(var(Var::Own), constant(DONE)), 8, New::Swap(constant(1)));
    m.ops.push(MicroOp::Stop);
}

/// Waits until the thread is done.
fn join(m: &mut Make, thread: VarExpr) {
    let wait = m.here();
    let done = m.load(add(thread, constant(DONE)), 8);
    m.jump_if(eq(done, constant(0)), wait);
}

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
fn lock_mutex(m: &mut Make, at: &VarExpr) {
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

fn unlock_mutex(m: &mut Make, at: &VarExpr) {
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

fn locks(name: &str, m: &mut Make) -> bool {
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
            m.give(binary(crate::model::BinOp::Mul, ne(old, constant(0)), constant(EBUSY)));
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
            m.give(binary(crate::model::BinOp::Mul, ne(old, constant(0)), constant(EBUSY)));
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
            let old = m.cas(arg(0), constant(0), constant(WRITER));
            m.give(binary(crate::model::BinOp::Mul, ne(old, constant(0)), constant(EBUSY)));
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
            m.store(add(arg(0), constant(4)), cut(arg(2), 32), 4);
            m.store(add(arg(0), constant(8)), constant(0), 4);
            m.give(constant(0));
        }
        "pthread_barrier_wait" => {
            let round = add(arg(0), constant(8));
            let wanted = m.load(add(arg(0), constant(4)), 4);
            let now = m.load(round.clone(), 4);
            let old = m.rmw(arg(0), 4, New::Update(cut(add(var(Var::Old), constant(1)), 32)));
            let waits = m.forward_if(ne(add(old, constant(1)), wanted));
            m.store(arg(0), constant(0), 4);
            m.rmw(round.clone(), 4, New::Swap(xor(now.clone(), constant(1))));
            m.give(constant(0xffff_ffff));
            m.land(waits);
            let again = m.here();
            let then = m.load(round, 4);
            m.jump_if(eq(then, now), again);
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
                m.give(binary(crate::model::BinOp::Mul, var(late), constant(ETIMEDOUT)));
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

fn memory(name: &str, m: &mut Make) -> bool {
    match name {
        "malloc" | "_Znwm" | "_Znam" | "_ZnwmRKSt9nothrow_t" | "valloc" => {
            let block = allocate(m, &arg(0), None);
            m.give(block);
        }
        "calloc" => {
            let length = m.kept(binary(crate::model::BinOp::Mul, arg(0), arg(1)));
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

fn others(name: &str, m: &mut Make) -> bool {
    match name {
        "printf" | "puts" | "putchar" | "fprintf" | "fputs" | "fputc" | "fflush" | "__printf_chk"
        | "__fprintf_chk" | "fwrite" | "perror" | "putc" | "vprintf" | "vfprintf" | "write" | "srand"
        | "setvbuf" => m.give_nothing(),
        "usleep" | "sleep" | "nanosleep" | "sched_yield" | "pthread_yield" | "thrd_yield" | "alarm"
        | "atexit" | "__cxa_atexit" | "__cxa_finalize" | "__gmon_start__" | "setbuf" => m.give(constant(0)),
        "__VERIFIER_assume" => {
            m.ops.push(MicroOp::Special(Special::Assume(ne(cut(arg(0), 32), constant(0)))));
            m.give_nothing();
        }
        "__VERIFIER_atomic_begin" | "__VERIFIER_atomic_end" => return false,
        "__VERIFIER_nondet_bool" | "__VERIFIER_nondet__Bool" => any(m, 0, 1),
        "__VERIFIER_nondet_uchar" => any(m, 0, 255),
        "__VERIFIER_nondet_ushort" => any(m, 0, 65_535),
        _ => return false,
    }
    true
}

fn any(m: &mut Make, lo: i64, hi: i64) {
    let value = m.temp();
    m.ops.push(MicroOp::Any { dst: value, lo, hi });
    m.give(var(value));
}

fn cpp(name: &str, m: &mut Make) -> bool {
    match name {
        // The state's third virtual function is what runs; the thread is its owner from now on.
        _ if name.starts_with("_ZNSt6thread15_M_start_thread") => {
            let state = m.load(arg(1), 8);
            let table = m.load(state.clone(), 8);
            let function = m.load(add(table, constant(16)), 8);
            m.store(arg(1), constant(0), 8);
            m.ops.push(MicroOp::Special(Special::Create { handle: arg(0), function, argument: state }));
            m.give_nothing();
        }
        "_ZNSt6thread4joinEv" => {
            m.ops.push(MicroOp::Wait);
            let thread = m.load(arg(0), 8);
            join(m, thread);
            m.store(arg(0), constant(0), 8);
            m.give_nothing();
        }
        "_ZNSt6thread6detachEv" => {
            m.store(arg(0), constant(0), 8);
            m.give_nothing();
        }
        "_ZNSt6thread6_StateD2Ev"
        | "_ZNSt6thread6_StateD1Ev"
        | "_ZNSt8ios_base4InitC1Ev"
        | "_ZNSt8ios_base4InitD1Ev" => {
            m.give_nothing();
        }
        "__cxa_guard_acquire" => {
            let again = m.here();
            let done = m.load(arg(0), 1);
            let ready = m.forward_if(ne(done, constant(0)));
            let busy = m.rmw(add(arg(0), constant(1)), 1, New::Cas { old: constant(0), new: constant(1) });
            m.jump_if(ne(busy, constant(0)), again);
            let since = m.load(arg(0), 1);
            let late = m.forward_if(ne(since, constant(0)));
            m.give(constant(1));
            m.land(late);
            m.rmw(add(arg(0), constant(1)), 1, New::Swap(constant(0)));
            m.land(ready);
            m.give(constant(0));
        }
        "__cxa_guard_release" => {
            m.store(arg(0), constant(1), 1);
            m.rmw(add(arg(0), constant(1)), 1, New::Swap(constant(0)));
            m.give_nothing();
        }
        _ => return false,
    }
    true
}
