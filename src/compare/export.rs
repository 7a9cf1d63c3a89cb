//! How does a program reach a tool? As it stands if the tool reads it, or else written in the tool's format,
//! if it can be.

use super::Discipline;
use crate::front::{Unwritten, litmus};
use crate::limits::Limits;
use crate::model::Program;

/// A program, its text, and the extension that says what the text is.
#[derive(Clone, Debug)]
pub struct SourceText {
    pub program: Program,
    pub text: String,
    pub extension: String,
}

/// What a tool is given to read.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// What the tool reads.
    pub language: &'static str,
    /// The extension of its files. What has it already goes to the tool as it stands; without one, everything
    /// does.
    pub extension: Option<&'static str>,
    /// The text of what goes as it stands, where that depends on the question.
    pub given: fn(&str, Discipline) -> String,
    pub write: Option<WriteExport>,
}

pub type WriteExport = fn(&Program, Discipline, &Limits) -> Result<String, Unwritten>;

impl Export {
    /// The text as it was given, in whatever format: what overtake reads.
    pub const GIVEN: Export = Export { extension: None, ..Export::unwritten("it", "") };

    pub const LITMUS: Export = Export {
        write: Some(|program, _, limits| litmus::write(program, "program", None, limits)),
        ..Export::unwritten("litmus tests", "litmus")
    };

    /// A language that overtake does not write.
    pub const fn unwritten(language: &'static str, extension: &'static str) -> Export {
        Export { language, extension: Some(extension), given: |text, _| text.to_string(), write: None }
    }

    /// The name of the file that a tool is given.
    pub fn file_name(&self, source: &SourceText) -> String {
        format!("program.{}", self.extension.unwrap_or(&source.extension))
    }

    /// The program in the tool's language, or why it cannot be had.
    pub fn text(&self, source: &SourceText, question: Discipline, limits: &Limits) -> Result<String, String> {
        if self.extension.is_none_or(|extension| extension == source.extension) {
            return Ok((self.given)(&source.text, question));
        }
        let Some(write) = self.write else {
            return Err(format!("it reads {}, which overtake does not write", self.language));
        };
        write(&source.program, question, limits).map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{c, memorax};
    use crate::front::{trencher, tso};

    const TRENCHER: Export = crate::compare::trencher::WAY.reads;

    fn source(text: &str) -> SourceText {
        let program = tso::read(text, &[], &Limits::default()).expect("a program").program;
        SourceText { program, text: text.to_string(), extension: "tso".to_string() }
    }

    const DEKKER: &str = "shared x, y
        thread p\nstore [x], 1\nload r, [y]\nassume r == 0\ninside:\nend
        thread q\nstore [y], 1\nload r, [x]\nassume r == 0\ninside:\nend
        forbid p@inside && q@inside";

    #[test]
    fn what_a_tool_reads_already_goes_as_it_stands() {
        let given = source(DEKKER);
        assert_eq!(Export::GIVEN.text(&given, Discipline::Sc, &Limits::default()), Ok(DEKKER.to_string()));
        assert_eq!(Export::GIVEN.file_name(&given), "program.tso");
        let litmus = SourceText { extension: "litmus".to_string(), ..given };
        assert_eq!(Export::LITMUS.text(&litmus, Discipline::Tso, &Limits::default()), Ok(DEKKER.to_string()));
    }

    #[test]
    fn trencher_gets_final_states_only_for_questions_about_them() {
        let has_final = |text: String| text.lines().any(|line| line.starts_with("final "));
        let given = source(DEKKER);
        assert!(has_final(
            TRENCHER.text(&given, Discipline::Tso, &Limits::default()).expect("it can be written")
        ));
        assert!(!has_final(
            TRENCHER.text(&given, Discipline::Robust, &Limits::default()).expect("it can be written")
        ));
        let values = source(&DEKKER.replace("forbid p@inside && q@inside", "never x == 1"));
        let why = TRENCHER
            .text(&values, Discipline::Sc, &Limits::default())
            .expect_err("finals are about locations");
        assert!(why.contains("`never` is about more than locations"), "{why}");
        assert!(TRENCHER.text(&values, Discipline::Robust, &Limits::default()).is_ok());
    }

    #[test]
    fn trenchers_own_programs_lose_their_final_states_where_nobody_asks_for_them() {
        let text = "# a final word\nthread p initial q final\n r transition q r write 1 0 final r\n\
                    transition r final noop end thread final initial end final q end";
        let program = trencher::read(text, &Limits::default()).expect("a program").program;
        let given = SourceText { program, text: text.to_string(), extension: "txt".to_string() };
        assert_eq!(TRENCHER.text(&given, Discipline::Tso, &Limits::default()), Ok(text.to_string()));
        let plain = "# a final word\nthread p initial q  transition q r write 1 0 \n\
                     transition r final noop end thread final initial end  end";
        for question in [Discipline::Robust, Discipline::Fences] {
            assert_eq!(TRENCHER.text(&given, question, &Limits::default()), Ok(plain.to_string()));
        }
    }

    #[test]
    fn formats_without_a_writer_say_so() {
        for (format, name) in [(memorax::DUAL.reads, ".rmm"), (c::CBMC.reads, "C")] {
            let why = format
                .text(&source(DEKKER), Discipline::Tso, &Limits::default())
                .expect_err("nobody writes it");
            assert_eq!(why, format!("it reads {name}, which overtake does not write"));
        }
    }
}
