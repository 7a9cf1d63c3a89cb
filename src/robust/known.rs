//! Which delayed paths are built in already? Where a program is extended without taking anything away, the
//! same witness is still there afterwards. So the paths that were handed out are kept, as the instructions of
//! the user's program that they stand for (the projection h of `[LazyTSO15]`, section 3.1), and an attack
//! along one of them does not count again. A store that was issued before and now goes to memory stands for
//! more than its instruction: it is told apart.
//!
//! The paths of all threads form one tree; following a path is walking down.

use crate::model::{EdgeId, Origin, Program, ThreadId};
use std::collections::HashMap;

/// What a step of a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PathStep {
    Instruction(EdgeId),
    Flush(EdgeId),
}

#[derive(Clone, Debug, Default)]
pub struct KnownPaths {
    /// From a place, by a step of a thread, to a place; places count from 2.
    next: HashMap<(usize, ThreadId, PathStep), usize>,
    /// Per place from 2 on, whether a path ends there.
    ends: Vec<bool>,
}

impl KnownPaths {
    /// The place off all known paths.
    const LOST: usize = 0;
    pub const START: usize = 1;

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn last_place(&self) -> usize {
        if self.is_empty() { KnownPaths::START } else { self.ends.len() + 1 }
    }

    /// The path, in the program with the delays built in so far, is known from now on.
    pub fn add(&mut self, program: &Program, thread: ThreadId, path: &[EdgeId]) {
        let mut at = KnownPaths::START;
        for step in path.iter().filter_map(|&e| step(program, thread, e)) {
            let fresh = self.ends.len() + 2;
            at = *self.next.entry((at, thread, step)).or_insert(fresh);
            if at == fresh {
                self.ends.push(false);
            }
        }
        if let Some(end) = at.checked_sub(2) {
            self.ends[end] = true;
        }
    }

    /// The place after one more edge.
    pub fn next(&self, at: usize, program: &Program, thread: ThreadId, edge: EdgeId) -> usize {
        if self.is_empty() || at == KnownPaths::LOST {
            return KnownPaths::LOST;
        }
        match step(program, thread, edge) {
            None => at,
            Some(step) => *self.next.get(&(at, thread, step)).unwrap_or(&KnownPaths::LOST),
        }
    }

    pub fn ends_at(&self, place: usize) -> bool {
        place.checked_sub(2).is_some_and(|p| self.ends[p])
    }
}

fn step(program: &Program, thread: ThreadId, edge: EdgeId) -> Option<PathStep> {
    match program.thread(thread).edge(edge).origin {
        None => Some(PathStep::Instruction(edge)),
        Some(Origin::Whole(e) | Origin::Issue(e)) => Some(PathStep::Instruction(e)),
        Some(Origin::Flush(e)) => Some(PathStep::Flush(e)),
        Some(Origin::Nothing) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;
    use crate::limits::Limits;

    #[test]
    fn a_path_is_known_to_its_end_and_not_before() {
        let source = "shared x, y; thread p; store [x], 1; load r, [y]; load r, [y]; end";
        let program = tso::read(source, &[], &Limits::default()).expect("a program").program;
        let (t, path) = (ThreadId(0), [EdgeId(0), EdgeId(1)]);
        let mut known = KnownPaths::default();
        assert_eq!(known.next(KnownPaths::START, &program, t, EdgeId(0)), KnownPaths::LOST);
        known.add(&program, t, &path);
        let first = known.next(KnownPaths::START, &program, t, EdgeId(0));
        let second = known.next(first, &program, t, EdgeId(1));
        assert!(!known.ends_at(first) && known.ends_at(second) && !known.ends_at(KnownPaths::LOST));
        let third = known.next(second, &program, t, EdgeId(2));
        assert!(!known.ends_at(third) && !known.ends_at(known.next(third, &program, t, EdgeId(0))));
    }
}
