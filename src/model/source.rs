//! Which file does a line come from? The lines of a program are those of one text, into which other files may
//! have been put.

use serde::{Deserialize, Serialize};
use std::fmt;

/// From this line of the text on, up to the next stretch, lines are those of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    pub first: u32,
    /// None for the file that was read.
    pub file: Option<String>,
    /// What `first` is in that file.
    pub line: u32,
}

/// A line as the user knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePlace<'a> {
    /// None for the file that was read. Without a line it may be an address of object code.
    pub file: Option<&'a str>,
    /// 0 if there is none.
    pub line: u32,
}

/// Where the user finds a line of the text. The stretches are in order.
pub fn place(stretches: &[Stretch], line: u32) -> LinePlace<'_> {
    match stretches[..stretches.partition_point(|s| s.first <= line)].last() {
        Some(stretch) if line != 0 => {
            let line = stretch.line.saturating_add(line - stretch.first);
            LinePlace { file: stretch.file.as_deref(), line }
        }
        _ => LinePlace { file: None, line },
    }
}

impl LinePlace<'_> {
    /// For columns: `12`, `lock.tso:12`, or nothing.
    pub fn short(&self) -> String {
        match (self.file, self.line) {
            (None, 0) => String::new(),
            (Some(address), 0) => address.to_string(),
            (None, line) => line.to_string(),
            (Some(file), line) => format!("{file}:{line}"),
        }
    }
}

/// `12`, or `12 of lock.tso`.
impl fmt::Display for LinePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file, self.line) {
            (None, line) => write!(f, "{line}"),
            (Some(address), 0) => write!(f, "{address}"),
            (Some(file), line) => write!(f, "{line} of {file}"),
        }
    }
}
