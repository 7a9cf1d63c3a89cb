//! Who is wrong where answers differ?
//!
//! If overtake says violated, its run was replayed step by step on the plain machine before it was shown, so
//! whoever says safe is refuted. (For robustness, the run was replayed and its cycle checked against the
//! definition.) Otherwise a further opinion is asked, the explicit engine's, which has visited every state
//! when it says safe; where it does not come to an end, the matter stays open. Robustness has no second way
//! to be proved, and numbers of fences have none at all, so there it stays open too. A peer is refuted on the
//! file that it was given: should that say something else than the program, the mistake is in the export, and
//! so the file is kept.

use super::record::Row;
use super::{Discipline, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The program, with its size.
    pub program: String,
    pub question: Discipline,
    /// Who said what.
    pub answers: Vec<(String, Verdict)>,
    /// What is true, if that could be settled.
    pub truth: Option<Verdict>,
    pub because: String,
    /// Who said something else than what is true.
    pub refuted: Vec<String>,
    /// Whether overtake itself is among them.
    pub overtake_is_wrong: bool,
    /// Files with the program as others were given it.
    pub kept: Vec<String>,
}

/// What a further opinion came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    pub whose: String,
    pub verdict: Verdict,
}

/// Do the rows of one question about one program contradict each other?
pub fn differ(rows: &[Row]) -> bool {
    let mut given = rows.iter().flat_map(Row::verdicts);
    let first = given.next();
    given.any(|verdict| Some(verdict) != first)
}

/// Has overtake a run that settles it?
pub fn is_settled(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.own && row.verdicts().contains(&Verdict::Violated))
}

/// The judgement about rows that differ, with the opinion that was asked where they were not settled.
pub fn judge(rows: &[Row], opinion: Option<Opinion>) -> Disagreement {
    let question = rows[0].question;
    let (truth, because) = match opinion {
        _ if is_settled(rows) => (Some(Verdict::Violated), replayed(question).to_string()),
        // That search is the doubted one once more, with less trust in the program's text.
        Some(opinion) if (opinion.verdict, question) == (Verdict::Safe, Discipline::Robust) => {
            (None, format!("{} finds nothing either, and there is no other way to tell", opinion.whose))
        }
        Some(opinion) => (Some(opinion.verdict), heard(&opinion)),
        None => (None, "no further opinion came to an end within the limits".to_string()),
    };
    let answer =
        |row: &Row| row.verdicts().into_iter().map(|v| (row.contestant.clone(), v)).collect::<Vec<_>>();
    let wrong = |row: &&Row| truth.is_some_and(|truth| row.verdicts().iter().any(|v| *v != truth));
    Disagreement {
        program: rows[0].title(),
        question,
        answers: rows.iter().flat_map(answer).collect(),
        truth,
        because,
        refuted: rows.iter().filter(wrong).map(|row| row.contestant.clone()).collect(),
        overtake_is_wrong: rows.iter().filter(wrong).any(|row| row.own),
        kept: Vec::new(),
    }
}

fn replayed(question: Discipline) -> &'static str {
    match question {
        Discipline::Robust => "overtake's run was replayed on the plain machine, and its cycle checked",
        _ => "overtake's run was replayed step by step on the plain machine",
    }
}

fn heard(opinion: &Opinion) -> String {
    let why = match opinion.verdict {
        Verdict::Violated => "has a run, which was replayed",
        Verdict::Safe | Verdict::Fences(_) => "visited every state",
    };
    format!("{} {why}", opinion.whose)
}

impl Disagreement {
    /// The whole matter in a few lines, the first of which names it.
    pub fn lines(&self) -> Vec<String> {
        let answers = self.answers.iter().map(|(who, v)| format!("{who} says {}", v.word(self.question)));
        let mut lines = vec![
            format!("DISAGREEMENT about {} ({})", self.program, self.question.name()),
            answers.collect::<Vec<_>>().join(", "),
        ];
        lines.push(match self.truth {
            Some(truth) => {
                let is = if self.refuted.len() == 1 { "is" } else { "are" };
                let who = self.refuted.join(" and ");
                format!("{who} {is} REFUTED: {}; the answer is {}", self.because, truth.word(self.question))
            }
            None => format!("open: {}", self.because),
        });
        if self.overtake_is_wrong {
            lines.push("This is a bug in overtake. Please report it with the program.".to_string());
        }
        if !self.kept.is_empty() {
            let files = self.kept.join(", ");
            lines.push(format!("as far as the exported program says the same; it is kept in {files}"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::testing::*;
    use super::*;

    fn rows(own: Option<Verdict>, peer: Verdict) -> Vec<Row> {
        let own = own.map_or(super::super::Said::OutOfTime, super::super::Said::Answer);
        vec![
            ran("lamport", 3, "overtake", &[(own, 0.1)]),
            ran("lamport", 3, "trencher", &[(super::super::Said::Answer(peer), 0.1)]),
        ]
    }

    fn opinion(verdict: Verdict) -> Option<Opinion> {
        Some(Opinion { whose: "the explicit engine".to_string(), verdict })
    }

    #[test]
    fn agreement_and_silence_are_no_disagreement() {
        assert!(!differ(&rows(Some(Verdict::Safe), Verdict::Safe)));
        assert!(!differ(&rows(None, Verdict::Violated)));
        assert!(differ(&rows(Some(Verdict::Safe), Verdict::Violated)));
    }

    #[test]
    fn a_replayed_run_refutes_whoever_says_safe() {
        let rows = rows(Some(Verdict::Violated), Verdict::Safe);
        assert!(is_settled(&rows));
        let judged = judge(&rows, None);
        assert_eq!(
            (judged.truth, &judged.refuted[..]),
            (Some(Verdict::Violated), &["trencher".to_string()][..])
        );
        assert!(!judged.overtake_is_wrong);
        assert_eq!(judged.lines()[0], "DISAGREEMENT about lamport, N = 3 (tso)");
        assert_eq!(judged.lines()[1], "overtake says violated, trencher says safe");
        assert!(judged.lines()[2].starts_with("trencher is REFUTED: overtake's run was replayed"));
    }

    #[test]
    fn otherwise_a_further_opinion_decides() {
        let rows = rows(Some(Verdict::Safe), Verdict::Violated);
        assert!(!is_settled(&rows));
        assert_eq!(judge(&rows, opinion(Verdict::Safe)).refuted, ["trencher"]);
        let ours = judge(&rows, opinion(Verdict::Violated));
        assert!(ours.overtake_is_wrong && ours.refuted == ["overtake"]);
        assert!(ours.lines().iter().any(|line| line.contains("bug in overtake")));
        let open = judge(&rows, None);
        assert!(open.truth.is_none() && open.refuted.is_empty());
        assert!(open.lines()[2].starts_with("open: "));
    }

    #[test]
    fn robustness_is_not_proved_by_asking_again() {
        let mut rows = rows(Some(Verdict::Safe), Verdict::Violated);
        rows.iter_mut().for_each(|row| row.question = Discipline::Robust);
        assert_eq!(judge(&rows, opinion(Verdict::Safe)).truth, None);
        assert_eq!(judge(&rows, opinion(Verdict::Violated)).refuted, ["overtake"]);
    }

    #[test]
    fn a_tool_may_contradict_itself() {
        let flips = vec![ran("p", 2, "spin", &[(SAFE, 0.1), (VIOLATED, 0.1)])];
        assert!(differ(&flips));
        assert_eq!(judge(&flips, opinion(Verdict::Safe)).refuted, ["spin"]);
    }
}
