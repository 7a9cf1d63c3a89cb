//! One process: started in a group of its own, held to its limits, measured, and gone when this is over.
//!
//! Memory is limited as address space, and the peak is what the kernel reports when the process is reaped.
//! The kernel counts from what the process had before it became the tool, which is what we have: a smaller
//! peak cannot be told. The group is ended before its leader is reaped, so that nobody else can have got its
//! number.

use crate::cli::limits;
use crate::compare::{Command, End, Executable, Finished};
use crate::query;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process_group, prlimit, waitid,
};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wait4::Wait4;

/// What each process may spend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub time: Duration,
    /// Bytes of address space.
    pub memory: u64,
}

impl Limits {
    pub(crate) fn at_least(self, other: Limits) -> Limits {
        Limits { time: self.time.max(other.time), memory: self.memory.max(other.memory) }
    }
}

/// Why there is nothing to measure.
pub(crate) enum Trouble {
    /// Ctrl-C came.
    Stopped,
    /// It could not be started.
    NotStarted(String),
}

/// More output than this is not kept.
const MAX_OUTPUT: u64 = 64 << 20;
/// How often Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(20);
/// Pipes that somebody outside the group holds open are given up after this.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn run(
    command: &Command,
    tool: &Path,
    folder: &Path,
    limits: Limits,
    stop: &query::Limits,
) -> Result<Finished, Trouble> {
    let program = match command.program {
        Executable::Tool => tool,
        Executable::Other(name) => Path::new(name),
    };
    let not_started = |e: &dyn std::fmt::Display| Trouble::NotStarted(format!("{}: {e}", program.display()));
    let floor_kb = limits::peak_kb().unwrap_or(0);
    let start = Instant::now();
    let mut child = std::process::Command::new(program)
        .args(&command.args)
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|e| not_started(&e))?;
    let pid = Pid::from_child(&child);
    restrain(pid, limits.memory);
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let (ended, in_time) = wait(pid, start.checked_add(limits.time), stop);
    // Whoever it has started and left behind ends too.
    let _ = kill_process_group(pid, Signal::KILL);
    let used = child.wait4().map_err(|e| not_started(&e))?;
    if stop.expired().is_some() {
        return Err(Trouble::Stopped);
    }
    let text = |pipe: mpsc::Receiver<Vec<u8>>| pipe.recv_timeout(PATIENCE).unwrap_or_default();
    let (out, err) = (text(out), text(err));
    let end = match used.status.code() {
        _ if !in_time => End::OutOfTime,
        _ if (out.len().max(err.len())) as u64 >= MAX_OUTPUT => End::TooTalkative,
        Some(code) => End::Exit(code),
        None => End::Signal(used.status.signal().unwrap_or_default()),
    };
    let peak_kb = used.rusage.maxrss >> 10;
    Ok(Finished {
        end,
        out: String::from_utf8_lossy(&out).into_owned(),
        err: String::from_utf8_lossy(&err).into_owned(),
        wall: ended - start,
        cpu: used.rusage.utime + used.rusage.stime,
        peak_kb: (peak_kb > floor_kb).then_some(peak_kb),
    })
}

/// A process that is so quick that it has ended already needs no limits.
fn restrain(pid: Pid, memory: u64) {
    let at_most = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let _ = prlimit(Some(pid), Resource::As, at_most(memory));
    let _ = prlimit(Some(pid), Resource::Core, at_most(0));
}

/// When the process ended, and whether by then its time was not over. Stops it if it is, or if Ctrl-C comes.
fn wait(pid: Pid, deadline: Option<Instant>, stop: &query::Limits) -> (Instant, bool) {
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), options).err() == Some(rustix::io::Errno::INTR) {}
        let _ = sender.send(Instant::now());
    });
    let mut in_time = true;
    loop {
        let left = deadline.map_or(TICK, |d| d.saturating_duration_since(Instant::now()));
        if let Ok(when) = ended.recv_timeout(left.clamp(Duration::from_millis(1), TICK)) {
            return (when, in_time);
        }
        if left.is_zero() || stop.expired().is_some() {
            in_time &= !left.is_zero();
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// Reads a pipe to its end beside everything else, and keeps what is not too much.
fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, text) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(MAX_OUTPUT).read_to_end(&mut kept);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        let _ = sender.send(kept);
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, time: Duration, memory: u64) -> Finished {
        let command =
            Command { program: Executable::Tool, args: vec!["-c".into(), script.into()], env: vec![] };
        let limits = Limits { time, memory };
        let folder = std::env::temp_dir();
        match run(&command, Path::new("/bin/sh"), &folder, limits, &query::Limits::default()) {
            Ok(finished) => finished,
            Err(Trouble::Stopped) => panic!("nobody stops it"),
            Err(Trouble::NotStarted(why)) => panic!("{why}"),
        }
    }

    const LONG: Duration = Duration::from_secs(60);
    const MUCH: u64 = 4 << 30;

    #[test]
    fn output_and_exit_code_come_back() {
        let finished = shell("echo out; echo err >&2; exit 3", LONG, MUCH);
        assert_eq!((finished.end, &finished.out[..], &finished.err[..]), (End::Exit(3), "out\n", "err\n"));
        assert_eq!(shell("kill -SEGV $$", LONG, MUCH).end, End::Signal(11));
    }

    #[test]
    fn the_whole_group_ends_with_its_time() {
        // The child of the shell holds the pipe open, and would keep us waiting.
        let finished = shell("echo begun; sleep 50 & sleep 50; wait", Duration::from_millis(300), MUCH);
        assert_eq!((finished.end, &finished.out[..]), (End::OutOfTime, "begun\n"));
        assert!(finished.wall < Duration::from_secs(20), "{:?}", finished.wall);
    }

    #[test]
    fn what_is_left_behind_ends_too() {
        let finished = shell("sleep 50 & echo done", LONG, MUCH);
        assert_eq!((finished.end, &finished.out[..]), (End::Exit(0), "done\n"));
        assert!(finished.wall < Duration::from_secs(20), "{:?}", finished.wall);
    }

    #[test]
    fn memory_is_limited_and_told() {
        let finished = shell("exec tail /dev/zero", LONG, 96 << 20);
        assert!(!matches!(finished.end, End::OutOfTime | End::Exit(0)), "{finished:?}");
        let large = shell("s=xxxxxxxx; while [ ${#s} -lt 16000000 ]; do s=$s$s; done", LONG, MUCH);
        assert!(large.peak_kb.is_some_and(|kb| kb > 16_000), "{:?}", large.peak_kb);
    }

    #[test]
    fn ctrl_c_ends_it() {
        let stop = query::Limits::default();
        stop.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
        let command = Command { program: Executable::Tool, args: vec!["50".into()], env: vec![] };
        let limits = Limits { time: LONG, memory: MUCH };
        let stopped = run(&command, Path::new("/bin/sleep"), &std::env::temp_dir(), limits, &stop);
        assert!(matches!(stopped, Err(Trouble::Stopped)));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let command = Command { program: Executable::Other("./nowhere"), args: vec![], env: vec![] };
        let limits = Limits { time: LONG, memory: MUCH };
        let run = run(&command, Path::new("x"), &std::env::temp_dir(), limits, &query::Limits::default());
        assert!(matches!(run, Err(Trouble::NotStarted(why)) if why.starts_with("./nowhere: ")));
    }
}
