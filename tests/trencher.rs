//! Does what we write for Trencher keep its grammar and mean the same? There is no Trencher here, so this
//! file has a reader of the format and a plain search under SC, both written from the format's description.

use overtake::front::{trencher, tso};
use overtake::limits::Limits;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

const OPERATORS: [&str; 14] = ["==", "!=", "<", "<=", ">", ">=", "&&", "||", "+", "-", "*", "&", "/", "%"];
/// Larger searches are left out.
const MAX_STATES: usize = 100_000;

enum Term {
    Int(i32),
    Reg(usize),
    Not(Box<Term>),
    Op(String, Box<Term>, Box<Term>),
}

enum Action {
    Write(Term, Term),
    Read(usize, Term),
    Local(usize, Term),
    Check(Term),
    Nothing,
    Lock,
    Unlock,
}

#[derive(Default)]
struct Automaton {
    states: HashMap<String, usize>,
    registers: HashMap<String, usize>,
    initial: Option<usize>,
    last: Option<usize>,
    transitions: Vec<(usize, usize, Action)>,
}

struct Reader<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
}

/// Comments stand between threads: a token `#`, up to the end of its line.
fn read(text: &str) -> Vec<Automaton> {
    let mut tokens = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("# ") {
            assert!(!inside, "a comment inside a thread");
            continue;
        }
        for token in line.split_whitespace() {
            inside = if token == "thread" { true } else { inside && token != "end" };
            tokens.push(token);
        }
    }
    let mut reader = Reader { tokens: tokens.into_iter().peekable() };
    let (mut threads, mut names) = (Vec::new(), HashSet::new());
    while reader.tokens.peek().is_some() {
        reader.word("thread");
        assert!(names.insert(reader.token()), "thread defined twice");
        threads.push(reader.automaton());
    }
    threads
}

fn id(table: &mut HashMap<String, usize>, name: &str) -> usize {
    let next = table.len();
    *table.entry(name.to_string()).or_insert(next)
}

impl<'a> Reader<'a> {
    fn token(&mut self) -> &'a str {
        self.tokens.next().expect("the text goes on")
    }

    fn word(&mut self, word: &str) {
        assert_eq!(self.token(), word);
    }

    fn state(&mut self, of: &mut Automaton) -> usize {
        let name = self.token();
        assert!(!["final", "new_final", "_final", "_prefinal"].contains(&name), "reserved state {name}");
        id(&mut of.states, name)
    }

    fn automaton(&mut self) -> Automaton {
        let mut of = Automaton::default();
        loop {
            match self.token() {
                "initial" => of.initial = Some(self.state(&mut of)),
                "final" => of.last = Some(self.state(&mut of)),
                "transition" => {
                    let (from, to) = (self.state(&mut of), self.state(&mut of));
                    let action = self.action(&mut of);
                    of.transitions.push((from, to, action));
                }
                "end" => return of,
                other => panic!("no item: {other}"),
            }
        }
    }

    fn action(&mut self, of: &mut Automaton) -> Action {
        match self.token() {
            "write" => Action::Write(self.term(of), self.term(of)),
            "read" => Action::Read(self.register(of), self.term(of)),
            "local" => Action::Local(self.register(of), self.term(of)),
            "check" => Action::Check(self.term(of)),
            "mfence" | "noop" => Action::Nothing,
            "lock" => Action::Lock,
            "unlock" => Action::Unlock,
            other => panic!("no instruction: {other}"),
        }
    }

    fn register(&mut self, of: &mut Automaton) -> usize {
        let name = self.token();
        assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()) && name != "_tmp", "register {name}");
        id(&mut of.registers, name)
    }

    fn term(&mut self, of: &mut Automaton) -> Term {
        let token = *self.tokens.peek().expect("the text goes on");
        if let Ok(value) = token.parse() {
            self.token();
            Term::Int(value)
        } else if token == "!" {
            self.token();
            Term::Not(Box::new(self.term(of)))
        } else if OPERATORS.contains(&token) {
            self.token();
            Term::Op(token.to_string(), Box::new(self.term(of)), Box::new(self.term(of)))
        } else {
            Term::Reg(self.register(of))
        }
    }
}

