//! The native language, `.tso`, as LANGUAGE.md describes it: text to program, and program to text.
//!
//! Reading goes one way: `lex` and `parse` turn text into the tree of `ast`, `expand` turns the tree into the
//! parts of a program, and each reports what is wrong to `diagnostics`. All mistakes of a file come out of
//! one run. Nothing here recurses deeper than the input may be nested, and nothing unfolds without a limit.

mod ast;
mod expand;
mod lex;
mod parse;
mod patch;
mod print;

pub use patch::DIALECT;

use crate::front::diagnostics::{Problem, Problems, Reported};
use crate::front::{Input, Unread};
use crate::limits::{Limit, Limits};
use crate::model::{Program, Value};

/// Reads a program. `defines` are values for parameters, the last one counting for each.
pub fn read(source: &str, defines: &[(String, Value)], limits: &Limits) -> Result<Input, Unread> {
    let mut problems = Problems::new(source, limits);
    let program = program(source, defines, &mut problems);
    problems.finish(program).map(|(program, warnings)| Input { program, warnings })
}

fn program<'s>(
    source: &'s str,
    defines: &[(String, Value)],
    problems: &mut Problems<'s>,
) -> Result<Program, Reported> {
    let file = parse::parse(source, problems);
    if file.threads.is_empty() && !problems.has_errors() {
        let problem = Problem::error("there are no threads in this file");
        problems.report(problem.help("a program looks like `thread p0; nop; end`"));
    }
    let parts = expand::expand(source, &file, defines, problems)?;
    drop(file);
    if problems.has_errors() { Err(Reported) } else { problems.program(parts) }
}

/// The program as text that [`read`] takes back.
pub fn write(program: &Program, limits: &Limits) -> Result<String, Limit> {
    print::write(program, limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Uses the whole language.
    const SAMPLE: &str = "\
param N = 2
shared x, y = 3, a[4] = {1, 2}

thread p[i in 1..=N]
again:
    store [a + i], 1 // note
    load r, [x]; fence
    repeat k in 0..N { if r == k goto again; l: nop }
    s = any(0..3)
    choose again, done
more:
    cas r, [y], 0, -(1 + s)
done:
end

thread q
    lock; xchg z, [x], 1; add z, [x], 0b11; unlock
    assume z != 0 && 4 / z; assert ~z
    halt
end

forbid two i: p[i]@l && p[i].r == 2
never all i in 1..=2: [x + i] != 0x1f || !q.z
";

    /// Whatever is read can be written, and read again.
    fn survives(source: &str) {
        if let Ok(input) = read(source, &[("N".to_string(), 3)], &Limits::default()) {
            let text = write(&input.program, &Limits::default()).unwrap();
            let again = read(&text, &[], &Limits::default())
                .unwrap_or_else(|errors| panic!("{errors:?}\n{source}\n{text}"));
            assert_eq!(write(&again.program, &Limits::default()).unwrap(), text, "{source}");
        }
    }

    #[test]
    fn the_sample_is_read_without_complaints() {
        assert_eq!(read(SAMPLE, &[], &Limits::default()).map(|input| input.warnings), Ok(vec![]));
        survives(SAMPLE);
    }

    fn token() -> impl Strategy<Value = String> {
        let words: Vec<String> =
            SAMPLE.split_inclusive([' ', '\n', '[', ']', ',', ':', '@']).map(str::to_string).collect();
        prop_oneof![
            prop::sample::select(words),
            "\\PC{0,3}",
            Just("\n".to_string()),
            Just("end\n".to_string())
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

        #[test]
        fn no_text_makes_the_reader_panic(source in any::<String>()) {
            survives(&source);
        }

        #[test]
        fn no_mixture_of_words_makes_the_reader_panic(words in prop::collection::vec(token(), 0..60)) {
            survives(&words.concat());
        }

        #[test]
        fn no_change_to_a_program_makes_the_reader_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, token()), 1..5)
        ) {
            let mut source = SAMPLE.to_string();
            for (index, removed, inserted) in changes {
                let mut chars: Vec<char> = source.chars().collect();
                let at = index.index(chars.len() + 1);
                let end = (at + removed).min(chars.len());
                chars.splice(at..end, inserted.chars());
                source = chars.into_iter().collect();
            }
            survives(&source);
        }
    }
}
