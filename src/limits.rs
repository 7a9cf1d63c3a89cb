//! What may a run spend, and has it been spent? [`Limits`] is what the user allows, [`Limit`] what was
//! reached first.
//!
//! Nothing is interrupted from outside: whatever can take long says how much it does, by [`Limits::spend`],
//! and ends when it is told to. So every phase of a run ends in the same way, with the limit as a value.
//! Searches, which have their own counts and several workers, ask between batches. Time and cancellation are
//! looked at often, memory less so: the system takes a while to tell. An analysis that is about to take much
//! memory at once asks for it first ([`Limits::reserve`]).

mod text;

pub use text::Text;

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Steps between two looks at the clock: well below a millisecond.
const STEPS: u64 = 1 << 13;
/// Looks at the clock between two at the memory.
const LOOKS: u64 = 16;
/// What is too little to ask for.
const LITTLE: u64 = 1 << 20;
/// Room for what the system says of a process; files under /proc do not tell their size.
const STATUS_BYTES: usize = 4 << 10;

/// What a run may spend, and the strings by which others watch and stop it.
#[derive(Debug, Default)]
pub struct Limits {
    pub deadline: Option<Instant>,
    /// The time the user allowed, for the report.
    pub timeout: Option<Duration>,
    /// Bytes the whole process may use.
    pub memory: Option<u64>,
    pub states: Option<u64>,
    /// Set by Ctrl-C, for all runs that share it.
    pub cancelled: Arc<AtomicBool>,
    /// Set when nobody waits for this run any more: another one has the answer.
    pub superseded: AtomicBool,
    /// Set when another process that was to help cannot go on: what became of it.
    pub lost: Arc<OnceLock<String>>,
    /// Stored states so far, for whoever shows progress.
    pub progress: Arc<AtomicU64>,
    /// The round of refinement, for engines that have rounds.
    pub round: Arc<AtomicU64>,
    /// What the run is at, in a few words, where there is more to say than that.
    pub note: Arc<Mutex<String>>,
    pub pace: Pace,
}

/// When to look next.
#[derive(Debug, Default)]
pub struct Pace {
    /// Steps until then, and how many there were to begin with.
    left: AtomicU64,
    granted: AtomicU64,
    looks: AtomicU64,
    /// All steps up to the last look.
    spent: AtomicU64,
}

/// Which limit ended a run early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    Time(Duration),
    Memory(u64),
    States(u64),
    Cancelled,
    /// Some buffer wanted to grow past the user's bound.
    Buffer(usize),
    /// One state needs more words than the explorer stores.
    StateSize(usize),
    /// So many delays were built into the program, as many as allowed.
    Iterations(u64),
    /// The program with its delays outgrew what a program may have.
    ProgramSize(String),
    /// All delays that there are were built in beside what was there, which proves nothing.
    Additive,
    /// An error of a thread comes first, so that it cannot be told whether an assert fails.
    Overshadowed,
    /// The property can hold inside a `lock` block, where the others' buffers are frozen and count as they
    /// are: the engine cannot see that.
    FrozenBuffers,
    /// There is a `membarrier` in this place, which whoever was asked does not know.
    Membarrier(String),
    /// Accesses of several sizes touch the same cell: the engine, or the question, knows whole cells alone.
    MixedSizes,
    /// The instruction in this place accesses memory across a border of eight bytes, and the answer depends on whether
    /// a processor does that at once.
    InParts(String),
    /// Something that was asked about has no value in a state that can be reached, for this reason.
    Undefined(String),
    /// The formula cannot say this.
    Inexpressible(String),
    /// Loops can go round more often than so many times, as far as was looked.
    Rounds(u32),
    /// What a waiting thread can still do has no end in sight: its registers may grow.
    Growing,
    /// Other processes were to help, and this is what became of that.
    Lost(String),
}

