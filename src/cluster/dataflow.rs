//! How do words get to the other processes, and when has a round ended? A timely dataflow in a thread of its own: an
//! input, an exchange, and an operator that hands on what arrives. The time of the input is the number of the round, so
//! that a round has ended when timely's progress tracking says that no message of it can come any more.
//!
//! The thread is asked by a channel and answers by another, since timely's workers cannot be shared. It ends with the
//! process. If a peer goes away, timely's threads panic; who waits for them hears of it from `watch`, and what they
//! would say is not shown.

use super::watch::Heartbeat;
use crate::query::Limit;
use crate::reach::{Arrival, Exchange};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use timely::WorkerConfig;
use timely::communication::allocator::ProcessBuilder;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::{AllocatorBuilder, Hooks};
use timely::dataflow::InputHandle;
use timely::dataflow::channels::pact::Exchange as ByProcess;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::{Input, Probe};
use timely::worker::Worker;

/// How long the thread sleeps if nobody wakes it.
const NAP: Duration = Duration::from_millis(10);
/// How timely names its threads.
const THREADS: &str = "timely:";

/// What is sent: to whom, from whom, whether it is a status, and the words.
type Parcel = (u64, u64, bool, Vec<u64>);

enum Outgoing {
    Send(usize, Vec<u64>),
    EndRound(Vec<u64>),
}

/// This process's end of the network.
pub(super) struct Network {
    me: usize,
    count: usize,
    alone: u64,
    orders: Sender<Outgoing>,
    arrivals: Mutex<Receiver<Arrival>>,
    worker: Thread,
    watch: Arc<Heartbeat>,
}

/// Starts the dataflow on connections to all others.
pub(super) fn start(
    me: usize,
    data: Vec<Option<TcpStream>>,
    alone: u64,
    watch: Arc<Heartbeat>,
) -> std::io::Result<Network> {
    say_nothing_of_timely();
    let count = data.len();
    for stream in data.iter().flatten() {
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
    }
    let hooks = Hooks::default();
    let inside = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), hooks.spill.clone());
    let (builders, guard) = initialize_networking_from_sockets(inside, data, me, 1, hooks)?;
    let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
    let (orders, asked) = mpsc::channel();
    let (told, arrivals) = mpsc::channel();
    let ends = Mutex::new(Some((asked, told)));
    let workers =
        timely::execute::execute_from(builders, Box::new(guard), WorkerConfig::default(), move |worker| {
            let ends = ends.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((asked, told)) = ends {
                serve(worker, me, count, &asked, told);
            }
        });
    let workers = workers.map_err(std::io::Error::other)?;
    let worker = workers.guards()[0].thread().clone();
    // The guards wait for all others when they are dropped, and perhaps for ever.
    std::mem::forget(workers);
    Ok(Network { me, count, alone, orders, arrivals: Mutex::new(arrivals), worker, watch })
}

/// What has arrived, sorted by rounds: timely may hand on what was sent in a later round before it says that an
/// earlier one has ended.
struct Inbox {
    told: Sender<Arrival>,
    count: usize,
    /// The round that has not ended.
    round: u64,
    /// Of rounds that have not begun here.
    early: BTreeMap<u64, Vec<Vec<u64>>>,
    statuses: BTreeMap<u64, Vec<Vec<u64>>>,
}

impl Inbox {
    fn take(&mut self, round: u64, (_, from, is_status, words): Parcel) {
        if is_status {
            let statuses = self.statuses.entry(round).or_insert_with(|| vec![vec![]; self.count]);
            statuses[from as usize] = words;
        } else if round > self.round {
            self.early.entry(round).or_default().push(words);
        } else {
            self.hand_on(Arrival::Words(words));
        }
    }

    fn end_round(&mut self) {
        let statuses = self.statuses.remove(&self.round).unwrap_or_default();
        self.hand_on(Arrival::Round(statuses));
        self.round += 1;
        let early = self.early.remove(&self.round).unwrap_or_default();
        early.into_iter().for_each(|words| self.hand_on(Arrival::Words(words)));
    }

