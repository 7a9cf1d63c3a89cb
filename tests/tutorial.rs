//! Does the tutorial work? Its files are written as it says, its commands run, and what comes out is what it
//! shows. The examples of other pages are run as well, if they are about bundled programs and show what comes out.

#[path = "common/ran.rs"]
mod ran;

use ran::{Ran, command};
use std::path::Path;
use std::process::Stdio;

/// A block of the page: indented lines that belong together.
#[derive(Debug)]
struct Example {
    /// The last line of text before it.
    introduction: String,
    lines: Vec<String>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let (mut introduction, mut open) = (String::new(), false);
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(own) if open && !own.starts_with("$ ") => {
                examples.last_mut().expect("it is open").lines.push(own.to_string())
            }
            Some(own) => {
                examples.push(Example { introduction: introduction.clone(), lines: vec![own.to_string()] });
                open = true;
            }
            None if line.is_empty() && open => {
                examples.last_mut().expect("it is open").lines.push(String::new());
            }
            None if line.is_empty() => {}
            None => {
                introduction = line.to_string();
                open = false;
            }
        }
    }
    for example in &mut examples {
        while example.lines.last().is_some_and(String::is_empty) {
            example.lines.pop();
        }
    }
    examples
}

/// Is this what the page shows? A line `…` stands for any lines, `…` inside a line for any text.
fn agrees(shown: &[String], found: &[&str]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line.trim() == "…" => {
            (0..=found.len()).any(|skip| agrees(rest, &found[skip..]))
        }
        Some((line, rest)) => match found.split_first() {
            Some((first, others)) => line_agrees(line, first) && agrees(rest, others),
            None => false,
        },
    }
}

fn line_agrees(shown: &str, found: &str) -> bool {
    match shown.split_once('…') {
        Some((head, tail)) => found.starts_with(head) && found.ends_with(tail),
        None => shown == found,
    }
}

/// Runs a command, and compares what it prints with what the page shows.
fn run(arguments: &str, folder: &Path, shown: &[String]) {
    let words: Vec<&str> = arguments.split(' ').collect();
    let output = command(&words).current_dir(folder).stdin(Stdio::null()).output();
    let ran = Ran::new(output.expect("the binary starts"));
    let found: Vec<&str> = ran.out.trim_end().lines().collect();
    assert!(agrees(shown, &found), "{arguments}\n{}\n{}", ran.out, ran.err);
}

#[test]
fn every_command_of_the_tutorial_does_what_it_shows() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial");
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let (mut files, mut commands) = (0, 0);
    for Example { introduction, lines } in examples(&page) {
        if let Some(arguments) = lines[0].strip_prefix("$ overtake ") {
            run(arguments, &folder, &lines[1..]);
            commands += 1;
        } else {
            let name = introduction.split("Save this as `").nth(1).and_then(|rest| rest.split('`').next());
            let name = name.unwrap_or_else(|| panic!("nobody says what this is: {lines:?}"));
            std::fs::write(folder.join(name), lines.join("\n") + "\n").expect("it can be written");
            files += 1;
        }
    }
    assert_eq!((files, commands), (3, 8), "the page has other examples than it had");
}

#[test]
fn what_other_pages_show_is_what_comes_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut commands = 0;
    for page in ["README.md", "docs/datatypes.md", "docs/formats.md", "docs/hangs.md", "docs/repair.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect("the page is there");
        for Example { lines, .. } in examples(&text) {
            let Some(line) = lines[0].strip_prefix("$ ") else { continue };
            let own = line.strip_prefix("cargo run --release -- ").or(line.strip_prefix("overtake "));
            if lines.len() == 1 {
                continue;
            }
            run(own.expect("a command of ours"), root, &lines[1..]);
            commands += 1;
        }
    }
    assert_eq!(commands, 8, "the pages have other examples than they had");
}

#[test]
fn what_is_left_out_may_be_anything_and_the_rest_may_not() {
    let shown = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    assert!(agrees(&shown("a\n…\nb"), &["a", "x", "y", "b"]));
    assert!(agrees(&shown("a … c"), &["a b c"]));
    assert!(!agrees(&shown("a\n…\nb"), &["a", "x"]));
    assert!(!agrees(&shown("a"), &["a", "b"]));
}
