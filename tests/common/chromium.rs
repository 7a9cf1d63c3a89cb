//! A headless Chromium, driven over its debugging socket: pages are opened in it, clicked and asked, and what it complains
//! about or fetches is written down.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// What the browser may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Chromium {
    process: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: String,
    folder: PathBuf,
    number: u64,
    events: VecDeque<Value>,
    /// Errors of scripts, and whatever else the console was told as one.
    pub complaints: Vec<String>,
    /// What was fetched.
    pub requests: Vec<String>,
}

/// The browser, if this machine has one.
pub(crate) fn program() -> Option<&'static str> {
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&&str| {
        Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let found = known.iter().find(is_there).copied();
    if found.is_none() {
        eprintln!("skipped: there is no Chromium on this machine");
    }
    found
}

impl Chromium {
    /// Named after the test, so that each has a folder of its own.
    pub(crate) fn start(name: &str) -> Option<Chromium> {
        let program = program()?;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("chromium-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-port=0", "--window-size=1400,900"])
            .arg(format!("--user-data-dir={}", folder.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let begun = Instant::now();
        let (port, path) = loop {
            let text = std::fs::read_to_string(folder.join("DevToolsActivePort")).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n') {
                break (port.trim().to_string(), path.trim().to_string());
            }
            assert!(begun.elapsed() < PATIENCE, "the browser opens its port");
            std::thread::sleep(Duration::from_millis(50));
        };
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("the port is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let address = format!("ws://127.0.0.1:{port}{path}");
        let (socket, _) =
            tungstenite::client(address, MaybeTlsStream::Plain(stream)).expect("the browser answers");
        let (complaints, requests) = (vec![], vec![]);
        let mut browser = Chromium {
            process,
            socket,
            session: String::new(),
            folder,
            number: 0,
            events: VecDeque::new(),
            complaints,
            requests,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = session["sessionId"].as_str().expect("a session").to_string();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.socket.send(Message::text(message.to_string())).expect("the browser listens");
        loop {
            let told = self.next();
            if told["id"] == self.number {
                assert!(told["error"].is_null(), "{method}: {}", told["error"]);
                return told["result"].clone();
            }
            self.events.push_back(told);
        }
    }

    fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().expect("the browser answers in time") {
                let told: Value = serde_json::from_str(&text).expect("the browser speaks JSON");
                self.note(&told);
                return told;
            }
        }
    }

    fn note(&mut self, told: &Value) {
        let params = &told["params"];
        match told["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.complaints.push(params["entry"]["text"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                self.requests.push(params["request"]["url"].as_str().unwrap_or_default().to_string());
            }
            _ => {}
        }
    }

    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.events.clear();
        (self.complaints, self.requests) = (vec![], vec![]);
        self.call("Page.navigate", json!({ "url": address }));
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// The value of an expression, or of what it promises.
    pub(crate) fn value(&mut self, script: &str) -> Value {
        let asked = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let told = self.call("Runtime.evaluate", asked);
        assert!(told["exceptionDetails"].is_null(), "{script}: {}", told["exceptionDetails"]);
        told["result"]["value"].clone()
    }

    #[track_caller]
    pub(crate) fn until(&mut self, script: &str) {
        let begun = Instant::now();
        while self.value(script) != true {
            assert!(begun.elapsed() < PATIENCE, "never: {script}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn key(&mut self, key: &str) {
        let code = match key {
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            "Home" => 36,
            _ => 35,
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", event);
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
