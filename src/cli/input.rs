//! From a path to a program: finds the format, reads the bytes, and shows whatever is wrong with them.

use super::compile::{self, Language};
use super::terminal::Terminal;
use super::{Exit, InputArgs, diagnose, includes, sources, written};
use crate::certify::certificate::digest;
use crate::dve::System;
use crate::front::formats::{self, Contents, Format, Reading};
use crate::front::tso;
use crate::front::{Diagnostic, Input, Unread, elf};
use crate::model::Program;
use crate::model::Stretch;
use crate::model::datatype::DataType;
use crate::model::formula::StatedFormula;
use crate::model::litmus::Litmus;
use crate::query::{Axioms, Limit, Limits};
use crate::report::page::ProgramText;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// What is read without a file.
const STANDARD_INPUT: &str = "-";
/// Larger files are refused, before they are read.
const MAX_BYTES: u64 = 256 << 20;
/// Limits are looked at after so many bytes, or so much waiting for them.
const CHUNK_BYTES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_millis(20);

/// A program with what is asked of its final states, and the warnings about it.
pub(crate) struct Test {
    pub program: Program,
    pub litmus: Litmus,
    /// What pages show of the file.
    pub text: Option<ProgramText>,
    pub warnings: String,
}

/// A program of any format, with what a litmus test says beside it.
pub(crate) struct Source {
    pub program: Program,
    /// What the file asks of infinite runs.
    pub formulas: Vec<StatedFormula>,
    /// The file's name without what is around it.
    pub name: String,
    pub text: String,
    /// Where the lines of the text come from, if not all from one file.
    pub stretches: Vec<Stretch>,
    pub litmus: Option<Litmus>,
    /// What every answer about the file leaves out.
    pub left_out: Vec<String>,
}

/// A DVE model.
pub(crate) struct DveSource {
    pub system: System,
    pub text: String,
}

/// What a file holds.
pub(crate) enum Loaded {
    Program(Box<Source>),
    Model(DveSource),
}

