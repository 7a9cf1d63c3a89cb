//! Do answers say what people need, in the room that there is? Properties of all kinds beside each other, final states
//! that there are none of, parameters that some files lack, narrow terminals, and the order of help texts.

#[path = "common/ran.rs"]
mod ran;

use ran::{BAD_INPUT, VIOLATED, command, overtake};
use std::path::PathBuf;

/// Files that are there for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("overtake-answers-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const WAKE_UP: &str = "shared work, sleeping, wake
thread sleeper
    store [sleeping], 1
    load  w, [work]
    if w != 0 goto done
asleep:
    load  r, [wake]
    if r == 0 goto asleep
done:
end
thread waker
    xchg  [work], 1
    load  s, [sleeping]
    if s != 0 { store [wake], 1 }
end
never sleeper.w == 2
no hang
exists sleeper.w == 1
";

#[test]
fn a_file_asks_that_it_never_hangs() {
    let folder = Folder::new("hang");
    let file = folder.file("wake-up.tso", WAKE_UP);
    let ran = overtake(&["check", "--json", &file]);
    assert_eq!(ran.code, VIOLATED);
    let properties = ran.objects()[0]["properties"].clone();
    let told: Vec<(String, String)> = properties
        .as_array()
        .expect("a list")
        .iter()
        .map(|p| (p["text"].to_string(), format!("{} {}", p["verdict"], p["only_under_tso"])))
        .collect();
    let expected = [
        ("\"never sleeper.w == 2\"", "\"safe\" null"),
        ("\"no hang\"", "\"violated\" true"),
        ("\"exists sleeper.w == 1\"", "\"violated\" false"),
    ];
    assert_eq!(told, expected.map(|(text, verdict)| (text.to_string(), verdict.to_string())));
    for wanted in ["2", "no hang"] {
        let ran = overtake(&["check", "--property", wanted, &file]);
        assert_eq!((ran.code, ran.first_line()), (VIOLATED, "violated"));
        assert!(ran.out.contains("Who waits for what"), "{}", ran.out);
    }
    assert_eq!(overtake(&["check", "--model", "sc", "--property", "2", &file]).first_line(), "safe");
    let reachable = overtake(&["check", "--property", "3", &file]);
    assert!(reachable.out.contains("reachable, as asked"), "{}", reachable.out);
    // With its fence it never does; the other properties stay what they are.
    let fenced = folder.file("fenced.tso", &WAKE_UP.replacen("    load  w", "    fence\n    load  w", 1));
    assert_eq!(overtake(&["check", "--property", "no hang", &fenced]).first_line(), "safe");
    let alone = folder.file(
        "alone.tso",
        &WAKE_UP.replace("never sleeper.w == 2\n", "").replace("exists sleeper.w == 1\n", ""),
    );
    let repaired = overtake(&["fence", &alone]);
    assert!(repaired.out.contains("keeps the program from hanging"), "{}", repaired.out);
}

#[test]
fn no_hang_survives_being_written() {
    let folder = Folder::new("written");
    let file = folder.file("wake-up.tso", WAKE_UP);
    for format in ["tso", "ron"] {
        let out = folder.0.join(format!("again.{format}")).display().to_string();
        assert_eq!(overtake(&["convert", "--to", format, "-o", &out, &file]).code, 0);
        assert_eq!(overtake(&["check", "--property", "no hang", &out]).code, VIOLATED, "{format}");
    }
    for format in ["litmus", "trencher", "promela"] {
        let ran = overtake(&["convert", "--to", format, &file]);
        assert_eq!(ran.code, BAD_INPUT);
        assert!(ran.err.contains("no hang"), "{}", ran.err);
    }
    let twice = folder.file("twice.tso", &format!("{WAKE_UP}no hang\n"));
    assert!(overtake(&["check", &twice]).err.contains("asked for twice"));
}

#[test]
fn names_that_became_words_stay_names() {
    let folder = Folder::new("names");
    let right = "shared no
thread hang
    membarrier = 1
no: load  hang, [no]
    store [no], membarrier + hang
    membarrier
end
forbid [no] == 3
no hang
";
    assert_eq!(overtake(&["check", &folder.file("right.tso", right)]).first_line(), "safe");
}

