//! What the page asks: the state behind a run, a run to a bug, whether it can still go wrong, the run as a page or as
//! JSON. The file is read anew for each question, so that the page shows what the file says now.

use super::super::input::{self, Failure, Loaded};
use super::super::written;
use super::model::{self, ModelWalked};
use super::walk::{self, Walked};
use super::{ExploreArgs, wrong};
use crate::limits::Limits;
use crate::query::Verdict;
use crate::report::page;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
/// Longer runs are not walked by hand.
const MOST_STEPS: usize = 20_000;

/// What was done so far, and under which memory model.
#[derive(Debug, Deserialize)]
struct PageAsked {
    #[serde(default)]
    model: String,
    #[serde(default)]
    run: Vec<String>,
}

/// The answer to a question, if there is such a one.
pub(super) fn answer(question: &str, body: &[u8], args: &ExploreArgs) -> Option<Value> {
    if !["state", "bug", "still", "page", "json"].contains(&question) {
        return None;
    }
    let asked: PageAsked = match serde_json::from_slice(body) {
        Ok(asked) => asked,
        Err(e) => return Some(wrong(format!("this is no question: {e}"))),
    };
    if asked.run.len() > MOST_STEPS {
        return Some(wrong(format!("a run of more than {MOST_STEPS} steps is not walked")));
    }
    let limits = Limits::default().with_timeout(PATIENCE);
    Some(match input::load_any(&args.file, &args.input, &limits) {
        Ok((loaded, warnings)) => {
            told(question, &loaded, &warnings, &asked, args, &limits).unwrap_or_else(wrong)
        }
        Err(Failure::Said(why)) | Err(Failure::Shown(why)) => wrong(why),
        Err(Failure::Limit(limit)) => wrong(crate::report::limit_reached(&limit)),
    })
}

fn told(
    question: &str,
    loaded: &Loaded,
    warnings: &str,
    asked: &PageAsked,
    args: &ExploreArgs,
    limits: &Limits,
) -> Result<Value, String> {
    let file = args.file.display().to_string();
    let text = written::text_of(loaded);
    let lines: Value = text.lines.iter().map(|line| json!([line.label, line.text])).collect();
    let numbered = input::format(&args.file, &args.input).is_ok_and(|format| format.lines);
    let with = |mut view: Value, models: [&str; 2]| {
        view["text"] = if numbered { lines.clone() } else { json!([]) };
        view["models"] = json!(models);
        view["warnings"] = warnings.trim().into();
        view
    };
    let as_page = |blocks| {
        let body = page::body(blocks, &[], numbered.then_some(&text), 0);
        let section =
            page::section_of(&file, "explored", page::tone_of(Verdict::Unknown), "A run, step by step", body);
        json!({ "html": page::page(&[section]) })
    };
    Ok(match loaded {
        Loaded::Program(source) => {
            let memory = walk::model(&asked.model);
            if question == "bug" {
                return Ok(walk::bug(source, memory));
            }
            let walked = Walked::new(source, memory, &asked.run, limits)?;
            match question {
                "still" => walked.still(),
                "page" => as_page(&walked.blocks()),
                "json" => walked.answer(&file, &args.input.defined()),
                _ => with(walked.view(), ["tso", "sc"]),
            }
        }
        Loaded::Model(source) => {
            let memory = if asked.model == "slots" { "slots" } else { "sc" };
            if question == "bug" {
                return Ok(model::bug(source, memory));
            }
            let walked = ModelWalked::new(source, memory, &asked.run)?;
            match question {
                "still" => walked.still(),
                "page" => as_page(&walked.blocks()),
                "json" => walked.answer(&file, memory),
                _ => with(walked.view(), ["sc", "slots"]),
            }
        }
    })
}
