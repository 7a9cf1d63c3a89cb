//! Do pages work where they are read? They are opened in a real browser: no script fails, nothing is fetched, keys move
//! through the run, and the memory that is shown is the one that the plain machine has.

#[path = "common/chromium.rs"]
mod chromium;
#[path = "common/ran.rs"]
mod ran;

use chromium::Chromium;
use overtake::front::formats::{Contents, Reading, of_path};
use overtake::model::Program;
use overtake::query::{Action, Limits};
use overtake::report::recorded;
use overtake::semantics::replay::{follow, replay};
use ran::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn page(name: &str, args: &[&str]) -> (String, Vec<Value>) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}.html"));
    let text = path.to_string_lossy().into_owned();
    let ran = overtake(&[args, &["--json", "--html", &text]].concat());
    assert!([0, VIOLATED, UNKNOWN].contains(&ran.code), "{args:?}: {}", ran.err);
    (format!("file://{text}"), ran.objects())
}

/// A loop whose shortest run to what is forbidden has some 5,000 events.
const COUNTING: &str = "shared x\nthread p\n r = 0\nagain:\n load v, [x]\n store [x], v + 1\n fence\n r = r + 1\n \
                        if r < 830 goto again\nend\nforbid [x] == 830\n";
const TWELVE: &str = "shared x, y, z\nthread p[i in 0..12]\n store [x], 1\n load r, [y]\nend\nthread q\n store [y], 1\n load r, [x]\nend\n\
                      never p[0].r == 0 && q.r == 0\n";

#[test]
fn pages_of_all_kinds_open_without_an_error_or_a_request() {
    let Some(mut browser) = Chromium::start("pages") else { return };
    let counting = file("browser-counting.tso", COUNTING.as_bytes()).to_string_lossy().into_owned();
    let twelve = file("browser-twelve.tso", TWELVE.as_bytes()).to_string_lossy().into_owned();
    let pages: Vec<(&str, Vec<&str>)> = vec![
        ("sb", vec!["robust", "programs/litmus/sb.tso"]),
        ("sb-check", vec!["check", "programs/litmus/sb.tso"]),
        ("mp", vec!["check", "programs/litmus/mp.tso"]),
        ("peterson", vec!["check", "programs/peterson/peterson.tso"]),
        ("peterson-robust", vec!["robust", "--all", "programs/peterson/peterson.tso"]),
        ("peterson-fence", vec!["fence", "programs/peterson/peterson.tso"]),
        ("dekker-fence", vec!["fence", "--for", "robustness", "programs/litmus/sb.tso"]),
        ("fenced", vec!["robust", "programs/litmus/sb-fences.tso"]),
        ("benign", vec!["check", "programs/benign/cancel.tso", "--engine", "lazy"]),
        ("race", vec!["robust", "--triangular", "programs/litmus/sb.tso"]),
        ("hang", vec!["check", "--hang", "programs/hang/lost-wakeup.tso"]),
        ("lasso", vec!["check", "programs/litmus/mp.tso", "--ltl", "F{[ready]==7}"]),
        ("unknown", vec!["check", "programs/peterson/peterson.tso", "--engine", "explicit", "--states", "3"]),
        ("litmus", vec!["outcomes", "tests/data/replay/sb.litmus"]),
        ("litmus-check", vec!["check", "tests/data/replay/sb.litmus"]),
        ("dve", vec!["check", "tests/data/replay/slots.dve", "--model", "slots", "--deadlock"]),
        ("trencher", vec!["robust", "tests/data/browser/sb.txt"]),
        ("memorax", vec!["check", "tests/data/browser/sb.rmm"]),
        ("twelve", vec!["check", &twelve]),
        ("sc", vec!["check", "programs/demos/assert.tso"]),
        ("long", vec!["check", &counting]),
        ("deep", vec!["check", "programs/loop/loop-deep.tso", "-DN=20"]),
        ("object", vec!["check", "examples/code/handoff.o"]),
        ("datatype", vec!["datatype", "datatypes/treiber_stack.dt", "--model", "relaxed", "--test", "T0"]),
        ("several", vec!["check", "programs/litmus/sb.tso", "programs/litmus/mp.tso"]),
    ];
    for (name, args) in pages {
        if !args.iter().any(|arg| Path::new(arg).exists()) {
            panic!("{args:?} names no file");
        }
        let (address, _) = page(name, &args);
        browser.open(&address);
        browser.key("Home");
        browser.key("ArrowRight");
        assert!(browser.complaints.is_empty(), "{name}: {:?}", browser.complaints);
        let outside: Vec<&String> =
            browser.requests.iter().filter(|r| !address.starts_with(&r[..])).collect();
        assert!(outside.is_empty(), "{name} asks for {outside:?}");
        assert_eq!(browser.value("document.querySelectorAll('.verdict').length > 0"), true, "{name}");
    }
}

