//! What does the file say? Tokens between blanks, read from left to right without looking ahead.
//!
//! Lines mean nothing, and names are whatever stands between blanks, so a forgotten operand would take the
//! next item's first word for a name. Hence the one liberty: such a word at the beginning of a line is never
//! an operand. A mistake is reported once, and reading goes on at the next word that may begin an item.
//! Comments may stand everywhere, which the format itself allows between threads only. Instructions and their
//! expressions are in `instr`.

mod instr;

use crate::front::diagnostics::{INSTRUCTION, Parsed, Problem, Problems, Reported, Span, shorten};
use crate::model::{Instr, Loc};
use std::collections::HashMap;

const ITEMS: [&str; 4] = ["initial", "final", "transition", "end"];

/// One thread, with states and registers in the order of their first mention.
pub(crate) struct Automaton<'s> {
    pub name: Word<'s>,
    pub states: NumberedNames<'s>,
    pub registers: NumberedNames<'s>,
    pub initial: Loc,
    pub last: Option<Loc>,
    /// Where final states are named, the word before them included.
    pub finals: Vec<Span>,
    pub transitions: Vec<Transition>,
}

pub(crate) struct Transition {
    pub from: Loc,
    pub to: Loc,
    /// Addresses are as written; which cell that is comes later.
    pub instr: Instr,
    pub line: u32,
    pub text: String,
    /// The address, or the whole instruction if it has none.
    pub address: Span,
}

#[derive(Clone, Copy)]
pub(crate) struct Word<'s> {
    pub text: &'s str,
    pub span: Span,
    first_on_line: bool,
}

/// Names, each with a number and the place where it was first seen.
#[derive(Default)]
pub(crate) struct NumberedNames<'s> {
    pub list: Vec<Word<'s>>,
    numbers: HashMap<&'s str, usize>,
}

impl<'s> NumberedNames<'s> {
    fn number(&mut self, word: Word<'s>) -> usize {
        let next = self.list.len();
        let number = *self.numbers.entry(word.text).or_insert(next);
        if number == next {
            self.list.push(word);
        }
        number
    }

    fn texts(&self) -> impl Iterator<Item = &'s str> + '_ {
        self.list.iter().map(|w| w.text)
    }
}

pub(crate) fn parse<'s>(source: &'s str, problems: &mut Problems<'s>) -> Vec<Automaton<'s>> {
    let mut parser = TrencherParser { source, words: words(source, problems), next: 0, problems };
    parser.file()
}

/// All words, up to a limit.
fn words<'s>(source: &'s str, problems: &mut Problems) -> Vec<Word<'s>> {
    let (mut words, mut begin) = (Vec::new(), 0);
    for line in source.split_inclusive(['\n', '\r']) {
        let mut first_on_line = true;
        for text in line.split_whitespace() {
            let start = begin + (text.as_ptr() as usize - line.as_ptr() as usize);
            if text == "#" {
                break;
            }
            if problems.spend(1).is_err() {
                return words;
            }
            words.push(Word { text, span: Span { start, end: start + text.len() }, first_on_line });
            first_on_line = false;
        }
        begin += line.len();
    }
    words
}

struct TrencherParser<'s, 'p> {
    source: &'s str,
    words: Vec<Word<'s>>,
    next: usize,
    problems: &'p mut Problems<'s>,
}

/// A thread in the making.
struct Draft<'s> {
    states: NumberedNames<'s>,
    registers: NumberedNames<'s>,
    initial: Option<Word<'s>>,
    last: Option<Word<'s>>,
    finals: Vec<Span>,
    transitions: Vec<Transition>,
    /// Mistakes were made: what seems to be missing may be among them.
    doubtful: bool,
}

