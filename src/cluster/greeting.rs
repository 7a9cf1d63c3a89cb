//! Is that one of us? Between every two processes there are two connections, one for states and one for signs of life.
//! The process with the larger number opens both, to where the hosts file says that the other listens.
//!
//! Each side proves that it has the token, by a digest of it with a fresh number of either side, and without sending
//! it. Who cannot is a stranger, and is left alone. Then both say which version they are and what they were asked; if
//! that differs, the run ends. Invariant: whatever comes in before the proof is at most a line, and is waited for at
//! most for a moment.

use super::hosts::Hosts;
use crate::limits::{Limit, Limits};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, atomic::AtomicBool};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

const MAGIC: &str = "overtake-cluster-1";
/// How long the others may take to be started.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one of them may take for one line.
const LINE_PATIENCE: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_LINE: usize = 512;
/// Guests that may be greeting at the same time.
const MOST_GUESTS: usize = 64;

/// Who this process is, and what it was asked.
#[derive(Clone, Debug)]
pub struct Introduction {
    pub hosts: Hosts,
    pub me: usize,
    pub version: String,
    /// Of what was asked: the same for all, apart from the number of the process.
    pub asked: String,
}

impl Introduction {
    /// All have to have been asked the same, in these words.
    pub fn new(hosts: Hosts, me: usize, asked: &[String]) -> Introduction {
        let version = env!("CARGO_PKG_VERSION").to_string();
        Introduction { hosts, me, version, asked: hex(&Sha256::digest(format!("{asked:?}").as_bytes())) }
    }
}

/// Why the processes do not come together.
#[derive(Debug, Error)]
pub enum NotGathered {
    #[error("cannot listen on {address}, where process {me} is to be: {error}")]
    Listen { me: usize, address: String, error: io::Error },
    #[error("{0}")]
    Together(String),
    #[error("{0:?}")]
    Limit(Limit),
    #[error("the connections cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// The two connections to another process.
pub(super) struct Connection {
    pub control: TcpStream,
    pub data: TcpStream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Control,
    Data,
}

impl Use {
    const BOTH: [Use; 2] = [Use::Control, Use::Data];

    fn word(self) -> &'static str {
        match self {
            Use::Control => "control",
            Use::Data => "data",
        }
    }
}

/// A connection with the number of who is at its other end.
type Greeted = Result<(usize, Use, TcpStream), NotGathered>;

/// Why one greeting came to nothing.
enum Refused {
    /// The run ends.
    For(String),
    /// It may be somebody else, or too early: to be tried again.
    Now,
}

impl From<io::Error> for Refused {
    fn from(_: io::Error) -> Refused {
        Refused::Now
    }
}

