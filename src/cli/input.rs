//! From a path to a program: finds the format, reads the bytes, and shows whatever is wrong with them.

use super::terminal::Terminal;
use super::{InputArgs, diagnose};
use crate::front::{self, Diagnostic, Severity};
use crate::model::Program;
use crate::model::litmus::Litmus;
use clap::ValueEnum;
use std::io::Read;
use std::path::Path;

/// Larger files are refused, before they are read.
const MAX_BYTES: u64 = 256 << 20;
/// Room for most programs.
const USUAL_BYTES: usize = 8 << 10;

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

/// The program, with its warnings shown. `None` after its errors have been shown.
pub fn read(path: &Path, args: &InputArgs, terminal: &Terminal) -> Option<Program> {
    read_any(path, args, terminal).map(|source| source.program)
}

/// The same with whatever else is known.
pub fn read_any(path: &Path, args: &InputArgs, terminal: &Terminal) -> Option<Source> {
    let name = path.display().to_string();
    match load(path, args) {
        Ok((source, input)) => match input {
            Ok((input, litmus)) => {
                terminal.complain(&diagnose::render(&name, &source, &input.warnings, terminal.color_errors));
                Some(Source { program: input.program, name: stem(path), text: source, litmus })
            }
            Err(wrong) => {
                terminal.complain(&diagnose::render(&name, &source, &wrong, terminal.color_errors));
                None
            }
        },
        Err(message) => {
            terminal.error(&message);
            None
        }
    }
}

/// The program and what is asked of its final states. Whatever is wrong comes back as text, for many files are read
/// side by side and shown in their order.
pub fn read_test(path: &Path, args: &InputArgs, color: bool) -> Result<Test, String> {
    let name = path.display().to_string();
    let error = |message: &str| format!("error: {message}\n");
    let (source, parsed) = load(path, args).map_err(|message| error(&message))?;
    let shown = |diagnostics: &[Diagnostic]| diagnose::render(&name, &source, diagnostics, color);
    let (input, litmus) = parsed.map_err(|wrong| shown(&wrong))?;
    let litmus = litmus.or_else(|| Litmus::of(&input.program, &stem(path))).ok_or_else(|| {
        error(&format!(
            "{name}: final states are listed for one property (exists, never or forall), not none or more"
        ))
    })?;
    Ok(Test { litmus, warnings: shown(&input.warnings), program: input.program })
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or("-".into(), |stem| stem.to_string_lossy().into_owned())
}

pub type Parsed<T> = Result<T, Vec<Diagnostic>>;

/// What was read, with what a litmus test says beside its program.
pub type WithTest = (front::Input, Option<Litmus>);

fn load(path: &Path, args: &InputArgs) -> Result<(String, Parsed<WithTest>), String> {
    let format = format(path, args)?;
    if format != Format::Tso && !args.define.is_empty() {
        let why = "only programs in the native language have parameters to define with -D";
        return Err(format!("{}: {why}", path.display()));
    }
    let bytes = bytes(path)?;
    let source = match String::from_utf8(bytes) {
        Ok(source) => source,
        Err(e) => {
            let (source, wrong) = not_text(e);
            return Ok((source, Err(vec![wrong])));
        }
    };
    let parsed = parse(&source, format, &args.define);
    Ok((source, parsed))
}

/// What the text of a file says.
pub fn parse(source: &str, format: Format, define: &[(String, i64)]) -> Parsed<WithTest> {
    let alone = |input: front::Input| (input, None);
    match format {
        Format::Tso => front::tso::read(source, define).map(alone),
        Format::Ron => front::ron::read(source).map(alone),
        Format::Trencher => front::trencher::read(source).map(alone),
        Format::Rmm => front::rmm::read(source).map(alone),
        Format::Litmus => front::litmus::read_test(source).map(|(input, litmus)| (input, Some(litmus))),
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

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|f| f.take(MAX_BYTES + 1).read_to_end(&mut bytes))
    };
    match read.map_err(failed)? as u64 > MAX_BYTES {
        true => Err(format!("{}: larger than {} MiB", path.display(), MAX_BYTES >> 20)),
        false => Ok(bytes),
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
