//! What is a program? Threads as control-flow graphs over one shared memory, and what is asked of them.
//!
//! A [`Program`] is a value: checked once when it is built, never edited afterwards. The analyses beside it
//! (`access`, `interval`, `live`, `mute`, `told`) read programs and know nothing of machines, engines or files; they end
//! early, with the limit as a value, where `limits` says so.

pub mod access;
pub mod alike;
pub mod expr;
mod flow;
pub mod instr;
pub mod interval;
pub mod litmus;
pub mod live;
pub mod mute;
pub mod program;
pub mod property;
pub mod told;
mod validity;

pub use expr::{BinOp, DivisionByZero, Expr, UnOp, Value};
pub use instr::{Instr, Reg, RegExpr, RmwOp};
pub use program::{Addr, Edge, EdgeId, Loc, Location, Origin, Program, Thread, ThreadId, Variable};
pub use property::{Atom, Pred, Property, PropertyKind};
pub use validity::{Invalid, MAX_CELLS, MAX_REGISTERS, MAX_THREADS};