/// Why there is no program.
pub(crate) enum Failure {
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

/// The program, with its warnings shown. An error has been shown where it is the file's; `unknown` shows a
/// limit.
pub(crate) fn read(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    terminal: &Terminal,
    unknown: impl FnOnce(&Limit) -> Exit,
) -> Result<Program, Exit> {
    read_any(path, args, limits, terminal, unknown).map(|source| source.program)
}

/// The same with whatever else is known.
pub(crate) fn read_any(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    terminal: &Terminal,
    unknown: impl FnOnce(&Limit) -> Exit,
) -> Result<Source, Exit> {
    let loaded = read_loaded(path, args, limits, terminal, unknown)?;
    program(path, loaded).map_err(|message| shown(Failure::Said(message), terminal, |_| Exit::Unknown))
}

/// A model is nothing to commands that are about programs.
fn program(path: &Path, loaded: Loaded) -> Result<Source, String> {
    match loaded {
        Loaded::Program(source) => Ok(*source),
        Loaded::Model(_) => Err(format!("{}: this is asked of programs, not of DVE models", path.display())),
    }
}

/// A program or a model.
pub(crate) fn read_loaded(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    terminal: &Terminal,
    unknown: impl FnOnce(&Limit) -> Exit,
) -> Result<Loaded, Exit> {
    let (loaded, warnings) = load(path, args, limits, terminal.color_errors)
        .map_err(|failure| shown(failure, terminal, unknown))?;
    terminal.complain(&warnings);
    let mut parts = terminal.parts();
    parts.left_out = match &loaded {
        Loaded::Program(source) => source.left_out.clone(),
        Loaded::Model(_) => vec![],
    };
    if parts.wanted {
        let lines = format(path, args).is_ok_and(|format| format.lines);
        parts.text = written::listing_of(&loaded).or_else(|| lines.then(|| written::text_of(&loaded)));
    }
    drop(parts);
    Ok(loaded)
}

/// The bytes of a file that is no program. An error has been shown; `unknown` shows a limit.
pub(crate) fn read_bytes(
    path: &Path,
    limits: &Limits,
    terminal: &Terminal,
    unknown: impl FnOnce(&Limit) -> Exit,
) -> Result<Vec<u8>, Exit> {
    bytes(path, limits).map_err(|failure| shown(failure, terminal, unknown))
}

/// Shows why there is no program.
fn shown(failure: Failure, terminal: &Terminal, unknown: impl FnOnce(&Limit) -> Exit) -> Exit {
    match failure {
        Failure::Said(message) => terminal.error(&message),
        Failure::Shown(places) => terminal.complain(&places),
        Failure::Limit(limit) => return unknown(&limit),
    }
    Exit::BadInput
}

/// A program or a model, and the warnings about it. Whatever is wrong comes back as text.
pub(crate) fn load_any(path: &Path, args: &InputArgs, limits: &Limits) -> Result<(Loaded, String), Failure> {
    load(path, args, limits, false)
}

/// The program with whatever else is known, and its warnings. Whatever is wrong comes back as text.
pub(crate) fn load_program(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    color: bool,
) -> Result<(Source, String), Failure> {
    let (loaded, warnings) = load(path, args, limits, color)?;
    Ok((program(path, loaded).map_err(Failure::Said)?, warnings))
}

/// The program and what is asked of its final states. Whatever is wrong comes back as text, for many files
/// are read side by side and shown in their order.
pub(crate) fn read_test(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    color: bool,
) -> Result<Test, Failure> {
    let (Source { program, name, litmus, text, stretches, .. }, warnings) =
        load_program(path, args, limits, color)?;
    let text = format(path, args).is_ok_and(|format| format.lines).then(|| written::lines(&text, &stretches));
    let litmus = litmus.or_else(|| Litmus::of(&program, &name)).ok_or_else(|| {
        let one = "final states are listed for one property (exists, never or forall), not none or more";
        Failure::Said(format!("{}: {one}", path.display()))
    })?;
    Ok(Test { program, litmus, text, warnings })
}

/// The name of a file without what is around it.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().map_or("-".into(), |stem| stem.to_string_lossy().into_owned())
}

/// Why the file says too little for this model, if its format does: some know one kind of fence alone.
pub(crate) fn says_fences(path: &Path, args: &InputArgs, model: Axioms) -> Result<(), String> {
    let format = format(path, args)?;
    match format.fence_kinds || matches!(model, Axioms::Sc | Axioms::Tso) {
        true => Ok(()),
        false => Err(format!(
            "{}: the {} format does not say what fences order, which --model {} asks for",
            path.display(),
            format.what,
            model.name()
        )),
    }
}

/// A data type and its tests, with warnings shown. An error has been shown; `unknown` shows a limit.
pub(crate) fn read_datatype(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    terminal: &Terminal,
    unknown: impl FnOnce(&Limit) -> Exit,
) -> Result<(DataType, String), Exit> {
    let name = path.display().to_string();
    let read = || -> Result<(DataType, String, String), Failure> {
        let bytes = bytes(path, limits)?;
        let text = String::from_utf8(bytes).map_err(|_| Failure::Said(format!("{name}: this is no text")))?;
        let define = args.parameters().map_err(Failure::Said)?;
        let shown = |all: &[Diagnostic]| diagnose::render(&name, &text, all, terminal.color_errors);
        match tso::read_datatype(&text, &[], &define, limits) {
            Ok((datatype, warnings)) => {
                let warnings = shown(&warnings);
                Ok((datatype, text, warnings))
            }
            Err(Unread::Limit(limit)) => Err(Failure::Limit(limit)),
            Err(Unread::Wrong(wrong)) => Err(Failure::Shown(shown(&wrong))),
        }
    };
    let (datatype, text, warnings) = read().map_err(|failure| shown(failure, terminal, unknown))?;
    terminal.complain(&warnings);
    Ok((datatype, text))
}

