//! What is said of a file that was not read to its end, since a limit was reached: `unknown`, and which limit
//! it was.

use super::document::{Block, Document};
use super::{capitalised, json, limit_reached};
use crate::query::{Axioms, Limit, Question, Stats, Verdict};
use serde_json::json;

pub fn document<'a>(
    question: Question,
    file: &'a str,
    model: Axioms,
    limit: &'a Limit,
    peak_kb: Option<u64>,
) -> Document<'a> {
    let verdict = Verdict::Unknown;
    let sentence = || format!("{} while the file was read.", capitalised(&limit_reached(limit)));
    let fields = move || {
        let mut fields = json::common(question, verdict, file, &Stats::default(), peak_kb);
        let (reason, name) = (limit_reached(limit), json::limit_name(limit));
        json::put(&mut fields, json!({ "model": model.name(), "reason": reason, "limit": name }));
        fields
    };
    Document {
        question,
        verdict,
        file: file.to_string(),
        explanation: Box::new(move || vec![Block::line(sentence())]),
        costs: Box::new(Vec::new),
        warnings: vec![],
        fields: Box::new(fields),
    }
}
