//! A test-and-set lock, as a model that tests ask about. The functions stand for those of the real lock; what they emit
//! is what the processor does.

use overtake::model::build::{JumpTarget, ProgramBuilder, ThreadBuilder, Unbuilt};
use overtake::model::{Addr, Program, RegExpr};

/// How the lock is taken.
#[derive(Clone, Copy, Debug)]
pub enum Acquire {
    /// One locked instruction.
    Exchange,
    /// A load and a store, between which another thread may come.
    LoadThenStore,
}

/// Takes the lock.
pub fn acquire(t: &mut ThreadBuilder, lock: Addr, how: Acquire) {
    let again = t.label();
    t.bind(again);
    let busy = match how {
        Acquire::Exchange => t.exchange("busy", lock, 1),
        Acquire::LoadThenStore => t.load("busy", lock),
    };
    t.branch(RegExpr::from(busy).differs(0), again);
    if let Acquire::LoadThenStore = how {
        t.store(lock, 1);
    }
}

/// Lets go of it: a plain store, as on any x86.
pub fn release(t: &mut ThreadBuilder, lock: Addr) {
    t.store(lock, 0);
}

/// So many threads that each take the lock, count one up, and let go.
pub fn counting(threads: usize, how: Acquire) -> Result<Program, Unbuilt> {
    let mut program = ProgramBuilder::new();
    let (lock, count) = (program.variable("lock", 0), program.variable("count", 0));
    let inside: Vec<JumpTarget> = (0..threads)
        .map(|i| {
            program.thread(&format!("p{i}"), |t| {
                acquire(t, lock, how);
                let inside = t.mark("inside");
                let seen = t.load("seen", count);
                t.store(count, RegExpr::from(seen) + 1.into());
                release(t, lock);
                inside
            })
        })
        .collect();
    for (k, one) in inside.iter().enumerate() {
        for other in &inside[..k] {
            program.forbid(one.reached().and(other.reached()));
        }
    }
    program.forall(count.value().equals(threads as i64));
    program.no_hang();
    program.finish()
}
