//! Is a program the same after it has been written and read back? And does a file that was read once still
//! read to the same program?

use overtake::front::formats::{self, Reading};
use overtake::front::{ron as format, tso};
use overtake::limits::Limits;
use overtake::model::{Program, Property};
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

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

/// `tests/data/programs.txt` has digests of files and of the programs they read to, from before the language
/// grew. A file that has been changed since says nothing any more. What properties are called, and how the file
/// has them, came later.
#[test]
fn what_was_a_program_is_the_same_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recorded = std::fs::read_to_string(root.join("tests/data/programs.txt")).expect("it is bundled");
    let limits = Limits::default();
    let mut same = 0;
    for line in recorded.lines() {
        let [file, text, program] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let Ok(bytes) = std::fs::read(root.join(file)) else { continue };
        if format!("{:016x}", digest(&bytes)) != text {
            continue;
        }
        let kind = formats::of_path(Path::new(file)).expect("a known extension");
        let read = kind.parse(&bytes, &Reading::of_text(&[], &limits)).expect(file);
        let mut parts = read.0.program.to_parts();
        for property in &mut parts.properties {
            *property = Property::new(property.kind, property.pred.clone(), property.line);
        }
        let bare = Program::new(parts).expect("it was valid");
        let written = format::write(&bare, &limits).expect("no limit is near");
        assert_eq!(format!("{:016x}", digest(written.as_bytes())), program, "{file}");
        same += 1;
    }
    assert!(same > 100, "{same} files are as they were");
}
