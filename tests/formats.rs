//! Is a program the same after it has been written and read back?

use overtake::front::{ron as format, tso};
use overtake::limits::Limits;
use std::path::Path;

#[test]
fn every_bundled_program_survives_ron() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut count = 0;
    let entries = programs.read_dir().expect("programs are bundled").map(|f| f.expect("readable").path());
    for folder in entries.filter(|f| f.is_dir()) {
        let files = folder.read_dir().expect("a folder").map(|f| f.expect("readable").path());
        for file in files.filter(|f| f.extension().is_some_and(|e| e == "tso")) {
            let source = std::fs::read_to_string(&file).expect("readable");
            let program =
                tso::read(&source, &[], &Limits::default()).expect("bundled programs are readable").program;
            let limits = Limits::default();
            let text = format::write(&program, &limits).unwrap();
            let again = format::read(&text, &limits).expect("what we write can be read").program;
            assert_eq!(again.to_parts(), program.to_parts(), "{}", file.display());
            count += 1;
        }
    }
    assert!(count > 50, "{count} programs");
}