fn value(term: &Term, registers: &[i32]) -> i32 {
    match term {
        Term::Int(v) => *v,
        Term::Reg(r) => registers[*r],
        Term::Not(a) => (value(a, registers) == 0) as i32,
        Term::Op(op, a, b) => {
            let (a, b) = (value(a, registers), value(b, registers));
            match op.as_str() {
                "==" => (a == b) as i32,
                "!=" => (a != b) as i32,
                "<" => (a < b) as i32,
                "<=" => (a <= b) as i32,
                ">" => (a > b) as i32,
                ">=" => (a >= b) as i32,
                "&&" => (a != 0 && b != 0) as i32,
                "||" => (a != 0 || b != 0) as i32,
                "+" => a.wrapping_add(b),
                "-" => a.wrapping_sub(b),
                "*" => a.wrapping_mul(b),
                "&" => a & b,
                "/" => a / b,
                _ => a % b,
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    at: Vec<usize>,
    registers: Vec<Vec<i32>>,
    memory: BTreeMap<i32, i32>,
    owner: Option<usize>,
}

/// Can all threads be in their final states at once? `None` if that takes too long to find out.
fn reachable(threads: &[Automaton]) -> Option<bool> {
    let start = State {
        at: threads.iter().map(|t| t.initial.expect("a thread has an initial state")).collect(),
        registers: threads.iter().map(|t| vec![0; t.registers.len()]).collect(),
        memory: BTreeMap::new(),
        owner: None,
    };
    let (mut seen, mut todo) = (HashSet::from([start.clone()]), vec![start]);
    while let Some(state) = todo.pop() {
        if threads.iter().zip(&state.at).all(|(t, &at)| t.last == Some(at)) {
            return Some(true);
        }
        if seen.len() > MAX_STATES {
            return None;
        }
        for next in successors(threads, &state) {
            if seen.insert(next.clone()) {
                todo.push(next);
            }
        }
    }
    Some(false)
}

fn successors(threads: &[Automaton], state: &State) -> Vec<State> {
    let mut all = Vec::new();
    for (t, thread) in threads.iter().enumerate() {
        if state.owner.is_some_and(|owner| owner != t) {
            continue;
        }
        for (_, to, action) in thread.transitions.iter().filter(|(from, ..)| *from == state.at[t]) {
            let mut next = state.clone();
            next.at[t] = *to;
            if act(action, t, &mut next) {
                all.push(next);
            }
        }
    }
    all
}

fn act(action: &Action, t: usize, state: &mut State) -> bool {
    let eval = |term| value(term, &state.registers[t]);
    match action {
        Action::Write(v, a) => {
            let (v, a) = (eval(v), eval(a));
            state.memory.insert(a, v);
        }
        Action::Read(r, a) => state.registers[t][*r] = state.memory.get(&eval(a)).copied().unwrap_or(0),
        Action::Local(r, e) => state.registers[t][*r] = eval(e),
        Action::Check(e) => return eval(e) != 0,
        Action::Nothing => {}
        Action::Lock if state.owner.is_none() => state.owner = Some(t),
        Action::Unlock if state.owner == Some(t) => state.owner = None,
        Action::Lock | Action::Unlock => return false,
    }
    true
}

#[derive(Deserialize)]
struct Expected {
    file: String,
    #[serde(default)]
    define: BTreeMap<String, i64>,
    sc: Verdict,
}

#[derive(PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Safe,
    Violated,
}

fn corpus() -> Vec<(PathBuf, Expected)> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let folders = programs.read_dir().expect("programs are bundled").map(|f| f.expect("readable").path());
    let entries = |folder: PathBuf| {
        let text = std::fs::read_to_string(folder.join("expected.ron")).unwrap_or("[]".into());
        let list: Vec<Expected> = ron::from_str(&text).expect("expectations are readable");
        list.into_iter().map(move |e| (folder.clone(), e))
    };
    folders.flat_map(entries).collect()
}

#[test]
fn what_is_written_keeps_the_grammar_and_the_verdict() {
    let (mut written, mut decided) = (0, 0);
    for (folder, expected) in corpus() {
        let source = std::fs::read_to_string(folder.join(&expected.file)).expect("the program is there");
        let defines: Vec<_> = expected.define.iter().map(|(k, v)| (k.clone(), *v)).collect();
        let program =
            tso::read(&source, &defines, &Limits::default()).expect("bundled programs are readable").program;
        let Ok(text) = trencher::write(&program, &Limits::default()) else { continue };
        let threads = read(&text);
        written += 1;
        if threads.iter().any(|t| t.last.is_none()) {
            continue;
        }
        if let Some(found) = reachable(&threads) {
            decided += 1;
            let violated = expected.sc == Verdict::Violated;
            assert_eq!(found, violated, "{} {:?}\n{text}", expected.file, expected.define);
        }
    }
    eprintln!("{written} programs written, {decided} of them searched");
    assert!(decided > 20, "{decided} of {written} programs were searched");
}
