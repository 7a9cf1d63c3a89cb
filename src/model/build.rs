//! A program without text: memory, threads and properties are put together by calls, for those who make programs
//! of something else, or want to ask about a few lines in a test of their own.
//!
//! ```
//! use overtake::model::build::ProgramBuilder;
//!
//! let mut program = ProgramBuilder::new();
//! let (x, y) = (program.variable("x", 0), program.variable("y", 0));
//! let p = program.thread("p", |t| {
//!     t.store(x, 1);
//!     t.load("r", y)
//! });
//! let q = program.thread("q", |t| {
//!     t.store(y, 1);
//!     t.load("r", x)
//! });
//! program.never(p.is(0).and(q.is(0)));
//! let program = program.finish()?;
//! assert_eq!(program.threads().len(), 2);
//! # Ok::<(), overtake::model::build::Unbuilt>(())
//! ```
//!
//! What does not fit together is told by [`ProgramBuilder::finish`], with all that is wrong.

use super::program::{ProgramParts, ThreadParts};
use super::{
    Addr, Atom, BinOp, Bytes, Edge, Expr, Instr, Invalid, Loc, Location, Pred, Program, Property,
    PropertyKind, Reg, RegExpr, RmwOp, ThreadId, UnOp, Value, Variable,
};
use thiserror::Error;

/// What is wrong with a program that was put together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.iter().map(Invalid::to_string).collect::<Vec<_>>().join("; "))]
pub struct Unbuilt(pub Vec<Invalid>);

/// A program in the making.
#[derive(Clone, Debug, Default)]
pub struct ProgramBuilder {
    parts: ProgramParts,
    cells: u32,
}

/// A thread in the making: instructions are done in the order of the calls.
#[derive(Clone, Debug)]
pub struct ThreadBuilder {
    id: ThreadId,
    registers: Vec<String>,
    locations: Vec<Location>,
    edges: Vec<Edge>,
    /// Where the next instruction begins; none behind a jump.
    here: Option<Loc>,
}

/// A place in a thread that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpTarget {
    thread: ThreadId,
    loc: Loc,
}

/// A register of a thread, for the thread's instructions and for properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    thread: ThreadId,
    reg: Reg,
}

/// Where threads end, until it is known.
const END: Loc = Loc(u32::MAX - 1);

impl ProgramBuilder {
    pub fn new() -> ProgramBuilder {
        ProgramBuilder::default()
    }

    /// A shared variable of one cell.
    pub fn variable(&mut self, name: &str, initial: Value) -> Addr {
        self.array(name, &[initial])
    }

    /// Consecutive cells; the address is that of the first.
    pub fn array(&mut self, name: &str, initial: &[Value]) -> Addr {
        let first = Addr(self.cells);
        self.cells = self.cells.saturating_add(u32::try_from(initial.len()).unwrap_or(u32::MAX));
        self.parts.memory.push(Variable { name: name.to_string(), init: initial.to_vec() });
        first
    }

    /// A thread, whose instructions `body` adds; gives back what `body` does.
    pub fn thread<T>(&mut self, name: &str, body: impl FnOnce(&mut ThreadBuilder) -> T) -> T {
        let id = ThreadId(u16::try_from(self.parts.threads.len()).unwrap_or(u16::MAX));
        let mut thread = ThreadBuilder {
            id,
            registers: Vec::new(),
            locations: vec![Location::default()],
            edges: Vec::new(),
            here: Some(Loc(0)),
        };
        let given = body(&mut thread);
        self.parts.threads.push(thread.finish(name));
        given
    }

    /// No reachable state has the predicate.
    pub fn forbid(&mut self, pred: Pred) {
        self.ask(PropertyKind::Forbid, pred);
    }

    /// No final state has the predicate.
    pub fn never(&mut self, pred: Pred) {
        self.ask(PropertyKind::Never, pred);
    }

    /// Every final state has the predicate.
    pub fn forall(&mut self, pred: Pred) {
        self.ask(PropertyKind::Forall, pred);
    }

    fn ask(&mut self, kind: PropertyKind, pred: Pred) {
        self.parts.properties.push(Property::new(kind, pred, 0));
    }

    /// No run ends where memory never changes again and not all threads end.
    pub fn no_hang(&mut self) {
        self.parts.no_hang = Some(0);
    }

    /// The program, if all of it fits together.
    pub fn finish(self) -> Result<Program, Unbuilt> {
        Program::new(self.parts).map_err(Unbuilt)
    }
}

impl ThreadBuilder {
    /// The register of this name, which holds 0 until something else is put there.
    pub fn register(&mut self, name: &str) -> Register {
        let known = self.registers.iter().position(|known| known == name);
        let place = known.unwrap_or_else(|| {
            self.registers.push(name.to_string());
            self.registers.len() - 1
        });
        Register { thread: self.id, reg: Reg(u16::try_from(place).unwrap_or(u16::MAX)) }
    }

