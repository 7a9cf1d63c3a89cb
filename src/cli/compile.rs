//! From a source to an object file: calls the user's own compiler or assembler, and hands on what it complains about.

use super::input::Failure;
use crate::query::Limits;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often limits are looked at while a compiler runs.
const TICK: Duration = Duration::from_millis(5);

/// The assembler by itself, which takes no `-c`.
const ASSEMBLER: &str = "as";

/// How much is optimised, as C compilers call it: `0`, `2`, `s`, ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level(String);

impl Level {
    /// `O2`, `-O2` or `2`.
    pub(crate) fn parse(text: &str) -> Result<Level, String> {
        let text = text.trim();
        let text = text.strip_prefix('-').unwrap_or(text);
        let level = text.strip_prefix('O').unwrap_or(text);
        match ["0", "1", "2", "3", "s", "z", "g", "fast"].contains(&level) {
            true => Ok(Level(level.to_string())),
            false => Err(format!("`{text}` is no level; there are O0, O1, O2, O3, Os, Oz, Og and Ofast")),
        }
    }

    /// As the user knows it.
    pub(crate) fn name(&self) -> String {
        format!("O{}", self.0)
    }
}

/// What a source is written in, as its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Assembly,
    C,
    Cpp,
    Rust,
}

impl Language {
    pub(crate) fn of(path: &Path) -> Option<Language> {
        Some(match path.extension()?.to_str()? {
            "s" => Language::Assembly,
            // Assembly with a preprocessor is the C compiler's business.
            "c" | "i" | "S" => Language::C,
            "cc" | "cpp" | "cxx" | "c++" | "C" | "ii" => Language::Cpp,
            "rs" => Language::Rust,
            _ => return None,
        })
    }

    /// The variable that names the compiler, and what is tried if it is not set.
    fn compilers(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Language::Assembly => ("CC", &[ASSEMBLER, "gcc", "clang"]),
            Language::C => ("CC", &["gcc", "clang", "cc"]),
            Language::Cpp => ("CXX", &["g++", "clang++", "c++"]),
            Language::Rust => ("RUSTC", &["rustc"]),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Language::Assembly => "assembly",
            Language::C => "C",
            Language::Cpp => "C++",
            Language::Rust => "Rust",
        }
    }

    /// The flags that make an object file with debug information.
    fn flags(self, level: Option<&Level>) -> Result<Vec<String>, String> {
        match self {
            Language::Assembly => return Ok(vec!["-g".to_string()]),
            Language::C | Language::Cpp => {
                let level = level.map(|level| format!("-{}", level.name()));
                return Ok(["-c".to_string(), "-g".to_string()].into_iter().chain(level).collect());
            }
            Language::Rust => {}
        }
        let level = match level.map(|level| &level.0[..]) {
            Some(level @ ("g" | "fast")) => return Err(format!("rustc has no level O{level}")),
            level => level.map(|level| format!("-Copt-level={level}")),
        };
        let fixed = [
            "--edition=2021",
            "--crate-type=lib",
            "--emit=obj",
            "-g",
            "-Cpanic=abort",
            "-Crelocation-model=static",
            "-Ccodegen-units=1",
        ];
        Ok(fixed.into_iter().map(str::to_string).chain(level).collect())
    }
}

/// Does a flag of the user say how much is to be optimised?
pub(crate) fn tells_level(flag: &str) -> bool {
    flag.starts_with("-O") || flag.contains("opt-level")
}

/// The object file that the user's compiler makes of a source. `level` is left out where the flags tell it.
pub(crate) fn object(
    path: &Path,
    language: Language,
    level: Option<&Level>,
    flags: &[String],
    limits: &Limits,
) -> Result<Vec<u8>, Failure> {
    let said = |why: String| Failure::Said(format!("{}: {why}", path.display()));
    if let Err(e) = File::open(path) {
        return Err(said(e.to_string()));
    }
    let own = language.flags(level).map_err(said)?;
    let folder = tempfile::tempdir().map_err(|e| said(format!("no folder for the object file: {e}")))?;
    let object = folder.path().join("program.o");
    let source = match path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        // No flag, whatever it looks like.
        true => Path::new(".").join(path),
        false => path.to_path_buf(),
    };
    for compiler in compilers(language) {
        let (program, before) = compiler.split_first().expect("a compiler has a name");
        let mut command = Command::new(program);
        command.args(before).args(&own).args(flags).arg(&source).arg("-o").arg(&object);
        if language == Language::Assembly && program != ASSEMBLER {
            command.arg("-c");
        }
        match run(&mut command, folder.path(), limits)? {
            Ran::Missing => continue,
            Ran::NotStarted(why) => return Err(said(format!("{}: {why}", program))),
            Ran::Failed(complaint) => {
                let failed = format!("error: {}: {} has failed\n", path.display(), program);
                return Err(Failure::Shown(complaint + &failed));
            }
            Ran::Done => {}
        }
        return std::fs::read(&object)
            .map_err(|e| said(format!("{program} has ended well and has written no object file: {e}")));
    }
    let (variable, tried) = language.compilers();
    Err(said(match std::env::var(variable) {
        Ok(name) if !name.trim().is_empty() => format!("there is no `{name}`, which ${variable} names"),
        _ => format!(
            "there is no compiler for {}: {} cannot be found; ${variable} may name another",
            language.name(),
            tried.join(", ")
        ),
    }))
}

/// What may compile a source, each with words of its own: what the user names, or else what is usual.
fn compilers(language: Language) -> Vec<Vec<String>> {
    let (variable, usual) = language.compilers();
    let named = std::env::var(variable).unwrap_or_default();
    let words: Vec<String> = named.split_whitespace().map(str::to_string).collect();
    match words.is_empty() {
        true => usual.iter().map(|name| vec![name.to_string()]).collect(),
        false => vec![words],
    }
}

enum Ran {
    Done,
    /// With what was complained about.
    Failed(String),
    /// There is no such program.
    Missing,
    NotStarted(String),
}

/// Runs a compiler to its end, or until a limit is reached.
fn run(command: &mut Command, folder: &Path, limits: &Limits) -> Result<Ran, Failure> {
    let said = folder.join("said");
    // Into a file: a pipe that nobody empties would stop the compiler.
    let started = File::create(&said)
        .and_then(|out| Ok((out.try_clone()?, out)))
        .and_then(|(out, err)| command.stdin(Stdio::null()).stdout(out).stderr(err).spawn());
    let mut child = match started {
        Ok(child) => child,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Ran::Missing),
        Err(e) => return Ok(Ran::NotStarted(e.to_string())),
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(Ran::Done),
            Ok(Some(_)) => {
                let complaint = std::fs::read(&said).unwrap_or_default();
                return Ok(Ran::Failed(String::from_utf8_lossy(&complaint).into_owned()));
            }
            Ok(None) => {}
            Err(e) => return Ok(Ran::NotStarted(e.to_string())),
        }
        if let Some(limit) = limits.expired() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::Limit(limit));
        }
        std::thread::sleep(TICK);
    }
}