/// Connects to all others, each in its place of the file.
pub(super) fn gather(
    introduction: &Introduction,
    limits: &Limits,
) -> Result<Vec<Option<Connection>>, NotGathered> {
    let (count, me) = (introduction.hosts.addresses.len(), introduction.me);
    let (told, heard) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    if me + 1 < count {
        let address = introduction.hosts.addresses[me].clone();
        let listen = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind(&address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener =
            listen().map_err(|error| NotGathered::Listen { me, address: address.clone(), error })?;
        let (introduction, told, over) = (introduction.clone(), told.clone(), over.clone());
        thread::spawn(move || receive_guests(&listener, &introduction, &told, &over));
    }
    for to in 0..me {
        let (introduction, told, over) = (introduction.clone(), told.clone(), over.clone());
        thread::spawn(move || Use::BOTH.map(|purpose| told.send(visit(&introduction, to, purpose, &over))));
    }
    let gathered = await_all(introduction, &heard, limits);
    over.store(true, Ordering::Relaxed);
    gathered
}

fn await_all(
    introduction: &Introduction,
    heard: &Receiver<Greeted>,
    limits: &Limits,
) -> Result<Vec<Option<Connection>>, NotGathered> {
    let (count, me, names) =
        (introduction.hosts.addresses.len(), introduction.me, introduction.hosts.names());
    let begun = Instant::now();
    let mut lines: Vec<[Option<TcpStream>; 2]> = (0..count).map(|_| [None, None]).collect();
    let is_there = |line: &[Option<TcpStream>; 2]| line.iter().all(Option::is_some);
    while let Some(missing) = (0..count).find(|&k| k != me && !is_there(&lines[k])) {
        limits.check().map_err(NotGathered::Limit)?;
        if begun.elapsed() > PATIENCE {
            let patience = PATIENCE.as_secs();
            return Err(NotGathered::Together(format!(
                "{} has not come within {patience} s",
                names[missing]
            )));
        }
        if let Some(gone) = (0..count).find(|&k| lines[k][0].as_ref().is_some_and(has_ended)) {
            return Err(NotGathered::Together(format!("{} has gone away before all had come", names[gone])));
        }
        if let Ok(greeted) = heard.recv_timeout(PAUSE) {
            let (from, purpose, stream) = greeted?;
            lines[from][purpose as usize] = Some(stream);
        }
    }
    Ok(lines.into_iter().map(|[control, data]| Some(Connection { control: control?, data: data? })).collect())
}

/// Has the other side hung up? It says nothing yet otherwise.
fn has_ended(stream: &TcpStream) -> bool {
    let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    let _ = stream.set_nonblocking(false);
    match peeked {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

/// Opens a connection to another process, as often as it takes.
fn visit(introduction: &Introduction, to: usize, purpose: Use, over: &AtomicBool) -> Greeted {
    let address = &introduction.hosts.addresses[to];
    let mut name_error = None;
    while !over.load(Ordering::Relaxed) {
        match address.to_socket_addrs() {
            Err(error) => name_error = Some(error),
            Ok(mut places) => {
                let connected =
                    places.find_map(|place| TcpStream::connect_timeout(&place, LINE_PATIENCE).ok());
                match connected
                    .ok_or(Refused::Now)
                    .and_then(|stream| introduce(introduction, to, purpose, stream))
                {
                    Ok(stream) => return Ok((to, purpose, stream)),
                    Err(Refused::For(why)) => return Err(NotGathered::Together(why)),
                    Err(Refused::Now) => {}
                }
            }
        }
        thread::sleep(PAUSE);
    }
    let why = name_error.map_or(String::new(), |error| format!(": {error}"));
    Err(NotGathered::Together(format!("process {to} ({address}) was not found{why}")))
}

/// The visitor's side of a greeting.
fn introduce(
    introduction: &Introduction,
    to: usize,
    purpose: Use,
    mut stream: TcpStream,
) -> Result<TcpStream, Refused> {
    let Introduction { me, version, asked, hosts } = introduction;
    prepare(&stream)?;
    let own = fresh()?;
    let count = hosts.addresses.len();
    let word = purpose.word();
    say(&mut stream, &format!("{MAGIC} {version} {word} {me} {to} {count} {own}"))?;
    let answer = hear(&mut stream)?;
    let [magic, their_version, theirs, proof] = answer.split(' ').collect::<Vec<_>>()[..] else {
        return Err(Refused::Now);
    };
    if magic != MAGIC {
        return Err(Refused::Now);
    }
    if proof != prove(&hosts.token, "host", &own, theirs, word, *me) {
        return Err(Refused::For(format!("process {to} ({}) has another token", hosts.addresses[to])));
    }
    let proof = prove(&hosts.token, "guest", &own, theirs, word, *me);
    say(&mut stream, &format!("{proof} {asked}"))?;
    let their_asked = hear(&mut stream)?;
    compare(introduction, to, their_version, &their_asked)?;
    Ok(stream)
}

/// Greets whoever comes, until all are there.
fn receive_guests(
    listener: &TcpListener,
    introduction: &Introduction,
    told: &Sender<Greeted>,
    over: &AtomicBool,
) {
    let guests = Arc::new(AtomicUsize::new(0));
    while !over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) if guests.load(Ordering::Relaxed) < MOST_GUESTS => {
                let (introduction, told, guests) = (introduction.clone(), told.clone(), guests.clone());
                guests.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || {
                    match welcome(&introduction, stream) {
                        Ok(greeted) => drop(told.send(Ok(greeted))),
                        Err(Refused::For(why)) => drop(told.send(Err(NotGathered::Together(why)))),
                        Err(Refused::Now) => {}
                    }
                    guests.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Ok(_) => {}
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// The host's side of a greeting.
fn welcome(introduction: &Introduction, mut stream: TcpStream) -> Result<(usize, Use, TcpStream), Refused> {
    let Introduction { me, version, asked, hosts } = introduction;
    stream.set_nonblocking(false)?;
    prepare(&stream)?;
    let hello = hear(&mut stream)?;
    let [MAGIC, their_version, word, from, to, count, theirs] = hello.split(' ').collect::<Vec<_>>()[..]
    else {
        return Err(Refused::Now);
    };
    let purpose = Use::BOTH.into_iter().find(|purpose| purpose.word() == word).ok_or(Refused::Now)?;
    let number = |word: &str| word.parse::<usize>().map_err(|_| Refused::Now);
    let (from, to, count) = (number(from)?, number(to)?, number(count)?);
    let own = fresh()?;
    let proof = prove(&hosts.token, "host", theirs, &own, word, from);
    say(&mut stream, &format!("{MAGIC} {version} {own} {proof}"))?;
    let answer = hear(&mut stream)?;
    let (proof, their_asked) = answer.split_once(' ').ok_or(Refused::Now)?;
    if proof != prove(&hosts.token, "guest", theirs, &own, word, from) {
        return Err(Refused::Now);
    }
    say(&mut stream, asked)?;
    if count != hosts.addresses.len() || to != *me || from <= *me || from >= count {
        return Err(Refused::For(format!("process {from} has another list of hosts")));
    }
    compare(introduction, from, their_version, their_asked)?;
    Ok((from, purpose, stream))
}

/// Both sides find the same differences.
fn compare(introduction: &Introduction, other: usize, version: &str, asked: &str) -> Result<(), Refused> {
    if version != introduction.version {
        let own = &introduction.version;
        return Err(Refused::For(format!("process {other} is overtake {version}, and this one {own}")));
    }
    if asked != introduction.asked {
        return Err(Refused::For(format!("process {other} was asked something else, or with other options")));
    }
    Ok(())
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LINE_PATIENCE))?;
    stream.set_write_timeout(Some(LINE_PATIENCE))
}

/// Shows the token without saying it. All parts but the token have a fixed form, so that no two sets of them are the
/// same text.
fn prove(token: &str, side: &str, guest: &str, host: &str, word: &str, from: usize) -> String {
    let secret = Sha256::digest(token.as_bytes());
    let mut digest = Sha256::new();
    digest.update(secret);
    digest.update(format!("{side} {guest} {host} {word} {from}"));
    hex(&digest.finalize())
}

/// A number that nobody has used before.
fn fresh() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("text takes any letters"));
    text
}

fn say(stream: &mut TcpStream, line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes())
}

/// A line, byte by byte: what comes behind it is for somebody else to read.
fn hear(stream: &mut TcpStream) -> Result<String, Refused> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    let begun = Instant::now();
    loop {
        stream.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => return String::from_utf8(line).map_err(|_| Refused::Now),
            _ if line.len() >= LONGEST_LINE || begun.elapsed() > LINE_PATIENCE => return Err(Refused::Now),
            letter => line.push(letter),
        }
    }
}
