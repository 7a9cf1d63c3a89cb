//! Is the picture of who may name whom still true? Every path that begins with `crate::` in the sources is
//! held against the table in ARCHITECTURE.md; tests inside the sources are not.
//!
//! Modules name what lies below them. Engines do not know each other and meet in `engine/mod.rs`. The name of
//! a type should tell what it is, so few names are defined twice, and none more often.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each module of the crate's root and those it may name: the list in ARCHITECTURE.md.
fn table() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("../ARCHITECTURE.md")).expect("the page is there");
    let (_, section) = page.split_once("\n## Who may name whom\n").expect("the page has the section");
    let is_row = |line: &&str| line.starts_with("    ");
    let rows = section.lines().skip_while(|line| !is_row(line)).take_while(is_row);
    let words = |row: &str| row.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    rows.map(words).map(|mut row| (row.remove(0), row)).collect()
}

/// What is wrong with one source file, given its path below `src`; nothing if it keeps to the table.
fn violations(path: &str, source: &str) -> Vec<String> {
    let own = path.split('/').next().expect("a path has parts").trim_end_matches(".rs");
    if matches!(own, "main" | "lib") {
        return vec![];
    }
    let table = table();
    let Some((_, allowed)) = table.iter().find(|(module, _)| *module == own) else {
        return vec![format!("{path}: `{own}` is not in the table")];
    };
    let code = without_tests(source);
    let upward = named(&code, "crate::").into_iter().filter(|to| to != own && !allowed.contains(to));
    let upward = upward.map(|to| format!("{path}: `{own}` names `{to}`"));
    upward.chain(siblings(path, &code)).collect()
}

/// Engines that name another file of their folder. What `mod.rs` offers to all begins with a capital letter,
/// or is one of its functions.
fn siblings(path: &str, code: &str) -> Vec<String> {
    // The table is where they meet.
    let engine = |rest: &&str| !matches!(*rest, "mod.rs" | "table.rs");
    let Some(own) = path.strip_prefix("engine/").filter(engine) else { return vec![] };
    let own = own.split('/').next().expect("a path has parts").trim_end_matches(".rs");
    // One level below the folder, its `mod.rs` is `super`; deeper, a `super` is the engine's own.
    let direct = if path.matches('/').count() == 1 { named(code, "super::") } else { vec![] };
    let others = direct.into_iter().chain(named(code, "crate::engine::"));
    let is_module = |name: &String| engines().contains(name) && name != own;
    others.filter(is_module).map(|to| format!("{path}: engine `{own}` names engine `{to}`")).collect()
}

/// The files and folders beside `engine/mod.rs`.
fn engines() -> Vec<String> {
    let entries = root().join("engine").read_dir().expect("there are engines");
    let names = entries.map(|e| e.expect("it can be listed").file_name().to_string_lossy().into_owned());
    names.map(|n| n.trim_end_matches(".rs").to_string()).filter(|n| n != "mod").collect()
}