    /// Loads what lies at the address into the register of this name.
    pub fn load(&mut self, register: &str, address: impl Into<RegExpr>) -> Register {
        let register = self.register(register);
        self.step(Instr::Load { dst: register.reg, addr: address.into(), bytes: Bytes::WHOLE });
        register
    }

    pub fn store(&mut self, address: impl Into<RegExpr>, value: impl Into<RegExpr>) {
        self.step(Instr::Store { addr: address.into(), value: value.into(), bytes: Bytes::WHOLE });
    }

    /// Waits until the thread's own stores are in memory.
    pub fn fence(&mut self) {
        self.step(Instr::Fence);
    }

    /// Waits until all threads' stores are in memory.
    pub fn membarrier(&mut self) {
        self.step(Instr::Membarrier);
    }

    pub fn assign(&mut self, register: &str, value: impl Into<RegExpr>) -> Register {
        let register = self.register(register);
        self.step(Instr::Assign { dst: register.reg, value: value.into() });
        register
    }

    /// The register gets any value from `lo` to `hi`, both included.
    pub fn any(&mut self, register: &str, lo: Value, hi: Value) -> Register {
        let register = self.register(register);
        self.step(Instr::Any { dst: register.reg, lo, hi });
        register
    }

    /// Goes on only if the condition holds; otherwise the thread stops for good.
    pub fn assume(&mut self, condition: impl Into<RegExpr>) {
        self.step(Instr::Assume(condition.into()));
    }

    /// A run that comes here where the condition fails is a violation.
    pub fn assert(&mut self, condition: impl Into<RegExpr>) {
        self.step(Instr::Assert(condition.into()));
    }

    /// Locked: the register gets the old value, the address the new one.
    pub fn exchange(
        &mut self,
        register: &str,
        address: impl Into<RegExpr>,
        value: impl Into<RegExpr>,
    ) -> Register {
        self.locked(register, address, RmwOp::Swap(value.into()))
    }

    /// Locked: the register gets the old value, and the address that much more.
    pub fn fetch_add(
        &mut self,
        register: &str,
        address: impl Into<RegExpr>,
        value: impl Into<RegExpr>,
    ) -> Register {
        self.locked(register, address, RmwOp::Add(value.into()))
    }

    /// Locked: the register gets the old value; if that is `old`, the address gets `new`.
    pub fn compare_exchange(
        &mut self,
        register: &str,
        address: impl Into<RegExpr>,
        old: impl Into<RegExpr>,
        new: impl Into<RegExpr>,
    ) -> Register {
        self.locked(register, address, RmwOp::Cas { old: old.into(), new: new.into() })
    }

    /// Any locked instruction.
    pub fn locked(&mut self, register: &str, address: impl Into<RegExpr>, op: RmwOp) -> Register {
        let register = self.register(register);
        self.step(Instr::Rmw { dst: register.reg, addr: address.into(), op });
        register
    }

    /// A place for jumps that has yet to be [`bind`](Self::bind)ed.
    pub fn label(&mut self) -> JumpTarget {
        JumpTarget { thread: self.id, loc: self.location() }
    }

    /// The label is here.
    pub fn bind(&mut self, label: JumpTarget) {
        if self.here.is_some() {
            self.edge(Instr::Nop, label.loc);
        }
        self.here = Some(label.loc);
    }

    /// A label here, with a name that reports show.
    pub fn mark(&mut self, name: &str) -> JumpTarget {
        let loc = self.here();
        self.locations[loc.index()].labels.push(name.to_string());
        JumpTarget { thread: self.id, loc }
    }

    pub fn goto(&mut self, label: JumpTarget) {
        self.edge(Instr::Nop, label.loc);
        self.here = None;
    }

    /// Jumps if the condition holds.
    pub fn branch(&mut self, condition: impl Into<RegExpr>, label: JumpTarget) {
        let condition = condition.into();
        let (from, next) = (self.here(), self.location());
        self.edge(Instr::Assume(condition.clone()), label.loc);
        self.here = Some(from);
        self.edge(Instr::Assume(condition.negated()), next);
    }

    /// Ends the thread.
    pub fn halt(&mut self) {
        self.edge(Instr::Nop, END);
        self.here = None;
    }

    fn step(&mut self, instr: Instr) {
        let to = self.location();
        self.edge(instr, to);
    }

    /// An edge from here, and then on from its end.
    fn edge(&mut self, instr: Instr, to: Loc) {
        let from = self.here();
        self.edges.push(Edge { from, to, instr, line: 0, text: String::new(), origin: None });
        self.here = Some(to);
    }

    fn here(&mut self) -> Loc {
        let here = self.here.unwrap_or_else(|| self.location());
        self.here = Some(here);
        here
    }

    fn location(&mut self) -> Loc {
        self.locations.push(Location::default());
        Loc(self.locations.len() as u32 - 1)
    }

