//! From a path to a program: finds the format, reads the bytes, and shows whatever is wrong with them.

use super::terminal::Terminal;
use super::{Exit, InputArgs, diagnose};
use crate::front::{self, Diagnostic, Severity, Unread};
use crate::model::Program;
use crate::model::litmus::Litmus;
use crate::query::{Limit, Limits};
use clap::ValueEnum;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Larger files are refused, before they are read.
const MAX_BYTES: u64 = 256 << 20;
/// Limits are looked at after so many bytes, or so much waiting for them.
const CHUNK_BYTES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The native language (.tso)
    Tso,
    /// The program model itself (.ron)
    Ron,
    /// x86 litmus tests (.litmus)
    Litmus,
    /// Trencher (.txt)
    Trencher,
    /// Memorax (.rmm)
    Rmm,
}

/// A program with what is asked of its final states, and the warnings about it.
pub struct Test {
    pub program: Program,
    pub litmus: Litmus,
    pub warnings: String,
}

/// A program of any format, with what a litmus test says beside it.
pub struct Source {
    pub program: Program,
    /// The file's name without what is around it.
    pub name: String,
    pub text: String,
    pub litmus: Option<Litmus>,
}

/// Why there is no program.
pub enum Failure {
    /// A sentence about the file.
    Said(String),
    /// The places in it that are wrong, as they are shown.
    Shown(String),
    Limit(Limit),
}

impl From<Limit> for Failure {
    fn from(limit: Limit) -> Failure {
        Failure::Limit(limit)
    }
}

/// The program, with its warnings shown. An error has been shown where it is the file's; `unknown` shows a limit.
pub fn read(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    terminal: &Terminal,
    unknown: impl FnOnce(&Limit) -> Exit,
) -> Result<Program, Exit> {
    read_any(path, args, limits, terminal, unknown).map(|source| source.program)
}

/// The same with whatever else is known.
pub fn read_any(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    terminal: &Terminal,
    unknown: impl FnOnce(&Limit) -> Exit,
) -> Result<Source, Exit> {
    match load(path, args, limits, terminal.color_errors) {
        Ok((source, warnings)) => {
            terminal.complain(&warnings);
            Ok(source)
        }
        Err(Failure::Said(message)) => {
            terminal.error(&message);
            Err(Exit::BadInput)
        }
        Err(Failure::Shown(places)) => {
            terminal.complain(&places);
            Err(Exit::BadInput)
        }
        Err(Failure::Limit(limit)) => Err(unknown(&limit)),
    }
}

/// The program and what is asked of its final states. Whatever is wrong comes back as text, for many files are read
/// side by side and shown in their order.
pub fn read_test(path: &Path, args: &InputArgs, limits: &Limits, color: bool) -> Result<Test, Failure> {
    let (Source { program, name, litmus, .. }, warnings) = load(path, args, limits, color)?;
    let litmus = litmus.or_else(|| Litmus::of(&program, &name)).ok_or_else(|| {
        let one = "final states are listed for one property (exists, never or forall), not none or more";
        Failure::Said(format!("{}: {one}", path.display()))
    })?;
    Ok(Test { program, litmus, warnings })
}

/// The name of a file without what is around it.
pub fn stem(path: &Path) -> String {
    path.file_stem().map_or("-".into(), |stem| stem.to_string_lossy().into_owned())
}

/// What was read, with what a litmus test says beside its program.
pub type WithTest = (front::Input, Option<Litmus>);

/// The program with whatever else is known, and its warnings as they are shown.
fn load(path: &Path, args: &InputArgs, limits: &Limits, color: bool) -> Result<(Source, String), Failure> {
    let name = path.display().to_string();
    let format = format(path, args).map_err(Failure::Said)?;
    if format != Format::Tso && !args.define.is_empty() {
        let why = "only programs in the native language have parameters to define with -D";
        return Err(Failure::Said(format!("{name}: {why}")));
    }
    let shown =
        |source: &str, diagnostics: &[Diagnostic]| diagnose::render(&name, source, diagnostics, color);
    let text = String::from_utf8(bytes(path, limits)?).map_err(|e| {
        let (source, wrong) = not_text(e);
        Failure::Shown(shown(&source, &[wrong]))
    })?;
    let (input, litmus) = parse(&text, format, &args.define, limits).map_err(|e| match e {
        Unread::Limit(limit) => Failure::Limit(limit),
        Unread::Wrong(wrong) => Failure::Shown(shown(&text, &wrong)),
    })?;
    let warnings = shown(&text, &input.warnings);
    Ok((Source { program: input.program, name: stem(path), text, litmus }, warnings))
}

