//! Which formats do the tools read, and who writes them? The one table: a format that gets a writer changes one line here.

use super::Question;
use crate::front::promela::{self, Steps};
use crate::front::{Unwritten, litmus, trencher};
use crate::limits::Limits;
use crate::model::Program;

/// A program, its text, and the extension that says what the text is.
#[derive(Clone, Debug)]
pub struct Source {
    pub program: Program,
    pub text: String,
    pub extension: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text as it was given, in whatever format: what overtake reads.
    Given,
    Promela,
    PromelaLiteral,
    Trencher,
    Rmm,
    Litmus,
    C,
}

impl Format {
    /// The extension of files in this format, where it is always the same.
    fn extension(self) -> Option<&'static str> {
        match self {
            Format::Given => None,
            Format::Promela | Format::PromelaLiteral => Some("pml"),
            Format::Trencher => Some("txt"),
            Format::Rmm => Some("rmm"),
            Format::Litmus => Some("litmus"),
            Format::C => Some("c"),
        }
    }

    /// The name of the file that a tool is given.
    pub fn file_name(self, source: &Source) -> String {
        format!("program.{}", self.extension().unwrap_or(&source.extension))
    }
}

/// The program in a tool's format, or why it cannot be had. What is in that format already goes as it stands, but for
/// final states of Trencher's where nothing is asked about them.
pub fn export(source: &Source, format: Format, question: Question) -> Result<String, String> {
    let as_it_stands = format.extension().is_none_or(|extension| extension == source.extension);
    if as_it_stands {
        return Ok(match format {
            Format::Trencher if !question.needs_property() => trencher::without_finals(&source.text),
            _ => source.text.clone(),
        });
    }
    let (program, limits) = (&source.program, &Limits::default());
    let written = match format {
        Format::Given => Ok(source.text.clone()),
        Format::Promela => promela::write(program, Steps::Joined, limits),
        Format::PromelaLiteral => promela::write(program, Steps::Literal, limits),
        Format::Trencher if !question.needs_property() => trencher::write_plain(program, limits),
        Format::Trencher => trencher::write_goal(program, limits),
        Format::Rmm => return no_writer(".rmm"),
        Format::Litmus => litmus::write(program, "program", None, limits),
        Format::C => return no_writer("C"),
    };
    written.map_err(|e: Unwritten| e.to_string())
}

fn no_writer(format: &str) -> Result<String, String> {
    Err(format!("it reads {format}, which overtake does not write"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    fn source(text: &str) -> Source {
        let program = tso::read(text, &[], &Limits::default()).expect("a program").program;
        Source { program, text: text.to_string(), extension: "tso".to_string() }
    }

    const DEKKER: &str = "shared x, y
        thread p\nstore [x], 1\nload r, [y]\nassume r == 0\ninside:\nend
        thread q\nstore [y], 1\nload r, [x]\nassume r == 0\ninside:\nend
        forbid p@inside && q@inside";

    #[test]
    fn what_a_tool_reads_already_goes_as_it_stands() {
        let given = source(DEKKER);
        assert_eq!(export(&given, Format::Given, Question::Sc), Ok(DEKKER.to_string()));
        assert_eq!(Format::Given.file_name(&given), "program.tso");
        let litmus = Source { extension: "litmus".to_string(), ..given };
        assert_eq!(export(&litmus, Format::Litmus, Question::Tso), Ok(DEKKER.to_string()));
    }

    #[test]
    fn trencher_gets_final_states_only_for_questions_about_them() {
        let has_final = |text: String| text.lines().any(|line| line.starts_with("final "));
        let given = source(DEKKER);
        assert!(has_final(export(&given, Format::Trencher, Question::Tso).expect("it can be written")));
        assert!(!has_final(export(&given, Format::Trencher, Question::Robust).expect("it can be written")));
        let values = source(&DEKKER.replace("forbid p@inside && q@inside", "never x == 1"));
        let why = export(&values, Format::Trencher, Question::Sc).expect_err("finals are about locations");
        assert!(why.contains("`never` is about more than locations"), "{why}");
        assert!(export(&values, Format::Trencher, Question::Robust).is_ok());
    }

    #[test]
    fn trenchers_own_programs_lose_their_final_states_where_nobody_asks_for_them() {
        let text = "# a final word\nthread p initial q final\n r transition q r write 1 0 final r\n\
                    transition r final noop end thread final initial end final q end";
        let program = trencher::read(text, &Limits::default()).expect("a program").program;
        let given = Source { program, text: text.to_string(), extension: "txt".to_string() };
        assert_eq!(export(&given, Format::Trencher, Question::Tso), Ok(text.to_string()));
        let plain = "# a final word\nthread p initial q  transition q r write 1 0 \n\
                     transition r final noop end thread final initial end  end";
        for question in [Question::Robust, Question::Fences] {
            assert_eq!(export(&given, Format::Trencher, question), Ok(plain.to_string()));
        }
    }

    #[test]
    fn formats_without_a_writer_say_so() {
        for (format, name) in [(Format::Rmm, ".rmm"), (Format::C, "C")] {
            let why = export(&source(DEKKER), format, Question::Tso).expect_err("nobody writes it");
            assert_eq!(why, format!("it reads {name}, which overtake does not write"));
        }
    }
}