impl<'s> TrencherParser<'s, '_> {
    fn file(&mut self) -> Vec<Automaton<'s>> {
        let (mut threads, mut seen) = (Vec::new(), HashMap::new());
        // Words outside threads come in runs, of which one report is enough.
        let mut lost = false;
        while let Some(word) = self.item() {
            match self.is_thread(word) {
                true => {
                    lost = false;
                    let thread = self.thread(word, &mut seen);
                    threads.extend(thread);
                }
                false => {
                    self.next += 1;
                    if !std::mem::replace(&mut lost, true) {
                        self.outside(word);
                    }
                }
            }
        }
        threads
    }

    fn outside(&mut self, word: Word<'s>) {
        let problem = match word.text {
            "end" => Problem::error("`end` without a `thread`"),
            text => {
                Problem::error(format!("`{}` outside a thread", shorten(text))).label("expected `thread`")
            }
        };
        let meant = self.problems.nearest(word.text, ["thread"]);
        self.problems.report(problem.at(word.span).suggest(meant));
    }

    /// A misspelt `thread` that is followed by an item opens one all the same.
    fn is_thread(&mut self, word: Word<'s>) -> bool {
        if word.text == "thread" {
            return true;
        }
        let follows = |k: usize| self.words.get(self.next + k).is_some_and(|w| ITEMS.contains(&w.text));
        let misspelt = self.problems.nearest(word.text, ["thread"]).is_some() && follows(2);
        if misspelt {
            self.outside(word);
        }
        misspelt
    }

    fn thread(&mut self, opening: Word<'s>, seen: &mut HashMap<&'s str, Span>) -> Option<Automaton<'s>> {
        self.next += 1;
        let name = self.operand("the name of a thread").ok()?;
        if let Some(first) = seen.insert(name.text, name.span) {
            let line = self.problems.line(first);
            let problem = Problem::error(format!("thread `{}` is defined twice", shorten(name.text)));
            self.problems.report(problem.at(name.span).label(format!("first on line {line}")));
        }
        let mut draft = Draft {
            states: NumberedNames::default(),
            registers: NumberedNames::default(),
            initial: None,
            last: None,
            finals: Vec::new(),
            transitions: Vec::new(),
            doubtful: false,
        };
        loop {
            let Some(word) = self.item().filter(|w| w.text != "thread") else {
                let problem = Problem::error(format!("thread `{}` has no `end`", shorten(name.text)));
                self.problems.report(problem.at(opening.span).label("still open where the next one begins"));
                return None;
            };
            self.next += 1;
            if word.text == "end" {
                return self.finish(name, draft);
            }
            if self.thread_item(word, &mut draft).is_err() {
                draft.doubtful = true;
                self.skip_to_item();
            }
        }
    }

    fn finish(&mut self, name: Word<'s>, mut draft: Draft<'s>) -> Option<Automaton<'s>> {
        if !draft.doubtful {
            self.doubts(&draft);
        }
        let Some(initial) = draft.initial else {
            if !draft.doubtful {
                let problem = Problem::error(format!("thread `{}` has no initial state", shorten(name.text)));
                self.problems.report(problem.at(name.span).help("say where it begins: `initial q0`"));
            }
            return None;
        };
        let initial = Loc(draft.states.number(initial) as u32);
        let last = draft.last.map(|word| Loc(draft.states.number(word) as u32));
        let Draft { states, registers, finals, transitions, .. } = draft;
        Some(Automaton { name, states, registers, initial, last, finals, transitions })
    }

    fn thread_item(&mut self, word: Word<'s>, draft: &mut Draft<'s>) -> Parsed<()> {
        match word.text {
            "initial" => {
                let state = self.operand("the initial state")?;
                self.replaced(draft.initial.replace(state), state, "initial");
            }
            "final" => {
                let state = self.operand("the final state")?;
                draft.finals.push(Span { start: word.span.start, end: state.span.end });
                self.replaced(draft.last.replace(state), state, "final");
            }
            "transition" => self.transition(draft)?,
            text => {
                let meant = self.problems.nearest(text, ITEMS.iter().copied());
                let problem = Problem::error(format!("`{}` begins nothing", shorten(text)))
                    .at(word.span)
                    .label("expected `transition`, `initial`, `final` or `end`")
                    .suggest(meant.clone());
                self.problems.report(problem);
                draft.doubtful = true;
                match meant.as_deref() {
                    Some("transition") => self.transition(draft)?,
                    Some("initial") => draft.initial = Some(self.operand("the initial state")?),
                    _ => return Err(Reported),
                }
            }
        }
        Ok(())
    }

    /// The format lets a second `initial` or `final` replace the first.
    fn replaced(&mut self, first: Option<Word<'s>>, second: Word<'s>, what: &str) {
        if let Some(first) = first.filter(|first| first.text != second.text) {
            let problem = Problem::warning(format!("a second {what} state replaces the first"));
            self.problems
                .report(problem.at(second.span).label(format!("`{}` counts no more", shorten(first.text))));
        }
    }

    fn transition(&mut self, draft: &mut Draft<'s>) -> Parsed<()> {
        let from = self.operand("the state that the transition leaves")?;
        let to = self.operand("the state that the transition leads to")?;
        let word = self.operand("an instruction")?;
        let first = self.next;
        let instr = self.instruction(word, draft)?;
        let (from, to) = (Loc(draft.states.number(from) as u32), Loc(draft.states.number(to) as u32));
        let text: Vec<&str> = self.words[first - 1..self.next].iter().map(|w| w.text).collect();
        let (instr, address) = instr;
        draft.transitions.push(Transition {
            from,
            to,
            instr,
            line: self.problems.line(word.span),
            text: text.join(" "),
            address,
        });
        Ok(())
    }

    /// Registers that nobody sets, and states that lead nowhere, by the way they are spelled.
    fn doubts(&mut self, draft: &Draft<'s>) {
        let mut set = vec![false; draft.registers.list.len()];
        draft.transitions.iter().filter_map(|t| t.instr.target()).for_each(|r| set[r.index()] = true);
        for (word, _) in draft.registers.list.iter().zip(&set).filter(|(_, set)| !**set) {
            let others = draft.registers.list.iter().zip(&set).filter(|(_, set)| **set).map(|(w, _)| w.text);
            let meant = self.problems.nearest(word.text, others);
            let problem =
                Problem::warning(format!("register `{}` is read but never set", shorten(word.text)));
            self.problems.report(problem.at(word.span).label("always 0").suggest(meant));
        }
        let used = |word: &Word| draft.states.numbers.contains_key(word.text);
        for (word, what) in [(draft.initial, "initial"), (draft.last, "final")] {
            if let Some(word) = word.filter(|w| !used(w) && !draft.transitions.is_empty()) {
                let meant = self.problems.nearest(word.text, draft.states.texts());
                let problem = Problem::warning(format!(
                    "no transition names the {what} state `{}`",
                    shorten(word.text)
                ));
                self.problems.report(problem.at(word.span).suggest(meant));
            }
        }
    }
}

