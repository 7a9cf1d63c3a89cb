//! Does any text break the reader of programs as data? What is read must come back equal once written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::ron::{read, write};

fuzz_target!(|source: &str| {
    match read(source) {
        Ok(input) => {
            let text = write(&input.program);
            let again = read(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
            assert_eq!(again.program.to_parts(), input.program.to_parts());
            render("a.ron", source, &input.warnings, false);
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            render("a.ron", source, &diagnostics, false);
        }
    }
});
