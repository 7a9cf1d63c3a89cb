//! `overtake cluster -n N -- COMMAND …`: several processes on this machine that answer together, to try it.

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, limits};
use crate::query::Limits;
use clap::Args;
use std::fmt::Write;
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Processes; by default one per core
    #[arg(short = 'n', long = "processes", value_name = "N", value_parser = limits::workers)]
    count: Option<usize>,
    /// What they are to do: `check`, `robust`, `fence` or `outcomes`, with its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const COMMANDS: [&str; 4] = ["check", "robust", "fence", "outcomes"];
const TICK: Duration = Duration::from_millis(2);
/// How long the others may take to end once the first has.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &ClusterArgs, terminal: &Terminal) -> Exit {
    if !COMMANDS.contains(&&args.command[0][..]) {
        terminal.error(&format!(
            "`{}` is nothing for several processes; {} are",
            args.command[0],
            COMMANDS.join(", ")
        ));
        return Exit::BadInput;
    }
    let count = args.count.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get()));
    start(count, &args.command, terminal).unwrap_or_else(|error| {
        terminal.error(&format!("the processes cannot be started: {error}"));
        Exit::BadInput
    })
}

fn start(count: usize, command: &[String], terminal: &Terminal) -> io::Result<Exit> {
    let folder = tempfile::tempdir()?;
    let hosts = folder.path().join("hosts");
    fs::write(&hosts, local_hosts(count)?)?;
    let program = std::env::current_exe()?;
    let said = |process: usize| folder.path().join(format!("said-{process}"));
    let mut processes = Processes(vec![]);
    for process in 0..count {
        let mut child = Command::new(&program);
        child.args(&command[..1]).arg("--hosts").arg(&hosts).args(["--process", &process.to_string()]);
        child.args(&command[1..]).stdin(Stdio::null());
        if process > 0 {
            child.stdout(Stdio::null()).stderr(fs::File::create(said(process))?);
        }
        processes.0.push(child.spawn()?);
    }
    let first = processes.wait_for_first()?;
    processes.wait_for_others();
    // What keeps another process from taking part is seldom known to the first.
    for (process, child) in processes.0.iter_mut().enumerate().skip(1) {
        if child.try_wait()?.and_then(|status| status.code()) == Some(2) {
            let said = fs::read_to_string(said(process)).unwrap_or_default();
            terminal.complain(&format!("process {process}: {said}"));
        }
    }
    Ok(exit(first, terminal))
}

fn exit(first: ExitStatus, terminal: &Terminal) -> Exit {
    match first.code().and_then(|code| u8::try_from(code).ok()).and_then(Exit::of_code) {
        Some(exit) => exit,
        None => {
            terminal.error(&format!("process 0 was ended: {first}"));
            Exit::Unknown
        }
    }
}

/// A hosts file with free ports of this machine, and a token that nobody knows.
fn local_hosts(count: usize) -> io::Result<String> {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
    let mut text = "token ".to_string();
    secret.iter().for_each(|byte| write!(text, "{byte:02x}").expect("text takes any letters"));
    // All are held until all are known, so that no two are the same.
    let free: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<io::Result<_>>()?;
    for port in &free {
        write!(text, "\n{}", port.local_addr()?).expect("text takes any letters");
    }
    Ok(text)
}

/// Whatever happens here, no process is left behind.
struct Processes(Vec<Child>);

impl Processes {
    /// Ctrl-C is for all of them; a signal for this one alone is handed on.
    fn wait_for_first(&mut self) -> io::Result<ExitStatus> {
        let interrupt = Interrupt::new();
        let limits = interrupt.watch(Limits::default());
        let mut cancelled: Option<Instant> = None;
        loop {
            if let Some(status) = self.0[0].try_wait()? {
                return Ok(status);
            }
            if limits.expired().is_some() && cancelled.get_or_insert_with(Instant::now).elapsed() > FAREWELL {
                self.0.iter_mut().skip(1).for_each(|child| drop(child.kill()));
            }
            thread::sleep(TICK);
        }
    }

    fn wait_for_others(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < FAREWELL
            && self.0.iter_mut().any(|child| matches!(child.try_wait(), Ok(None)))
        {
            thread::sleep(TICK);
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
