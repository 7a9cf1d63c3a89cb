//! Does any text break the reader of programs as data? What is read must come back equal once written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::ron::{read, write};
use overtake::limits::Limits;

fuzz_target!(|source: &str| {
    match read(source, &Limits::default()) {
        Ok(input) => {
            let text = write(&input.program, &Limits::default()).unwrap();
            let again = read(&text, &Limits::default()).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
            assert_eq!(again.program.to_parts(), input.program.to_parts());
            render("a.ron", source, &input.warnings, false);
        }
        Err(unread) => {
            assert!(!unread.diagnostics().is_empty());
            render("a.ron", source, unread.diagnostics(), false);
        }
    }
});
