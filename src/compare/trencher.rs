//! Trencher (E. Derevenetc): reachability under SC and TSO, robustness, and fences for it. The verdict is a
//! sentence; the exit code says nothing about it.
//!
//! There are two builds, one for reachability and one for robustness; an option that a build does not know
//! ends in a complaint, which is shown.

use super::export::Export;
use super::{Asked, Command, Discipline, Finished, Reading, Said, Verdict, Way, nothing};
use crate::front::trencher;

pub(crate) const WAY: Way = Way {
    name: "trencher",
    tool: "trencher",
    usual: true,
    answers: &Discipline::ALL,
    reads: Export {
        // Where nothing is asked about final states, its own complaint about them would be all there is.
        given: |text, question| match question.needs_property() {
            true => text.to_string(),
            false => trencher::without_finals(text),
        },
        write: Some(|program, question, limits| match question.needs_property() {
            true => trencher::write_goal(program, limits),
            false => trencher::write_plain(program, limits),
        }),
        ..Export::unwritten("its own language", "txt")
    },
    prepare: nothing,
    rehearse: None,
    search,
    read,
};

fn search(asked: &Asked, _: Option<&Finished>) -> Command {
    let option = match asked.question {
        Discipline::Sc => "-rsc",
        Discipline::Tso => "-rtso",
        Discipline::Robust => "-r",
        Discipline::Fences => "-f",
    };
    Command::tool([option, asked.file])
}

fn read(finished: &Finished, asked: &Asked) -> Reading {
    let (violated, safe): (&[&str], &[&str]) = match asked.question {
        Discipline::Sc => {
            (&["Final state IS reachable under SC"], &["Final state IS NOT reachable under SC"])
        }
        Discipline::Tso => (
            &["Final state IS reachable under TSO", "therefore IT IS reachable under TSO"],
            &["Final state IS NOT reachable under TSO"],
        ),
        Discipline::Robust => (&["Program IS NOT robust"], &["Program IS robust"]),
        Discipline::Fences => {
            return fences(&finished.out).map_or_else(|| finished.failure().into(), Reading::from);
        }
    };
    let says = |sentences: &[&str]| sentences.iter().any(|s| finished.out.contains(s));
    match (says(violated), says(safe)) {
        (true, false) => Said::Answer(Verdict::Violated).into(),
        (false, true) => Said::Answer(Verdict::Safe).into(),
        _ => finished.failure().into(),
    }
}

/// How many fences the sentence about them names.
fn fences(out: &str) -> Option<Said> {
    let (_, rest) = out.split_once("Computed fences for enforcing robustness (")?;
    let (total, _) = rest.split_once(" total")?;
    Some(Said::Answer(Verdict::Fences(total.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn said(out: &str, question: Discipline) -> Said {
        read(&printed(out), &asked(question, "program.txt")).said
    }

    #[test]
    fn sentences_are_verdicts() {
        let (safe, violated) = (Said::Answer(Verdict::Safe), Said::Answer(Verdict::Violated));
        assert_eq!(said("Final state IS NOT reachable under TSO.\n", Discipline::Tso), safe);
        assert_eq!(said("Final state IS reachable under TSO.\n", Discipline::Tso), violated);
        let both = "Final state IS reachable under SC, therefore IT IS reachable under TSO.\n";
        assert_eq!(said(both, Discipline::Tso), violated);
        assert_eq!(said("Final state IS NOT reachable under SC.\n", Discipline::Sc), safe);
        assert_eq!(said("Final state IS reachable under SC.\n", Discipline::Sc), violated);
        assert_eq!(said("Program IS robust.\n", Discipline::Robust), safe);
        assert_eq!(said("Program IS NOT robust.\n", Discipline::Robust), violated);
        let fences = "Computed fences for enforcing robustness (2 total): (1,3) (2,3)\n";
        assert_eq!(said(fences, Discipline::Fences), Said::Answer(Verdict::Fences(2)));
    }

    #[test]
    fn an_answer_to_another_question_is_none() {
        assert!(matches!(said("Final state IS reachable under SC.\n", Discipline::Tso), Said::Failed(_)));
        assert!(matches!(said("Program IS robust.\n", Discipline::Sc), Said::Failed(_)));
        assert!(matches!(said("", Discipline::Tso), Said::Failed(_)));
        assert!(matches!(said("Program IS robust.\n", Discipline::Fences), Said::Failed(_)));
    }

    #[test]
    fn each_question_has_its_option() {
        let shown = |q| search(&asked(q, "program.txt"), None).shown("trencher");
        assert_eq!(
            Discipline::ALL.map(shown),
            [
                "trencher -rsc program.txt",
                "trencher -rtso program.txt",
                "trencher -r program.txt",
                "trencher -f program.txt"
            ]
        );
    }
}
