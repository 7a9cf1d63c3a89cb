//! What do scripts get? One object for each question about each program, with everybody's result in it.

use super::record::{Comparison, Outcome, Ratio, Row, Spread, words};
use serde_json::{Value, json};

pub fn objects(comparison: &Comparison) -> Vec<Value> {
    comparison.groups().into_iter().map(|group| object(comparison, group)).collect()
}

fn object(comparison: &Comparison, group: &[Row]) -> Value {
    let (first, base) = (&group[0], group.iter().find(|row| row.own));
    let about =
        |d: &&super::judge::Disagreement| (&d.program, d.question) == (&first.title(), first.question);
    let timeout_s = comparison.circumstances.timeout_s;
    json!({
        "tool": super::own::NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "command": "compare",
        "tools": comparison.circumstances.tools,
        "program": first.program,
        "size": first.size,
        "question": first.question,
        "results": group.iter().map(|row| result(row, base, timeout_s)).collect::<Vec<_>>(),
        "disagreement": comparison.disagreements.iter().find(about),
    })
}

fn result(row: &Row, base: Option<&Row>, timeout_s: f64) -> Value {
    let said = row.said();
    let (verdict, detail) = match (&row.outcome, &said) {
        (Outcome::NotRun(why), _) => ("not-run".to_string(), why.as_str()),
        (_, Some(said)) => words(said, row.question),
        (_, None) => ("not-run".to_string(), "interrupted"),
    };
    let ratio = base.filter(|b| *b != row).and_then(|b| row.ratio(b, timeout_s));
    json!({
        "contestant": row.contestant,
        "verdict": verdict,
        "detail": detail,
        "states": row.states(),
        "bytes_per_state": row.state_bytes(),
        "runs": row.runs().len(),
        "time_ms": row.wall().map(|w| spread(w, 1000.0)),
        "peak_kb": row.peak_kb().flatten(),
        "preparation_ms": row.measured().and_then(|m| m.preparation_s).map(|s| s * 1000.0),
        "to_overtake": ratio.map(|r| match r {
            Ratio::Known(s) => spread(s, 1.0),
            Ratio::MoreThan(r) => json!({ "more_than": r }),
            Ratio::LessThan(r) => json!({ "less_than": r }),
        }),
        "commands": row.measured().map(|m| &m.commands),
    })
}

fn spread(spread: Spread, scale: f64) -> Value {
    json!({ "least": spread.least * scale, "median": spread.median * scale, "most": spread.most * scale })
}

#[cfg(test)]
mod tests {
    use super::super::record::testing::*;
    use super::*;

    #[test]
    fn an_object_holds_everybody() {
        let comparison = comparison(vec![
            ran("lamport", 2, "overtake", &[(SAFE, 0.5)]),
            ran("lamport", 2, "spin", &[(SAFE, 1.0)]),
            not_run("lamport", 2, "cbmc", "it reads C"),
        ]);
        let objects = objects(&comparison);
        assert_eq!(objects.len(), 1);
        let results = &objects[0]["results"];
        assert_eq!((&objects[0]["size"], &objects[0]["question"]), (&json!(2), &json!("tso")));
        assert_eq!(results[1]["to_overtake"]["median"], 2.0);
        assert_eq!(results[1]["preparation_ms"], 2500.0);
        assert_eq!(
            (&results[2]["verdict"], &results[2]["detail"]),
            (&json!("not-run"), &json!("it reads C"))
        );
        assert!(objects[0]["disagreement"].is_null());
        assert_eq!(objects[0]["tools"], json!(comparison.circumstances.tools));
    }
}