/// The program with whatever else is known, and its warnings as they are shown. Where several processes answer
/// together, all have to have read the same.
fn load(path: &Path, args: &InputArgs, limits: &Limits, color: bool) -> Result<(Loaded, String), Failure> {
    let (loaded, warnings) = load_alone(path, args, limits, color)?;
    if let Some(peers) = &args.peers {
        let Loaded::Program(source) = &loaded else {
            return Err(Failure::Said(format!("{}: DVE models are for one process", path.display())));
        };
        peers.agree(&fingerprint(source), "program")?;
    }
    Ok((loaded, warnings))
}

/// Of a program and what is asked of it.
fn fingerprint(source: &Source) -> Vec<u64> {
    let asked = format!("{:?} {:?}", source.program.properties(), source.program.no_hang());
    let text = digest(&source.program) + &asked;
    let words = text.as_bytes().chunks(8);
    words.map(|bytes| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))).collect()
}

fn load_alone(
    path: &Path,
    args: &InputArgs,
    limits: &Limits,
    color: bool,
) -> Result<(Loaded, String), Failure> {
    let name = path.display().to_string();
    if path.is_dir() {
        return Err(Failure::Said(format!("{name}: this is a directory, not a program")));
    }
    // Machine code is known by its first bytes, and may have any name.
    let read_first =
        args.from.is_none() && format_of(path).map_or(true, |f| f.name != "dve") && path.is_file();
    let early = if read_first { Some(code(path, args, limits)?) } else { None };
    let by_bytes = early.as_ref().and_then(|bytes| formats::of_bytes(bytes));
    if let Some(kind) = early.as_ref().and_then(|bytes| elf::foreign(bytes)) {
        return Err(Failure::Said(format!(
            "{name}: this is {kind}; machine code is read from ELF files for x86-64 alone"
        )));
    }
    let format = by_bytes.map_or_else(|| format(path, args), Ok).map_err(Failure::Said)?;
    // What is defined for a model are expressions over its states, which is for those who ask for them.
    let is_model = format.holds_models();
    if !format.parameters && !is_model && !args.define.is_empty() {
        let why = "only programs in the native language have parameters to define with -D";
        return Err(Failure::Said(format!("{name}: {why}")));
    }
    let bytes = early.map_or_else(|| bytes(path, limits), Ok)?;
    let is_code = format.name == "elf";
    if let Some(option) = args.code.given().filter(|option| !(is_code || is_model && *option == "--forbid")) {
        return Err(Failure::Said(format!("{name}: {option} is for machine code")));
    }
    let spliced = match format.includes && path != Path::new(STANDARD_INPUT) {
        true => includes::splice(path, &bytes, limits, color)?,
        false => None,
    };
    let stretches = spliced.as_ref().map_or(&[][..], |s| &s.stretches);
    let read = spliced.as_ref().map_or(&bytes[..], |s| s.text.as_bytes());
    let shown = |diagnostics: &[Diagnostic]| match &spliced {
        Some(spliced) => includes::render(&name, spliced, diagnostics, color),
        None => diagnose::render(&name, &String::from_utf8_lossy(&bytes), diagnostics, color),
    };
    let define = if is_model { vec![] } else { args.parameters().map_err(Failure::Said)? };
    let linked: Vec<(String, Vec<u8>)> = args
        .code
        .linked
        .iter()
        .map(|path| Ok((path.display().to_string(), code(path, args, limits)?)))
        .collect::<Result<_, Failure>>()?;
    let linked: Vec<elf::CodeFile> =
        linked.iter().map(|(name, bytes)| elf::CodeFile { name, bytes }).collect();
    let code = args.code.options();
    let reading = Reading { define: &define, stretches, code: Some((&code, &linked)), name: &name, limits };
    let contents = format.contents(read, &reading).map_err(|e| match e {
        Unread::Limit(limit) => Failure::Limit(limit),
        Unread::Wrong(wrong) => Failure::Shown(shown(&wrong)),
    })?;
    let (input, litmus) = match contents {
        Contents::Program(program) => *program,
        Contents::System(system, warnings) => {
            let (warnings, text) = (shown(&warnings), String::from_utf8(bytes).unwrap_or_default());
            return Ok((Loaded::Model(DveSource { system, text }), warnings));
        }
    };
    let warnings = shown(&input.warnings);
    // Of a file that is no text, nothing is ever shown or changed by its lines.
    let (text, stretches) = match spliced {
        Some(spliced) => (spliced.text, spliced.stretches),
        None => (String::from_utf8(bytes).unwrap_or_default(), vec![]),
    };
    // What has no place in the text is about all of the program.
    let whole = input.warnings.iter().filter(|warning| warning.span.is_none());
    let left_out = whole.map(|warning| warning.message.clone()).collect();
    let Input { program, formulas, .. } = input;
    let program = if is_code { sources::add(program, path) } else { program };
    let source = Source { program, formulas, name: stem(path), text, stretches, litmus, left_out };
    Ok((Loaded::Program(Box::new(source)), warnings))
}

