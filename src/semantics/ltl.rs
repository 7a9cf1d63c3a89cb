//! What does a formula say of a run? Linear temporal logic on lassos, by its definition `[Pnueli77]`.
//!
//! A lasso is a word of states, and the place that follows its last one. Until is the least solution of its
//! law of expansion, release the greatest: each is iterated from nothing, or from everything, until it stands.

use crate::model::formula::{Connective, Formula};

/// An infinite word: what each proposition is at each place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub letters: Vec<Vec<bool>>,
    /// What follows the last letter.
    pub cycle_from: usize,
}

impl Word {
    fn next(&self, place: usize) -> usize {
        if place + 1 < self.letters.len() { place + 1 } else { self.cycle_from }
    }
}

/// Does the formula hold at the beginning of the word?
pub fn holds(formula: &Formula, word: &Word) -> bool {
    everywhere(formula, word)[0]
}

/// Per place of the word, whether the formula holds from there on.
fn everywhere(formula: &Formula, word: &Word) -> Vec<bool> {
    let places = 0..word.letters.len();
    let all = |each: &dyn Fn(usize) -> bool| places.clone().map(each).collect::<Vec<bool>>();
    match formula {
        Formula::True => all(&|_| true),
        Formula::False => all(&|_| false),
        Formula::Proposition(p) => all(&|i| word.letters[i][*p]),
        Formula::Not(a) => everywhere(a, word).into_iter().map(|a| !a).collect(),
        Formula::Next(a) => {
            let a = everywhere(a, word);
            all(&|i| a[word.next(i)])
        }
        Formula::Finally(a) => until(&all(&|_| true), &everywhere(a, word), false, word),
        Formula::Globally(a) => until(&everywhere(a, word), &all(&|_| false), true, word),
        Formula::Binary(connective, a, b) => {
            let (a, b) = (everywhere(a, word), everywhere(b, word));
            match connective {
                Connective::And => all(&|i| a[i] && b[i]),
                Connective::Or => all(&|i| a[i] || b[i]),
                Connective::Implies => all(&|i| !a[i] || b[i]),
                Connective::Iff => all(&|i| a[i] == b[i]),
                Connective::Xor => all(&|i| a[i] != b[i]),
                Connective::Until => until(&a, &b, false, word),
                Connective::WeakUntil => until(&a, &b, true, word),
                // `a R b` is `b W (a && b)`.
                Connective::Release => until(&b, &all(&|i| a[i] && b[i]), true, word),
            }
        }
    }
}

/// `a` until `b`, or, if that will do, `a` for ever.
fn until(a: &[bool], b: &[bool], for_ever: bool, word: &Word) -> Vec<bool> {
    let mut now = vec![for_ever; a.len()];
    loop {
        let next: Vec<bool> = (0..a.len()).map(|i| b[i] || a[i] && now[word.next(i)]).collect();
        if next == now {
            return now;
        }
        now = next;
    }
}
