//! Violations for code scanning: SARIF 2.1.0, one result for each violation, with its run as a code flow.
//!
//! It is made of the answer as scripts get it, so every question whose answer has a run or a place is told.

use serde_json::{Value, json};

/// The log of all answers.
pub fn log(answers: &[Value]) -> Value {
    let rule = |(id, text): &(&str, &str)| {
        json!({
            "id": id, "shortDescription": { "text": text }, "defaultConfiguration": { "level": "error" },
        })
    };
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "overtake",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": RULES.iter().map(rule).collect::<Value>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": answers.iter().flat_map(results).collect::<Value>(),
        }],
    })
}

/// What can be wrong, by the word that says so.
const RULES: [(&str, &str); 8] = [
    ("violated", "A forbidden state can be reached"),
    ("not-robust", "A run under TSO is like no run under SC"),
    ("racy", "There is a triangular race"),
    ("none", "No repair of the allowed kinds helps"),
    ("fails", "A test of a data type fails"),
    ("rejected", "A certificate is not one of the program"),
    ("does not replay", "A run is not one of the program"),
    ("unknown", "A limit was reached before there was an answer"),
];

/// The results of one answer: none if all is well.
fn results(answer: &Value) -> Vec<Value> {
    let word = answer["verdict"].as_str().unwrap_or_default();
    let properties = answer["properties"].as_array().filter(|all| all.len() > 1);
    if let Some(all) = properties.filter(|_| word == "violated") {
        let fails = all.iter().filter(|one| one["verdict"] == "violated");
        return fails.map(|one| result(answer, word, one, one, &property(one))).collect();
    }
    if let Some(all) = answer["witnesses"].as_array() {
        return all.iter().map(|one| result(answer, word, one, &one["store"], &overtaken(one))).collect();
    }
    match word {
        _ if !RULES.iter().any(|(id, _)| *id == word) => vec![],
        "not-robust" => {
            let witness = &answer["witness"];
            vec![result(answer, word, witness, &witness["store"], &overtaken(witness))]
        }
        "racy" => {
            let race = &answer["race"];
            vec![result(answer, word, race, &race["store"], &overtaken(race))]
        }
        _ => {
            let reason = answer["reason"].as_str().unwrap_or(word).to_string();
            let reason =
                answer["against"]["text"].as_str().map_or(reason.clone(), |p| format!("{reason}: {p}"));
            vec![result(answer, word, answer, &answer["against"], &reason)]
        }
    }
}

fn property(one: &Value) -> String {
    let text = one["text"].as_str().unwrap_or_default();
    match one["only_under_tso"].as_bool() {
        Some(true) => format!("violated, only under TSO: {text}"),
        _ => format!("violated: {text}"),
    }
}

fn overtaken(witness: &Value) -> String {
    let text = |name: &str| witness[name]["text"].as_str().unwrap_or_default().to_string();
    let thread = witness["thread"].as_str().unwrap_or_default();
    format!("{thread} delays `{}` past `{}`", text("store"), text("load"))
}

/// One result: `part` has the run, `place` the line.
fn result(answer: &Value, rule: &str, part: &Value, place: &Value, message: &str) -> Value {
    let file = answer["file"].as_str().unwrap_or_default();
    let steps = part["trace"].as_array().filter(|steps| !steps.is_empty());
    // Where no line is known, the run's last step stands for it.
    let last = steps.and_then(|steps| steps.iter().rev().find(|step| line(step).is_some()));
    let place = if line(place).is_some() { place } else { last.unwrap_or(place) };
    let level = if rule == "unknown" { "warning" } else { "error" };
    let mut result = json!({
        "ruleId": rule,
        "ruleIndex": RULES.iter().position(|(id, _)| *id == rule).unwrap_or(0),
        "level": level,
        "message": { "text": message },
        "locations": [location(file, place, None)],
    });
    if let Some(steps) = steps {
        let step = |(k, step): (usize, &Value)| json!({ "location": location(file, step, Some(told(step))), "executionOrder": k + 1 });
        let flow: Value = steps.iter().enumerate().map(step).collect();
        result["codeFlows"] = json!([{ "threadFlows": [{ "locations": flow }] }]);
    }
    result
}

/// What a step is, and what it did.
fn told(step: &Value) -> String {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let what = match text("kind") {
        "flush" => format!("the store of `{}` reaches memory", text("text")),
        _ => format!("`{}`", text("text")),
    };
    let value = match (step["address"].as_str(), step["value"].as_i64()) {
        (Some(cell), Some(value)) => format!(" ({cell} = {value})"),
        _ => String::new(),
    };
    format!("{}: {what}{value}", text("thread"))
}

fn line(place: &Value) -> Option<u64> {
    place["line"].as_u64().filter(|&line| line > 0)
}

fn location(file: &str, place: &Value, message: Option<String>) -> Value {
    let uri = uri(place["file"].as_str().unwrap_or(file));
    let mut physical = json!({ "artifactLocation": { "uri": uri } });
    if let Some(line) = line(place) {
        physical["region"] = json!({ "startLine": line });
    }
    let mut location = json!({ "physicalLocation": physical });
    if let Some(message) = message {
        location["message"] = json!({ "text": message });
    }
    location
}

/// A path as a reference: what such references do not have is written by its bytes.
fn uri(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    path.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_references() {
        assert_eq!(uri("a b/c#1.tso"), "a%20b/c%231.tso");
    }

    #[test]
    fn what_holds_is_no_result() {
        assert!(results(&json!({ "verdict": "safe" })).is_empty());
        assert_eq!(results(&json!({ "verdict": "unknown", "reason": "why" })).len(), 1);
    }
}
