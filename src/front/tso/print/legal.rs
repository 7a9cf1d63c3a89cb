//! Which names may stand in a file? Other formats allow names such as `q=` or `load`; here they are changed
//! as little as it takes to make them legal, and different from each other.

use crate::front::tso::lex::KEYWORDS;
use std::collections::{HashMap, HashSet};

/// Legal names for all of `names`, in their order, none of them in `reserved`. Names that are legal and come
/// first stay as they are.
pub(crate) fn names<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    reserved: &HashSet<String>,
) -> Vec<String> {
    unique(names, reserved, is_name)
}

/// The same for threads, whose names may have an index: `p[1]`.
pub(crate) fn thread_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    unique(names, &HashSet::new(), |name| is_name(name) || is_indexed(name))
}

/// A legal name that is none of `taken`.
pub(crate) fn fresh(name: &str, taken: &HashSet<String>) -> String {
    (1..).map(|n| numbered(name, n)).find(|name| !taken.contains(name)).unwrap_or_default()
}

fn unique<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    reserved: &HashSet<String>,
    is_legal: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut taken = reserved.clone();
    let stays: Vec<bool> =
        names.clone().map(|name| is_legal(name) && taken.insert(name.to_string())).collect();
    let mut counters: HashMap<String, usize> = HashMap::new();
    let mut rename = |name: &str| {
        let base = legal(name);
        let counter = counters.entry(base.clone()).or_insert(0);
        loop {
            *counter += 1;
            let candidate = numbered(&base, *counter);
            if taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    };
    names.zip(stays).map(|(name, stays)| if stays { name.to_string() } else { rename(name) }).collect()
}

fn numbered(base: &str, n: usize) -> String {
    if n == 1 { base.to_string() } else { format!("{base}_{n}") }
}

fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(word)
        && !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !is_keyword(name)
}

fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name)
}

fn is_indexed(name: &str) -> bool {
    let Some((base, index)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) else {
        return false;
    };
    is_name(base) && index.parse::<i64>().is_ok_and(|i| i.to_string() == index)
}

fn legal(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut legal: String = name.trim_end_matches(']').chars().map(letter).collect();
    if legal.is_empty() || legal.starts_with(|c: char| c.is_ascii_digit()) {
        legal.insert(0, '_');
    }
    if is_keyword(&legal) {
        legal.push('_');
    }
    legal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&str], expect: &[&str]) {
        let reserved = HashSet::from(["x".to_string()]);
        assert_eq!(names(given.iter().copied(), &reserved), expect);
    }

    #[test]
    fn legal_names_stay() {
        check(&["r", "_", "r1"], &["r", "_", "r1"]);
    }

    #[test]
    fn illegal_names_become_legal() {
        check(&["q=", "1", "", "load", "é"], &["q_", "_1", "_", "load_", "__2"]);
    }

    #[test]
    fn no_two_names_become_equal() {
        check(&["q=", "q_", "q-", "r", "r"], &["q__2", "q_", "q__3", "r", "r_2"]);
    }

    #[test]
    fn reserved_names_are_avoided() {
        check(&["x", "x_2"], &["x_3", "x_2"]);
    }

    #[test]
    fn threads_keep_their_index() {
        let names = thread_names(["p[1]", "p[-2]", "p[01]", "end[1]", "p[x"].into_iter());
        assert_eq!(names, ["p[1]", "p[-2]", "p_01", "end_1", "p_x"]);
    }
}
