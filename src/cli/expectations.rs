//! What is a program expected to do? Lines in its comments, and lists beside it.
//!
//! A line is a comment of any format that begins with `expect`:
//!
//! ```text
//! // expect N=3: tso violated, sc safe, robust no, racy yes, fences 1 per-thread
//! ```
//!
//! A list is a file `expected.ron` that says the same of the files in its folder.

use crate::query::Model;
use crate::query::repair::Aim;
use crate::report::fence::Per;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// Where lists of expectations are.
pub const LIST: &str = "expected.ron";

/// What is claimed of a program with these parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    pub define: Vec<(String, i64)>,
    pub claims: Vec<Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Sc(Expected),
    Tso(Expected),
    Robust(bool),
    /// A run ends in a hang.
    Hang {
        model: Model,
        hangs: bool,
    },
    /// There is a triangular race.
    Racy(bool),
    /// The formulas that the file states hold on all fair runs, or one of them fails.
    Ltl(Model, Expected),
    /// This is the least number of fences that repairs the program.
    Fences {
        count: u64,
        per: Per,
        aim: Option<Aim>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    Safe,
    Violated,
    /// Nobody knows, so every answer is fine.
    Unproved,
}

impl Expected {
    fn word(self) -> &'static str {
        match self {
            Expected::Safe => "safe",
            Expected::Violated => "violated",
            Expected::Unproved => "unproved",
        }
    }
}

/// As it is written.
impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |yes: bool| if yes { "yes" } else { "no" };
        match self {
            Claim::Sc(expected) => write!(f, "sc {}", expected.word()),
            Claim::Tso(expected) => write!(f, "tso {}", expected.word()),
            Claim::Robust(robust) => write!(f, "robust {}", yes(*robust)),
            Claim::Ltl(model, expected) => write!(f, "ltl {} {}", model.name(), expected.word()),
            Claim::Hang { model: Model::Tso, hangs } => write!(f, "hang {}", yes(*hangs)),
            Claim::Hang { model: Model::Sc, hangs } => write!(f, "hang {} sc", yes(*hangs)),
            Claim::Racy(racy) => write!(f, "racy {}", yes(*racy)),
            Claim::Fences { count, per, aim } => {
                let per = if *per == Per::Thread { " per-thread" } else { "" };
                let aim = aim.map_or(String::new(), |aim| format!(" for {}", aim_word(aim)));
                write!(f, "fences {count}{per}{aim}")
            }
        }
    }
}

const AIMS: [Aim; 4] = [Aim::Property, Aim::Robustness, Aim::NoHang, Aim::Triangular];

fn aim_word(aim: Aim) -> &'static str {
    match aim {
        Aim::Property => "property",
        Aim::Robustness => "robustness",
        Aim::NoHang => "no-hang",
        Aim::Triangular => "triangular",
    }
}

/// A row of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub file: String,
    #[serde(default)]
    pub define: BTreeMap<String, i64>,
    pub sc: Expected,
    pub tso: Expected,
    pub robust: bool,
    /// Whether there is a triangular race, for some; one that is not robust has one.
    #[serde(default)]
    pub racy: Option<bool>,
    /// What comes of the formulas that the file states, under SC and under TSO, if it states any.
    #[serde(default)]
    pub ltl: Option<(Expected, Expected)>,
    /// Whether a run under TSO ends in a hang, and one under SC.
    #[serde(default)]
    pub hang: Option<bool>,
    #[serde(default)]
    pub hang_sc: Option<bool>,
}

impl Row {
    pub fn expectation(&self) -> Expectation {
        let claims = [Claim::Sc(self.sc), Claim::Tso(self.tso), Claim::Robust(self.robust)];
        let ltl = self.ltl.map(|(sc, tso)| [Claim::Ltl(Model::Sc, sc), Claim::Ltl(Model::Tso, tso)]);
        let hang = self.hang.map(|hangs| Claim::Hang { model: Model::Tso, hangs });
        let hang_sc = self.hang_sc.map(|hangs| Claim::Hang { model: Model::Sc, hangs });
        let more = self.racy.map(Claim::Racy).into_iter().chain(ltl.into_iter().flatten());
        Expectation {
            define: self.define.clone().into_iter().collect(),
            claims: claims.into_iter().chain(more).chain(hang).chain(hang_sc).collect(),
        }
    }
}

/// The rows of a list.
pub fn list(text: &str) -> Result<Vec<Row>, String> {
    let options = ron::Options::default().with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
    options.from_str(text).map_err(|e| e.to_string())
}

/// What the comments of a program say, each with its line. A comment that begins like an expectation and is
/// none is an error, so that nothing is taken for tested that is not.
pub fn lines(text: &str) -> Result<Vec<Expectation>, String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let said = comment(line).and_then(|comment| comment.strip_prefix("expect"));
        if let Some(said) = said.filter(|said| said.starts_with(|c: char| c == ':' || c.is_whitespace())) {
            found.push(expectation(said.trim()).map_err(|why| format!("line {number}: {why}"))?);
        }
    }
    Ok(found)
}

