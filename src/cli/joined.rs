//! `--hosts FILE --process I`: several processes, perhaps on several machines, answer together. Each runs the same
//! command; process 0 tells the answer, and the others end with its exit code.

use super::Exit;
use super::hosts::Together;
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use crate::cluster::{self, Cluster, Hosts, Introduction, NotGathered};
use crate::query::Limits;
use crate::report::limit_reached;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Does what is asked, together with others if they are named.
pub(super) fn run<A: Together>(mut args: A, terminal: &Terminal, run: impl Fn(A, &Terminal) -> Exit) -> Exit {
    let Some(file) = args.search().hosts.hosts.clone() else { return run(args, terminal) };
    let introduction = match introduction(&file, &mut args) {
        Ok(introduction) => introduction,
        Err(message) => {
            terminal.error(&message);
            return Exit::BadInput;
        }
    };
    if introduction.hosts.addresses.len() == 1 {
        return run(args, terminal);
    }
    let search = args.search();
    let lost: Arc<_> = search.hosts.lost.clone();
    let interrupt = Interrupt::new();
    let limits = interrupt.watch(Limits { lost: lost.clone(), ..search.limits() });
    let end = |code: u8| std::process::exit(code.into());
    let cluster = match cluster::join(&introduction, search.hosts.share_after, &limits, end) {
        Ok(cluster) => Some(cluster),
        Err(failure @ NotGathered::Listen { .. }) => {
            terminal.error(&failure.to_string());
            return Exit::BadInput;
        }
        // The command itself tells best what that means for its question.
        Err(NotGathered::Together(why)) => {
            let _ = lost.set(why);
            None
        }
        Err(NotGathered::Io(error)) => {
            let _ = lost.set(error.to_string());
            None
        }
        Err(NotGathered::Limit(limit)) => {
            let _ = lost.set(format!("the others had not come when {}", limit_reached(&limit)));
            None
        }
    };
    search.input.peers = cluster.as_ref().map(|cluster| cluster.peers.clone());
    match cluster {
        Some(cluster) if introduction.me > 0 => {
            args.write_nothing();
            let (exit, said) = terminal.kept(|| run(args, terminal));
            follow(&cluster, exit, &said.complaints, &limits, terminal)
        }
        Some(cluster) => {
            let exit = run(args, terminal);
            let _ = cluster.watch.end(exit.code(), None);
            exit
        }
        None => run(args, terminal),
    }
}

/// The end of a process that is not the first: with the answer of that one, unless it does not come.
fn follow(cluster: &Cluster, exit: Exit, complaints: &str, limits: &Limits, terminal: &Terminal) -> Exit {
    let why = match exit {
        Exit::Good | Exit::Violated => None,
        Exit::Unknown if limits.cancelled.load(Ordering::Relaxed) => Some("it was cancelled"),
        Exit::Unknown => Some("it has reached a limit"),
        Exit::BadInput => Some("it cannot read its input"),
        Exit::Internal => Some("internal error"),
    };
    if matches!(exit, Exit::BadInput | Exit::Internal) {
        terminal.complain(complaints);
    }
    match cluster.watch.end(exit.code(), why) {
        Ok(()) => exit,
        Err(why) => {
            terminal.error(&format!("the processes cannot go on together: {why}"));
            exit.max(Exit::Unknown)
        }
    }
}

/// Reads the hosts file, and looks whether several processes can do what is asked.
fn introduction(file: &Path, args: &mut impl Together) -> Result<Introduction, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let hosts = Hosts::read(&text).map_err(|mistake| format!("{}:{mistake}", file.display()))?;
    if let Some(why) = args.refusal() {
        return Err(format!("--hosts: {why}"));
    }
    let search = args.search();
    let (count, me) = (hosts.addresses.len(), search.hosts.process.unwrap_or_default());
    if me >= count {
        let named = if count == 1 { "1 process".to_string() } else { format!("{count} processes") };
        return Err(format!("--process {me}: {} names {named}, counted from 0", file.display()));
    }
    if search.files.len() > 1 {
        return Err("--hosts: several processes answer for one file at a time".to_string());
    }
    if search.threads.is_some_and(|threads| threads > 1) {
        let why = "each process has one worker; name a machine several times for several workers";
        return Err(format!("--hosts: {why}"));
    }
    search.threads = Some(1);
    Ok(Introduction::new(hosts, me, &asked(&search.files)))
}

/// The command line without what may differ between machines: where the files are, and the number of the process.
fn asked(files: &[std::path::PathBuf]) -> Vec<String> {
    let mut words = Vec::new();
    let mut given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = given.next() {
        match &word[..] {
            "--hosts" | "--process" => drop(given.next()),
            word if word.starts_with("--hosts=") || word.starts_with("--process=") => {}
            word if files.iter().any(|file| file.as_os_str() == word) => {}
            _ => words.push(word),
        }
    }
    words
}