fn program(path: &str) -> Program {
    let (path, limits) = (Path::new(path), Limits::default());
    let bytes = std::fs::read(path).expect("the file is there");
    let format = of_path(path).expect("the format is known");
    let read = format.contents(&bytes, &Reading::of_text(&[], &limits));
    match read.expect("the file is readable") {
        Contents::Program(program) => program.0.program,
        Contents::System(..) => panic!("a program"),
    }
}

#[test]
fn keys_move_through_the_memory_of_the_plain_machine() {
    let Some(mut browser) = Chromium::start("keys") else { return };
    let counting =
        file("browser-keys.tso", COUNTING.replace("830", "90").as_bytes()).to_string_lossy().into_owned();
    for (name, path) in [
        ("keys-sb", "programs/litmus/sb.tso"),
        ("keys-pet", "programs/peterson/peterson.tso"),
        ("keys-count", &counting),
    ] {
        let (address, answers) = page(name, &["check", path]);
        browser.open(&address);
        let (program, limits) = (program(path), Limits::default());
        let run = recorded::run(&answers[0]).expect("there is a run");
        let model = recorded::model(run.model).expect("it is a program's");
        let actions: Vec<Action> =
            run.events.iter().map(|e| recorded::action(&program, e).expect("a decision")).collect();
        browser.key("Home");
        for steps in 0..=actions.len() {
            let events =
                follow(&program, model, actions[..steps].iter().copied(), &limits).expect("it is possible");
            let state = replay(&program, model, &events, &limits).expect("it replays");
            let memory: Vec<String> = state.memory.iter().map(|value| value.to_string()).collect();
            let shown =
                browser.value("[...document.querySelectorAll('.memory td')].map((cell) => cell.textContent)");
            assert_eq!(shown, json!(memory), "{name} after {steps} steps");
            let at = browser.value("+document.querySelector('figure.run').dataset.at");
            assert_eq!(at, steps, "{name}");
            browser.key("ArrowRight");
        }
        browser.key("ArrowLeft");
        assert_eq!(browser.value("+document.querySelector('figure.run').dataset.at"), actions.len() - 1);
        assert!(browser.complaints.is_empty(), "{name}: {:?}", browser.complaints);
    }
}

#[test]
fn the_cycle_has_four_nodes_and_lights_the_run() {
    let Some(mut browser) = Chromium::start("cycle") else { return };
    let (address, answers) = page("cycle", &["robust", "programs/litmus/sb.tso"]);
    assert_eq!(answers[0]["witness"]["cycle"].as_array().map(Vec::len), Some(6), "scripts get events");
    browser.open(&address);
    assert_eq!(browser.value("document.querySelectorAll('.cycle .node').length"), 4);
    let lit = "[...document.querySelectorAll('.cycle .node')].find((node) => node.dataset.rows.includes(' ')) \
               .dispatchEvent(new PointerEvent('pointerenter')); document.querySelectorAll('.k.lit').length";
    assert_eq!(browser.value(lit), 2, "a store and its flush");
    assert_eq!(browser.value("document.querySelectorAll('.program .line.lit').length"), 1);
}

/// Names and comments that would be code if they were not escaped.
const HOSTILE: &str = "// </script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'>\nshared x, y\n\
                       thread p\n store [x], 1 // \"'><script>window.harmed = 1</script>\n load r, [y]\nend\n\
                       thread q\n store [y], 1\n load r, [x]\nend\nnever p.r == 0 && q.r == 0 // ]]><svg onload=window.harmed=1>\n";

