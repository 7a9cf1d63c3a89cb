//! What is a concurrent data type, and a test of it? Operations that threads call, unfolded for one test into a
//! program, with what has to be known beside it.

use super::program::{ProgramParts, ThreadParts};
use super::{EdgeId, FenceKinds, Instr, Invalid, Loc, Program, Reg, Value, Variable};

/// Cells below this one are nobody's: 0 is never a block, nor is a field of it.
pub const NULL: &str = "null";
/// What the blocks are called in a program.
pub const HEAP: &str = "heap";

#[derive(Clone, Debug)]
pub struct DataType {
    pub name: String,
    pub tests: Vec<DataTest>,
    /// Where fences may be put.
    pub candidates: Vec<Candidate>,
}

/// `fence? NAME: ss`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    pub kinds: FenceKinds,
    pub line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Every block is new.
    Fresh,
    /// What is given back may come again.
    Reuse,
}

/// How blocks lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    pub allocation: Allocation,
    pub base: usize,
    /// Cells of a block, with the one before its fields that says whether it is held, if blocks come again.
    pub stride: usize,
    /// Threads that take new blocks in turns, the one that prepares the test among them.
    pub takers: usize,
}

/// One test, unfolded.
#[derive(Clone, Debug)]
pub struct DataTest {
    pub name: String,
    /// As it is written, behind the `=`.
    pub text: String,
    pub line: u32,
    pub heap: Heap,
    pub first_cell: Value,
    pub memory: Vec<Variable>,
    /// `init` and the initial operations, as one thread.
    pub setup: DataThread,
    pub threads: Vec<DataThread>,
}

/// A thread and its calls.
#[derive(Clone, Debug)]
pub struct DataThread {
    pub parts: ThreadParts,
    pub calls: Vec<DataCall>,
    /// Conditions that are waited for in a loop.
    pub waits: Vec<EdgeId>,
    /// Where a block is picked, and where one is given back.
    pub allocs: Vec<EdgeId>,
    pub frees: Vec<EdgeId>,
    /// Places for fences.
    pub candidates: Vec<(EdgeId, usize)>,
}

#[derive(Clone, Debug)]
pub struct DataCall {
    /// The operation's name, and with which arguments it is called.
    pub operation: String,
    pub text: String,
    /// The step with which it begins.
    pub begin: EdgeId,
    pub args: Vec<Reg>,
    pub results: Vec<Reg>,
    pub commits: Vec<EdgeId>,
}

impl DataThread {
    /// Where the calls begin, and the end.
    pub fn borders(&self) -> Vec<Loc> {
        let begins = self.calls.iter().map(|c| self.parts.edges[c.begin.index()].from);
        begins.chain([self.parts.end]).collect()
    }
}

impl DataTest {
    /// The program of these threads, with so many blocks: of each taker if blocks are new, else of all together.
    /// Memory begins with these values.
    pub fn program(
        &self,
        threads: &[DataThread],
        blocks: usize,
        begin: Option<&[Value]>,
    ) -> Result<Program, Vec<Invalid>> {
        let mut memory = self.memory.clone();
        let cells = self.heap_cells(blocks);
        if cells > 0 {
            memory.push(Variable { name: HEAP.to_string(), init: vec![0; cells] });
        }
        if let Some(begin) = begin {
            let mut values = begin.iter().copied();
            let all = memory.iter_mut().flat_map(|v| &mut v.init);
            all.zip(&mut values).for_each(|(cell, value)| *cell = value);
        }
        let mut all: Vec<ThreadParts> = threads.iter().map(|t| t.parts.clone()).collect();
        for (thread, parts) in threads.iter().zip(&mut all) {
            for alloc in &thread.allocs {
                if let Instr::Any { hi, .. } = &mut parts.edges[alloc.index()].instr {
                    *hi = (blocks as Value - 1).max(0);
                }
            }
        }
        Program::new(ProgramParts { memory, threads: all, ..ProgramParts::default() })
    }

    pub fn heap_cells(&self, blocks: usize) -> usize {
        match self.heap.allocation {
            Allocation::Fresh => blocks * self.heap.takers * self.heap.stride,
            Allocation::Reuse => blocks * self.heap.stride,
        }
    }

    /// Is this cell a field of a block, which holds anything until it is written?
    pub fn is_field(&self, cell: usize) -> bool {
        let Heap { allocation, base, stride, .. } = self.heap;
        cell >= base && (allocation == Allocation::Fresh || !(cell - base).is_multiple_of(stride))
    }
}