/// The cursor.
impl<'s> TrencherParser<'s, '_> {
    /// The next word that is no comment, where an item may begin; there a comment needs no blank behind its
    /// `#`. At a limit, the file ends here.
    fn item(&mut self) -> Option<Word<'s>> {
        if self.problems.spend(INSTRUCTION).is_err() {
            self.next = self.words.len();
        }
        while let Some(word) = self.words.get(self.next).copied() {
            if !word.text.starts_with('#') {
                return Some(word);
            }
            let end = self.source[word.span.start..]
                .find(['\n', '\r'])
                .map_or(self.source.len(), |n| word.span.start + n);
            while self.words.get(self.next).is_some_and(|w| w.span.start < end) {
                self.next += 1;
            }
        }
        None
    }

    /// A word that stands for something, and not for the next item.
    fn operand(&mut self, expected: &str) -> Parsed<Word<'s>> {
        self.problems.spend(1)?;
        let word = self.words.get(self.next).copied();
        let begins_item = |w: &Word| w.first_on_line && (ITEMS.contains(&w.text) || w.text == "thread");
        match word.filter(|w| !begins_item(w)) {
            Some(word) => {
                self.next += 1;
                Ok(word)
            }
            None => {
                let found = if word.is_some() { "the end of the line" } else { "the end of the file" };
                let end = self.words.get(self.next.wrapping_sub(1)).map_or(0, |w| w.span.end);
                let problem = Problem::error(format!("expected {expected}, found {found}"));
                Err(self.problems.report(problem.at(Span { start: end, end })))
            }
        }
    }

    /// To a word that begins an item, be it misspelt: then it mostly stands at the beginning of a line.
    fn skip_to_item(&mut self) {
        let begins = |w: &Word| w.first_on_line || ITEMS.contains(&w.text) || w.text == "thread";
        while self.words.get(self.next).is_some_and(|w| !begins(w)) {
            self.next += 1;
        }
    }

    fn since(&self, first: usize) -> Span {
        self.words[first].span.to(self.words[self.next - 1].span)
    }
}
