//! Are the documents true where a machine can tell? Links lead somewhere, citations are listed, tables are
//! those of the code.

use overtake::query::Reductions;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All files with an extension below a folder, or in it alone.
fn files(folder: &Path, extension: &str, deep: bool) -> Vec<PathBuf> {
    let entries = folder.read_dir().unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let below = folders.into_iter().filter(|_| deep).flat_map(|f| self::files(&f, extension, deep));
    let wanted = |path: &PathBuf| path.extension().is_some_and(|e| e == extension);
    files.into_iter().filter(wanted).chain(below).collect()
}

fn pages() -> Vec<PathBuf> {
    ["", "docs", "programs", "results"].iter().flat_map(|f| files(&root().join(f), "md", false)).collect()
}

/// What stands between two marks, wherever it does.
fn between<'a>(text: &'a str, open: &str, close: char) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split(close).next()).collect()
}

#[test]
fn links_lead_to_files() {
    for page in pages() {
        for link in between(&read(&page), "](", ')') {
            let file = link.split('#').next().expect("the first part");
            let outside = link.starts_with("http");
            let target = page.parent().expect("a page lies in a folder").join(file);
            assert!(outside || target.exists(), "{}: nothing at {link}", page.display());
        }
    }
}

/// A citation is a name and the last two digits of a year, in brackets.
fn citations(text: &str) -> BTreeSet<String> {
    let is_key = |key: &&str| {
        let (name, year) = key.split_at(key.len().saturating_sub(2));
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.len() > 2
            && name.bytes().all(|b| b.is_ascii_alphabetic())
            && year.bytes().all(|b| b.is_ascii_digit())
    };
    let brackets = text.match_indices('[').filter_map(|(at, _)| text.get(at + 1..)?.split(']').next());
    brackets.filter(|key| key.is_ascii()).filter(is_key).map(str::to_string).collect()
}

#[test]
fn a_citation_is_known_by_its_shape() {
    assert_eq!(citations("see `[Lipton75]`, x[A12], a[i], [`Goal`], [Loc; 12]").len(), 1);
}

#[test]
fn every_citation_is_listed_and_every_paper_is_cited() {
    let references = root().join("docs/references.md");
    let listed = citations(&read(&references));
    let sources = files(&root().join("src"), "rs", true);
    let places = sources.into_iter().chain(pages()).filter(|page| *page != references);
    let mut cited = BTreeSet::new();
    for place in places {
        let mut text = read(&place);
        if place.extension().is_some_and(|e| e == "rs") {
            let is_comment = |line: &&str| line.trim_start().starts_with("//");
            text = text.lines().filter(is_comment).collect::<Vec<_>>().join("\n");
        }
        let here = citations(&text);
        let lost: Vec<_> = here.difference(&listed).collect();
        assert!(lost.is_empty(), "{} cites {lost:?}, which docs/references.md lacks", place.display());
        cited.extend(here);
    }
    assert_eq!(listed, cited, "docs/references.md lists what nothing cites");
}

#[test]
fn the_page_on_reductions_has_their_table() {
    let page = read(&root().join("docs/reductions.md"));
    for reduction in Reductions::TABLE {
        let mut without = reduction.without.to_string();
        without[..1].make_ascii_lowercase();
        let row = format!("| `--{}` | {without} |", reduction.switch);
        assert!(page.contains(&row), "docs/reductions.md lacks the row\n{row}");
    }
}

/// A table cell is read at a glance, or it is not read.
#[test]
fn no_table_has_long_cells() {
    const LONGEST: usize = 220;
    for page in pages() {
        let text = read(&page);
        for cell in text.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split(" | ")) {
            assert!(cell.chars().count() <= LONGEST, "{}: {cell}", page.display());
        }
    }
}
