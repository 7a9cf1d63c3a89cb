//! Are the others still there? Every two processes have a connection for signs of life, beside the one for states: a
//! library that waits for a peer waits for ever.
//!
//! Each says every now and then that it lives, in a thread of its own that does nothing else; who is silent for too
//! long, or hangs up without a word, is lost, and so is whoever waits for it. A process that has come to its end says
//! so, with the reason if that is a limit. It then stays until process 0 has ended too: the others may still need what
//! it has said last. Process 0 says with which code.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

const BEAT: Duration = Duration::from_millis(500);
/// Whoever says nothing for so long is taken to hang.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// What a process said last may still be under way when it has ended.
const UNDER_WAY: Duration = Duration::from_secs(2);
/// How long the first process waits for the others to be gone.
const FAREWELL: Duration = Duration::from_secs(1);

/// What is known of the other processes.
pub struct Heartbeat {
    me: usize,
    lines: Vec<Option<Mutex<TcpStream>>>,
    names: Vec<String>,
    lost: Arc<OnceLock<String>>,
    /// When processes came to their end without a limit.
    done: Mutex<Vec<Option<Instant>>>,
    /// Connections that the others have not closed.
    open: AtomicUsize,
}

impl Heartbeat {
    pub(super) fn start(
        me: usize,
        lines: Vec<Option<TcpStream>>,
        names: Vec<String>,
        lost: Arc<OnceLock<String>>,
        at_end: impl Fn(u8) + Send + Sync + 'static,
    ) -> io::Result<Arc<Heartbeat>> {
        let readers: Vec<Option<TcpStream>> = lines
            .iter()
            .map(|line| line.as_ref().map(TcpStream::try_clone).transpose())
            .collect::<Result<_, _>>()?;
        let watch = Arc::new(Heartbeat {
            me,
            done: Mutex::new(vec![None; lines.len()]),
            open: AtomicUsize::new(readers.iter().flatten().count()),
            lines: lines.into_iter().map(|line| line.map(Mutex::new)).collect(),
            names,
            lost,
        });
        let at_end = Arc::new(at_end);
        for (other, line) in readers.into_iter().enumerate().filter_map(|(k, line)| Some((k, line?))) {
            line.set_read_timeout(Some(SILENCE))?;
            let (watch, at_end) = (watch.clone(), at_end.clone());
            thread::spawn(move || {
                watch.listen(other, line, &*at_end);
                watch.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let beats = watch.clone();
        thread::spawn(move || {
            loop {
                beats.tell_all("beat");
                thread::sleep(BEAT);
            }
        });
        Ok(watch)
    }

    /// What has become of the others, if that keeps a round from ending.
    pub(super) fn lost(&self) -> Option<String> {
        let gone = |at: &Option<Instant>| at.is_some_and(|at| at.elapsed() > UNDER_WAY);
        let left = || {
            let other = self.done().iter().position(gone)?;
            Some(format!("{} has come to its end before the others", self.names[other]))
        };
        self.lost.get().cloned().or_else(left)
    }

    /// This process has come to its end, perhaps by a limit. Process 0 tells the others its code, and waits a moment
    /// until they are gone; the others wait for that. What they end with is the answer.
    pub fn end(&self, code: u8, limit: Option<&str>) -> Result<(), String> {
        if self.me == 0 {
            self.tell_all(&format!("bye {code}"));
            let begun = Instant::now();
            while self.open.load(Ordering::Relaxed) > 0 && begun.elapsed() < FAREWELL {
                thread::sleep(Duration::from_millis(1));
            }
            return Ok(());
        }
        let limit = limit.map_or(String::new(), |limit| limit.replace('\n', " "));
        self.tell_all(&format!("done {limit}"));
        loop {
            match self.lost.get() {
                Some(what) => return Err(what.clone()),
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn done(&self) -> MutexGuard<'_, Vec<Option<Instant>>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, what: String) {
        let _ = self.lost.set(what);
    }

    /// A line to everybody. Who does not take it is found out by those that listen.
    fn tell_all(&self, what: &str) {
        for line in self.lines.iter().flatten() {
            let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
            if line.write_all(format!("{what}\n").as_bytes()).is_err() {
                let _ = line.shutdown(Shutdown::Both);
            }
        }
    }

    /// Hears what another process says until it hangs up.
    fn listen(&self, other: usize, line: TcpStream, at_end: &(impl Fn(u8) + Send + Sync)) {
        let name = &self.names[other];
        for said in BufReader::new(line).lines() {
            let said = match said {
                Ok(said) => said,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return self.lose(format!("{name} has said nothing for {} s", SILENCE.as_secs()));
                }
                Err(_) => break,
            };
            match said.split_once(' ').unwrap_or((&said, "")) {
                ("bye", code) => return at_end(code.parse().unwrap_or(u8::MAX)),
                ("done", "") => self.done()[other] = Some(Instant::now()),
                ("done", limit) => return self.lose(format!("{name} has ended: {limit}")),
                _ => {}
            }
        }
        self.lose(format!("{name} has gone away"));
    }
}
