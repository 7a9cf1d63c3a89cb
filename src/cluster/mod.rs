//! How do the processes of a search reach each other? They are named in a hosts file, greet each other with a token,
//! exchange what they have found on timely dataflow, and watch whether the others are still there.
//!
//! `hosts` reads the file, `greeting` makes the connections, `watch` has one between every two processes for signs of
//! life and for the end, and `dataflow` has another for states and rounds. A process that goes away, hangs or ends
//! early ends the searches of all others, with a reason and never with `safe`. Only addresses of the file are
//! connected to, and nothing listens once all are there. What is sent is not encrypted. Not here: which states are
//! sent to whom, which is for `reach::partition` to say.

mod dataflow;
mod greeting;
mod hosts;
mod watch;

pub use greeting::{Introduction, NotGathered};
pub use hosts::{Hosts, Mistake};
pub use watch::Heartbeat;

use crate::limits::Limits;
use crate::reach::Peers;
use std::sync::Arc;

/// This process among all.
pub struct Cluster {
    pub peers: Peers,
    pub watch: Arc<Heartbeat>,
}

/// Connects to the other processes of the file. Process 0's end ends this one through `at_end`, with its code.
pub fn join(
    introduction: &Introduction,
    alone: u64,
    limits: &Limits,
    at_end: impl Fn(u8) + Send + Sync + 'static,
) -> Result<Cluster, NotGathered> {
    let connections = greeting::gather(introduction, limits)?;
    let (mut lines, mut data) = (Vec::new(), Vec::new());
    for connection in connections {
        let (line, stream) = connection.map_or((None, None), |c| (Some(c.control), Some(c.data)));
        lines.push(line);
        data.push(stream);
    }
    let names = introduction.hosts.names();
    let watch = Heartbeat::start(introduction.me, lines, names, limits.lost.clone(), at_end)?;
    let network = dataflow::start(introduction.me, data, alone, watch.clone())?;
    Ok(Cluster { peers: Peers::new(Arc::new(network)), watch })
}
