//! Which files does a program include? They lie where the including file says, seen from where it lies itself.

use super::diagnose;
use super::input::{self, Failure};
use crate::front::Diagnostic;
use crate::front::tso::include::{self, IncludedFile, Origin, SpliceError, Spliced, Unspliced};
use crate::query::{Limit, Limits};
use std::cell::RefCell;
use std::path::Path;

/// The program in one piece; none if it includes nothing.
pub(crate) fn splice(
    path: &Path,
    bytes: &[u8],
    limits: &Limits,
    color: bool,
) -> Result<Option<Spliced>, Failure> {
    let Ok(text) = str::from_utf8(bytes) else { return Ok(None) };
    if !text.contains("include") {
        return Ok(None);
    }
    let reached: RefCell<Option<Limit>> = RefCell::new(None);
    let fetch = |from: &str, name: &str| {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let bytes = input::bytes(&path, limits).map_err(|failure| match failure {
            Failure::Said(why) | Failure::Shown(why) => why,
            Failure::Limit(limit) => {
                reached.replace(Some(limit));
                "a limit was reached".to_string()
            }
        })?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{} is not text", path.display()))?;
        Ok(file(&path, text))
    };
    match include::splice(&file(path, text.to_string()), &fetch, limits) {
        Ok(spliced) if spliced.stretches.is_empty() => Ok(None),
        Ok(spliced) => Ok(Some(spliced)),
        Err(SpliceError::Limit(limit)) => Err(Failure::Limit(limit)),
        Err(SpliceError::Wrong(Unspliced { file, text, diagnostic })) => match reached.take() {
            Some(limit) => Err(Failure::Limit(limit)),
            None => Err(Failure::Shown(diagnose::render(&file, &text, &[*diagnostic], color))),
        },
    }
}

fn file(path: &Path, text: String) -> IncludedFile {
    let id = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    IncludedFile { id: id.display().to_string(), name: path.display().to_string(), text }
}

/// What is wrong, each in the file where it stands.
pub(crate) fn render(name: &str, spliced: &Spliced, diagnostics: &[Diagnostic], color: bool) -> String {
    let one = |diagnostic: &Diagnostic| match &diagnostic.span {
        None => diagnose::render(name, "", std::slice::from_ref(diagnostic), color),
        Some(span) => {
            let Origin { file, text, span } = spliced.origin(span);
            let there = Diagnostic { span: Some(span), ..diagnostic.clone() };
            diagnose::render(file.unwrap_or(name), text, &[there], color)
        }
    };
    diagnostics.iter().map(one).collect()
}
