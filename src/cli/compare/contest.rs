//! Everybody takes turns: for each program and each question all contestants prepare once, then run again and
//! again, in changing order. Who ran out at one size is not tried at a larger one, and who ran out or failed
//! is not repeated. What happens where answers differ is in `dispute`.

use super::files::Folder;
use super::peers::{self, Contestant};
use super::process::{self, Limits, Trouble};
use super::subjects::Subject;
use super::{machine, show};
use crate::analysis::interval;
use crate::cli::terminal::Terminal;
use crate::compare::judge;
use crate::compare::record::{Circumstances, Comparison, Measured, Outcome, Row, Run};
use crate::compare::{
    Asked, Command, Discipline, Finished, Reading, Said, own, preparation_failed, reading, rehearsal_failed,
};
use crate::query;
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Rules {
    pub runs: usize,
    pub limits: Limits,
    /// Says when Ctrl-C has come.
    pub stop: Arc<query::Limits>,
}

pub(crate) struct Contest<'a> {
    pub contestants: &'a [Contestant],
    questions: &'a [Discipline],
    pub rules: Rules,
    /// Where the tools' files lie while they run.
    pub scratch: TempDir,
    /// Where Dartagnan keeps its memory models.
    cat: String,
    pub status: ProgressBar,
}

/// Someone who has prepared for one question about one program.
struct Entrant<'a> {
    contestant: &'a Contestant,
    folder: PathBuf,
    search: Command,
    /// What was done once, and how long that took.
    prepared: Vec<String>,
    preparation: Duration,
    runs: Vec<Run>,
    done: bool,
}

/// What compilers and the like have at least, whatever the searches have.
const PREPARATION: Limits = Limits { time: Duration::from_secs(300), memory: 4 << 30 };

/// Ctrl-C came.
struct Stopped;

