//! Does any text break the reader of litmus tests? Whatever is wrong must have a place in the text, and what is written of a
//! test can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::litmus::{read, read_test, write};

fuzz_target!(|source: &str| {
    let diagnostics = match read_test(source) {
        Ok((input, litmus)) => {
            for test in [None, Some(&litmus)] {
                if let Ok(text) = write(&input.program, "fuzz", test) {
                    read(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
                }
            }
            input.warnings
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            diagnostics
        }
    };
    render("a.litmus", source, &diagnostics, false);
});
