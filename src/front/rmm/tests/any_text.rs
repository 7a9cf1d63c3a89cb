//! Whatever the text is, it is read or refused with a reason.

use super::super::read;
use super::wrong;
use crate::front::{Severity, tso};
use crate::limits::Limits;
use proptest::prelude::*;

/// Uses most of the language.
const SAMPLE: &str = "forbidden A * ; * B
macro N() 1 endmacro macro get(r, p) read: r := [p] endmacro
data x = * : [0:N()] y = -2 : Z
process(1) data l = 0 registers $a = * : [0:3] text
A: get($a, $a); write: l[my] := 0 - $a; read: l[0] = 1;
if not $a = 1 && [$a < 2 || true] then goto A else { nop; fence };
either{ cas(x,0,1) or while $a != 0 do $a := $a - 1 or C: nop }
process data l = 1 text
locked{ read: x = 1; write: y := 2 or nop }; locked write: [1] := 3; syncrd: y = 2; B: assume: 1 >= 0
";

#[test]
fn the_sample_is_read_without_complaints() {
    wrong(SAMPLE, &[]);
}

/// Whatever is read can be written in the native language; whatever is not has a reason.
fn survives(source: &str) {
    match read(source, &Limits::default()) {
        Ok(input) => {
            let text = tso::write(&input.program, &Limits::default()).unwrap();
            tso::read(&text, &[], &Limits::default())
                .unwrap_or_else(|errors| panic!("{errors:?}\n{source}\n{text}"));
        }
        Err(wrong) => {
            assert!(wrong.diagnostics().iter().any(|d| d.severity == Severity::Error), "{wrong:?}\n{source}")
        }
    }
}

fn piece() -> impl Strategy<Value = String> {
    let words: Vec<String> =
        SAMPLE.split_inclusive([' ', '\n', '[', ']', ';', '(']).map(str::to_string).collect();
    prop_oneof![
        prop::sample::select(words),
        "\\PC{0,3}",
        Just("; ".to_string()),
        Just("endmacro ".to_string())
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(source in any::<String>()) {
        survives(&source);
    }

    #[test]
    fn no_mixture_of_words_makes_the_reader_panic(words in prop::collection::vec(piece(), 0..60)) {
        survives(&words.concat());
    }

    #[test]
    fn no_change_to_a_program_makes_the_reader_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, piece()), 1..5)
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
