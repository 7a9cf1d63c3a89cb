//! overtake itself, asked from outside like everybody else, and the opinions that are heard when others
//! disagree.

use super::export::Export;
use super::{Asked, Command, Discipline, Finished, Reading, Said, Verdict, Way, nothing};
use crate::query::Reductions;
use serde_json::Value;

pub const NAME: &str = "overtake";

pub const WAY: Way = Way {
    name: NAME,
    tool: NAME,
    usual: true,
    answers: &Discipline::ALL,
    reads: Export::GIVEN,
    prepare: nothing,
    rehearse: None,
    search: |asked, _| match asked.engine {
        Some(engine) => command(asked, &["--engine", engine]),
        None => command(asked, &[]),
    },
    read,
};

/// Other ways to the same answer, the more independent first: what they are called, and how they are asked.
/// Robustness has one way only, which can be asked to search where it would trust the program's text.
pub fn opinions(asked: &Asked) -> Vec<(&'static str, Command)> {
    match asked.question {
        Discipline::Fences => vec![],
        Discipline::Robust => vec![("the search for every delay", command(asked, &["--no-static"]))],
        _ => vec![
            ("the explicit engine without reductions", naive(asked)),
            ("the explicit engine", command(asked, &["--engine", "explicit"])),
        ],
    }
}

/// Without its reductions the search is naive, and shares least with the one that is doubted.
fn naive(asked: &Asked) -> Command {
    let switches: Vec<String> = Reductions::TABLE.iter().map(|r| format!("--{}", r.switch)).collect();
    let switches = switches.iter().map(String::as_str);
    command(asked, &["--engine", "explicit"].into_iter().chain(switches).collect::<Vec<_>>())
}

fn command(asked: &Asked, more: &[&str]) -> Command {
    let question: &[&str] = match asked.question {
        Discipline::Sc => &["check", "--model", "sc"],
        Discipline::Tso => &["check", "--model", "tso"],
        Discipline::Robust => &["robust"],
        Discipline::Fences => &["fence", "--per-thread", "--for", "robustness"],
    };
    let mut words: Vec<String> = question.iter().map(|w| w.to_string()).collect();
    words.extend(["--json".to_string(), "--threads".to_string(), asked.workers.to_string()]);
    words.extend(asked.define.iter().flat_map(|(name, value)| ["-D".to_string(), format!("{name}={value}")]));
    words.extend(more.iter().map(|w| w.to_string()));
    words.push(asked.file.to_string());
    Command::tool(words)
}

/// The JSON of `check`, `robust` and `fence`.
pub fn read(finished: &Finished, _: &Asked) -> Reading {
    let Ok(answer) = serde_json::from_str::<Value>(finished.out.trim()) else {
        return finished.failure().into();
    };
    let states = answer["states"].as_u64();
    let state_bytes = answer["bytes_per_state"].as_f64().filter(|&bytes| bytes > 0.0);
    let said = match answer["verdict"].as_str() {
        Some("safe" | "robust") => Said::Answer(Verdict::Safe),
        Some("violated" | "not-robust") => Said::Answer(Verdict::Violated),
        Some("found") if answer["optimal"] == true => match answer["cost"].as_u64() {
            Some(fences) => Said::Answer(Verdict::Fences(fences)),
            None => finished.failure(),
        },
        Some("found") => Said::Unknown("fewer fences may do".to_string()),
        Some("none") => Said::Unknown("fences alone do not help".to_string()),
        Some("unknown") if answer["limit"] == "memory" => Said::OutOfMemory,
        Some("unknown") => Said::Unknown(answer["reason"].as_str().unwrap_or_default().to_string()),
        _ => finished.failure(),
    };
    Reading { said, states, state_bytes }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::super::{End, reading};
    use super::*;

    #[test]
    fn questions_become_command_lines() {
        let define = [("N".to_string(), 5)];
        let asked = Asked { define: &define, workers: 2, ..asked(Discipline::Sc, "m.tso") };
        let shown = (WAY.search)(&asked, None).shown("overtake");
        assert_eq!(shown, "overtake check --model sc --json --threads 2 -D N=5 m.tso");
        let opinions = opinions(&asked);
        assert!(opinions[0].1.shown("overtake").contains("--engine explicit --no-steps"));
        assert_eq!(opinions.len(), 2);
    }

    #[test]
    fn an_engine_is_asked_by_its_name() {
        let asked = Asked { engine: Some("explicit"), ..asked(Discipline::Tso, "m.tso") };
        let shown = (WAY.search)(&asked, None).shown("overtake");
        assert_eq!(shown, "overtake check --model tso --json --threads 1 --engine explicit m.tso");
    }

    #[test]
    fn verdicts_are_read_from_json() {
        let said = |out: &str| read(&printed(out), &asked(Discipline::Tso, "program"));
        let safe = said("{\"verdict\":\"safe\",\"states\":7,\"bytes_per_state\":40.5}\n");
        let known = Reading { said: Said::Answer(Verdict::Safe), states: Some(7), state_bytes: Some(40.5) };
        assert_eq!(safe, known);
        assert_eq!(said("{\"verdict\":\"not-robust\"}").said, Said::Answer(Verdict::Violated));
        let unknown =
            "{\"verdict\":\"unknown\",\"limit\":\"states\",\"reason\":\"the limit of 9 states was reached\"}";
        assert_eq!(said(unknown).said, Said::Unknown("the limit of 9 states was reached".to_string()));
        assert_eq!(said("{\"verdict\":\"unknown\",\"limit\":\"memory\"}").said, Said::OutOfMemory);
        let fences = "{\"verdict\":\"found\",\"optimal\":true,\"cost\":3}";
        assert_eq!(said(fences).said, Said::Answer(Verdict::Fences(3)));
        assert!(matches!(said(&fences.replace("true", "false")).said, Said::Unknown(_)));
        assert!(matches!(said("safe\n").said, Said::Failed(_)));
    }

    #[test]
    fn a_failed_allocation_is_a_lack_of_memory() {
        let aborted = finished(End::Signal(6), "", "memory allocation of 33554432 bytes failed\n");
        assert_eq!(reading(&WAY, &aborted, &asked(Discipline::Sc, "program")).said, Said::OutOfMemory);
    }
}
