//! Does SPIN, on the model that we write for it, give the verdict that is recorded for the program under SC?
//!
//! Asked of every bundled program, in both styles of steps. Takes minutes and needs `spin` and `gcc`, so it
//! runs only with `OVERTAKE_SPIN=1` in the environment, and says so when it does not.

use overtake::front::promela::{self, Joining};
use overtake::front::tso;
use overtake::limits::Limits;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Deserialize)]
struct Expected {
    file: String,
    #[serde(default)]
    define: BTreeMap<String, i64>,
    sc: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Safe,
    Violated,
}

#[test]
fn spin_agrees_about_every_bundled_program() {
    if std::env::var_os("OVERTAKE_SPIN").is_none() {
        return eprintln!("skipped: set OVERTAKE_SPIN=1 to compare with SPIN");
    }
    if Command::new("spin").arg("-V").output().is_err() {
        return eprintln!("skipped: there is no `spin` here");
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (folder, expected) in corpus() {
        for style in [Joining::Joined, Joining::Literal] {
            let found = verdict(&folder.join(&expected.file), &expected.define, style);
            let name = format!("{} {:?} {style:?}", expected.file, expected.define);
            eprintln!("{name}: {found:?}");
            count += 1;
            if found != Ok(expected.sc) {
                wrong.push(format!("{name}: {found:?}, expected {:?}", expected.sc));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

fn corpus() -> Vec<(PathBuf, Expected)> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut folders: Vec<PathBuf> =
        programs.read_dir().expect("programs are bundled").map(|f| f.expect("readable").path()).collect();
    folders.sort();
    let entries = |folder: PathBuf| {
        let text = std::fs::read_to_string(folder.join("expected.ron")).unwrap_or("[]".into());
        let list: Vec<Expected> = ron::from_str(&text).expect("expectations are readable");
        list.into_iter().map(move |e| (folder.clone(), e))
    };
    folders.into_iter().flat_map(entries).collect()
}

fn verdict(file: &Path, define: &BTreeMap<String, i64>, style: Joining) -> Result<Verdict, String> {
    let source = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let defines: Vec<_> = define.iter().map(|(k, v)| (k.clone(), *v)).collect();
    let program = tso::read(&source, &defines, &Limits::default()).map_err(|e| format!("{e:?}"))?.program;
    let model = promela::write(&program, style, &Limits::default()).map_err(|e| e.to_string())?;
    let folder = std::env::temp_dir().join(format!("overtake-spin-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    std::fs::write(folder.join("m.pml"), model).map_err(|e| e.to_string())?;
    run(&folder, "spin", &["-a", "m.pml"])?;
    run(&folder, "gcc", &["-O1", "-w", "-DSAFETY", "-DNOFAIR", "-DMEMLIM=4096", "-o", "pan", "pan.c"])?;
    let output = run(&folder, "timeout", &["120", "./pan", "-m1000000", "-w22"])?;
    std::fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
    if output.contains("max search depth too small") || output.contains("out of memory") {
        return Err(format!("SPIN did not finish:\n{output}"));
    }
    let errors = output.split("errors: ").nth(1).and_then(|rest| rest.split_whitespace().next());
    match errors {
        Some("0") => Ok(Verdict::Safe),
        Some(_) if output.contains("assertion violated") => Ok(Verdict::Violated),
        _ => Err(output),
    }
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).current_dir(folder).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{program} failed: {text}{}", String::from_utf8_lossy(&output.stderr))),
    }
}