impl Limits {
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self.deadline = Instant::now().checked_add(timeout);
        self
    }

    /// The same limits for one of several runs side by side, which can be stopped by itself.
    pub fn for_one_of_several(&self) -> Limits {
        Limits {
            deadline: self.deadline,
            timeout: self.timeout,
            memory: self.memory,
            states: self.states,
            cancelled: self.cancelled.clone(),
            superseded: AtomicBool::new(false),
            lost: self.lost.clone(),
            progress: self.progress.clone(),
            round: self.round.clone(),
            note: self.note.clone(),
            pace: Pace::default(),
        }
    }

    /// The same limits for a run that stores no more states than this.
    pub fn with_states(&self, most: u64) -> Limits {
        Limits { states: Some(self.states.map_or(most, |own| own.min(most))), ..self.for_one_of_several() }
    }

    /// Says what the run is at.
    pub fn take_note(&self, what: String) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    pub fn noted(&self) -> String {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// So many steps were done, or are about to be. Every so often this looks whether a limit has been
    /// reached, the first time at once, and every time once one has.
    #[inline]
    pub fn spend(&self, steps: usize) -> Result<(), Limit> {
        // Several who spend at once may lose a few counts, which only puts the next look off a little.
        match self.pace.left.load(Ordering::Relaxed).checked_sub(steps as u64) {
            Some(left) => {
                self.pace.left.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => self.look(steps),
        }
    }

    /// All steps so far, for whoever measures.
    pub fn spent(&self) -> u64 {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (now(&self.pace.spent) + now(&self.pace.granted)).saturating_sub(now(&self.pace.left))
    }

    #[cold]
    fn look(&self, steps: usize) -> Result<(), Limit> {
        let Pace { left, granted, looks, spent } = &self.pace;
        let grant =
            |steps: u64| [left, granted].iter().for_each(|count| count.store(steps, Ordering::Relaxed));
        spent.store(self.spent() + steps as u64, Ordering::Relaxed);
        grant(0);
        let looks = looks.fetch_add(1, Ordering::Relaxed) + 1;
        self.expired().map_or(Ok(()), Err)?;
        if looks.is_multiple_of(LOOKS) {
            self.fits(0)?;
        }
        grant(STEPS);
        Ok(())
    }

    /// Looks at everything, at once.
    pub fn check(&self) -> Result<(), Limit> {
        self.expired().map_or_else(|| self.fits(0), Err)
    }

    /// So many bytes are about to be taken at once.
    pub fn reserve(&self, bytes: usize) -> Result<(), Limit> {
        if (bytes as u64) < LITTLE { Ok(()) } else { self.fits(bytes as u64) }
    }

    /// The limit of time, or the cancellation, that has been reached, if any.
    pub fn expired(&self) -> Option<Limit> {
        if self.cancelled.load(Ordering::Relaxed) || self.superseded.load(Ordering::Relaxed) {
            return Some(Limit::Cancelled);
        }
        if let Some(what) = self.lost.get() {
            return Some(Limit::Lost(what.clone()));
        }
        self.deadline.filter(|&d| Instant::now() >= d).map(|_| Limit::Time(self.timeout.unwrap_or_default()))
    }

    /// May the process use so many bytes more than it does?
    pub fn fits(&self, more: u64) -> Result<(), Limit> {
        let used = || resident().unwrap_or(0).saturating_add(more);
        match self.memory {
            Some(most) if used() > most => Err(Limit::Memory(most)),
            _ => Ok(()),
        }
    }
}

/// Bytes of memory that the process has now, where the system tells.
pub fn resident() -> Option<u64> {
    let mut text = String::with_capacity(STATUS_BYTES);
    std::fs::File::open("/proc/self/status").ok()?.read_to_string(&mut text).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kb: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kb << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_spends_learns_of_a_limit_at_once_and_then_every_so_often() {
        let limits = Limits::default();
        assert_eq!((limits.spend(1), limits.spent()), (Ok(()), 1));
        limits.cancelled.store(true, Ordering::Relaxed);
        let told = (0..=STEPS).position(|_| limits.spend(1).is_err());
        assert_eq!(told, Some(STEPS as usize), "a look costs something");
        assert_eq!((limits.spend(1), limits.spent()), (Err(Limit::Cancelled), STEPS + 3));
        let limits = Limits { deadline: Some(Instant::now()), ..Limits::default() };
        assert_eq!(limits.spend(1), Err(Limit::Time(Duration::ZERO)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_what_the_process_has() {
        let limits = Limits { memory: Some(1 << 40), ..Limits::default() };
        assert_eq!(limits.reserve(1 << 30), Ok(()));
        assert_eq!(limits.reserve(1 << 40), Err(Limit::Memory(1 << 40)));
        let limits = Limits { memory: Some(1), ..Limits::default() };
        let mut steps = (0..2 * LOOKS).map(|_| limits.spend(STEPS as usize + 1));
        assert!(steps.any(|step| step == Err(Limit::Memory(1))));
        assert_eq!(Limits::default().reserve(1 << 40), Ok(()), "nobody asks where there is no limit");
    }
}