/// The text of a line that is nothing but a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim();
    let enclosed = |open: &str, close: &str| {
        let inner = line.strip_prefix(open)?;
        Some(inner.strip_suffix(close).unwrap_or(inner).trim())
    };
    enclosed("//", "")
        .or_else(|| enclosed("#", ""))
        .or_else(|| enclosed("(*", "*)"))
        .or_else(|| enclosed("/*", "*/"))
}

/// `N=3 M=2: sc safe, tso violated`
fn expectation(said: &str) -> Result<Expectation, String> {
    let (define, claims) = said.split_once(':').unwrap_or(("", said));
    let define = define.split([' ', ',']).filter(|d| !d.is_empty()).map(super::limits::define);
    let claims = claims.split(',').map(|c| claim(&c.split_whitespace().collect::<Vec<_>>()));
    Ok(Expectation { define: define.collect::<Result<_, _>>()?, claims: claims.collect::<Result<_, _>>()? })
}

fn claim(words: &[&str]) -> Result<Claim, String> {
    let said = || words.join(" ");
    let verdict = |word: &str| match word {
        "safe" => Ok(Expected::Safe),
        "violated" => Ok(Expected::Violated),
        _ => Err(format!("`{}`: expected `safe` or `violated`", said())),
    };
    let yes = |word: &str| match word {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("`{}`: expected `yes` or `no`", said())),
    };
    match words {
        ["sc", word] => verdict(word).map(Claim::Sc),
        ["tso", word] => verdict(word).map(Claim::Tso),
        ["ltl", "sc", word] => verdict(word).map(|expected| Claim::Ltl(Model::Sc, expected)),
        ["ltl", "tso", word] => verdict(word).map(|expected| Claim::Ltl(Model::Tso, expected)),
        ["robust", word] => yes(word).map(Claim::Robust),
        ["racy", word] => yes(word).map(Claim::Racy),
        ["hang", word] => yes(word).map(|hangs| Claim::Hang { model: Model::Tso, hangs }),
        ["hang", word, "sc"] => yes(word).map(|hangs| Claim::Hang { model: Model::Sc, hangs }),
        ["fences", count, rest @ ..] => {
            let count = count.parse().map_err(|_| format!("`{}`: expected a number", said()))?;
            let (per, rest) = match rest {
                ["per-thread", rest @ ..] => (Per::Thread, rest),
                rest => (Per::Source, rest),
            };
            let aim = match rest {
                [] => None,
                ["for", word] => Some(
                    AIMS.into_iter()
                        .find(|aim| aim_word(*aim) == *word)
                        .ok_or_else(|| format!("`{}`: there is no aim `{word}`", said()))?,
                ),
                _ => return Err(format!("`{}`: expected `for` and an aim", said())),
            };
            Ok(Claim::Fences { count, per, aim })
        }
        _ => Err(format!(
            "`{}` is no expectation; known are sc, tso, robust, racy, ltl, hang and fences, as in `tso safe, robust no, fences 1`",
            said()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(text: &str) -> Result<Vec<String>, String> {
        Ok(lines(text)?.iter().flat_map(|e| e.claims.iter().map(Claim::to_string)).collect())
    }

    #[test]
    fn every_format_has_comments() {
        let text = "// expect tso safe\n  # expect sc violated\n(* expect robust yes *)\n/* expect racy no */\nexpect x";
        assert_eq!(claims(text).unwrap(), ["tso safe", "sc violated", "robust yes", "racy no"]);
        assert_eq!(claims("// expect: tso safe\n//expect\tsc safe").unwrap(), ["tso safe", "sc safe"]);
        assert!(claims("// expect: nothing").is_err());
        assert_eq!(claims("// expected by nobody\n// we expect sc safe").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn claims_come_with_parameters() {
        let text =
            "// expect N=3 M=-1: tso violated, ltl sc safe, fences 2 per-thread for robustness, fences 1";
        let found = lines(text).unwrap();
        assert_eq!(found[0].define, [("N".to_string(), 3), ("M".to_string(), -1)]);
        assert_eq!(
            claims(text).unwrap(),
            ["tso violated", "ltl sc safe", "fences 2 per-thread for robustness", "fences 1"]
        );
    }

    #[test]
    fn what_is_no_expectation_is_an_error() {
        for wrong in [
            "sc fine",
            "ltl safe",
            "robust maybe",
            "fences",
            "fences x per-thread",
            "tso safe,",
            "N: sc safe",
            "",
        ] {
            let text = format!("nop\n// expect {wrong}\n// expect sc safe");
            assert!(
                lines(&text).is_err_and(|why| why.starts_with("line 2: ")) || wrong.is_empty(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_row_of_a_list_says_the_same() {
        let rows = list(
            "[(file: \"a.tso\", define: {\"N\": 2}, sc: safe, tso: unproved, robust: false, racy: true)]",
        );
        let claims: Vec<String> =
            rows.unwrap()[0].expectation().claims.iter().map(Claim::to_string).collect();
        assert_eq!(claims, ["sc safe", "tso unproved", "robust no", "racy yes"]);
        assert!(list("[(file: 3)]").is_err());
    }
}
