//! Who is looking? Colours and widths for people, plain text for pipes, and progress while a search runs.

use super::written::Parts;
use super::{Exit, When};
use crate::query::{Limit, Limits};
use crate::report::{self, text::Style};
use anstyle::AnsiColor;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A line of this width is assumed where nobody says otherwise.
const DEFAULT_WIDTH: usize = 80;

pub(crate) struct Terminal {
    pub color: bool,
    pub color_errors: bool,
    pub width: usize,
    /// Someone says how wide lines are, so that sentences can be broken there.
    wraps: bool,
    shows_progress: bool,
    /// What was said to standard error since it was asked for last.
    heard: Mutex<String>,
    /// What goes into files once everything has been said.
    parts: Mutex<Parts>,
    /// What was printed and complained about, while it is kept back.
    kept: Mutex<Option<Kept>>,
}

#[derive(Default)]
pub(crate) struct Kept {
    pub printed: String,
    pub complaints: String,
}

impl Terminal {
    pub(crate) fn new(color: When, width: Option<usize>) -> Terminal {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        let wanted = |is_terminal: bool| match color {
            When::Always => true,
            When::Never => false,
            When::Auto => is_terminal && !is_dumb && !no_color,
        };
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let seen = out.then(terminal_size::terminal_size).flatten().map(|(width, _)| width.0 as usize);
        let told: Option<usize> = width.or(seen).or(columns);
        Terminal {
            color: wanted(out),
            color_errors: wanted(err),
            width: told.unwrap_or(DEFAULT_WIDTH),
            wraps: told.is_some(),
            shows_progress: err && !is_dumb,
            heard: Mutex::new(String::new()),
            parts: Mutex::default(),
            kept: Mutex::new(None),
        }
    }

    /// To standard output. A reader that has gone away is no error of ours.
    pub(crate) fn print(&self, text: &str) {
        if let Ok(mut kept) = self.kept.lock()
            && let Some(kept) = kept.as_mut()
        {
            kept.printed += text;
            return;
        }
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// What is said meanwhile, which is kept back.
    pub(crate) fn kept<T>(&self, work: impl FnOnce() -> T) -> (T, Kept) {
        let set = |to| self.kept.lock().map(|mut kept| std::mem::replace(&mut *kept, to)).ok().flatten();
        set(Some(Kept::default()));
        let done = work();
        (done, set(None).unwrap_or_default())
    }

    /// To standard error.
    pub(crate) fn complain(&self, text: &str) {
        if let Ok(mut heard) = self.heard.lock() {
            *heard += text;
        }
        if let Ok(mut kept) = self.kept.lock()
            && let Some(kept) = kept.as_mut()
        {
            kept.complaints += text;
            return;
        }
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// What was complained about since this was asked last, without colours.
    pub(crate) fn heard(&self) -> String {
        let heard = self.heard.lock().map(|mut heard| std::mem::take(&mut *heard)).unwrap_or_default();
        colourless(&heard)
    }

    pub(crate) fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn error(&self, message: &str) {
        self.say("error", AnsiColor::Red, message);
    }

    pub(crate) fn warning(&self, message: &str) {
        self.say("warning", AnsiColor::Yellow, message);
    }

    /// To standard error, behind a word that says how grave it is.
    fn say(&self, word: &str, color: AnsiColor, message: &str) {
        let style = match self.color_errors {
            true => color.on_default().bold(),
            false => anstyle::Style::new(),
        };
        self.complain(&format!("{style}{word}{style:#}: {message}\n"));
    }

    /// A bug in overtake, met with this file.
    pub(crate) fn internal_error(&self, file: &Path, bug: &str) -> Exit {
        self.error(&format!("{}: internal error: {bug}", file.display()));
        self.complain("This is a bug in overtake. Please report it with the program.\n");
        Exit::Internal
    }

    /// A limit was reached before there was anything to show.
    pub(crate) fn limit_reached(&self, file: &Path, limit: &Limit) -> Exit {
        self.error(&format!("{}: {}", file.display(), report::limit_reached(limit)));
        Exit::Unknown
    }

    /// How traces are to look.
    pub(crate) fn style(&self) -> Style {
        Style { width: self.width, wraps: self.wraps, color: self.color, local_steps: false }
    }

    /// One line that says what is being done, if anyone can see it.
    #[cfg(all(feature = "compare", target_os = "linux"))]
    pub(crate) fn status(&self) -> ProgressBar {
        match self.shows_progress {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        }
    }

    /// Shows the growing number of states until the guard is dropped, if anyone can see it.
    pub(crate) fn progress(&self, limits: &Arc<Limits>) -> Progress {
        let done = Arc::new(AtomicBool::new(false));
        let thread = self.shows_progress.then(|| {
            let (limits, done) = (limits.clone(), done.clone());
            std::thread::spawn(move || watch(&limits, &done))
        });
        Progress { done, thread }
    }
}

/// The text without what makes colours of it.
fn colourless(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}

pub(crate) struct Progress {
    done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Nothing for the first half second: most answers come sooner.
fn watch(limits: &Limits, done: &AtomicBool) {
    let start = Instant::now();
    std::thread::park_timeout(Duration::from_millis(500));
    if done.load(Ordering::Relaxed) {
        return;
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    // Ctrl-C clears the line at once, so that a second one does not leave it behind.
    while !done.load(Ordering::Relaxed) && !limits.cancelled.load(Ordering::Relaxed) {
        let states = limits.progress.load(Ordering::Relaxed);
        let rate = states as f64 / start.elapsed().as_secs_f64();
        let (states, rate) = (HumanCount(states), HumanCount(rate as u64));
        let round = match limits.round.load(Ordering::Relaxed) {
            0 => String::new(),
            round => format!("round {round}, "),
        };
        let note = match limits.noted() {
            note if note.is_empty() => note,
            note => format!("{note}; "),
        };
        bar.set_message(format!(
            "{note}{round}{states} states, {rate}/s, {:.0} s",
            start.elapsed().as_secs_f64()
        ));
        bar.tick();
        std::thread::park_timeout(Duration::from_millis(150));
    }
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(colourless("\u{1b}[1m\u{1b}[31merror\u{1b}[0m: no\n"), "error: no\n");
        assert_eq!(colourless("plain"), "plain");
    }
}
