//! Does an input that once broke a front end still do so? Each file here is read by every front end; reading
//! may fail, and must not panic.

use overtake::front::{litmus, rmm, ron, trencher, tso};
use overtake::limits::Limits;
use std::fs;
use std::path::{Path, PathBuf};

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the folder of regressions is part of the repository");
    entries
        .map(|entry| entry.expect("it can be listed").path())
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

#[test]
fn past_failures_do_not_come_back() {
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions")) {
        let bytes = fs::read(&path).expect("it can be read");
        let source = String::from_utf8_lossy(&bytes);
        let (_, _) = (litmus::read(&source, &Limits::default()), trencher::read(&source, &Limits::default()));
        let (_, _) = (rmm::read(&source, &Limits::default()), ron::read(&source, &Limits::default()));
        if let Ok(input) = tso::read(&source, &[], &Limits::default()) {
            let text = tso::write(&input.program, &Limits::default()).unwrap();
            let again = tso::read(&text, &[], &Limits::default())
                .unwrap_or_else(|errors| panic!("{path:?}: {errors:?}\n{text}"));
            assert_eq!(tso::write(&again.program, &Limits::default()).unwrap(), text, "{path:?}");
        }
    }
}