/// The first names behind a prefix, wherever it stands: one of a path, several of a list in braces.
fn named(code: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let rest = &code[at + prefix.len()..];
        if whole {
            match rest.strip_prefix('{') {
                Some(list) => names.extend(first_names(list)),
                None => names.push(word(rest)),
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

/// The first name of each path in a list, up to the brace that closes it.
fn first_names(list: &str) -> Vec<String> {
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (i, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' | ',' if depth == 0 => {
                items.push(word(list[start..i].trim()));
                start = i + 1;
            }
            _ => {}
        }
        if c == '}' && depth == 0 && start == i + 1 {
            break;
        }
    }
    items.retain(|item| !item.is_empty());
    items
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The source without comments and without its test modules, which `cargo fmt` closes at the column where
/// they begin.
fn without_tests(source: &str) -> String {
    let mut kept = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let code = line.split("//").next().unwrap_or_default();
        if code.trim() == "#[cfg(test)]" {
            let indent = line.len() - line.trim_start().len();
            let opening = lines.next().unwrap_or_default();
            if !opening.trim_end().ends_with(';') {
                let close = format!("{}}}", " ".repeat(indent));
                lines.by_ref().find(|l| l.trim_end() == close);
            }
            continue;
        }
        kept.push_str(code);
        kept.push('\n');
    }
    kept
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// All sources but tests, with their paths below `src`.
fn sources(dir: &Path) -> Vec<(String, String)> {
    let is_test = |path: &str| path.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
    files(dir).into_iter().filter(|(path, _)| !is_test(path)).collect()
}

/// All sources, with their paths below `src`.
fn files(dir: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in dir.read_dir().expect("sources can be listed") {
        let path = entry.expect("they can be listed").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(root()).expect("it lies below src").to_string_lossy().into_owned();
            all.push((name, std::fs::read_to_string(&path).expect("sources can be read")));
        }
    }
    all
}

/// The types that a source defines: structs, enums, traits and aliases. An indented `type` belongs to a
/// trait.
fn defined_types(source: &str) -> Vec<String> {
    let defined = |line: &str| {
        let code = line.trim_start();
        let code = match code.strip_prefix("pub(") {
            Some(rest) => rest.split_once(") ").map_or("", |(_, code)| code),
            None => code.strip_prefix("pub ").unwrap_or(code),
        };
        let (keyword, rest) = code.split_once(' ')?;
        let defines = matches!(keyword, "struct" | "enum" | "trait")
            || keyword == "type" && !line.starts_with(char::is_whitespace);
        defines.then(|| word(rest))
    };
    source.lines().filter_map(defined).collect()
}

#[test]
fn no_type_name_has_three_meanings() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, source) in sources(&root()) {
        for name in defined_types(&source) {
            places.entry(name).or_default().push(path.clone());
        }
    }
    assert!(places.len() > 200, "{} types are all that was found", places.len());
    places.retain(|_, places| places.len() > 2);
    assert!(places.is_empty(), "{places:#?}");
}

/// What is longer than 500 lines is one table or one algorithm, and its first lines say `one file`.
#[test]
fn long_files_say_why() {
    let long = files(&root()).into_iter().filter(|(_, source)| {
        let (head, _) = source.split_at(source.find("\nuse ").unwrap_or(source.len()));
        let words: Vec<&str> = head.split_whitespace().filter(|word| *word != "//!").collect();
        let says_why = words.windows(2).any(|pair| pair == ["one", "file."] || pair == ["one", "file:"]);
        source.lines().count() > 500 && !says_why
    });
    let long: Vec<String> = long.map(|(path, _)| path).collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = files(&root()).into_iter().filter(|(_, source)| !source.starts_with("//! "));
    let silent: Vec<String> = silent.map(|(path, _)| path).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

/// The page has a row for each module, and names each test program.
#[test]
fn the_map_is_complete() {
    let page = std::fs::read_to_string(root().join("../ARCHITECTURE.md")).expect("the page is there");
    let names = |folder: &str| -> Vec<String> {
        let entries = root().join(folder).read_dir().expect("the folder can be listed");
        let paths = entries.map(|entry| entry.expect("it can be listed").path());
        let code = paths.filter(|p| p.extension().map_or_else(|| p.is_dir(), |e| e == "rs"));
        code.map(|p| p.file_stem().expect("it has a name").to_string_lossy().into_owned()).collect()
    };
    let is_module = |name: &String| !matches!(&name[..], "main" | "lib");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with('|')).collect();
    for module in names(".").into_iter().filter(is_module) {
        assert!(rows.iter().any(|row| row.starts_with(&format!("| `{module}` |"))), "no row for {module}");
    }
    let is_program = |name: &String| !matches!(&name[..], "common" | "data");
    for program in names("../tests").into_iter().filter(is_program) {
        assert!(rows.iter().any(|row| row.contains(&format!("`{program}`"))), "no row names {program}");
    }
}

#[test]
fn definitions_of_types_are_found() {
    let source = "pub struct A;\nenum B<'s> {\npub(super) trait C {\n    type D: Copy;\n}\ntype E = u8;\n\
                  mod m {\n    struct F(u8);\n}\nfn structure() {}\n// enum G {}\n";
    assert_eq!(defined_types(source), ["A", "B", "C", "E", "F"]);
}

/// What x86 instructions mean is shared by formats, and depends on none.
#[test]
fn x86_names_no_format() {
    let x86 = sources(&root().join("front/x86"));
    assert!(x86.len() > 5, "{} files are all that was found", x86.len());
    for (path, source) in x86 {
        let mut others = named(&without_tests(&source), "crate::front::");
        others.retain(|name| !["cfg", "const_fold", "diagnostics"].contains(&&name[..]));
        assert!(others.is_empty(), "{path} names {others:?}");
    }
}

