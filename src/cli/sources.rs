//! Which texts do lines of object code have? Those of their sources, where these are at hand: where debug information
//! says, or beside the object file.

use crate::model::Program;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

/// Longer sources are not looked at.
const MOST_BYTES: u64 = 8 << 20;
/// Longer lines are not shown.
const LONGEST: usize = 160;

pub(super) fn add(program: Program, object: &Path) -> Program {
    let mut texts: HashMap<String, Option<Vec<String>>> = HashMap::new();
    program.with_sources(|file, line| {
        let text = texts.entry(file.to_string()).or_insert_with(|| text(Path::new(file), object));
        let line = text.as_ref()?.get((line as usize).checked_sub(1)?)?.trim();
        (!line.is_empty() && line.chars().count() <= LONGEST).then(|| line.to_string())
    })
}

/// The lines of a source.
fn text(file: &Path, object: &Path) -> Option<Vec<String>> {
    let beside = object.parent().map(|folder| folder.join(file));
    let found = [Some(file.to_path_buf()), beside].into_iter().flatten().find(|path| path.is_file())?;
    let mut bytes = Vec::new();
    std::fs::File::open(found).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    // What a terminal would take for more than letters is not shown.
    let plain = |line: &str| line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(String::from_utf8(bytes).ok()?.lines().map(plain).collect())
}
