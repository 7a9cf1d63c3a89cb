//! Does any text break the reader of Trencher's format? What is read can be written in the native language.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::{trencher, tso};
use overtake::limits::Limits;

fuzz_target!(|source: &str| {
    match trencher::read(source, &Limits::default()) {
        Ok(input) => {
            let text = tso::write(&input.program, &Limits::default()).unwrap();
            tso::read(&text, &[], &Limits::default()).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
            render("a.txt", source, &input.warnings, false);
        }
        Err(unread) => {
            assert!(!unread.diagnostics().is_empty());
            render("a.txt", source, unread.diagnostics(), false);
        }
    }
});