/// Does the file begin as machine code does?
pub(crate) fn is_code(path: &Path) -> bool {
    let mut first = [0; 8];
    let read = |first: &mut [u8]| std::fs::File::open(path).and_then(|mut file| file.read_exact(first));
    path.is_file() && read(&mut first).is_ok() && elf::is_code(&first)
}

/// The bytes of a file, or those of the object file that is made of a source.
fn code(path: &Path, args: &InputArgs, limits: &Limits) -> Result<Vec<u8>, Failure> {
    if let Some(object) = args.code.compiled.get(path) {
        return Ok(object.clone());
    }
    match Language::of(path) {
        Some(Language::Assembly) => compile::object(path, Language::Assembly, None, &[], limits),
        Some(_) => {
            let name = path.display();
            let how = "is compiled first: `overtake cc` does that";
            Err(Failure::Said(format!("{name}: this is source code, which {how}")))
        }
        None => bytes(path, limits),
    }
}

/// What the user says the format is, or else what the file's first bytes or its name say.
pub(crate) fn format(path: &Path, args: &InputArgs) -> Result<&'static Format, String> {
    if let Some(format) = args.from {
        return Ok(format);
    }
    let assembled = matches!(Language::of(path), Some(Language::Assembly));
    match formats::named("elf") {
        Some(format) if assembled || args.code.compiled.contains_key(path) || is_code(path) => Ok(format),
        _ => format_of(path),
    }
}

pub(crate) fn format_of(path: &Path) -> Result<&'static Format, String> {
    formats::of_path(path).ok_or_else(|| match path == Path::new(STANDARD_INPUT) {
        true => "standard input needs --from to say what it is".to_string(),
        false => {
            let known: Vec<String> = formats::readable().map(|f| format!(".{}", f.extensions[0])).collect();
            let (last, others) = known.split_last().expect("some formats are read");
            let known = format!("{} and {last}", others.join(", "));
            let name = path.display();
            format!("{name}: the name does not say what format this is; known are {known}, or use --from")
        }
    })
}

/// Names of formats, as an option takes them.
pub(crate) fn format_parser(
    formats: impl Iterator<Item = &'static Format>,
) -> impl TypedValueParser<Value = &'static Format> {
    let value = |format: &'static Format| PossibleValue::new(format.name).help(help(format));
    let by_name = |name: String| formats::named(&name).expect("it is one of the possible values");
    PossibleValuesParser::new(formats.map(value).collect::<Vec<_>>()).map(by_name)
}

fn help(format: &Format) -> String {
    format!("{} (.{})", format.what, format.extensions.join(", ."))
}

pub(super) fn bytes(path: &Path, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let said = |e: io::Error| Failure::Said(format!("{}: {e}", path.display()));
    if path.is_dir() {
        return Err(Failure::Said(format!("{}: this is a directory, not a program", path.display())));
    }
    let mut next: Box<dyn FnMut() -> io::Result<Option<Vec<u8>>>> = if path == Path::new(STANDARD_INPUT) {
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