    fn finish(mut self, name: &str) -> ThreadParts {
        let end = self.here();
        for edge in self.edges.iter_mut().filter(|edge| edge.to == END) {
            edge.to = end;
        }
        let ThreadBuilder { registers, locations, edges, .. } = self;
        ThreadParts { name: name.to_string(), registers, locations, edges, initial: Loc(0), end }
    }
}

impl Register {
    /// What the register holds, for properties.
    pub fn value(self) -> Pred {
        Pred::Atom(Atom::Reg(self.thread, self.reg))
    }

    /// That the register holds this, for properties.
    pub fn is(self, value: Value) -> Pred {
        self.value().equals(value)
    }
}

impl JumpTarget {
    /// That the thread stands here, for properties.
    pub fn reached(self) -> Pred {
        Pred::Atom(Atom::At(self.thread, vec![self.loc]))
    }
}

impl Addr {
    /// What memory holds here, for properties.
    pub fn value(self) -> Pred {
        Pred::Atom(Atom::Mem(self))
    }

    /// The address so many cells further on.
    pub fn at(self, offset: impl Into<RegExpr>) -> RegExpr {
        RegExpr::from(self) + offset.into()
    }
}

impl<A> From<Value> for Expr<A> {
    fn from(value: Value) -> Expr<A> {
        Expr::Const(value)
    }
}

impl From<Addr> for RegExpr {
    fn from(address: Addr) -> RegExpr {
        Expr::Const(Value::from(address.0))
    }
}

impl From<Register> for RegExpr {
    fn from(register: Register) -> RegExpr {
        Expr::Atom(register.reg)
    }
}

/// Comparisons and the like, by which conditions and properties are put together.
impl<A> Expr<A> {
    pub fn equals(self, other: impl Into<Expr<A>>) -> Expr<A> {
        Expr::binary(BinOp::Eq, self, other.into())
    }

    pub fn differs(self, other: impl Into<Expr<A>>) -> Expr<A> {
        Expr::binary(BinOp::Ne, self, other.into())
    }

    pub fn less(self, other: impl Into<Expr<A>>) -> Expr<A> {
        Expr::binary(BinOp::Lt, self, other.into())
    }

    pub fn and(self, other: Expr<A>) -> Expr<A> {
        Expr::binary(BinOp::And, self, other)
    }

    pub fn or(self, other: Expr<A>) -> Expr<A> {
        Expr::binary(BinOp::Or, self, other)
    }
}

impl<A> std::ops::Add for Expr<A> {
    type Output = Expr<A>;

    fn add(self, other: Expr<A>) -> Expr<A> {
        Expr::binary(BinOp::Add, self, other)
    }
}

impl<A> std::ops::Sub for Expr<A> {
    type Output = Expr<A>;

    fn sub(self, other: Expr<A>) -> Expr<A> {
        Expr::binary(BinOp::Sub, self, other)
    }
}

impl<A> std::ops::Not for Expr<A> {
    type Output = Expr<A>;

    fn not(self) -> Expr<A> {
        Expr::unary(UnOp::Not, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;
    use crate::limits::Limits;

    #[test]
    fn what_is_built_is_what_is_read() {
        let mut built = ProgramBuilder::new();
        let (x, a) = (built.variable("x", 0), built.array("a", &[1, 2]));
        let r = built.thread("p", |t| {
            let top = t.mark("top");
            let r = t.exchange("r", x, 1);
            t.branch(RegExpr::from(r).differs(0), top);
            t.store(a.at(1), RegExpr::from(r) + 3.into());
            r
        });
        built.never(r.is(1).or(a.value().less(1)));
        let built = built.finish().expect("it fits together");
        let read = "shared x, a[2] = {1, 2}; thread p; top: xchg r, [x], 1; if r != 0 goto top
                    store [a + 1], r + 3; end; never p.r == 1 || [a] < 1";
        let read = tso::read(read, &[], &Limits::default()).expect("a program").program;
        let text = |program: &Program| tso::write(program, &Limits::default()).expect("no limit");
        assert_eq!(text(&built), text(&read));
    }

    #[test]
    fn what_does_not_fit_together_is_told() {
        let mut built = ProgramBuilder::new();
        built.variable("x", 0);
        built.variable("x", 0);
        let wrong = built.finish().expect_err("no threads, and one name twice").to_string();
        assert_eq!(wrong, "shared variable `x` is declared twice; the program has no threads");
    }

    #[test]
    fn labels_of_all_kinds_lead_somewhere() {
        let mut built = ProgramBuilder::new();
        let x = built.variable("x", 0);
        let done = built.thread("p", |t| {
            let (out, again) = (t.label(), t.mark("again"));
            let r = t.load("r", x);
            t.branch(RegExpr::from(r).equals(1), out);
            t.goto(again);
            t.bind(out);
            t.mark("out")
        });
        built.forbid(done.reached());
        built.no_hang();
        let program = built.finish().expect("it fits together");
        assert_eq!(program.threads()[0].location_name(program.threads()[0].end()), "out");
        assert_eq!(program.no_hang(), Some(0));
    }
}
