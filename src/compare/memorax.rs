//! Memorax (C. Leonardsson): reachability under TSO for programs in its own language, with two abstractions,
//! `dual` and `sb`. Nothing is exported to it, since there is no writer for its language.

use super::export::Export;
use super::{Asked, Command, Discipline, Finished, Reading, Said, Verdict, Way, nothing};

pub(crate) const DUAL: Way = Way {
    name: "memorax",
    tool: "memorax",
    usual: true,
    answers: &[Discipline::Tso],
    reads: Export::unwritten(".rmm", "rmm"),
    prepare: nothing,
    rehearse: None,
    search: |asked, _| search(asked, "dual"),
    read,
};

pub(crate) const SB: Way = Way { name: "memorax-sb", search: |asked, _| search(asked, "sb"), ..DUAL };

fn search(asked: &Asked, abstraction: &str) -> Command {
    Command::tool(["-a", abstraction, "reach", asked.file])
}

/// The line `Reachable: Yes` or `Reachable: No`, and no other.
fn read(finished: &Finished, _: &Asked) -> Reading {
    let answers = finished.out.lines().filter_map(|line| line.trim().strip_prefix("Reachable:"));
    match answers.map(str::trim).collect::<Vec<_>>()[..] {
        ["Yes"] => Said::Answer(Verdict::Violated).into(),
        ["No"] => Said::Answer(Verdict::Safe).into(),
        _ => finished.failure().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn one_line_is_the_verdict() {
        let said = |out: &str| read(&printed(out), &asked(Discipline::Tso, "program")).said;
        let report =
            "Exact reachability check\n  Reachable:             Yes\n  Time consumption:      0.01 s\n";
        assert_eq!(said(report), Said::Answer(Verdict::Violated));
        assert_eq!(said(&report.replace("Yes", "No")), Said::Answer(Verdict::Safe));
        assert!(matches!(said("Error: bad token\n"), Said::Failed(_)));
        assert!(matches!(said(&report.replace("Yes", "Perhaps")), Said::Failed(_)));
    }

    #[test]
    fn the_abstraction_is_an_option() {
        let shown = |way: &Way| (way.search)(&asked(Discipline::Tso, "program.rmm"), None).shown("memorax");
        assert_eq!(shown(&DUAL), "memorax -a dual reach program.rmm");
        assert_eq!(shown(&SB), "memorax -a sb reach program.rmm");
    }
}
