//! Which tools are there? Named by the user, or found on the search path.

use super::contest::Rules;
use super::process::{self, Limits};
use crate::compare::{Command, Discipline, Executable, WAYS, Way, own, version_args};
use crate::engine::{Choice, ENGINES, Options};
use crate::query::Model;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Someone who takes part.
pub(crate) struct Contestant {
    pub name: String,
    pub way: &'static Way,
    pub path: PathBuf,
    pub workers: usize,
    /// One of overtake's engines, asked alone.
    pub engine: Option<&'static str>,
}

impl Contestant {
    /// Is this a question for it? An engine is asked about properties only, under the models that it has.
    pub(crate) fn answers(&self, question: Discipline) -> bool {
        let model = match question {
            Discipline::Sc => Some(Model::Sc),
            Discipline::Tso => Some(Model::Tso),
            Discipline::Robust | Discipline::Fences => None,
        };
        let refused = |engine| match (model, ENGINES.iter().copied().find(|e| e.name == engine)) {
            (Some(model), Some(entry)) => {
                let options = Options::with_workers(self.workers);
                Options { model, engine: Choice::Only(entry), ..options }.refusal().is_some()
            }
            _ => true,
        };
        self.way.answers.contains(&question) && !self.engine.is_some_and(refused)
    }
}

/// `trencher=/opt/trencher`
pub(crate) fn place(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) =
        text.split_once('=').ok_or("expected NAME=PATH, for example trencher=/opt/trencher")?;
    let known = || WAYS.iter().filter(|w| w.tool != own::NAME).map(|w| w.tool);
    if !known().any(|tool| tool == name) {
        return Err(format!("`{name}` is no peer; there are {}", listed(known())));
    }
    let path = std::path::absolute(path).map_err(|e| e.to_string())?;
    match is_executable(&path) {
        true => Ok((name.to_string(), path)),
        false => Err(format!("{} is no file that can be run", path.display())),
    }
}

/// overtake as it comes, and each of its engines alone, for each number of workers.
pub(crate) fn engines(threads: &[usize]) -> Result<Vec<Contestant>, String> {
    let alone = ENGINES.iter().map(|entry| Some(entry.name));
    let asked: Vec<Option<&'static str>> = [None].into_iter().chain(alone).collect();
    ours(threads, &asked)
}

/// overtake, asked in each of these ways with each number of workers.
fn ours(threads: &[usize], engines: &[Option<&'static str>]) -> Result<Vec<Contestant>, String> {
    let path = std::env::current_exe().map_err(|e| format!("overtake does not find itself: {e}"))?;
    let contestant = |engine, workers| Contestant {
        name: own_name(engine, workers),
        way: &own::WAY,
        path: path.clone(),
        workers,
        engine,
    };
    Ok(threads
        .iter()
        .flat_map(|&workers| engines.iter().map(move |&e| (e, workers)))
        .map(|(engine, workers)| contestant(engine, workers))
        .collect())
}

/// Everyone who takes part: `wanted`, or all that are found. overtake has a row for each number of workers.
pub(crate) fn find(
    places: &[(String, PathBuf)],
    wanted: &[String],
    threads: &[usize],
) -> Result<Vec<Contestant>, String> {
    if let Some(unknown) = wanted.iter().find(|name| WAYS.iter().all(|w| w.name != name.as_str())) {
        return Err(format!(
            "there is no tool `{unknown}`; there are {}",
            listed(WAYS.iter().map(|w| w.name))
        ));
    }
    let takes_part = |way: &Way| match wanted.is_empty() {
        true => way.usual,
        false => wanted.iter().any(|name| name == way.name),
    };
    let mut contestants = Vec::new();
    for way in WAYS.iter().filter(|way| takes_part(way)) {
        if way.tool == own::NAME {
            contestants.extend(ours(threads, &[None])?);
            continue;
        }
        let given = places.iter().rev().find(|(name, _)| name == way.tool).map(|(_, path)| path.clone());
        match given.or_else(|| on_search_path(way.tool)) {
            Some(path) => {
                let name = way.name.to_string();
                contestants.push(Contestant { name, way, path, workers: 1, engine: None });
            }
            None if wanted.is_empty() => {}
            None => {
                return Err(format!(
                    "{} is not on the search path; --peer {}=PATH says where it is",
                    way.tool, way.tool
                ));
            }
        }
    }
    match contestants.is_empty() {
        true => Err("nobody takes part".to_string()),
        false => Ok(contestants),
    }
}

/// Each tool once, with what it says when it is asked for its version.
pub(crate) fn versions(contestants: &[Contestant], rules: &Rules, folder: &Path) -> Vec<String> {
    let mut tools: Vec<&Contestant> = contestants.iter().collect();
    tools.dedup_by_key(|c| c.way.tool);
    let told = |c: &Contestant| {
        version(c, rules, folder).unwrap_or(format!("{} (which tells no version)", c.way.tool))
    };
    tools.into_iter().map(told).collect()
}

fn version(contestant: &Contestant, rules: &Rules, folder: &Path) -> Option<String> {
    let args = version_args(contestant.way.tool)?.iter().map(|a| a.to_string()).collect();
    let command = Command { program: Executable::Tool, args, env: Vec::new() };
    let limits = Limits { time: Duration::from_secs(10), ..rules.limits };
    let said = process::run(&command, &contestant.path, folder, limits, &rules.stop).ok()?;
    let line = |text: &str| text.lines().map(str::trim).find(|l| !l.is_empty()).map(str::to_string);
    line(&said.out).or_else(|| line(&said.err)).map(|told| named(contestant.way.tool, &told))
}

/// What a tool tells of its version, with its name in front if it does not tell that.
fn named(tool: &str, told: &str) -> String {
    match told.to_lowercase().contains(tool) {
        true => told.to_string(),
        false => format!("{tool} {told}"),
    }
}

fn own_name(engine: Option<&str>, workers: usize) -> String {
    let engine = engine.map_or(String::new(), |engine| format!("-{engine}"));
    let workers = if workers == 1 { String::new() } else { format!("-{workers}-workers") };
    format!("{}{engine}{workers}", own::NAME)
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.collect();
    names.dedup();
    names.join(", ")
}

fn on_search_path(tool: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&folders).map(|f| f.join(tool)).find(|path| is_executable(path))?;
    std::path::absolute(found).ok()
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_asked_what_they_answer() {
        let all = engines(&[1, 2]).expect("a path");
        let who = |question| {
            let answering = all.iter().filter(|c| c.answers(question));
            answering.map(|c| c.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(who(Discipline::Robust), ["overtake", "overtake-2-workers"]);
        assert!(who(Discipline::Tso).contains(&"overtake-lazy-2-workers"));
        assert!(!who(Discipline::Sc).contains(&"overtake-lazy"), "it is for TSO");
        assert!(who(Discipline::Sc).contains(&"overtake-explicit"));
    }

    #[test]
    fn a_version_has_a_name() {
        assert_eq!(named("herd7", "7.58, Rev: 0123"), "herd7 7.58, Rev: 0123");
        assert_eq!(named("memorax", "Memorax 0.1.1"), "Memorax 0.1.1");
    }
}