#[test]
fn a_property_of_final_states_that_there_are_none_of_gets_a_warning() {
    let folder = Folder::new("vacuous");
    let spins = "shared x\nthread p\nw: load r, [x]\n if r == 0 goto w\nend\nnever p.r == 0\n";
    let file = folder.file("spins.tso", spins);
    let ran = overtake(&["check", &file]);
    assert_eq!((ran.code, ran.first_line()), (0, "safe"));
    assert!(ran.err.contains("only because no final state is reachable"), "{}", ran.err);
    let object = overtake(&["check", "--json", &file]).objects()[0].clone();
    assert!(object["warnings"].to_string().contains("no final state"), "{object}");
    // One that is violated, and one about states of all kinds, need none.
    let ends = folder.file("ends.tso", &spins.replace("shared x", "shared x = 1"));
    assert!(!overtake(&["check", &ends]).err.contains("final state"));
    let always = folder.file("always.tso", &spins.replace("never", "forbid").replace("== 0\n", "== 5\n"));
    assert!(!overtake(&["check", &always]).err.contains("final state"));
    // Values that grow without end, and nobody who knows whether the thread ends.
    let grows = "shared x, y\nthread p\nw: load r, [x]\n n = n + 1\n store [y], n\n if r == 0 goto w\nend\nnever p.r == 5\n";
    let unknown = overtake(&["check", &folder.file("grows.tso", grows), "--states", "20000"]);
    if unknown.first_line() == "safe" {
        assert!(unknown.err.contains("final state"), "{}", unknown.err);
    }
    assert_eq!(overtake(&["test", &folder.file("t.tso", &format!("// expect tso safe\n{spins}"))]).code, 0);
    let denied = overtake(&["test", "--deny-warnings", &folder.0.join("t.tso").display().to_string()]);
    assert_eq!(denied.code, VIOLATED);
}

#[test]
fn a_parameter_that_some_files_lack_is_worth_a_warning() {
    let folder = Folder::new("define");
    let with =
        folder.file("with.tso", "param N = 1\nshared x\nthread p\n store [x], N\nend\nnever [x] == 3\n");
    let without = folder.file("without.tso", "shared x\nthread p\n store [x], 1\nend\nnever [x] == 3\n");
    let ran = overtake(&["check", "-D", "N=3", "-q", &with, &without]);
    assert_eq!(ran.code, VIOLATED);
    assert_eq!(ran.out, format!("{with}: violated\n{without}: safe\n"));
    assert!(ran.err.contains("warning") && ran.err.contains("does not declare"), "{}", ran.err);
    assert_eq!(overtake(&["check", "-D", "M=3", &with, &without]).code, BAD_INPUT);
    assert_eq!(overtake(&["check", "-D", "N=3", &without]).code, BAD_INPUT);
}

#[test]
fn a_directory_is_no_program() {
    let ran = overtake(&["check", "programs"]);
    assert_eq!(ran.code, BAD_INPUT);
    assert!(ran.err.contains("this is a directory"), "{}", ran.err);
}

#[test]
fn lines_fit_where_somebody_says_how_wide_they_are() {
    for columns in [40, 60, 80, 100] {
        let args = ["check", "programs/peterson/peterson.tso"];
        let ran = command(&args).env("COLUMNS", columns.to_string()).output().expect("it starts");
        let out = String::from_utf8(ran.stdout).expect("text");
        let widest = out.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{widest:?} letters in {columns} columns:\n{out}");
        for told in ["store [flag0], 1", "t == 0 is false", "forbidden in line 30"] {
            assert!(out.contains(told), "{out}");
        }
    }
    let piped = overtake(&["check", "programs/peterson/peterson.tso"]).out;
    assert!(piped.lines().all(|line| line.chars().count() <= 80), "{piped}");
}

#[test]
fn help_begins_with_what_is_the_commands_own() {
    for (name, own) in
        [("check", "--model"), ("robust", "--all"), ("fence", "--for"), ("outcomes", "--model")]
    {
        let help = overtake(&["help", name]).out;
        let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{name}: no {text}"));
        let options = place("\nOptions:");
        let first = help[options..].find("--").map(|found| options + found);
        assert_eq!(first, Some(place(own)), "{name}");
        assert!(place(own) < place("\nReductions"), "{name}");
        assert!(!help.contains("What all commands"), "{name}");
    }
    let check = overtake(&["help", "check"]).out;
    let reductions = check.find("\nReductions").expect("it has them");
    for own in ["--property", "--hang", "--engine", "--certificate"] {
        assert!(check.find(own).is_some_and(|found| found < reductions), "{own}");
    }
}
