//! Who else searches? Several processes, perhaps on several machines, answer the same question together. Each
//! reads the same program and comes to the same decisions, so that whatever is not a search is done by each for
//! itself; a search they share, and each keeps the states that it owns (`partition`).
//!
//! What they have to say to each other goes through an [`Exchange`]: batches of words, and rounds. A process
//! ends its round with a status, as often as it likes but not before the round before has ended everywhere; a
//! round has ended once all have ended it and everything that they sent until then has arrived. Everybody then
//! has the same statuses, and decides by them alone. Not here: the network. What implements the trait is
//! `cluster`.

use crate::query::Limit;
use std::fmt;
use std::sync::Arc;
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

    /// What has arrived, in its order; waits so long if nothing has.
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
pub struct Peers(Arc<dyn Exchange>);

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.0.me(), self.0.count())
    }
}

impl Peers {
    pub fn new(exchange: Arc<dyn Exchange>) -> Peers {
        Peers(exchange)
    }

    pub fn exchange(&self) -> &dyn Exchange {
        &*self.0
    }

    pub fn count(&self) -> usize {
        self.0.count()
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
