//! What is said of certificates: whether an answer has one, and what the judge says of one.

use super::document::{Block, Document};
use super::{count_of, json};
use serde_json::{Value, json};

/// A certificate that was written.
pub struct Written {
    pub path: String,
    pub bytes: usize,
}

/// The document of an answer, with whether it is certified, or why not.
pub fn add<'a>(document: Document<'a>, written: &Result<Written, String>) -> Document<'a> {
    let (line, more) = match written {
        Ok(Written { path, bytes }) => (
            format!("Certificate: {path} ({}).", count_of(*bytes as u64, "byte")),
            json!({ "certified": true, "certificate": path, "certificate_bytes": bytes }),
        ),
        Err(reason) => {
            (format!("Not certified: {reason}."), json!({ "certified": false, "certificate_reason": reason }))
        }
    };
    let Document { explanation, fields, .. } = document;
    Document {
        explanation: Box::new(move || {
            let mut blocks = explanation();
            blocks.push(Block::line(line.clone()));
            blocks
        }),
        fields: Box::new(move || {
            let mut fields = fields();
            json::put(&mut fields, more.clone());
            fields
        }),
        ..document
    }
}

/// What a certificate claims.
pub struct Claim<'a> {
    pub command: &'a str,
    pub model: &'a str,
    pub verdict: &'a str,
    /// The one property that it is about, by its number and as the file has it; all of them if there is none.
    pub property: Option<(usize, &'a str)>,
}

impl Claim<'_> {
    fn text(&self) -> String {
        let Claim { command, model, verdict, property } = *self;
        let alone = property.map_or(String::new(), |(_, text)| format!(", if only `{text}` is asked about"));
        match command {
            "check" => format!("the program is {verdict} under {}{alone}", model.to_uppercase()),
            _ => format!("the program is {verdict}"),
        }
    }

    fn json(&self) -> Value {
        let Claim { command, model, verdict, property } = *self;
        let number = property.map(|(number, _)| number);
        json!({ "claim": { "command": command, "model": model, "verdict": verdict, "property": number } })
    }
}

/// What the judge says of a certificate.
pub struct Judgement<'a> {
    pub file: &'a str,
    pub certificate: &'a str,
    pub claim: Claim<'a>,
    /// The first condition that fails, if one does.
    pub flaw: Option<String>,
    pub time_ms: f64,
}

impl Judgement<'_> {
    pub fn word(&self) -> &'static str {
        if self.flaw.is_none() { "accepted" } else { "rejected" }
    }

    /// For people.
    pub fn text(&self) -> String {
        let more = self.flaw.clone().unwrap_or_else(|| self.claim.text());
        format!("{}\n{}.\n", self.word(), super::capitalised(&more))
    }

    /// For scripts.
    pub fn json(&self) -> Value {
        let mut fields = serde_json::Map::new();
        let head = json!({
            "tool": "overtake",
            "version": env!("CARGO_PKG_VERSION"),
            "file": self.file,
            "command": "verify",
            "certificate": self.certificate,
            "verdict": self.word(),
            "time_ms": self.time_ms,
        });
        json::put(&mut fields, head);
        json::put(&mut fields, self.claim.json());
        if let Some(flaw) = &self.flaw {
            json::put(&mut fields, json!({ "reason": flaw }));
        }
        fields.into()
    }
}
