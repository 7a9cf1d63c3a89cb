//! Which programs? Files as they are, families at each of their sizes; each is read before anything is run.

use super::{CompareArgs, Plan, family_names};
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, InputArgs, diagnose, input};
use crate::compare::export::SourceText;
use crate::compare::family::{self, FAMILIES, Family, PARAMETER};
use crate::front::tso;
use crate::limits::{Limit, Limits};
use std::path::Path;

/// A program, at one of its sizes.
pub(crate) struct Subject {
    pub name: String,
    pub size: Option<i64>,
    /// All its parameters that have been given a value.
    pub define: Vec<(String, i64)>,
    pub source: SourceText,
}

/// An error whose message is empty has been shown already.
pub(crate) fn all(
    args: &CompareArgs,
    plan: &Plan,
    stop: &Limits,
    terminal: &Terminal,
) -> Result<Vec<Subject>, String> {
    let mut subjects = Vec::new();
    for family in families(plan)? {
        let sizes = if plan.sizes.is_empty() { family.sizes } else { &plan.sizes };
        for &size in sizes {
            subjects.push(of_family(family, size, args, stop, terminal)?);
        }
    }
    for file in &args.files {
        match plan.sizes.is_empty() {
            true => subjects.push(of_file(file, None, args, stop, terminal)?),
            false => {
                for &size in &plan.sizes {
                    subjects.push(of_file(file, Some(size), args, stop, terminal)?);
                }
            }
        }
    }
    match subjects.is_empty() {
        true => Err(format!("nothing to compare on: give files, or --family {} or all", family_names())),
        false => Ok(subjects),
    }
}

fn families(plan: &Plan) -> Result<Vec<&'static Family>, String> {
    let mut families = Vec::new();
    for name in &plan.families {
        match name.as_str() {
            "all" => families.extend(FAMILIES),
            name => {
                let unknown = || format!("there is no family `{name}`; there are {}, or all", family_names());
                families.push(family::named(name).ok_or_else(unknown)?);
            }
        }
    }
    Ok(families)
}

fn of_family(
    family: &Family,
    size: i64,
    args: &CompareArgs,
    stop: &Limits,
    terminal: &Terminal,
) -> Result<Subject, String> {
    if let Some(folder) = &args.programs {
        let subject = of_file(&folder.join(family.file), Some(size), args, stop, terminal)?;
        return Ok(Subject { name: family.name.to_string(), ..subject });
    }
    let define = with_size(&args.define, Some(size));
    let read = tso::read(family.text, &define, stop).map_err(|wrong| {
        let name = format!("programs/{}", family.file);
        terminal.complain(&diagnose::render(&name, family.text, wrong.diagnostics(), terminal.color_errors));
        String::new()
    })?;
    let source =
        SourceText { program: read.program, text: family.text.to_string(), extension: "tso".to_string() };
    Ok(Subject { name: family.name.to_string(), size: Some(size), define, source })
}

fn of_file(
    file: &Path,
    size: Option<i64>,
    args: &CompareArgs,
    stop: &Limits,
    terminal: &Terminal,
) -> Result<Subject, String> {
    let define = with_size(&args.define, size);
    let typed = define.iter().map(|(name, value)| (name.clone(), value.to_string()));
    let read = InputArgs { define: typed.collect(), ..InputArgs::default() };
    // The limits of time and memory are those of each run, not of the reading before them.
    let unknown = |_: &Limit| Exit::Unknown;
    let input::Source { program, text, .. } =
        input::read_any(file, &read, stop, terminal, unknown).map_err(|_| String::new())?;
    let extension = file.extension().map_or(String::new(), |e| e.to_string_lossy().into_owned());
    let source = SourceText { program, text, extension };
    Ok(Subject { name: file.display().to_string(), size, define, source })
}

fn with_size(define: &[(String, i64)], size: Option<i64>) -> Vec<(String, i64)> {
    let size = size.map(|n| (PARAMETER.to_string(), n));
    define.iter().cloned().chain(size).collect()
}