impl<'a> Contest<'a> {
    pub(crate) fn new(
        contestants: &'a [Contestant],
        questions: &'a [Discipline],
        rules: Rules,
        terminal: &Terminal,
    ) -> Result<Contest<'a>, String> {
        let scratch =
            TempDir::with_prefix("overtake-compare-").map_err(|e| format!("no place to work in: {e}"))?;
        let home = std::env::var("DAT3M_HOME").unwrap_or(".".to_string());
        let (cat, status) = (format!("{home}/cat"), terminal.status());
        Ok(Contest { contestants, questions, rules, scratch, cat, status })
    }

    /// A comparison without rows.
    pub(crate) fn begin(&self) -> Comparison {
        let circumstances = Circumstances {
            command: show::command_line(),
            date: machine::date(),
            machine: machine::description(),
            load_before: machine::load(),
            load_after: machine::load(),
            tools: peers::versions(self.contestants, &self.rules, self.scratch.path()),
            runs: self.rules.runs,
            timeout_s: self.rules.limits.time.as_secs_f64(),
            memory: self.rules.limits.memory,
            interrupted: false,
        };
        Comparison { circumstances, disagreements: Vec::new(), rows: Vec::new() }
    }

    /// Adds the rows of one program, or of as many questions about it as there is time for before Ctrl-C
    /// comes.
    pub(crate) fn compare(
        &self,
        subject: &Subject,
        comparison: &mut Comparison,
        keep: Option<(&Folder, &str)>,
    ) -> Result<(), String> {
        for &question in self.questions {
            let mut rows = Vec::new();
            let ended = self.ask(subject, question, comparison, &mut rows)?;
            if judge::differ(&rows) {
                let disagreement = self.settle(subject, question, &rows, comparison, keep)?;
                comparison.disagreements.push(disagreement);
            }
            comparison.rows.append(&mut rows);
            comparison.circumstances.load_after = machine::load();
            if ended.is_err() {
                comparison.circumstances.interrupted = true;
                break;
            }
        }
        self.status.finish_and_clear();
        Ok(())
    }

    /// What a contestant is told, or who gives a further opinion.
    pub(crate) fn asked<'b>(
        &'b self,
        subject: &'b Subject,
        question: Discipline,
        file: &'b str,
        contestant: Option<&Contestant>,
    ) -> Asked<'b> {
        let property = match subject.source.program.properties() {
            [property] => Some(property.kind),
            _ => None,
        };
        Asked {
            question,
            file,
            define: &subject.define,
            workers: contestant.map_or(1, |c| c.workers),
            engine: contestant.and_then(|c| c.engine),
            memory: self.rules.limits.memory,
            property,
            cat: &self.cat,
        }
    }

    /// One question about one program, to everybody who can answer it. After Ctrl-C the rows are those that
    /// have runs.
    fn ask(
        &self,
        subject: &Subject,
        question: Discipline,
        before: &Comparison,
        rows: &mut Vec<Row>,
    ) -> Result<Result<(), Stopped>, String> {
        let mut entrants = Vec::new();
        let mut stopped = false;
        let answering = self.contestants.iter().filter(|c| c.answers(question));
        for contestant in answering {
            let excuse = self.excuse(subject, question, contestant, before);
            if self.rules.stop.expired().is_some() {
                stopped = true;
                break;
            }
            if let Some(why) = excuse {
                rows.push(row(subject, question, contestant, Outcome::NotRun(why)));
                continue;
            }
            match self.prepare(subject, question, contestant)? {
                Ok(entrant) => entrants.push(entrant),
                Err(Stopped) => {
                    stopped = true;
                    break;
                }
            }
        }
        for turn in 0..self.rules.runs {
            if stopped {
                break;
            }
            stopped = self.turn(subject, question, &mut entrants, turn).is_err();
        }
        for entrant in entrants.into_iter().filter(|e| !e.runs.is_empty()) {
            let search = entrant.search.shown(entrant.contestant.way.tool);
            let preparation_s = (!entrant.prepared.is_empty()).then_some(entrant.preparation.as_secs_f64());
            let commands = entrant.prepared.into_iter().chain([search]).collect();
            let measured = Measured { commands, preparation_s, runs: entrant.runs };
            rows.push(row(subject, question, entrant.contestant, Outcome::Ran(measured)));
        }
        let place = |row: &Row| self.contestants.iter().position(|c| c.name == row.contestant);
        rows.sort_by_key(place);
        Ok(if stopped { Err(Stopped) } else { Ok(()) })
    }

    /// Why someone is not run, if that is known beforehand.
    fn excuse(
        &self,
        subject: &Subject,
        question: Discipline,
        contestant: &Contestant,
        before: &Comparison,
    ) -> Option<String> {
        let program = &subject.source.program;
        let may_go_wrong = || interval::may_go_wrong(program, &self.rules.stop) == Ok(true);
        let nothing = program.properties().is_empty() && !program.has_asserts() && !may_go_wrong();
        if nothing && question.needs_property() {
            return Some("the program has no property".to_string());
        }
        if let Err(why) = contestant.way.reads.text(&subject.source, question, &self.rules.stop) {
            return Some(why);
        }
        let smaller = before.rows.iter().find(|row| {
            (&row.program, row.question, &row.contestant) == (&subject.name, question, &contestant.name)
                && row.size < subject.size
                && row.said().as_ref().is_some_and(Said::ran_out)
        })?;
        Some(format!("it ran out at {}", smaller.title()))
    }

    /// Writes the program down and does what has to be done once. Who fails here has had a run, with that
    /// end.
    fn prepare<'b>(
        &self,
        subject: &Subject,
        question: Discipline,
        contestant: &'b Contestant,
    ) -> Result<Result<Entrant<'b>, Stopped>, String> {
        let way = contestant.way;
        let text = match way.reads.text(&subject.source, question, &self.rules.stop) {
            Err(_) if self.rules.stop.expired().is_some() => return Ok(Err(Stopped)),
            text => text?,
        };
        let folder = self.scratch.path().join(format!("{}-{}", contestant.name, question.name()));
        let file = way.reads.file_name(&subject.source);
        fresh(&folder, &file, &text).map_err(|e| format!("{}: {e}", folder.display()))?;
        let asked = self.asked(subject, question, &file, Some(contestant));
        let (mut commands, mut took) = (Vec::new(), Duration::ZERO);
        let (mut rehearsal, mut failed) = (None, None);
        let preparations = (way.prepare)(&asked).into_iter().map(|command| (command, false));
        for (command, rehearses) in preparations.chain(way.rehearse.map(|command| (command(), true))) {
            self.tell(subject, question, contestant, "is prepared");
            commands.push(command.shown(way.tool));
            let limits = if rehearses { self.rules.limits } else { self.rules.limits.at_least(PREPARATION) };
            match process::run(&command, &contestant.path, &folder, limits, &self.rules.stop) {
                Ok(finished) => {
                    took += finished.wall;
                    let wrong = if rehearses {
                        rehearsal_failed(&finished, &asked)
                    } else {
                        preparation_failed(&finished)
                    };
                    failed = wrong.map(|said| measured(said.into(), &finished));
                    rehearsal = rehearses.then_some(finished);
                }
                Err(Trouble::Stopped) => return Ok(Err(Stopped)),
                Err(Trouble::NotStarted(why)) => failed = Some(not_started(why)),
            }
            if failed.is_some() {
                break;
            }
        }
        Ok(Ok(Entrant {
            contestant,
            search: (way.search)(&asked, rehearsal.as_ref()),
            prepared: commands,
            preparation: took,
            done: failed.is_some(),
            runs: failed.into_iter().collect(),
            folder,
        }))
    }

    /// Everybody once, every other time in reverse.
    fn turn(
        &self,
        subject: &Subject,
        question: Discipline,
        entrants: &mut [Entrant],
        turn: usize,
    ) -> Result<(), Stopped> {
        let mut order: Vec<&mut Entrant> = entrants.iter_mut().filter(|e| !e.done).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for entrant in order {
            let contestant = entrant.contestant;
            self.tell(subject, question, contestant, &format!("runs ({} of {})", turn + 1, self.rules.runs));
            let file = contestant.way.reads.file_name(&subject.source);
            let asked = self.asked(subject, question, &file, Some(contestant));
            let run = match self.run(&entrant.search, contestant, &entrant.folder) {
                Ok(finished) => {
                    let reading = reading(contestant.way, &finished, &asked);
                    measured(reading, &finished)
                }
                Err(Trouble::Stopped) => return Err(Stopped),
                Err(Trouble::NotStarted(why)) => not_started(why),
            };
            entrant.done = matches!(run.said, Said::OutOfTime | Said::OutOfMemory | Said::Failed(_));
            entrant.runs.push(run);
        }
        Ok(())
    }

    fn run(&self, command: &Command, contestant: &Contestant, folder: &Path) -> Result<Finished, Trouble> {
        process::run(command, &contestant.path, folder, self.rules.limits, &self.rules.stop)
    }

    fn tell(&self, subject: &Subject, question: Discipline, contestant: &Contestant, what: &str) {
        let size = subject.size.map_or(String::new(), |n| format!(", N = {n}"));
        let (program, question) = (&subject.name, question.name());
        self.status.set_message(format!("{program}{size} ({question}): {} {what}", contestant.name));
        self.status.tick();
    }
}

fn row(subject: &Subject, question: Discipline, contestant: &Contestant, outcome: Outcome) -> Row {
    Row {
        program: subject.name.clone(),
        size: subject.size,
        question,
        contestant: contestant.name.clone(),
        own: contestant.way.tool == own::NAME,
        outcome,
    }
}

fn measured(reading: Reading, finished: &Finished) -> Run {
    Run {
        said: reading.said,
        states: reading.states,
        state_bytes: reading.state_bytes,
        wall_s: finished.wall.as_secs_f64(),
        cpu_s: finished.cpu.as_secs_f64(),
        peak_kb: finished.peak_kb,
    }
}

fn not_started(why: String) -> Run {
    Run { said: Said::Failed(why), states: None, state_bytes: None, wall_s: 0.0, cpu_s: 0.0, peak_kb: None }
}

/// A folder with nothing but this file in it.
pub(crate) fn fresh(folder: &Path, file: &str, text: &str) -> std::io::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(file), text)
}