/// Who judges a certificate has to be believed, so it believes nobody else.
#[test]
fn certificates_are_judged_without_analyses() {
    let folders = ["certify/invariant", "certify/attacks", "certify/certificate"];
    let judges: Vec<_> = folders.iter().flat_map(|folder| sources(&root().join(folder))).collect();
    assert!(judges.len() > 10, "{} files are all that was found", judges.len());
    for (path, source) in judges {
        let named = named(&without_tests(&source), "crate::");
        assert!(!named.contains(&"analysis".to_string()), "{path} names an analysis");
    }
}

#[test]
fn modules_name_only_what_lies_below_them() {
    let sources = sources(&root());
    assert!(sources.len() > 40, "{} files are all that was found", sources.len());
    let wrong: Vec<String> = sources.iter().flat_map(|(path, text)| violations(path, text)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_module_of_the_table_exists() {
    for (module, _) in table() {
        let (file, folder) = (root().join(format!("{module}.rs")), root().join(&module));
        assert!(file.exists() || folder.is_dir(), "there is no module `{module}`");
    }
}

#[test]
fn the_table_leads_downward() {
    let mut above = BTreeSet::new();
    for (module, names) in table() {
        above.insert(module.clone());
        let upward: Vec<_> = names.iter().filter(|name| above.contains(*name)).collect();
        assert!(upward.is_empty(), "`{module}` may name {upward:?}, which stands above it");
    }
}

#[test]
fn a_path_upward_is_noticed() {
    let report = |source| violations("report/json.rs", source);
    assert_eq!(report("use crate::engine::Options;\n"), ["report/json.rs: `report` names `engine`"]);
    assert_eq!(
        report("fn f() { crate::machine::blocks::find() }\n"),
        ["report/json.rs: `report` names `machine`"]
    );
    assert_eq!(
        report("use crate::{\n    model::{Loc, Reg},\n    cli::Exit,\n    reach,\n};\n"),
        ["report/json.rs: `report` names `cli`", "report/json.rs: `report` names `reach`"]
    );
    assert_eq!(violations("model/expr.rs", "use crate::query::Goal;").len(), 1);
    assert_eq!(violations("front/ron.rs", "use crate::query::Goal;").len(), 1);
    assert_eq!(violations("reach/visited.rs", "use crate::semantics::State;").len(), 1);
    assert_eq!(violations("semantics/sc.rs", "use crate::reach::Order;").len(), 1);
    assert_eq!(violations("query/goal.rs", "use crate::engine::Options;").len(), 1);
    for judged in ["machine", "reach", "robust", "engine"] {
        assert_eq!(violations("certify/run.rs", &format!("use crate::{judged}::Options;")).len(), 1);
    }
    assert_eq!(violations("novelty/mod.rs", "").len(), 1);
}

#[test]
fn a_path_downward_is_fine() {
    assert!(
        violations("report/json.rs", "use crate::model::{Program, Value};\nuse crate::query::Goal;")
            .is_empty()
    );
    assert!(violations("report/json.rs", "use crate::report::text;").is_empty());
    assert!(violations("cli/check.rs", "use crate::{engine, front, report};").is_empty());
    assert!(violations("report/json.rs", "// crate::engine decides\nlet s = mycrate::engine();").is_empty());
}

#[test]
fn tests_may_name_everything() {
    let source = "use crate::model::Loc;\n#[cfg(test)]\nmod tests {\n    use crate::cli::Exit;\n}\nuse crate::machine::Core;\n";
    assert_eq!(violations("report/json.rs", source), ["report/json.rs: `report` names `machine`"]);
}

#[test]
fn engines_are_strangers_to_each_other() {
    let wrong = ["engine/explicit.rs: engine `explicit` names engine `vacuity`"];
    assert_eq!(violations("engine/explicit.rs", "use super::vacuity::warnings;"), wrong);
    assert_eq!(violations("engine/explicit.rs", "use crate::engine::vacuity;"), wrong);
    assert_eq!(violations("engine/explicit.rs", "use super::{Options, vacuity::warnings};"), wrong);
    assert!(violations("engine/explicit.rs", "use super::{Internal, Options, confirm};").is_empty());
}
