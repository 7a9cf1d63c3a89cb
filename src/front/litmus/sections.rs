//! Where are the parts of a litmus test? Header, initial state, rows of the program, and what follows them.
//!
//! A first look at the file, without understanding any part: comments become blanks, so that every place
//! keeps its number, and the program ends at the first word that begins something else.

use crate::front::diagnostics::{Problem, Problems, Reported, Span};

/// Words that end the program.
const KEYWORDS: [&str; 7] = ["final", "forall", "exists", "locations", "filter", "observed", "cases"];

pub(crate) struct Sections {
    /// The file with comments blanked out, up to the first `<<`.
    pub clean: String,
    pub arch: Span,
    pub name: Span,
    /// Between the braces.
    pub init: Span,
    pub program: Span,
    /// From the first keyword on.
    pub question: Span,
}

pub(crate) fn split(source: &str, problems: &mut Problems) -> Result<Sections, Reported> {
    problems.reserve(source.len())?;
    let mut clean = without_comments(source, problems);
    clean.truncate(clean.find("<<").unwrap_or(clean.len()));
    let arch = word(&clean, 0);
    let name = word(&clean, arch.end);
    if arch.start == arch.end {
        return Err(problems.report(Problem::error("this file is empty").help(
            "a litmus test begins with `X86` or `X86_64` and its name, then { its initial state } and its threads",
        )));
    }
    let open = match opening_brace(&clean, arch.end) {
        Some(open) => open,
        None => {
            let missing = Problem::error("this test has no initial state").at(arch);
            return Err(
                problems.report(missing.help("write `{}` before the threads if everything starts at 0"))
            );
        }
    };
    let name = if name.end <= open { name } else { Span { start: arch.end, end: arch.end } };
    if name.start == name.end {
        problems.report(
            Problem::error("this test has no name").at(arch).help("write it behind the architecture"),
        );
    }
    let Some(close) = closing_brace(&clean, open) else {
        let brace = Span { start: open, end: open + 1 };
        return Err(problems.report(Problem::error("this `{` is never closed").at(brace)));
    };
    let after = clean[close + 1..].trim_start();
    let mut begin = clean.len() - after.len();
    if after.starts_with(';') {
        begin += 1;
    }
    let end = keyword(&clean, begin).unwrap_or(clean.len());
    Ok(Sections {
        arch,
        name,
        init: Span { start: open + 1, end: close },
        program: Span { start: begin, end },
        question: Span { start: end, end: clean.len() },
        clean,
    })
}

/// Comments nest. Inside the quotes of a header they are none.
fn without_comments(source: &str, problems: &mut Problems) -> String {
    let mut bytes = source.as_bytes().to_vec();
    let (mut opened, mut i, mut in_header) = (Vec::new(), 0, true);
    // Some editors begin a file with a byte order mark.
    if source.starts_with('\u{FEFF}') {
        bytes[..3].fill(b' ');
        i = 3;
    }
    while i < bytes.len() {
        let pair = &source.as_bytes()[i..source.len().min(i + 2)];
        if pair == b"(*" {
            opened.push(i);
        }
        let quoted = if in_header && opened.is_empty() && pair[0] == b'"' { quote(source, i) } else { None };
        if let Some(end) = quoted {
            i = end;
            continue;
        }
        if opened.is_empty() && pair[0] == b'{' {
            in_header = false;
        }
        let step = if pair == b"(*" || pair == b"*)" && !opened.is_empty() { 2 } else { 1 };
        if !opened.is_empty() {
            bytes[i..i + step].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        }
        if pair == b"*)" {
            opened.pop();
        }
        i += step;
    }
    if let Some(&start) = opened.first() {
        let span = Span { start, end: start + 2 };
        problems.report(Problem::error("this comment never ends").at(span).help("close it with `*)`"));
    }
    String::from_utf8(bytes).expect("whole comments are blanked out, byte by byte")
}

/// The end of a text in quotes that begins here, if it ends on its line.
fn quote(source: &str, start: usize) -> Option<usize> {
    let line = source[start + 1..].split('\n').next()?;
    Some(start + 1 + line.find('"')? + 1)
}

fn word(text: &str, from: usize) -> Span {
    let rest = &text[from..];
    let start = from + rest.len() - rest.trim_start().len();
    let len = text[start..].find(|c: char| c.is_whitespace()).unwrap_or(text.len() - start);
    Span { start, end: start + len }
}

/// The first brace outside quotes.
fn opening_brace(clean: &str, from: usize) -> Option<usize> {
    let mut i = from;
    while i < clean.len() {
        match clean.as_bytes()[i] {
            b'{' => return Some(i),
            b'"' => i = quote(clean, i).unwrap_or(i + 1),
            _ => i += 1,
        }
    }
    None
}

/// The brace that closes the initial state; those of arrays lie inside it.
fn closing_brace(clean: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, b) in clean.bytes().enumerate().skip(open) {
        match b {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(i),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Where the first keyword stands, a `~` before it included.
fn keyword(clean: &str, from: usize) -> Option<usize> {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'%');
    let bytes = clean.as_bytes();
    let mut i = from;
    while i < bytes.len() {
        if !is_word(bytes[i]) {
            i += 1;
            continue;
        }
        let end = bytes[i..].iter().position(|b| !is_word(*b)).map_or(bytes.len(), |n| i + n);
        if KEYWORDS.contains(&&clean[i..end]) {
            let before = clean[from..i].trim_end();
            return Some(if before.ends_with('~') { from + before.len() - 1 } else { i });
        }
        i = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn parts(source: &str) -> Vec<String> {
        let limits = Limits::default();
        let mut problems = Problems::new(source, &limits);
        let s = split(source, &mut problems).expect("the parts are there");
        assert!(problems.shown().is_empty());
        let text = |span: Span| s.clean[span.start..span.end].trim().to_string();
        vec![text(s.arch), text(s.name), text(s.init), text(s.program), text(s.question)]
    }

    #[test]
    fn a_file_has_five_parts() {
        let source = "X86 a+b (T) \"not { this\"\nOrig=x\n{ x=1; }; P0;\n (* a (* b *) | *) NOP;\n~ exists (x=1)\n<< no >>";
        assert_eq!(parts(source), ["X86", "a+b", "x=1;", "P0;\n                   NOP;", "~ exists (x=1)"]);
    }

    #[test]
    fn arrays_have_braces_of_their_own() {
        assert_eq!(parts("X86_64 A {int t[2]={1,2}; x=1}\nP0; nop; locations [x]")[2], "int t[2]={1,2}; x=1");
    }

    #[test]
    fn a_file_may_end_with_its_program() {
        assert_eq!(parts("X86 A\n{}\nP0; NOP;")[4], "");
    }
}