/// What the text of a file says.
pub fn parse(
    source: &str,
    format: Format,
    define: &[(String, i64)],
    limits: &Limits,
) -> Result<WithTest, Unread> {
    let alone = |input: front::Input| (input, None);
    match format {
        Format::Tso => front::tso::read(source, define, limits).map(alone),
        Format::Ron => front::ron::read(source, limits).map(alone),
        Format::Trencher => front::trencher::read(source, limits).map(alone),
        Format::Rmm => front::rmm::read(source, limits).map(alone),
        Format::Litmus => {
            front::litmus::read_test(source, limits).map(|(input, litmus)| (input, Some(litmus)))
        }
    }
}

/// What the user says the format is, or else the file's name.
pub fn format(path: &Path, args: &InputArgs) -> Result<Format, String> {
    args.from.map_or_else(|| format_of(path), Ok)
}

pub fn format_of(path: &Path) -> Result<Format, String> {
    let extension = path.extension().and_then(|e| e.to_str());
    match extension {
        Some("tso") => Ok(Format::Tso),
        Some("ron") => Ok(Format::Ron),
        Some("litmus") => Ok(Format::Litmus),
        Some("txt") => Ok(Format::Trencher),
        Some("rmm") => Ok(Format::Rmm),
        _ if path == Path::new("-") => Err("standard input needs --from to say what it is".to_string()),
        _ => Err(format!(
            "{}: the name does not say what format this is; known are .tso, .ron, .litmus, .txt and .rmm, or use --from",
            path.display()
        )),
    }
}

fn bytes(path: &Path, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let said = |e: io::Error| Failure::Said(format!("{}: {e}", path.display()));
    let mut next: Box<dyn FnMut() -> io::Result<Option<Vec<u8>>>> = if path == Path::new("-") {
        Box::new(when_ready(io::stdin()))
    } else {
        let mut file = std::fs::File::open(path).map_err(said)?;
        match file.metadata().is_ok_and(|m| m.is_file()) {
            true => Box::new(move || chunk(&mut file).map(Some)),
            false => Box::new(when_ready(file)),
        }
    };
    let mut bytes = Vec::new();
    loop {
        limits.expired().map_or(Ok(()), Err)?;
        match next().map_err(said)? {
            None => {}
            Some(chunk) if chunk.is_empty() => return Ok(bytes),
            Some(mut chunk) if bytes.is_empty() => std::mem::swap(&mut bytes, &mut chunk),
            Some(chunk) => {
                limits.reserve(chunk.len())?;
                bytes.extend(chunk);
            }
        }
        if bytes.len() as u64 > MAX_BYTES {
            let large = format!("{}: larger than {} MiB", path.display(), MAX_BYTES >> 20);
            return Err(Failure::Said(large));
        }
    }
}

/// The next bytes, none at the end.
fn chunk(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(CHUNK_BYTES).read_to_end(&mut bytes).map(|_| bytes)
}

/// The next bytes of what may keep its reader waiting: a thread of its own waits, and `None` is no news.
fn when_ready(mut from: impl Read + Send + 'static) -> impl FnMut() -> io::Result<Option<Vec<u8>>> {
    let (sender, chunks) = mpsc::sync_channel(1);
    std::thread::spawn(move || while sender.send(chunk(&mut from)).is_ok() {});
    move || match chunks.recv_timeout(PATIENCE) {
        Ok(chunk) => chunk.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Ok(Some(Vec::new())),
    }
}

/// A file that is no text: the place of the first byte that is none, in what can be shown of it.
fn not_text(e: std::string::FromUtf8Error) -> (String, Diagnostic) {
    let at = e.utf8_error().valid_up_to();
    let byte = e.as_bytes()[at];
    let source = String::from_utf8_lossy(e.as_bytes()).into_owned();
    let wrong = Diagnostic {
        severity: Severity::Error,
        message: format!("this is not UTF-8 text: byte {byte:#04x} at offset {at}"),
        span: Some(at..at + '\u{fffd}'.len_utf8()),
        label: "a program is text".to_string(),
        help: None,
    };
    (source, wrong)
}
