//! Dartagnan (H. Ponce de León and others): bounded model checking of litmus tests against a memory model in
//! cat.
//!
//! What is called `dartagnan` is taken to hand its arguments to the Java program. A test has the result PASS
//! if its condition holds; which answer that is depends on the condition's quantifier.

use super::export::Export;
use super::{Asked, Command, Discipline, Finished, Reading, Said, Verdict, Way, nothing};
use crate::model::PropertyKind;

pub(crate) const WAY: Way = Way {
    name: "dartagnan",
    tool: "dartagnan",
    usual: true,
    answers: &[Discipline::Sc, Discipline::Tso],
    reads: Export::LITMUS,
    prepare: nothing,
    rehearse: None,
    search,
    read,
};

fn search(asked: &Asked, _: Option<&Finished>) -> Command {
    let model = if asked.question == Discipline::Sc { "sc" } else { "tso" };
    let model = format!("{}/{model}.cat", asked.cat);
    let command = Command::tool([&model, "--target=tso", "--property=program_spec", asked.file]);
    // Unless told, Java's heap wants a share of the machine's memory, which may be more than the limit.
    Command { env: vec![("JAVA_TOOL_OPTIONS", format!("-Xmx{}m", (asked.memory >> 21).max(16)))], ..command }
}

fn read(finished: &Finished, asked: &Asked) -> Reading {
    let results = finished.out.lines().filter_map(|line| line.trim().strip_prefix("Result:"));
    let results: Vec<&str> = results.map(str::trim).collect();
    match (&results[..], asked.property) {
        (["PASS"], Some(PropertyKind::Exists)) => Said::Answer(Verdict::Violated).into(),
        (["FAIL"], Some(PropertyKind::Exists)) => Said::Answer(Verdict::Safe).into(),
        (["PASS"], Some(_)) => Said::Answer(Verdict::Safe).into(),
        (["FAIL"], Some(_)) => Said::Answer(Verdict::Violated).into(),
        (["UNKNOWN"], _) => Said::Unknown("loops were not unrolled to their end".to_string()).into(),
        _ => finished.failure().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn results_are_about_the_quantified_condition() {
        let said = |result: &str, kind| {
            let asked = Asked { property: Some(kind), ..asked(Discipline::Tso, "program.litmus") };
            read(&printed(&format!("Test: program.litmus\nResult: {result}\nTime: 0.512 secs\n")), &asked)
                .said
        };
        assert_eq!(said("PASS", PropertyKind::Exists), Said::Answer(Verdict::Violated));
        assert_eq!(said("FAIL", PropertyKind::Exists), Said::Answer(Verdict::Safe));
        assert_eq!(said("PASS", PropertyKind::Never), Said::Answer(Verdict::Safe));
        assert_eq!(said("FAIL", PropertyKind::Forall), Said::Answer(Verdict::Violated));
        assert!(matches!(said("UNKNOWN", PropertyKind::Never), Said::Unknown(_)));
        assert!(matches!(said("ERROR", PropertyKind::Never), Said::Failed(_)));
    }

    #[test]
    fn the_model_is_a_file_and_the_heap_has_a_limit() {
        let command = search(&asked(Discipline::Sc, "program.litmus"), None);
        let expected = "dartagnan cat/sc.cat --target=tso --property=program_spec program.litmus";
        assert_eq!(command.shown("dartagnan"), expected);
        assert_eq!(command.env, [("JAVA_TOOL_OPTIONS", "-Xmx512m".to_string())]);
    }
}
