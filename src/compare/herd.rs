//! herd7 (J. Alglave and L. Maranget): the final states of litmus tests. The line `Observation` says how
//! often the condition's predicate holds in them, the first line which kind of condition it is.

use super::export::Export;
use super::{Asked, Command, Discipline, Finished, Reading, Said, Verdict, Way, nothing};

pub(crate) const WAY: Way = Way {
    name: "herd7",
    tool: "herd7",
    usual: true,
    answers: &[Discipline::Sc, Discipline::Tso],
    reads: Export::LITMUS,
    prepare: nothing,
    rehearse: None,
    search,
    read,
};

/// TSO is what herd takes for x86 unless told otherwise.
fn search(asked: &Asked, _: Option<&Finished>) -> Command {
    match asked.question {
        Discipline::Sc => Command::tool(["-model", "sc.cat", asked.file]),
        _ => Command::tool([asked.file]),
    }
}

fn read(finished: &Finished, _: &Asked) -> Reading {
    verdict(&finished.out).unwrap_or_else(|| finished.failure()).into()
}

/// `exists` and `~exists` ask alike whether the predicate can hold, `forall` whether it can fail.
fn verdict(out: &str) -> Option<Said> {
    let line = |word: &str| out.lines().find_map(|l| l.strip_prefix(word)).map(str::trim);
    let kind = line("Test ")?.rsplit(' ').next()?;
    let states = line("States ")?;
    let how_often = line("Observation ")?.rsplit(' ').nth(2)?;
    let reached = match (kind, how_often) {
        ("Allowed" | "Forbidden", "Never") => false,
        ("Allowed" | "Forbidden", "Sometimes" | "Always") => true,
        ("Required", "Always") => false,
        ("Required", "Sometimes" | "Never") => true,
        _ => return None,
    };
    // Without executions every observation is empty, and with a loop cut short some may be missing.
    let incomplete = out.lines().any(|l| l.starts_with("Loop ") || l == "Undef") || states == "0";
    Some(match (reached, incomplete) {
        (true, _) => Said::Answer(Verdict::Violated),
        (false, false) => Said::Answer(Verdict::Safe),
        (false, true) => Said::Unknown("not all executions were looked at".to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const SB: &str = "Test SB Allowed
States 4
0:EAX=0; 1:EAX=0;
0:EAX=0; 1:EAX=1;
0:EAX=1; 1:EAX=0;
0:EAX=1; 1:EAX=1;
Ok
Witnesses
Positive: 1 Negative: 3
Condition exists (0:EAX=0 /\\ 1:EAX=0)
Observation SB Sometimes 1 3
Time SB 0.00
Hash=0123456789abcdef0123456789abcdef

";

    fn said(out: &str) -> Said {
        read(&printed(out), &asked(Discipline::Tso, "program")).said
    }

    #[test]
    fn observations_are_verdicts() {
        let (safe, violated) = (Said::Answer(Verdict::Safe), Said::Answer(Verdict::Violated));
        assert_eq!(said(SB), violated);
        assert_eq!(said(&SB.replace("Allowed", "Forbidden")), violated);
        let never = SB.replace("Sometimes 1 3", "Never 0 3");
        assert_eq!(said(&never), safe);
        let forall = SB.replace("Allowed", "Required");
        assert_eq!(said(&forall), violated);
        assert_eq!(said(&forall.replace("Sometimes 1 3", "Always 4 0")), safe);
    }

    #[test]
    fn what_is_incomplete_proves_nothing() {
        let never = SB.replace("Sometimes 1 3", "Never 0 3");
        assert!(matches!(said(&never.replace("\nOk\n", "\nLoop No\n")), Said::Unknown(_)));
        assert!(matches!(said(&never.replace("States 4", "States 0")), Said::Unknown(_)));
        // A bad file leaves no block at all.
        assert!(matches!(said(""), Said::Failed(_)));
    }

    #[test]
    fn only_sc_has_to_be_named() {
        let shown = |q| search(&asked(q, "program.litmus"), None).shown("herd7");
        assert_eq!(shown(Discipline::Sc), "herd7 -model sc.cat program.litmus");
        assert_eq!(shown(Discipline::Tso), "herd7 program.litmus");
    }
}
