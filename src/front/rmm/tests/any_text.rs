//! Whatever the text is, it is read or refused with a reason.

use super::super::read;
use super::wrong;
use crate::front::trial::{survives, texts};
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(source in texts(SAMPLE, &[' ', '\n', '[', ']', ';', '('], &["; ", "endmacro "])) {
        survives(&source, read(&source, &Limits::default()));
    }
}
