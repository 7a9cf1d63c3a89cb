//! Where does an instruction of object code come from? Its function, its place in the source, what a disassembler
//! makes of it, and the calls that lead there.
//!
//! A program that was made from object code has one table of these, and the lines of its edges count in it. So
//! other programs pay nothing for it, and edges of one machine instruction are those of one line.

use super::Program;
use super::source::LinePlace;
use serde::{Deserialize, Serialize};

/// One machine instruction, in one place of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeLine {
    /// The symbol that it belongs to, as users call it.
    pub function: String,
    /// Its address as disassemblers write it: `lock+0x14`.
    pub at: String,
    /// Disassembled.
    pub asm: String,
    /// What debug information knows: the innermost place of the source. `line` and `column` are 0 if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default)]
    pub line: u32,
    #[serde(default)]
    pub column: u32,
    /// The text of that line, if it is at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// It loads or stores across a border of eight bytes. Processors may do that at once or in two parts; the program
    /// does it in parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parted: bool,
    /// Through which calls control gets there, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CodeCall>,
}

/// A function, and where it was called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCall {
    pub function: String,
    /// The compiler has put the function's text in place of the call.
    #[serde(default)]
    pub inlined: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default)]
    pub line: u32,
    #[serde(default)]
    pub column: u32,
}

impl CodeLine {
    /// Where users find it: in the source if that is known.
    pub fn place(&self) -> LinePlace<'_> {
        match self.line {
            0 => LinePlace { file: Some(&self.at), line: 0 },
            line => LinePlace { file: self.file.as_deref(), line },
        }
    }

    /// The line of the source, or the instruction.
    pub fn words(&self) -> &str {
        self.source.as_deref().map(str::trim).filter(|text| !text.is_empty()).unwrap_or(&self.asm)
    }
}

impl Program {
    /// Is the line an access that is in parts here, and may be at once on a processor?
    pub fn is_parted(&self, line: u32) -> bool {
        self.code(line).is_some_and(|code| code.parted)
    }

    /// The first such access, in words, if there is one.
    pub fn parted(&self) -> Option<String> {
        let line = 1 + self.code_lines().iter().position(|code| code.parted)? as u32;
        Some(self.parted_words(line))
    }

    pub fn parted_words(&self, line: u32) -> String {
        let asm = self.code(line).map_or("", |code| &code.asm);
        format!("`{asm}` ({})", self.place(line))
    }
}
