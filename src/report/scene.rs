//! What does a run look like, beyond its words? Where it begins, and what each of its rows does to memory, buffers and
//! registers: enough for a picture of every state on the way.
//!
//! Plain data that knows no format: threads, cells and registers are numbers with names beside them.

use crate::model::Value;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The names of what memory has.
    pub cells: Vec<String>,
    pub initial: Vec<Value>,
    /// For each thread that takes part, the names of its registers.
    pub registers: Vec<Vec<String>>,
    /// For each of them, the line of the text that it begins at, 0 if there is none.
    pub starts: Vec<u32>,
    /// One for each row.
    pub moves: Vec<Move>,
}

/// What one row of a run does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Move {
    pub kind: MoveKind,
    /// The line of the text that it stands in, 0 if there is none; and where its thread goes on.
    pub line: u32,
    pub next: u32,
    /// Cells and what they hold now.
    pub memory: Vec<(usize, Value)>,
    pub registers: Vec<(usize, Value)>,
    /// What leaves the thread's buffer, by places from the oldest on, one after the other; and then what goes into it.
    pub leaves: Vec<usize>,
    pub enters: Vec<(usize, Value)>,
    /// The row of the store that is flushed.
    pub store: Option<usize>,
    /// The row of the write whose value is read, if there was one.
    pub reads: Option<usize>,
    /// It reads what memory held from the beginning.
    pub reads_initial: bool,
    /// The row of the load that overtakes this store, the last one if there are several.
    pub overtaken_by: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MoveKind {
    Load,
    Store,
    Flush,
    Fence,
    Locked,
    /// A step that neither reads nor writes memory, and every step of models that are no programs.
    #[default]
    Local,
}

/// What memory, buffers and registers hold.
#[derive(Clone, Debug)]
pub struct SceneState {
    pub memory: Vec<Value>,
    pub buffers: Vec<Vec<(usize, Value)>>,
    pub registers: Vec<Vec<Value>>,
}

/// Memories larger than this are shown as far as the run writes them.
const FEW_CELLS: usize = 48;

impl Scene {
    /// The cells to show.
    pub(crate) fn shown(&self) -> Vec<usize> {
        if self.cells.len() <= FEW_CELLS {
            return (0..self.cells.len()).collect();
        }
        let written =
            self.moves.iter().flat_map(|step| step.memory.iter().chain(&step.enters)).map(|(cell, _)| *cell);
        written.collect::<BTreeSet<usize>>().into_iter().collect()
    }

    /// The state in which all rows are done, given the thread of each.
    pub(crate) fn last(&self, threads: impl Iterator<Item = usize>) -> SceneState {
        let mut state = SceneState {
            memory: self.initial.clone(),
            buffers: vec![vec![]; self.registers.len()],
            registers: self.registers.iter().map(|names| vec![0; names.len()]).collect(),
        };
        for (step, t) in self.moves.iter().zip(threads) {
            state.take(step, t);
        }
        state
    }
}

impl SceneState {
    fn take(&mut self, step: &Move, t: usize) {
        for &(cell, value) in &step.memory {
            self.memory[cell] = value;
        }
        for &(register, value) in &step.registers {
            self.registers[t][register] = value;
        }
        for &place in &step.leaves {
            self.buffers[t].remove(place);
        }
        self.buffers[t].extend(&step.enters);
    }
}

impl Move {
    /// As short as it can be told to a script: the line, the next one, and then, as far as there is something, lists of
    /// what memory and registers get, and what leaves and enters the buffer.
    pub(crate) fn json(&self, thread: usize) -> Json {
        let pairs = |all: &[(usize, Value)]| {
            all.iter().flat_map(|&(k, v)| [json!(k), number(v)]).collect::<Vec<Json>>()
        };
        let leaves = self.leaves.iter().map(|&place| place.into()).collect();
        let parts = [pairs(&self.memory), pairs(&self.registers), leaves, pairs(&self.enters)];
        let mut fields: Vec<Json> = vec![thread.into(), self.line.into(), self.next.into()];
        let kept = parts.iter().rposition(|part| !part.is_empty()).map_or(0, |last| last + 1);
        fields.extend(
            parts.into_iter().take(kept).map(|part| if part.is_empty() { json!(0) } else { part.into() }),
        );
        fields.into()
    }
}

/// A number that scripts keep whole: as text where floating point would not.
pub(crate) fn number(value: Value) -> Json {
    const EXACT: u64 = 1 << 53;
    if value.unsigned_abs() < EXACT { value.into() } else { value.to_string().into() }
}
