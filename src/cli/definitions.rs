//! Whose are the definitions? Of several files, some may lack a parameter that `-D` sets: that is worth a warning,
//! unless all of them do.

use super::terminal::Terminal;
use super::{Exit, SearchArgs, includes, input};
use crate::front::tso;
use crate::query::Limits;
use std::path::Path;

/// Does what is to be done with all files at once, or with each by itself if they have different parameters.
pub(super) fn shared<A: Clone>(
    mut args: A,
    search: fn(&mut A) -> &mut SearchArgs,
    run: fn(&A, &Terminal) -> Exit,
    terminal: &Terminal,
) -> Exit {
    search(&mut args).link();
    let asked = search(&mut args).clone();
    if asked.files.len() < 2 || asked.input.define.is_empty() {
        return run(&args, terminal);
    }
    let declared: Vec<Option<Vec<String>>> =
        asked.files.iter().map(|file| parameters(file, &asked)).collect();
    let has = |of: &Option<Vec<String>>, name: &String| of.as_ref().is_none_or(|names| names.contains(name));
    let anywhere = |name: &String| declared.iter().flatten().any(|names| names.contains(name));
    let lacks = |of: &Option<Vec<String>>, name: &String| !has(of, name) && anywhere(name);
    if !declared.iter().any(|of| asked.input.define.iter().any(|(name, _)| lacks(of, name))) {
        return run(&args, terminal);
    }
    let one = |(file, of): (&std::path::PathBuf, &Option<Vec<String>>)| {
        let mut own = args.clone();
        let alone = search(&mut own);
        alone.among_others = true;
        alone.files = vec![file.clone()];
        for (name, _) in asked.input.define.iter().filter(|(name, _)| lacks(of, name)) {
            let what = format!("`-D {name}=…` sets a parameter that this file does not declare");
            terminal.warning(&format!("{}: {what}", file.display()));
        }
        alone.input.define.retain(|(name, _)| !lacks(of, name));
        run(&own, terminal)
    };
    asked.files.iter().zip(&declared).map(one).max().unwrap_or(Exit::Good)
}

/// The parameters that a file declares; `None` if it cannot be read, which is for later to say.
fn parameters(file: &Path, asked: &SearchArgs) -> Option<Vec<String>> {
    let format = input::format(file, &asked.input).ok()?;
    if format.holds_models() {
        return None;
    }
    if !format.parameters {
        return Some(vec![]);
    }
    let limits = Limits::default();
    let bytes = std::fs::read(file).ok()?;
    let text = match includes::splice(file, &bytes, &limits, false).ok()? {
        Some(spliced) => spliced.text,
        None => String::from_utf8(bytes).ok()?,
    };
    Some(tso::parameters(&text, &limits))
}
