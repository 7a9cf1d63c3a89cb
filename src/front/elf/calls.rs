//! What do functions of libraries do? One table: each is a few operations, as instructions are.
//!
//! Each has the weakest meaning that is true of every implementation: no fence that the real function does not always
//! have. Waiting is trying again. What is not in the table is refused, for an empty body would be a guess. Locks and
//! memory have files of their own.

mod locks;
mod make;
mod memory;

use self::locks::{lock_mutex, locks, unlock_mutex};
use self::make::{Make, RAX, RSP, arg};
use self::memory::memory;
use super::ops::*;
use super::refusal::{Refusal, Result};
use super::threads::{DONE, RESULT, START};
use std::collections::{BTreeMap, HashSet};

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
        let mut make = Make::new(self.address(ONCE));
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
        "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE" => {
            m.ops.push(MicroOp::Wait);
            let mutex = m.load(arg(1), 8);
            unlock_mutex(m, &mutex);
            lock_mutex(m, &mutex);
            m.give_nothing();
        }
        "_ZNSt18condition_variableC1Ev"
        | "_ZNSt18condition_variableC2Ev"
        | "_ZNSt18condition_variableD1Ev"
        | "_ZNSt18condition_variableD2Ev"
        | "_ZNSt18condition_variable10notify_oneEv"
        | "_ZNSt18condition_variable10notify_allEv"
        | "_ZNSt6thread6_StateD2Ev"
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
