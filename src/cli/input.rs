//! From a path to a program: finds the format, reads the bytes, and shows whatever is wrong with them.

use super::terminal::Terminal;
use super::{InputArgs, diagnose};
use crate::front::{self, Diagnostic, Severity};
use crate::model::Program;
use clap::ValueEnum;
use std::io::Read;
use std::path::Path;

/// Larger files are refused, before they are read.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The native language (.tso)
    Tso,
    /// The program model itself (.ron)
    Ron,
    /// Trencher (.txt)
    Trencher,
    /// Memorax (.rmm)
    Rmm,
}

/// The program, with its warnings shown. `None` after its errors have been shown.
pub fn read(path: &Path, args: &InputArgs, terminal: &Terminal) -> Option<Program> {
    let name = path.display().to_string();
    match load(path, args) {
        Ok((source, input)) => match input {
            Ok(input) => {
                terminal.complain(&diagnose::render(&name, &source, &input.warnings, terminal.color_errors));
                Some(input.program)
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

type Parsed = Result<front::Input, Vec<Diagnostic>>;

fn load(path: &Path, args: &InputArgs) -> Result<(String, Parsed), String> {
    let format = match args.from {
        Some(format) => format,
        None => format_of(path)?,
    };
    let bytes = bytes(path)?;
    let source = match String::from_utf8(bytes) {
        Ok(source) => source,
        Err(e) => return Ok(not_text(e)),
    };
    if format != Format::Tso && !args.define.is_empty() {
        let why = "only programs in the native language have parameters to define with -D";
        return Err(format!("{}: {why}", path.display()));
    }
    let input = match format {
        Format::Tso => front::tso::read(&source, &args.define),
        Format::Ron => front::ron::read(&source),
        Format::Trencher => front::trencher::read(&source),
        Format::Rmm => front::rmm::read(&source),
    };
    Ok((source, input))
}

fn format_of(path: &Path) -> Result<Format, String> {
    let extension = path.extension().and_then(|e| e.to_str());
    match extension {
        Some("tso") => Ok(Format::Tso),
        Some("ron") => Ok(Format::Ron),
        Some("txt") => Ok(Format::Trencher),
        Some("rmm") => Ok(Format::Rmm),
        _ if path == Path::new("-") => Err("standard input needs --from to say what it is".to_string()),
        _ => Err(format!(
            "{}: the name does not say what format this is; known are .tso, .ron, .txt and .rmm, or use --from",
            path.display()
        )),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut bytes = Vec::new();
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
fn not_text(e: std::string::FromUtf8Error) -> (String, Parsed) {
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
    (source, Err(vec![wrong]))
}
