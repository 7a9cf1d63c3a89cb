//! Does any text break the native language's front end? What is read must come back equal once written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::tso::{read, write};
use overtake::limits::Limits;

fuzz_target!(|source: &str| {
    match read(source, &[("N".to_string(), 3)], &Limits::default()) {
        Ok(input) => {
            let text = write(&input.program, &Limits::default()).unwrap();
            let again = read(&text, &[], &Limits::default()).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
            assert_eq!(write(&again.program, &Limits::default()).unwrap(), text);
            render("a.tso", source, &input.warnings, false);
        }
        Err(unread) => {
            assert!(!unread.diagnostics().is_empty());
            render("a.tso", source, unread.diagnostics(), false);
        }
    }
});
