//! Does any text break the reader of data types? What is read has a program for each test.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overtake::cli::diagnose::render;
use overtake::front::tso::read_datatype;
use overtake::limits::Limits;

fuzz_target!(|source: &str| {
    match read_datatype(source, &[], &[("N".to_string(), 3)], &Limits::default()) {
        Ok((datatype, warnings)) => {
            for test in &datatype.tests {
                test.program(&test.threads, 4, None).unwrap();
                test.program(std::slice::from_ref(&test.setup), 4, None).unwrap();
            }
            render("a.dt", source, &warnings, false);
        }
        Err(unread) => {
            assert!(!unread.diagnostics().is_empty());
            render("a.dt", source, unread.diagnostics(), false);
        }
    }
});
