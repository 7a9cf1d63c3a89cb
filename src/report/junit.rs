//! Answers for build servers: JUnit's XML, as Jenkins and GitLab read it. One case for each file; what is violated has
//! failed, and what gave no answer is an error.

use super::picture::Escaped;
use std::fmt::Write;

/// One file, and what came of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The command.
    pub class: String,
    pub name: String,
    pub seconds: f64,
    pub result: CaseResult,
    /// What was printed of it.
    pub output: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseResult {
    Passed,
    /// With a sentence.
    Failed(String),
    Error(String),
}

/// All cases as one suite.
pub fn suite(name: &str, cases: &[Case]) -> String {
    let failed = |case: &&Case| matches!(case.result, CaseResult::Failed(_));
    let wrong = |case: &&Case| matches!(case.result, CaseResult::Error(_));
    let (failures, errors) = (cases.iter().filter(failed).count(), cases.iter().filter(wrong).count());
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{seconds:.3}\"",
        cases.len()
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n<testsuite name=\"{}\" {counts} \
         skipped=\"0\">\n",
        Escaped(name)
    );
    for case in cases {
        let Case { class, name, seconds, result, output } = case;
        let (class, name) = (Escaped(class), Escaped(name));
        let _ = write!(
            text,
            "<testcase classname=\"{class}\" name=\"{name}\" file=\"{name}\" time=\"{seconds:.3}\">"
        );
        let _ = match result {
            CaseResult::Passed => Ok(()),
            CaseResult::Failed(why) => {
                let why = Escaped(why);
                write!(text, "<failure message=\"{why}\" type=\"failure\">{}</failure>", lines(output))
            }
            CaseResult::Error(why) => {
                let why = Escaped(why);
                write!(text, "<error message=\"{why}\" type=\"error\">{}</error>", lines(output))
            }
        };
        text += "</testcase>\n";
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Escaped, line by line.
fn lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", Escaped(line))).collect()
}