    fn hand_on(&self, arrival: Arrival) {
        // Nobody listens once the process is at its end.
        let _ = self.told.send(arrival);
    }
}

/// The thread's life.
fn serve(worker: &mut Worker, me: usize, count: usize, asked: &Receiver<Outgoing>, told: Sender<Arrival>) {
    let (early, statuses) = (BTreeMap::new(), BTreeMap::new());
    let inbox = Rc::new(RefCell::new(Inbox { told, count, round: 0, early, statuses }));
    let mut input = InputHandle::new();
    let probe = worker.dataflow::<u64, _, _>(|scope| {
        let inbox = inbox.clone();
        let stream = scope.input_from(&mut input);
        let by_process = ByProcess::new(|parcel: &Parcel| parcel.0);
        let delivered = stream.unary::<timely::container::CapacityContainerBuilder<Vec<()>>, _, _, _>(
            by_process,
            "Deliver",
            |_, _| {
                move |input, _| {
                    input.for_each_time(|time, parcels| {
                        let mut inbox = inbox.borrow_mut();
                        parcels.flat_map(|batch| batch.drain(..)).for_each(|p| inbox.take(*time.time(), p));
                    });
                }
            },
        );
        delivered.probe().0
    });
    let mut round = 0;
    loop {
        loop {
            match asked.try_recv() {
                Ok(Outgoing::Send(to, words)) => input.send((to as u64, me as u64, false, words)),
                Ok(Outgoing::EndRound(status)) => {
                    (0..count as u64).for_each(|to| input.send((to, me as u64, true, status.clone())));
                    round += 1;
                    input.advance_to(round);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        input.flush();
        let has_ended = |inbox: &Inbox| inbox.round < round && !probe.less_equal(&inbox.round);
        while has_ended(&inbox.borrow()) {
            inbox.borrow_mut().end_round();
        }
        worker.step_or_park(Some(NAP));
    }
}

impl Network {
    fn order(&self, order: Outgoing) {
        // Without the thread nothing arrives, and `receive` says so.
        let _ = self.orders.send(order);
        self.worker.unpark();
    }
}

impl Exchange for Network {
    fn me(&self) -> usize {
        self.me
    }

    fn count(&self) -> usize {
        self.count
    }

    fn alone(&self) -> u64 {
        self.alone
    }

    fn send(&self, to: usize, words: Vec<u64>) {
        self.order(Outgoing::Send(to, words));
    }

    fn end_round(&self, status: Vec<u64>) {
        self.order(Outgoing::EndRound(status));
    }

    fn receive(&self, wait: Duration) -> Arrival {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let arrived = match wait.is_zero() {
            true => arrivals.try_recv().map_err(|error| error == TryRecvError::Disconnected),
            false => arrivals.recv_timeout(wait).map_err(|error| error == RecvTimeoutError::Disconnected),
        };
        match arrived {
            Ok(arrival) => arrival,
            Err(is_broken) if is_broken || !wait.is_zero() => self.nothing(is_broken),
            Err(_) => Arrival::Nothing,
        }
    }
}

impl Network {
    /// Nothing has come: is that because nothing can?
    fn nothing(&self, is_broken: bool) -> Arrival {
        let begun = Instant::now();
        loop {
            match self.watch.lost() {
                Some(what) => return Arrival::Lost(Limit::Lost(what)),
                None if !is_broken => return Arrival::Nothing,
                None if begun.elapsed() > super::watch::SILENCE => {
                    return Arrival::Lost(Limit::Lost("the connections are broken".to_string()));
                }
                // Who is to blame will turn out.
                None => thread::sleep(NAP),
            }
        }
    }
}

/// What becomes of a peer is told once, by `watch`.
fn say_nothing_of_timely() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !thread::current().name().is_some_and(|name| name.starts_with(THREADS)) {
            others(panic);
        }
    }));
}
