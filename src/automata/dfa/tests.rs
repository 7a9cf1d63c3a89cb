//! Random automata against brute force: every word up to a length is asked for.

use super::build::Nfa;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Letters of the tests; the first two are of one kind.
const LETTERS: u32 = 3;
/// Words are enumerated up to this length.
const LONGEST: usize = 6;

fn is_of_kind(letter: Letter) -> bool {
    letter.0 < 2
}

fn words() -> Vec<Vec<Letter>> {
    let mut all = vec![vec![]];
    let mut last = all.clone();
    for _ in 0..LONGEST {
        let longer = |word: &Vec<Letter>| (0..LETTERS).map(|l| [&word[..], &[Letter(l)]].concat()).collect();
        last = last.iter().flat_map::<Vec<_>, _>(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

fn language(dfa: &Dfa) -> BTreeSet<Vec<Letter>> {
    words().into_iter().filter(|word| dfa.accepts(word)).collect()
}

fn limits() -> Limits {
    Limits::default()
}

/// A random automaton with choices and silent steps: so many states, edges, and which of them accept.
fn dfa() -> impl Strategy<Value = Dfa> {
    let edges = prop::collection::vec((0usize..5, prop::option::weighted(0.8, 0..LETTERS), 0usize..5), 0..9);
    (edges, 1u8..32).prop_map(|(edges, accepting)| {
        let mut nfa = Nfa::default();
        let states: Vec<usize> = (0..5).map(|k| nfa.add_state(accepting >> k & 1 != 0)).collect();
        for (from, letter, to) in edges {
            match letter {
                None => nfa.add_silent(states[from], states[to]),
                Some(letter) => nfa.add_edge(states[from], Letter(letter), states[to]),
            }
        }
        nfa.into_dfa(&limits()).unwrap()
    })
}

/// All words of the first language, each followed by one of the second, up to the length.
fn followed(a: &BTreeSet<Vec<Letter>>, b: &BTreeSet<Vec<Letter>>) -> BTreeSet<Vec<Letter>> {
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| [&x[..], y].concat()));
    pairs.filter(|word| word.len() <= LONGEST).collect()
}

fn newest(word: &[Letter]) -> Option<Letter> {
    word.iter().copied().rfind(|&letter| is_of_kind(letter))
}

#[test]
fn two_ways_to_the_same_language_are_one_automaton() {
    let (a, b) = (Dfa::letter(Letter(0)), Dfa::letter(Letter(1)));
    let limits = limits();
    let then = |x: &Dfa, y: &Dfa| x.then(y, &limits).unwrap();
    let any = |x: &Dfa, of: &[&Dfa]| x.then_any_of(of, &limits).unwrap();
    let ab = then(&a, &b);
    // a (b a)* b = a b (a b)*
    assert_eq!(then(&any(&a, &[&then(&b, &a)]), &b), any(&ab, &[&ab]));
    // (a* b*)* = (a | b)*
    let none = Dfa::empty_word();
    assert_eq!(any(&none, &[&any(&any(&none, &[&a]), &[&b])]), any(&none, &[&a, &b]));
    assert_eq!(any(&none, &[&a, &b]).size(), 1);
}

#[test]
fn nothing_is_left_of_words_that_begin_otherwise() {
    let left = Dfa::letter(Letter(0)).after(Letter(1), &limits()).unwrap();
    assert!(left.is_empty() && left.shortest(&limits()) == Ok(None));
    assert!(Dfa::empty_word().includes(&left, &limits()).unwrap());
    assert!(!left.includes(&Dfa::empty_word(), &limits()).unwrap());
}

#[test]
fn what_takes_long_ends_at_a_limit() {
    let late = Limits { deadline: Some(std::time::Instant::now()), ..Limits::default() };
    let (a, any) = (Dfa::letter(Letter(0)), Dfa::empty_word());
    assert!(a.then(&any, &late).is_err() && a.then_any_of(&[&a], &late).is_err());
    assert!(a.includes(&a, &late).is_err() && a.newest(is_of_kind, &late).is_err());
    assert!(a.after(Letter(0), &late).is_err() && a.with_newest(is_of_kind, |_| true, &late).is_err());
    assert!(a.split(&[], &[Letter(0)], &late).is_err() && a.shortest(&late).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn equal_languages_are_equal_values(a in dfa(), b in dfa()) {
        // Two automata of at most 32 subsets that differ need not do so by a short word.
        let same = a.includes(&b, &limits()).unwrap() && b.includes(&a, &limits()).unwrap();
        prop_assert_eq!(same, a == b);
        if same {
            prop_assert_eq!(language(&a), language(&b));
        }
    }

    #[test]
    fn inclusion_is_that_of_words(a in dfa(), b in dfa()) {
        let (own, others) = (language(&a), language(&b));
        let includes = a.includes(&b, &limits()).unwrap();
        prop_assert!(!includes || own.is_superset(&others));
        let both = a.then_any_of(&[], &limits()).unwrap();
        prop_assert_eq!(&both, &a);
        // A word that shows the contrary is no longer than the product of the automata.
        if !includes && a.size() * b.size() <= LONGEST {
            prop_assert!(!own.is_superset(&others));
        }
    }

    #[test]
    fn concatenation_is_that_of_words(a in dfa(), b in dfa()) {
        let all = a.then(&b, &limits()).unwrap();
        prop_assert_eq!(language(&all), followed(&language(&a), &language(&b)));
    }

    #[test]
    fn repetition_is_that_of_words(a in dfa(), b in dfa(), c in dfa()) {
        let all = a.then_any_of(&[&b, &c], &limits()).unwrap();
        let either: BTreeSet<_> = language(&b).union(&language(&c)).cloned().collect();
        let mut expected = language(&a);
        for _ in 0..LONGEST {
            expected.extend(followed(&expected, &either));
        }
        prop_assert_eq!(language(&all), expected);
    }

    #[test]
    fn the_quotient_has_what_is_left(a in dfa(), letter in 0..LETTERS) {
        let left = language(&a.after(Letter(letter), &limits()).unwrap());
        for word in words().into_iter().filter(|word| word.len() < LONGEST) {
            prop_assert_eq!(left.contains(&word), a.accepts(&[&[Letter(letter)], &word[..]].concat()));
        }
        let begins = a.first().any(|first| first == Letter(letter));
        prop_assert_eq!(begins, !a.after(Letter(letter), &limits()).unwrap().is_empty());
    }

    #[test]
    fn the_newest_letter_of_a_kind_is_the_last_one(a in dfa(), wanted in prop::option::of(0u32..2)) {
        let wanted = wanted.map(Letter);
        let chosen = a.with_newest(is_of_kind, |newest| newest == wanted, &limits()).unwrap();
        let expected: BTreeSet<_> = language(&a).into_iter().filter(|w| newest(w) == wanted).collect();
        prop_assert_eq!(language(&chosen), expected);
        let found = a.newest(is_of_kind, &limits()).unwrap();
        prop_assert_eq!(found.contains(&wanted), !chosen.is_empty());
        prop_assert!(language(&a).iter().all(|word| found.contains(&newest(word))));
    }

    #[test]
    fn the_shortest_word_is_one_and_none_is_shorter(a in dfa()) {
        match a.shortest(&limits()).unwrap() {
            None => prop_assert!(a.is_empty() && language(&a).is_empty()),
            Some(word) => {
                prop_assert!(a.accepts(&word) && (word.is_empty() == a.has_empty_word()));
                prop_assert!(language(&a).iter().all(|other| other.len() >= word.len()));
            }
        }
    }

    #[test]
    fn a_word_is_split_if_it_can_be(a in dfa(), b in dfa(), c in dfa()) {
        let all = a.then_any_of(&[&b, &c], &limits()).unwrap();
        for word in words().into_iter().filter(|word| word.len() <= 4) {
            let Some(split) = a.split(&[&b, &c], &word, &limits()).unwrap() else {
                prop_assert!(!all.accepts(&word));
                continue;
            };
            prop_assert!(a.accepts(&word[..split.base]));
            let mut at = split.base;
            for (number, part) in split.parts {
                prop_assert!(part.start == at && !part.is_empty());
                prop_assert!([&b, &c][number].accepts(&word[part.clone()]));
                at = part.end;
            }
            prop_assert_eq!(at, word.len());
        }
    }
}
