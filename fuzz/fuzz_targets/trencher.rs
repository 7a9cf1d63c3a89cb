//! Does any text break the reader of Trencher's format? What is read can be written in the native language.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::{trencher, tso};

fuzz_target!(|source: &str| {
    match trencher::read(source) {
        Ok(input) => {
            let text = tso::write(&input.program);
            tso::read(&text, &[]).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
            render("a.txt", source, &input.warnings, false);
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            render("a.txt", source, &diagnostics, false);
        }
    }
});