#[test]
fn text_of_files_is_shown_and_not_run() {
    let Some(mut browser) = Chromium::start("hostile") else { return };
    let path =
        file("browser-<script>window.harmed=1<.tso", HOSTILE.as_bytes()).to_string_lossy().into_owned();
    for (name, args) in [("hostile-check", ["check", &path]), ("hostile-fence", ["fence", &path])] {
        let (address, _) = page(name, &args);
        browser.open(&address);
        assert_eq!(browser.value("window.harmed === undefined"), true, "{name}");
        assert!(browser.complaints.is_empty(), "{name}: {:?}", browser.complaints);
        let text = browser.value("document.body.textContent").to_string();
        assert!(text.contains("<script>window.harmed = 1</script>"), "{name}: it is shown");
    }
}

/// The explorer, and its address.
struct Explorer(Child, String);

impl Explorer {
    fn start(path: &str) -> Explorer {
        let mut child = Command::new(env!("CARGO_BIN_EXE_overtake"))
            .args(["explore", path, "--no-open"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line)
            .expect("it prints its address");
        Explorer(child, line.trim().to_string())
    }

    /// What the server answers to bytes that are sent to it.
    fn raw(&self, request: &str) -> String {
        let rest = self.1.strip_prefix("http://").expect("an address");
        let (host, _) = rest.split_once('/').expect("a token");
        let mut stream = std::net::TcpStream::connect(host).expect("it listens");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("it answers");
        answer
    }
}

impl Drop for Explorer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Chromium {
    /// Clicks, and waits until the page shows what came of it.
    fn click(&mut self, selector: &str) {
        let before = self.value("document.body.dataset.ready || ''");
        self.value(&format!("document.querySelector({}).click()", json!(selector)));
        self.until(&format!("document.body.dataset.ready !== {before}"));
    }

    fn says(&mut self, selector: &str, words: &str) {
        self.value(&format!("document.querySelector({}).click()", json!(selector)));
        self.until(&format!("document.querySelector('#said').textContent.startsWith({})", json!(words)));
    }

    fn explores(&mut self, explorer: &Explorer) {
        self.open(&explorer.1);
        self.until("document.body.dataset.ready !== undefined");
    }

