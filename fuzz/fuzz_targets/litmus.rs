//! Does any text break the reader of litmus tests? Whatever is wrong must have a place in the text, and what is written of a
//! test can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::litmus::{read, read_test, write};
use overtake::limits::Limits;

fuzz_target!(|source: &str| {
    let diagnostics = match read_test(source, &Limits::default()) {
        Ok((input, litmus)) => {
            for test in [None, Some(&litmus)] {
                if let Ok(text) = write(&input.program, "fuzz", test, &Limits::default()) {
                    read(&text, &Limits::default()).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
                }
            }
            input.warnings
        }
        Err(unread) => {
            assert!(!unread.diagnostics().is_empty());
            unread.diagnostics().to_vec()
        }
    };
    render("a.litmus", source, &diagnostics, false);
});
