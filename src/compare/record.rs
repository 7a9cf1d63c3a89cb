//! What was measured: rows with their runs, the circumstances, and what follows from several runs of one row.
//! Rows can be written as CSV, one line for each run, and everything as RON, which can be read back.

use super::judge::Disagreement;
use super::{Discipline, Said, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub circumstances: Circumstances,
    pub disagreements: Vec<Disagreement>,
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Circumstances {
    /// The command line that does it again.
    pub command: String,
    pub date: String,
    pub machine: String,
    pub load_before: String,
    pub load_after: String,
    /// The tools that took part, with what they say of their versions.
    pub tools: Vec<String>,
    pub runs: usize,
    pub timeout_s: f64,
    /// In bytes.
    pub memory: u64,
    /// Ctrl-C came, and rows are missing.
    pub interrupted: bool,
}

/// One tool and one question about one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The family, or the file.
    pub program: String,
    /// The value of the parameter that grows.
    pub size: Option<i64>,
    pub question: Discipline,
    pub contestant: String,
    /// Whether it is overtake itself.
    pub own: bool,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ran(Measured),
    NotRun(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// As one would type them: what was done once, such as compiling, and last what was run again and again.
    pub commands: Vec<String>,
    /// What it took that was done once.
    pub preparation_s: Option<f64>,
    /// One for each repetition; fewer after one that ran out or failed.
    pub runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub said: Said,
    pub states: Option<u64>,
    pub state_bytes: Option<f64>,
    pub wall_s: f64,
    pub cpu_s: f64,
    /// `None` if it is less than what the measuring process itself has, which is where counting begins.
    pub peak_kb: Option<u64>,
}

/// The middle of several values, and the ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let (upper, lower) = (values[values.len() / 2], values[(values.len() - 1) / 2]);
        Some(Spread { least, median: (upper + lower) / 2.0, most })
    }
}

/// How a tool's time compares with overtake's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ratio {
    /// Both answered: the ratios of the runs, pair by pair.
    Known(Spread),
    /// The tool's time was over before it answered.
    MoreThan(f64),
    /// overtake's was.
    LessThan(f64),
}

impl Row {
    /// `lamport, N = 3`
    pub fn title(&self) -> String {
        match self.size {
            Some(size) => format!("{}, {} = {size}", self.program, super::family::PARAMETER),
            None => self.program.clone(),
        }
    }

    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Ran(measured) => Some(measured),
            Outcome::NotRun(_) => None,
        }
    }

    pub fn runs(&self) -> &[Run] {
        self.measured().map_or(&[], |m| &m.runs)
    }

    /// The verdicts given, each once. More than one is a disagreement with itself.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut given: Vec<Verdict> = self.runs().iter().filter_map(|r| r.said.verdict()).collect();
        given.sort();
        given.dedup();
        given
    }

    /// What all runs together came to: an answer only if every one gave it.
    pub fn said(&self) -> Option<Said> {
        if self.verdicts().len() > 1 {
            return Some(Said::Failed("it gave both answers".to_string()));
        }
        let unanswered = self.runs().iter().find(|r| r.said.verdict().is_none());
        unanswered.or(self.runs().first()).map(|r| r.said.clone())
    }

    pub fn is_answered(&self) -> bool {
        self.said().is_some_and(|said| said.verdict().is_some())
    }

    pub fn wall(&self) -> Option<Spread> {
        Spread::of(self.runs().iter().map(|r| r.wall_s).collect())
    }

    /// The most memory of any run; `Some(None)` if no run had more than can be told.
    pub fn peak_kb(&self) -> Option<Option<u64>> {
        (!self.runs().is_empty()).then(|| self.runs().iter().filter_map(|r| r.peak_kb).max())
    }

    pub fn states(&self) -> Option<u64> {
        self.runs().iter().find_map(|r| r.states)
    }

    /// Bytes that each state takes, at most in any run.
    pub fn state_bytes(&self) -> Option<f64> {
        self.runs().iter().filter_map(|r| r.state_bytes).reduce(f64::max)
    }

    /// This row's time divided by that of another, which is overtake's.
    pub fn ratio(&self, base: &Row, timeout_s: f64) -> Option<Ratio> {
        let out_of_time = |row: &Row| row.said() == Some(Said::OutOfTime);
        if self.is_answered() && base.is_answered() {
            let pairs = self.runs().iter().zip(base.runs());
            return Spread::of(pairs.map(|(a, b)| a.wall_s / b.wall_s).collect()).map(Ratio::Known);
        }
        if out_of_time(self) && base.is_answered() {
            return Some(Ratio::MoreThan(timeout_s / base.wall()?.median));
        }
        if out_of_time(base) && self.is_answered() {
            return Some(Ratio::LessThan(self.wall()?.median / timeout_s));
        }
        None
    }
}

