//! What does it look like? Runs, cycles and control flow as SVG, by themselves or inside a page.
//!
//! Pictures are made of what documents have, and know no answers. Everything that comes from a user's file is
//! escaped; the classes of elements are those of `picture.css`, which goes into a picture that stands alone and into
//! every page.

pub(crate) mod cycle;
pub(crate) mod flow;
pub(crate) mod lanes;

use super::document::Block;
use std::fmt::{self, Display, Write};

/// How pictures look, in light and dark.
pub(crate) const STYLE: &str = include_str!("picture.css");

/// A picture, and how much room it takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    pub width: u32,
    pub height: u32,
    /// What is inside.
    pub body: String,
}

impl Picture {
    /// As part of a page.
    pub(crate) fn inline(&self, label: &str) -> String {
        let Picture { width, height, body } = self;
        let label = Escaped(label);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" style=\"min-width:{}px\" role=\"img\" aria-label=\"{label}\">{body}</svg>",
            width * 3 / 4
        )
    }
}

/// Pictures below each other, as a file of their own.
pub(crate) fn file(pictures: &[(&str, &Picture)]) -> String {
    const TITLE: u32 = 30;
    const GAP: u32 = 16;
    let width = pictures.iter().map(|(_, p)| p.width).max().unwrap_or(0).max(400) + 2 * GAP;
    let height = GAP + pictures.iter().map(|(_, p)| TITLE + p.height + GAP).sum::<u32>();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<style>{STYLE}</style>\n<rect class=\"ground\" width=\"{width}\" \
         height=\"{height}\"/>\n"
    );
    let mut y = GAP;
    for (title, picture) in pictures {
        let _ =
            writeln!(text, "<text class=\"title\" x=\"{GAP}\" y=\"{}\">{}</text>", y + 16, Escaped(title));
        let _ = writeln!(text, "<g transform=\"translate({GAP} {})\">{}</g>", y + TITLE, picture.body);
        y += TITLE + picture.height + GAP;
    }
    text + "</svg>\n"
}

/// The pictures of blocks, with titles.
pub(crate) fn of_blocks(blocks: &[Block], whose: &str, before: usize) -> Vec<(String, Picture)> {
    let mut all = Vec::new();
    for block in blocks {
        match block {
            Block::Run(run) => {
                let rows = lanes::Rows::of(run, 0..run.rows.len());
                all.push((
                    format!("{whose}: the run"),
                    lanes::picture(run, &rows, &format!("p{}", before + all.len())),
                ));
            }
            Block::Cycle(found) => {
                let title = format!("{whose}: what would have to come before what");
                all.push((title, cycle::picture(found, &format!("p{}", before + all.len()))));
            }
            _ => {}
        }
    }
    all
}

/// Text that is nothing but text in XML and HTML, in attributes too.
pub(crate) struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\t' | '\n' => f.write_char(' ')?,
                // XML has no such letters.
                c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// As much of a text as fits into so many letters.
pub(crate) fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        None => text.to_string(),
        Some(_) => text.chars().take(letters.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_element() {
        let text = Escaped("</text><script>a('\"&\u{1}\")</script>").to_string();
        assert_eq!(text, "&lt;/text&gt;&lt;script&gt;a(&#39;&quot;&amp;\u{fffd}&quot;)&lt;/script&gt;");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!((cut("abc", 3), cut("abcd", 3), cut("", 3)), ("abc".into(), "ab…".into(), "".into()));
    }
}
