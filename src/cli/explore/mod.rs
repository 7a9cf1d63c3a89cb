//! `overtake explore`: a program in the browser, to walk through by hand.
//!
//! `server` is a small web server for this machine alone, `walk` and `model` know what can be done in a state of a
//! program and of a DVE model, by their plain definitions, `asked` answers the page's questions. A run lives in the
//! page, as the list of what was done; every request carries the whole of it, and nothing is kept between requests.

mod asked;
mod model;
mod server;
mod walk;

use super::input;
use super::terminal::Terminal;
use super::{Exit, InputArgs};
use askama::Template;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, Args)]
pub(crate) struct ExploreArgs {
    /// The program, or the model
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// The port to listen on, for this machine alone; by default any that is free
    #[arg(long)]
    pub(super) port: Option<u16>,
    /// Prints the address, and opens no browser
    #[arg(long)]
    pub(super) no_open: bool,
}

/// What the browser is sent.
struct Page {
    title: String,
}

const SCRIPT: &str = include_str!("explore.js");
const STYLE: &str = include_str!("explore.css");

#[derive(Template)]
#[template(path = "explore.html")]
struct ExplorePage<'a> {
    title: &'a str,
    digest: String,
    css: String,
    js: &'a str,
}

impl Page {
    fn of(file: &Path) -> Page {
        Page { title: file.display().to_string() }
    }

    fn html(&self) -> String {
        let (digest, css) = (crate::report::page::digest(SCRIPT), crate::report::page::style() + STYLE);
        let page = ExplorePage { title: &self.title, digest, css, js: SCRIPT };
        page.render().unwrap_or_default()
    }
}

pub(crate) fn run(args: &ExploreArgs, terminal: &Terminal) -> Exit {
    if let Err(why) = input::format(&args.file, &args.input) {
        terminal.error(&why);
        return Exit::BadInput;
    }
    let server = match server::Server::new(args.port) {
        Ok(server) => server,
        Err(why) => {
            terminal.error(&why);
            return Exit::BadInput;
        }
    };
    let address = server.address();
    terminal.print(&format!("{address}\n"));
    if !args.no_open {
        open(&address, terminal);
    }
    let page = Page::of(&args.file);
    server.serve(|path, body| match path {
        "" => server::HttpReply::html(page.html()),
        _ => match asked::answer(path, body, args) {
            Some(answer) => server::HttpReply::json(&answer),
            None => server::HttpReply::not_found(),
        },
    });
    Exit::Good
}

/// Shows the address in the user's browser, if there is one.
fn open(address: &str, terminal: &Terminal) {
    let started = Command::new("xdg-open")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        // Whoever opens the browser is waited for, so that nothing is left of it.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(_) => terminal.warning("no browser was found: open the address yourself"),
    }
}

/// What is wrong, for the page.
fn wrong(why: impl Into<String>) -> Value {
    json!({ "wrong": why.into().trim_end() })
}
