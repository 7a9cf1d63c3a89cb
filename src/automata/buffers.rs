//! What may a store buffer contain? Its contents are words over letters, each an address and a value; sets of
//! contents are languages, and what instructions do to buffers they do to languages (`[LindenWolper10]`,
//! Section 3).
//!
//! A store appends its letter to every word; a commit takes the first letter off those that begin with it; a
//! load keeps the words that explain its value: those whose newest entry of the address has it, and if memory
//! has it too, those without such an entry. (The paper forbids entries of *other* addresses behind the newest
//! one, which is a slip of the pen.)
//!
//! Languages are kept once each and known by number, so that comparing them is comparing numbers, and the
//! results of operations are remembered. Not here: threads, and who does what when.

use super::dfa::{Dfa, Letter, Split};
use super::interned::Interned;
use crate::limits::{Limit, Limits};
use crate::model::{Addr, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// A language of buffer contents, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lang(u32);

/// The newest values of an address in the words of a language; `None` for words without an entry of it.
pub type Newest = Arc<[Option<Value>]>;

pub struct Buffers<'a> {
    letters: Interned<(Addr, Value)>,
    languages: Interned<Dfa>,
    stored: HashMap<(Lang, Letter), Lang>,
    committed: HashMap<(Lang, Letter), Lang>,
    newest: HashMap<(Lang, Addr), Newest>,
    loaded: HashMap<(Lang, Addr, Value, bool), Option<Lang>>,
    included: HashMap<(Lang, Lang), bool>,
    limits: &'a Limits,
}

impl<'a> Buffers<'a> {
    /// The language of the empty buffer.
    pub const EMPTY: Lang = Lang(0);

    pub fn new(limits: &'a Limits) -> Self {
        let mut languages = Interned::default();
        languages.number(Dfa::empty_word());
        Buffers {
            letters: Interned::default(),
            languages,
            stored: HashMap::new(),
            committed: HashMap::new(),
            newest: HashMap::new(),
            loaded: HashMap::new(),
            included: HashMap::new(),
            limits,
        }
    }

    pub fn letter(&mut self, addr: Addr, value: Value) -> Letter {
        Letter(self.letters.number((addr, value)))
    }

    /// The letter of an entry, if some content has had it.
    pub fn known_letter(&self, entry: (Addr, Value)) -> Option<Letter> {
        self.letters.find(&entry).map(Letter)
    }

    pub fn entry(&self, letter: Letter) -> (Addr, Value) {
        *self.letters.get(letter.0)
    }

    pub fn dfa(&self, lang: Lang) -> &Dfa {
        self.languages.get(lang.0)
    }

    fn lang(&mut self, dfa: Dfa) -> Lang {
        Lang(self.languages.number(dfa))
    }

    /// May the buffer be empty?
    pub fn may_be_empty(&self, lang: Lang) -> bool {
        self.dfa(lang).has_empty_word()
    }

    /// Every content, with one more entry.
    pub fn store(&mut self, lang: Lang, letter: Letter) -> Result<Lang, Limit> {
        if let Some(&known) = self.stored.get(&(lang, letter)) {
            return Ok(known);
        }
        let longer = self.dfa(lang).then(&Dfa::letter(letter), self.limits)?;
        let longer = self.lang(longer);
        self.stored.insert((lang, letter), longer);
        Ok(longer)
    }

    /// What is left of the contents whose oldest entry is this one.
    pub fn commit(&mut self, lang: Lang, letter: Letter) -> Result<Lang, Limit> {
        if let Some(&known) = self.committed.get(&(lang, letter)) {
            return Ok(known);
        }
        let left = self.dfa(lang).after(letter, self.limits)?;
        let left = self.lang(left);
        self.committed.insert((lang, letter), left);
        Ok(left)
    }

    pub fn newest(&mut self, lang: Lang, addr: Addr) -> Result<Newest, Limit> {
        if let Some(known) = self.newest.get(&(lang, addr)) {
            return Ok(known.clone());
        }
        let of_addr = |letter| self.entry(letter).0 == addr;
        let found = self.dfa(lang).newest(of_addr, self.limits)?;
        let newest: Newest = found.into_iter().map(|l| l.map(|letter| self.entry(letter).1)).collect();
        self.newest.insert((lang, addr), newest.clone());
        Ok(newest)
    }

    /// The contents that explain why a load finds the value: their newest entry of the address has it or, if
    /// memory may tell, they have no such entry.
    pub fn load(
        &mut self,
        lang: Lang,
        addr: Addr,
        value: Value,
        memory_tells: bool,
    ) -> Result<Option<Lang>, Limit> {
        let key = (lang, addr, value, memory_tells);
        if let Some(&known) = self.loaded.get(&key) {
            return Ok(known);
        }
        let of_addr = |letter| self.entry(letter).0 == addr;
        let explains = |newest: Option<Letter>| newest.map_or(memory_tells, |l| self.entry(l).1 == value);
        let chosen = self.dfa(lang).with_newest(of_addr, explains, self.limits)?;
        let chosen = (!chosen.is_empty()).then(|| self.lang(chosen));
        self.loaded.insert(key, chosen);
        Ok(chosen)
    }

    /// Every content of the base, followed by any number of words of the others.
    pub fn repeat(&mut self, base: Lang, others: &[Lang]) -> Result<Lang, Limit> {
        let others: Vec<&Dfa> = others.iter().map(|&lang| self.dfa(lang)).collect();
        let all = self.dfa(base).then_any_of(&others, self.limits)?;
        Ok(self.lang(all))
    }

    /// How a content of the base, followed by words of the others, is put together.
    pub fn split(&self, base: Lang, others: &[Lang], word: &[Letter]) -> Result<Option<Split>, Limit> {
        let others: Vec<&Dfa> = others.iter().map(|&lang| self.dfa(lang)).collect();
        self.dfa(base).split(&others, word, self.limits)
    }

    /// Is every content of the small language one of the large?
    pub fn includes(&mut self, large: Lang, small: Lang) -> Result<bool, Limit> {
        if large == small {
            return Ok(true);
        }
        if let Some(&known) = self.included.get(&(large, small)) {
            return Ok(known);
        }
        let included = self.dfa(large).includes(self.dfa(small), self.limits)?;
        self.included.insert((large, small), included);
        Ok(included)
    }

    /// States of the largest automaton so far.
    pub fn largest(&self) -> usize {
        self.languages.iter().map(Dfa::size).max().unwrap_or(0)
    }
}