impl Comparison {
    /// Rows of one question about one program, in groups.
    pub fn groups(&self) -> Vec<&[Row]> {
        let same = |a: &Row, b: &Row| (&a.program, a.size, a.question) == (&b.program, b.size, b.question);
        self.rows.chunk_by(same).collect()
    }

    /// Programs, each once, in their order.
    pub fn programs(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.program.as_str()) {
                names.push(&row.program);
            }
        }
        names
    }

    pub fn ron(&self) -> String {
        let pretty = ron::ser::PrettyConfig::new().depth_limit(5);
        ron::ser::to_string_pretty(self, pretty).expect("plain data can be written") + "\n"
    }

    /// One line for each run, and one for each row that was not run.
    pub fn csv(&self) -> String {
        let mut text = CSV_COLUMNS.join(",") + "\n";
        for row in &self.rows {
            let head = [
                row.program.clone(),
                row.size.map_or(String::new(), |n| n.to_string()),
                row.question.name().to_string(),
                row.contestant.clone(),
            ];
            let tails = match &row.outcome {
                Outcome::NotRun(why) => {
                    let mut rest = vec![String::new(), "not-run".to_string(), why.clone()];
                    rest.resize(CSV_COLUMNS.len() - head.len(), String::new());
                    vec![rest]
                }
                Outcome::Ran(measured) => {
                    measured.runs.iter().enumerate().map(|(k, run)| csv_run(row, measured, k, run)).collect()
                }
            };
            for tail in tails {
                let line: Vec<String> = head.iter().chain(&tail).map(|field| quoted(field)).collect();
                text += &(line.join(",") + "\n");
            }
        }
        text
    }
}

const CSV_COLUMNS: [&str; 14] = [
    "program",
    "size",
    "question",
    "contestant",
    "run",
    "said",
    "detail",
    "states",
    "state_bytes",
    "wall_s",
    "cpu_s",
    "peak_kb",
    "preparation_s",
    "command",
];

fn csv_run(row: &Row, measured: &Measured, k: usize, run: &Run) -> Vec<String> {
    let (said, detail) = words(&run.said, row.question);
    let number = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
    vec![
        (k + 1).to_string(),
        said.to_string(),
        detail.to_string(),
        number(run.states),
        run.state_bytes.map_or(String::new(), |bytes| format!("{bytes:.1}")),
        format!("{:.6}", run.wall_s),
        format!("{:.6}", run.cpu_s),
        number(run.peak_kb),
        measured.preparation_s.map_or(String::new(), |s| format!("{s:.3}")),
        measured.commands.last().cloned().unwrap_or_default(),
    ]
}

