//! Does any text break the reader of litmus tests? Whatever is wrong must have a place in the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::litmus::read;

fuzz_target!(|source: &str| {
    let diagnostics = match read(source) {
        Ok(input) => input.warnings,
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            diagnostics
        }
    };
    render("a.litmus", source, &diagnostics, false);
});
