//! Does any text break the native language's front end? What is read must come back equal once written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::tso::{read, write};

fuzz_target!(|source: &str| {
    match read(source, &[("N".to_string(), 3)]) {
        Ok(input) => {
            let text = write(&input.program);
            let again = read(&text, &[]).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
            assert_eq!(write(&again.program), text);
            render("a.tso", source, &input.warnings, false);
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            render("a.tso", source, &diagnostics, false);
        }
    }
});