/// What a run came to in a word or two, and what more there is to say.
pub fn words(said: &Said, question: Discipline) -> (String, &str) {
    let (word, more) = match said {
        Said::Answer(verdict) => return (verdict.word(question), ""),
        Said::Unknown(why) => ("unknown", why.as_str()),
        Said::OutOfTime => ("out-of-time", ""),
        Said::OutOfMemory => ("out-of-memory", ""),
        Said::Failed(why) => ("failed", why.as_str()),
    };
    (word.to_string(), more)
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_string(),
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    pub fn ran(program: &str, size: i64, contestant: &str, runs: &[(Said, f64)]) -> Row {
        let run = |(said, wall_s): &(Said, f64)| Run {
            said: said.clone(),
            states: Some(10),
            state_bytes: Some(31.25),
            wall_s: *wall_s,
            cpu_s: *wall_s,
            peak_kb: Some(6_000),
        };
        let measured = Measured {
            commands: vec![format!("{contestant} program")],
            preparation_s: (contestant == "spin").then_some(2.5),
            runs: runs.iter().map(run).collect(),
        };
        Row {
            program: program.to_string(),
            size: Some(size),
            question: Discipline::Tso,
            contestant: contestant.to_string(),
            own: contestant.starts_with("overtake"),
            outcome: Outcome::Ran(measured),
        }
    }

    pub fn not_run(program: &str, size: i64, contestant: &str, why: &str) -> Row {
        Row { outcome: Outcome::NotRun(why.to_string()), ..ran(program, size, contestant, &[]) }
    }

    pub fn comparison(rows: Vec<Row>) -> Comparison {
        let circumstances = Circumstances {
            command: "overtake compare --family lamport".to_string(),
            date: "2001-02-03 04:05 UTC".to_string(),
            machine: "2 cores".to_string(),
            tools: vec!["overtake 0.1.0".to_string()],
            runs: 2,
            timeout_s: 60.0,
            memory: 4 << 30,
            ..Circumstances::default()
        };
        Comparison { circumstances, disagreements: Vec::new(), rows }
    }

    pub const SAFE: Said = Said::Answer(Verdict::Safe);
    pub const VIOLATED: Said = Said::Answer(Verdict::Violated);
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    #[test]
    fn a_spread_has_a_middle() {
        assert_eq!(Spread::of(vec![]), None);
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Some(Spread { least: 1.0, median: 2.0, most: 3.0 }));
        assert_eq!(Spread::of(vec![4.0, 1.0]).expect("two values").median, 2.5);
    }

    #[test]
    fn a_row_answers_only_if_every_run_does() {
        assert_eq!(ran("p", 2, "spin", &[(SAFE, 1.0), (SAFE, 2.0)]).said(), Some(SAFE));
        assert_eq!(ran("p", 2, "spin", &[(SAFE, 1.0), (Said::OutOfTime, 2.0)]).said(), Some(Said::OutOfTime));
        let both = ran("p", 2, "spin", &[(SAFE, 1.0), (VIOLATED, 2.0)]);
        assert!(matches!(both.said(), Some(Said::Failed(_))));
        assert_eq!(both.verdicts(), [Verdict::Safe, Verdict::Violated]);
        assert_eq!(not_run("p", 2, "cbmc", "it reads C").said(), None);
    }

    #[test]
    fn ratios_are_taken_run_by_run() {
        let base = ran("p", 2, "overtake", &[(SAFE, 1.0), (SAFE, 2.0)]);
        let other = ran("p", 2, "spin", &[(SAFE, 3.0), (SAFE, 2.0)]);
        let known = Ratio::Known(Spread { least: 1.0, median: 2.0, most: 3.0 });
        assert_eq!(other.ratio(&base, 60.0), Some(known));
        let slow = ran("p", 2, "spin", &[(Said::OutOfTime, 60.1)]);
        assert_eq!(slow.ratio(&base, 60.0), Some(Ratio::MoreThan(40.0)));
        assert_eq!(base.ratio(&slow, 60.0), Some(Ratio::LessThan(0.025)));
        let crashed = ran("p", 2, "spin", &[(Said::Failed("x".into()), 0.1)]);
        assert_eq!(crashed.ratio(&base, 60.0), None);
    }

    #[test]
    fn csv_has_a_line_for_each_run_and_quotes_what_needs_it() {
        let failed = Said::Failed("a, \"b\"".to_string());
        let rows = vec![
            ran("lamport", 2, "spin", &[(SAFE, 0.5), (failed, 0.25)]),
            not_run("lamport", 2, "cbmc", "it reads C"),
        ];
        let expected = "\
program,size,question,contestant,run,said,detail,states,state_bytes,wall_s,cpu_s,peak_kb,preparation_s,command
lamport,2,tso,spin,1,safe,,10,31.2,0.500000,0.500000,6000,2.500,spin program
lamport,2,tso,spin,2,failed,\"a, \"\"b\"\"\",10,31.2,0.250000,0.250000,6000,2.500,spin program
lamport,2,tso,cbmc,,not-run,it reads C,,,,,,,
";
        assert_eq!(comparison(rows).csv(), expected);
    }

    #[test]
    fn ron_can_be_read_back() {
        let rows = vec![ran("lamport", 2, "spin", &[(VIOLATED, 0.5)]), not_run("lamport", 2, "cbmc", "C")];
        let written = comparison(rows);
        let back: Comparison = ron::from_str(&written.ron()).expect("it is RON");
        assert_eq!(back, written);
    }

    #[test]
    fn groups_hold_one_question_about_one_program() {
        let rows = vec![
            ran("p", 2, "overtake", &[]),
            ran("p", 2, "spin", &[]),
            ran("p", 3, "overtake", &[]),
            ran("q", 3, "overtake", &[]),
        ];
        let comparison = comparison(rows);
        assert_eq!(comparison.groups().iter().map(|g| g.len()).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(comparison.programs(), ["p", "q"]);
    }
}
