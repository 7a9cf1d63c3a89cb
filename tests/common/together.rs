//! Several processes that answer a question together, as threads of one: what they send goes through memory.

use overtake::reach::{Arrival, Exchange, Peers};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// What all share: for each process its mail, and the statuses of rounds that have not ended.
struct Office {
    desk: Mutex<Desk>,
    news: Condvar,
}

struct Desk {
    mail: Vec<VecDeque<Arrival>>,
    /// Of each process, the statuses of the rounds that it has ended and not all others have.
    ended: Vec<VecDeque<Vec<u64>>>,
    /// Nobody waits for those that have gone.
    gone: bool,
}

struct Member {
    me: usize,
    count: usize,
    alone: u64,
    office: Arc<Office>,
}

impl Member {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.office.desk.lock().expect("no process has gone wrong")
    }
}

impl Exchange for Member {
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
        self.desk().mail[to].push_back(Arrival::Words(words));
        self.office.news.notify_all();
    }

    fn end_round(&self, status: Vec<u64>) {
        let mut desk = self.desk();
        desk.ended[self.me].push_back(status);
        if desk.ended.iter().all(|own| !own.is_empty()) {
            let statuses: Vec<_> = desk.ended.iter_mut().filter_map(VecDeque::pop_front).collect();
            desk.mail.iter_mut().for_each(|mail| mail.push_back(Arrival::Round(statuses.clone())));
        }
        self.office.news.notify_all();
    }

    fn receive(&self, wait: Duration) -> Arrival {
        let mut desk = self.desk();
        if desk.mail[self.me].is_empty() && !wait.is_zero() {
            desk = self.office.news.wait_timeout(desk, wait).expect("no process has gone wrong").0;
        }
        match desk.mail[self.me].pop_front() {
            Some(arrival) => arrival,
            None if desk.gone => panic!("another process has gone wrong"),
            None => Arrival::Nothing,
        }
    }
}

/// Tells the others when a process panics.
impl Drop for Member {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(mut desk) = self.office.desk.lock()
        {
            desk.gone = true;
        }
    }
}

/// What each of so many processes comes to. Up to `alone` states of each search are looked at by all.
pub(crate) fn together<T: Send>(count: usize, alone: u64, work: impl Fn(Peers) -> T + Sync) -> Vec<T> {
    let desk = Desk { mail: vec![VecDeque::new(); count], ended: vec![VecDeque::new(); count], gone: false };
    let office = Arc::new(Office { desk: Mutex::new(desk), news: Condvar::new() });
    std::thread::scope(|scope| {
        let start = |me| {
            let peers = Peers::new(Arc::new(Member { me, count, alone, office: office.clone() }));
            let work = &work;
            scope.spawn(move || work(peers))
        };
        let all: Vec<_> = (0..count).map(start).collect();
        all.into_iter().map(|process| process.join().expect("no process goes wrong")).collect()
    })
}
