//! What is a certificate about? The first two lines of the file: the format with its version, and what was
//! asked of which program.

use super::{About, Unreadable};
use crate::model::Program;
use crate::query::{AskedTexts, Model, Question, Verdict};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The first line up to the version.
const MAGIC: &str = "overtake certificate ";
const VERSION: &str = "1";
/// Longer headers are refused.
const MOST_BYTES: usize = 1 << 24;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of overtake that wrote it.
    pub version: String,
    pub command: String,
    #[serde(with = "model_name")]
    pub model: Model,
    pub verdict: String,
    /// The digest of the program, unfolded.
    pub program: String,
    pub define: BTreeMap<String, i64>,
    /// The number of the property that was asked about, if it was one alone.
    pub property: Option<usize>,
    /// What was asked about, as the file has it; nothing for `robust`.
    pub properties: Vec<String>,
}

impl Header {
    pub(super) fn of(about: &About<'_>, question: Question, verdict: Verdict, model: Model) -> Header {
        let About { program, define, property } = *about;
        let asked = if question == Question::Check { about.asked().unwrap_or_default() } else { vec![] };
        let texts = AskedTexts::of(program);
        Header {
            version: env!("CARGO_PKG_VERSION").to_string(),
            command: question.command().to_string(),
            model,
            verdict: question.word(verdict).to_string(),
            program: digest(program),
            define: define.iter().cloned().collect(),
            property,
            properties: asked.iter().map(|asked| texts.text(*asked)).collect(),
        }
    }

    pub(super) fn to_lines(&self) -> String {
        let json = serde_json::to_string(self).expect("there is nothing in it that JSON cannot say");
        format!("{MAGIC}{VERSION}\n{json}\n")
    }

    /// The header, and what follows it.
    pub(super) fn read(file: &[u8]) -> Result<(Header, &[u8]), Unreadable> {
        let wrong = |what: String| Unreadable::Wrong(what);
        let no_certificate = || wrong("this is no certificate of overtake".to_string());
        let (first, rest) = line(file).ok_or_else(no_certificate)?;
        let version = first.strip_prefix(MAGIC).ok_or_else(no_certificate)?;
        if version != VERSION {
            return Err(wrong(format!("the certificate has version {version}, and only {VERSION} is known")));
        }
        let (second, body) = line(rest).ok_or_else(|| wrong("the header ends early".to_string()))?;
        let header = serde_json::from_str(second).map_err(|e| wrong(format!("the header is wrong: {e}")))?;
        Ok((header, body))
    }

    /// In what way one is not about the same as the other.
    pub(super) fn differences(&self, here: &Header) -> Vec<String> {
        let mut differences = Vec::new();
        for name in self.define.keys().chain(here.define.keys().filter(|n| !self.define.contains_key(*n))) {
            let (there, now) = (self.define.get(name), here.define.get(name));
            let say = |value: Option<&i64>| value.map_or("not defined".to_string(), |v| v.to_string());
            if there != now {
                let (there, now) = (say(there), say(now));
                differences.push(format!("definition: {name} is {there} in the certificate, and {now} here"));
            }
        }
        if self.program != here.program {
            differences.push("program: the certificate is about another one".to_string());
        }
        if self.properties != here.properties {
            let (there, now) = (self.properties.join(", "), here.properties.join(", "));
            differences.push(format!("property: `{there}` in the certificate, and `{now}` here"));
        }
        differences
    }
}

/// The first line without its end, and what follows.
fn line(file: &[u8]) -> Option<(&str, &[u8])> {
    let end = file.iter().take(MOST_BYTES).position(|&byte| byte == b'\n')?;
    Some((std::str::from_utf8(&file[..end]).ok()?, &file[end + 1..]))
}

/// The SHA-256 of a program's text in the simplest of forms: its memory, and the edges of its threads.
/// Properties have no part in it, nor have lines and labels.
pub fn digest(program: &Program) -> String {
    let mut digest = Sha256::new();
    let mut add = |line: String| digest.update(format!("{line}\n"));
    for variable in program.variables() {
        let values: Vec<String> = variable.init.iter().map(|v| v.to_string()).collect();
        add(format!("shared {} = {}", variable.name, values.join(", ")));
    }
    for thread in program.threads() {
        let (name, registers) = (thread.name(), thread.registers().join(", "));
        let (locations, initial, end) = (thread.graph().node_count(), thread.initial().0, thread.end().0);
        add(format!("thread {name}, registers {registers}, locations {locations}, from {initial} to {end}"));
        for (_, edge) in thread.edges() {
            add(format!("{} -> {}: {}", edge.from.0, edge.to.0, thread.show_instr(program, &edge.instr)));
        }
    }
    let mut text = "sha256:".to_string();
    digest.finalize().iter().for_each(|byte| write!(text, "{byte:02x}").expect("text takes any letters"));
    text
}

/// A model by its name.
mod model_name {
    use crate::query::Model;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(model: &Model, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(model.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Model, D::Error> {
        let name = String::deserialize(from)?;
        let known = [Model::Sc, Model::Tso].into_iter().find(|model| model.name() == name);
        known.ok_or_else(|| D::Error::custom(format!("there is no model `{name}`")))
    }
}
