//! The native language, `.tso`, as LANGUAGE.md describes it: text to program, and program to text.
//!
//! Reading goes one way: `include` makes one text of several files, `lex` and `parse` turn it into the tree of `ast`,
//! `expand` turns the tree into the parts of a program, and each reports what is wrong to `diagnostics`. All mistakes
//! of a file come out of one run. Nothing here recurses deeper than the input may be nested, and nothing unfolds
//! without a limit.

mod ast;
mod expand;
pub mod include;
mod lex;
mod parse;
mod patch;
mod print;

pub use patch::DIALECT;

use crate::front::diagnostics::{Problem, Problems, Reported};
use crate::front::{Diagnostic, Input, Unread};
use crate::limits::{Limit, Limits};
use crate::model::datatype::DataType;
use crate::model::formula::StatedFormula;
use crate::model::{Program, SourceMap, Stretch, Value};

/// Reads a program. `defines` are values for parameters, the last one counting for each.
pub fn read(source: &str, defines: &[(String, Value)], limits: &Limits) -> Result<Input, Unread> {
    read_spliced(source, &[], defines, limits)
}

/// Reads a program whose text was put together from several files by [`mod@include`].
pub fn read_spliced(
    source: &str,
    stretches: &[Stretch],
    defines: &[(String, Value)],
    limits: &Limits,
) -> Result<Input, Unread> {
    let mut problems = Problems::new(source, limits).with_stretches(stretches);
    let program = program(source, defines, None, &mut problems);
    problems.finish(program).map(|((program, formulas), warnings)| Input { program, formulas, warnings })
}

/// The parameters that a text declares and that can be set from outside, whatever is wrong with it otherwise.
pub fn parameters(source: &str, limits: &Limits) -> Vec<String> {
    let file = parse::parse(source, &mut Problems::new(source, limits));
    let open = file.params.iter().filter(|p| p.kind == ast::ParamKind::Open);
    open.map(|p| p.name.text.to_string()).collect()
}

/// Reads a data type and its tests.
pub fn read_datatype(
    source: &str,
    stretches: &[Stretch],
    defines: &[(String, Value)],
    limits: &Limits,
) -> Result<(DataType, Vec<Diagnostic>), Unread> {
    let mut problems = Problems::new(source, limits).with_stretches(stretches);
    let mut file = parse::parse(source, &mut problems);
    let read = expand::data_type(source, &mut file, defines, &mut problems);
    drop(file);
    problems.finish(read)
}

/// Where the text of a program comes to lie in it.
pub fn source_map(source: &str, defines: &[(String, Value)], limits: &Limits) -> Result<SourceMap, Unread> {
    let mut problems = Problems::new(source, limits);
    let mut map = SourceMap::default();
    let program = program(source, defines, Some(&mut map), &mut problems);
    problems.finish(program).map(|_| map)
}

fn program<'s>(
    source: &'s str,
    defines: &[(String, Value)],
    mapped: Option<&mut SourceMap>,
    problems: &mut Problems<'s>,
) -> Result<(Program, Vec<StatedFormula>), Reported> {
    let file = parse::parse(source, problems);
    if let Some(datatype) = &file.datatype {
        let problem = Problem::error("this is a data type, not a program").at(datatype.name.span);
        return Err(problems.report(problem.help("`overtake datatype` asks about its tests")));
    }
    if file.threads.is_empty() && !problems.has_errors() {
        let problem = Problem::error("there are no threads in this file");
        problems.report(problem.help("a program looks like `thread p0; nop; end`"));
    }
    let (parts, formulas) = expand::expand(source, &file, defines, mapped, problems)?;
    drop(file);
    if problems.has_errors() { Err(Reported) } else { Ok((problems.program(parts)?, formulas)) }
}

/// The program as text that [`read`] takes back.
pub fn write(program: &Program, limits: &Limits) -> Result<String, Limit> {
    print::write(program, limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::trial::texts;
    use proptest::prelude::*;

    /// Uses the whole language.
    const SAMPLE: &str = "\
param N = 2
const K = N + 1
struct node { value, next }
shared x, y = 3, a[4] = {1, 2}

inline acquire(l, out)
wait: xchg out, [l], 1
    while out != 0 { load s, [l.next]; pause; out = s }
    if out == 0 { inc [l] } else if s { or s, [l], K } else { goto wait }
end

thread p[i in 1..=N]
    local own[2] = i
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
    acquire(a + 1, z); store8 [a.next], z
    assume z != 0 && 4 / z; assert ~z
    halt
end

forbid two i: p[i]@l && p[i].r == 2
forbid q@acquire.wait && [p[1].own] == 2
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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

        #[test]
        fn no_text_makes_the_reader_panic(
            source in texts(SAMPLE, &[' ', '\n', '[', ']', ',', ':', '@'], &["\n", "end\n"])
        ) {
            survives(&source);
        }
    }
}
