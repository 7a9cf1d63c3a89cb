//! Who else searches? Several processes, perhaps on several machines, answer the same question together. Each
//! reads the same program and comes to the same decisions, so that whatever is not a search is done by each for
//! itself; a search they share, and each keeps the states that it owns (`partition`).
//!
//! What they have to say to each other goes through an [`Exchange`]: batches of words, and rounds. A process
//! ends its round with a status, as often as it likes but not before the round before has ended everywhere; a
//! round has ended once all have ended it and everything that they sent until then has arrived. Everybody then
//! has the same statuses, and decides by them alone. What others send after that arrives after it: who still waits
//! for the end of a round must not be given, and drop, words of the search that begins behind it. Not here: the network. What implements the trait is
//! `cluster`.

use crate::query::{Limit, Traffic};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The way to the other processes.
pub trait Exchange: Send + Sync {
    /// The number of this process.
    fn me(&self) -> usize;

    /// How many processes there are.
    fn count(&self) -> usize;

    /// States that each process looks at for itself before a search is worth sharing.
    fn alone(&self) -> u64;

    /// Sends words to another process.
    fn send(&self, to: usize, words: Vec<u64>);

    /// Ends this process's round.
    fn end_round(&self, status: Vec<u64>);

    /// What has arrived, waiting so long if nothing has: the words of a round in any order, but behind the end of
    /// the round before and in front of its own.
    fn receive(&self, wait: Duration) -> Arrival;
}

/// What comes from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    Words(Vec<u64>),
    /// A round has ended, with these statuses, by process.
    Round(Vec<Vec<u64>>),
    Nothing,
    /// Somebody has gone away, so that no round will ever end.
    Lost(Limit),
}

/// How long to wait for the others before looking whether there is anything else to do.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);

/// The processes that answer a question together.
#[derive(Clone)]
pub struct Peers {
    exchange: Arc<dyn Exchange>,
    sent: Arc<Sent>,
}

/// What all have sent in the searches so far.
#[derive(Default)]
struct Sent {
    messages: AtomicU64,
    words: AtomicU64,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.exchange.me(), self.exchange.count())
    }
}

impl Peers {
    pub fn new(exchange: Arc<dyn Exchange>) -> Peers {
        Peers { exchange, sent: Arc::default() }
    }

    pub fn exchange(&self) -> &dyn Exchange {
        &*self.exchange
    }

    pub fn count(&self) -> usize {
        self.exchange.count()
    }

    pub(super) fn add_sent(&self, messages: u64, words: u64) {
        self.sent.messages.fetch_add(messages, Ordering::Relaxed);
        self.sent.words.fetch_add(words, Ordering::Relaxed);
    }

    /// What has been sent in searches.
    pub fn traffic(&self) -> Traffic {
        let bytes = 8 * self.sent.words.load(Ordering::Relaxed);
        Traffic { processes: self.count(), messages: self.sent.messages.load(Ordering::Relaxed), bytes }
    }

    /// Are all about to do the same? What the words say of it has to be the same everywhere.
    pub fn agree(&self, words: &[u64], what: &str) -> Result<(), Limit> {
        let statuses = round(self.exchange(), words.to_vec())?;
        match statuses.iter().position(|status| status != words) {
            None => Ok(()),
            Some(other) => Err(Limit::Lost(format!("process {other} has another {what}"))),
        }
    }
}

/// Ends a round, and waits for its end everywhere. What else arrives is from a search that is over.
pub(crate) fn round(exchange: &dyn Exchange, status: Vec<u64>) -> Result<Vec<Vec<u64>>, Limit> {
    exchange.end_round(status);
    loop {
        match exchange.receive(PATIENCE) {
            Arrival::Round(statuses) => return Ok(statuses),
            Arrival::Lost(limit) => return Err(limit),
            Arrival::Words(_) | Arrival::Nothing => {}
        }
    }
}