    fn memory(&mut self) -> Value {
        self.value("[...document.querySelectorAll('#memory td')].map((cell) => cell.textContent)")
    }
}

#[test]
fn the_explorer_steps_flushes_and_goes_back() {
    let Some(mut browser) = Chromium::start("steps") else { return };
    let explorer = Explorer::start("programs/litmus/sb.tso");
    browser.explores(&explorer);
    assert_eq!(browser.memory(), json!(["0", "0"]));
    browser.click("[data-key='0.0']");
    assert_eq!(browser.memory(), json!(["0", "0"]), "the store waits");
    assert_eq!(browser.value("document.querySelector('.one .chip').textContent"), "x=1");
    browser.click("[data-key='0f']");
    assert_eq!(browser.memory(), json!(["1", "0"]));
    browser.click("#undo");
    assert_eq!(browser.memory(), json!(["0", "0"]));
    browser.click("#redo");
    assert_eq!(browser.memory(), json!(["1", "0"]));
    assert_eq!(browser.value("location.hash"), "#m=tso&r=0.0,0f");
    browser.click("#restart");
    assert_eq!(browser.value("document.body.dataset.steps"), "0");
    browser.click("[data-model='sc']");
    browser.click("[data-key='0.0']");
    assert_eq!(browser.memory(), json!(["1", "0"]), "under SC no store waits");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    let own = &explorer.1;
    assert!(
        browser.requests.iter().all(|r| r.starts_with(own) || r.starts_with("data:")),
        "{:?}",
        browser.requests
    );
}

#[test]
fn the_explorer_goes_to_the_bug_and_knows_when_it_is_out_of_reach() {
    let Some(mut browser) = Chromium::start("bug") else { return };
    let explorer = Explorer::start("programs/peterson/peterson.tso");
    browser.explores(&explorer);
    browser.says("#still", "Yes, in ");
    browser.says("#bug", "A run of ");
    assert_eq!(browser.value("document.querySelector('#against').hidden"), false);
    let steps = browser.value("+document.body.dataset.steps").as_i64().expect("a number");
    assert!(steps > 8, "{steps} steps");
    browser.says("#still", "It has gone wrong already.");
    // While its store to turn waits, p0 may still look at the other's flag too early.
    browser.click("#restart");
    for key in ["0.0", "0.1", "0f"] {
        browser.click(&format!("[data-key='{key}']"));
    }
    browser.says("#still", "Yes, in ");
    browser.click("[data-key='0f']");
    browser.says("#still", "No: ");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn a_mistake_in_the_file_is_shown_in_the_page() {
    let Some(mut browser) = Chromium::start("mistake") else { return };
    let path = file("browser-mistake.tso", b"shared x\nthread p\n store [x] 1\nend\n");
    let explorer = Explorer::start(&path.to_string_lossy());
    browser.explores(&explorer);
    let text = browser.value("document.querySelector('#wrong').textContent").to_string();
    assert!(text.contains("error") && text.contains(":3:"), "{text}");
    std::fs::write(&path, "shared x\nthread p\n store [x], 1\nend\n").expect("it can be mended");
    browser.explores(&explorer);
    assert_eq!(browser.value("document.querySelector('#wrong').hidden"), true);
}

#[test]
fn whoever_is_not_the_user_is_refused() {
    let explorer = Explorer::start("programs/litmus/sb.tso");
    let rest = explorer.1.strip_prefix("http://").expect("an address");
    let (host, path) = rest.split_once('/').expect("a token");
    let status = |request: String| {
        let answer = explorer.raw(&request);
        answer.split(' ').nth(1).unwrap_or_default().to_string()
    };
    let get = |host: &str, path: &str, more: &str| {
        status(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"))
    };
    assert_eq!(get(host, path, ""), "200");
    assert_eq!(get(host, "", ""), "403");
    assert_eq!(get(host, "0123456789abcdef0123456789abcdef/", ""), "403");
    assert_eq!(get("evil.example", path, ""), "403");
    assert_eq!(get(host, path, "Host: evil.example\r\n"), "403");
    assert_eq!(get(host, path, "Origin: http://evil.example\r\n"), "403");
    assert_eq!(get(host, &format!("{path}../../etc/passwd"), ""), "404");
    let post = |kind: &str, body: &str| {
        let head =
            format!("POST /{path}state HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: ");
        status(format!("{head}{}\r\n\r\n{body}", body.len()))
    };
    assert_eq!(post("application/json", "{}"), "200");
    assert_eq!(post("text/plain", "{}"), "415");
    assert_eq!(
        status(format!("POST /{path}state HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999\r\n\r\n")),
        "413"
    );
    assert_eq!(
        status(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "a".repeat(30_000))),
        "431"
    );
    assert_eq!(status("nonsense\r\n\r\n".to_string()), "400");
}

/// Connections that say nothing keep nobody from being told that there are too many.
#[test]
fn idle_connections_hold_nobody_up() {
    let explorer = Explorer::start("programs/litmus/sb.tso");
    let rest = explorer.1.strip_prefix("http://").expect("an address");
    let (host, path) = rest.split_once('/').expect("a token");
    let idle: Vec<_> = (0..100).filter_map(|_| std::net::TcpStream::connect(host).ok()).collect();
    let begin = std::time::Instant::now();
    let answer = explorer.raw(&format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(answer.contains(" 503 ") || answer.contains(" 200 "), "{answer}");
    assert!(begin.elapsed() < std::time::Duration::from_secs(8), "after {:?}", begin.elapsed());
    drop(idle);
}

/// What the explorer saves as JSON is a run that replays.
#[test]
fn a_run_that_was_walked_replays() {
    let explorer = Explorer::start("programs/litmus/sb.tso");
    let rest = explorer.1.strip_prefix("http://").expect("an address");
    let (host, path) = rest.split_once('/').expect("a token");
    let body = json!({ "model": "tso", "run": ["0.0", "1.0", "0.1", "0f"] }).to_string();
    let answer = explorer.raw(&format!(
        "POST /{path}json HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let (_, json) = answer.split_once("\r\n\r\n").expect("a body");
    let run = file("browser-walked.json", json.as_bytes());
    let ran = overtake(&["replay", "programs/litmus/sb.tso", &run.to_string_lossy()]);
    assert_eq!((ran.code, ran.first_line()), (0, "replays"), "{}{}", ran.out, ran.err);
}
