//! What is said of a file that was not read to its end, since a limit was reached: `unknown`, and which limit
//! it was.

use super::document::{Block, Document};
use super::{capitalised, json, limit_reached};
use crate::query::{Limit, Model, Question, Stats, Verdict};
use serde_json::json;

pub fn document(
    question: Question,
    file: &str,
    model: Model,
    limit: &Limit,
    peak_kb: Option<u64>,
) -> Document {
    let (verdict, reason) = (Verdict::Unknown, limit_reached(limit));
    let mut fields = json::common(question, verdict, file, &Stats::default(), peak_kb);
    let more = json!({ "model": model.name(), "reason": reason, "limit": json::limit_name(limit) });
    json::put(&mut fields, more);
    Document {
        question,
        verdict,
        file: file.to_string(),
        explanation: vec![Block::line(format!("{} while the file was read.", capitalised(&reason)))],
        costs: vec![],
        warnings: vec![],
        fields,
    }
}
