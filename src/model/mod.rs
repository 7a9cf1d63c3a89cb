//! What is a program? Threads as control-flow graphs over one shared memory, and what is asked of them.
//!
//! A [`Program`] is a value: checked once when it is built, never edited afterwards. What can be said of all
//! its runs is found in `analysis`.

pub mod build;
pub mod bytes;
pub mod code;
pub mod datatype;
pub mod expr;
pub mod formula;
mod ids;
pub mod instr;
pub mod litmus;
pub mod program;
pub mod property;
pub mod source;
pub mod source_map;
mod validity;

pub use bytes::Bytes;
pub use code::CodeLine;
pub use expr::{BinOp, DivisionByZero, Expr, UnOp, Value};
pub use ids::{Addr, EdgeId, Loc, ThreadId};
pub use instr::{FenceKinds, Instr, Reg, RegExpr, RmwOp};
pub use program::{Edge, Location, Origin, Program, Thread, Variable};
pub use property::{Atom, Case, Pred, Property, PropertyKind};
pub use source::Stretch;
pub use source_map::SourceMap;
pub use validity::{Invalid, MAX_CELLS, MAX_REGISTERS, MAX_THREADS};
