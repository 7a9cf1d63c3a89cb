//! What does a thread do? Statements and instructions as they are written.

use super::{Expr, Name, Range, Shared};
use crate::front::diagnostics::Span;
use crate::model::{FenceKinds, Value};

#[derive(Debug)]
pub(crate) enum Stmt<'s> {
    /// What follows begins here, be it the end of the body: more could be put before it.
    Gap(Span),
    Label(Name<'s>),
    Instr(Op<'s>, Span),
    Repeat {
        var: Name<'s>,
        range: Range<'s>,
        body: Vec<Stmt<'s>>,
    },
    /// `if … { … } else if … { … } else { … }`
    Branch {
        arms: Vec<Arm<'s>>,
        otherwise: Vec<Stmt<'s>>,
    },
    While(Arm<'s>),
    /// `NAME(e, …)`
    Call {
        name: Name<'s>,
        args: Vec<Expr<'s>>,
        span: Span,
    },
    /// `return e, …`, in an operation.
    Return(Vec<Expr<'s>>, Span),
    /// The commit point of an operation.
    Commit(Box<Stmt<'s>>),
    /// `local a[4]`: memory of each thread's own.
    Local(Vec<Shared<'s>>),
    Bad,
}

/// A condition, and what is done if it holds.
#[derive(Debug)]
pub(crate) struct Arm<'s> {
    pub condition: Expr<'s>,
    /// The word and the condition.
    pub head: Span,
    pub body: Vec<Stmt<'s>>,
}

#[derive(Debug)]
pub(crate) enum Op<'s> {
    Load(Name<'s>, CellRef<'s>, Width),
    Store(CellRef<'s>, Expr<'s>, Width),
    Fence,
    /// `fence ll, ls`
    Partial(FenceKinds),
    Membarrier,
    /// `fence? NAME: ss`
    Place(Name<'s>, FenceKinds),
    /// `new r, node`
    New(Name<'s>, Name<'s>),
    Free(Expr<'s>),
    Assign(Name<'s>, Expr<'s>),
    Any(Name<'s>, Range<'s>),
    Assume(Expr<'s>),
    Assert(Expr<'s>),
    Goto(Name<'s>),
    If(Expr<'s>, Name<'s>),
    Choose(Vec<Name<'s>>),
    Locked(Locked<'s>),
    Lock,
    Unlock,
    Halt,
    Nop,
}

/// `[e]`, or `[e : 2..4]`: some bytes of a cell.
#[derive(Debug)]
pub(crate) struct CellRef<'s> {
    pub(crate) addr: Expr<'s>,
    pub(crate) bytes: Option<Range<'s>>,
}

impl<'s> CellRef<'s> {
    fn exprs(&self) -> impl Iterator<Item = &Expr<'s>> {
        let ends = self.bytes.iter().flat_map(|range| [&range.lo, &range.hi]);
        std::iter::once(&self.addr).chain(ends)
    }
}

/// How many low bits of a value are stored, or loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width(pub u32);

impl Width {
    pub(crate) const WHOLE: Width = Width(64);

    /// The bits that are kept.
    pub(crate) fn mask(self) -> Value {
        (u64::MAX >> (64 - self.0)) as Value
    }
}

/// A locked instruction; without a register, nobody gets the old value.
#[derive(Debug)]
pub(crate) struct Locked<'s> {
    pub how: LockedKind,
    pub dst: Option<Name<'s>>,
    pub addr: Expr<'s>,
    /// As many as [`LockedKind::operands`].
    pub operands: Vec<Expr<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockedKind {
    Xchg,
    Cas,
    Add,
    Sub,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    /// `rmw r, [x], e`, where r is the old value.
    Rmw,
}

impl LockedKind {
    pub(crate) const TABLE: [(&'static str, LockedKind); 10] = [
        ("xchg", LockedKind::Xchg),
        ("cas", LockedKind::Cas),
        ("add", LockedKind::Add),
        ("sub", LockedKind::Sub),
        ("inc", LockedKind::Inc),
        ("dec", LockedKind::Dec),
        ("and", LockedKind::And),
        ("or", LockedKind::Or),
        ("xor", LockedKind::Xor),
        ("rmw", LockedKind::Rmw),
    ];

    pub(crate) fn named(word: &str) -> Option<LockedKind> {
        LockedKind::TABLE.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
    }

    pub(crate) fn example(self) -> &'static str {
        match self {
            LockedKind::Xchg => "xchg r, [x], 1",
            LockedKind::Cas => "cas r, [x], 0, 1",
            LockedKind::Add => "add r, [x], 1",
            LockedKind::Sub => "sub r, [x], 1",
            LockedKind::Inc => "inc r, [x]",
            LockedKind::Dec => "dec r, [x]",
            LockedKind::And => "and r, [x], 1",
            LockedKind::Or => "or r, [x], 1",
            LockedKind::Xor => "xor r, [x], 1",
            LockedKind::Rmw => "rmw r, [x], (r + 1) & 0xff",
        }
    }

    /// How many stand behind the address.
    pub(crate) fn operands(self) -> usize {
        match self {
            LockedKind::Inc | LockedKind::Dec => 0,
            LockedKind::Cas => 2,
            _ => 1,
        }
    }
}

/// The labels of a body that belong to it: those inside `repeat` are the copies' own.
pub(crate) fn own_labels<'b, 's>(body: &'b [Stmt<'s>]) -> Vec<&'b Name<'s>> {
    let mut labels = Vec::new();
    collect_labels(body, &mut labels);
    labels
}

fn collect_labels<'b, 's>(body: &'b [Stmt<'s>], labels: &mut Vec<&'b Name<'s>>) {
    for statement in body {
        match statement {
            Stmt::Label(name) => labels.push(name),
            Stmt::Branch { arms, otherwise } => {
                arms.iter().for_each(|arm| collect_labels(&arm.body, labels));
                collect_labels(otherwise, labels);
            }
            Stmt::While(arm) => collect_labels(&arm.body, labels),
            Stmt::Commit(inner) => collect_labels(std::slice::from_ref(inner), labels),
            Stmt::Gap(_) | Stmt::Repeat { .. } | Stmt::Instr(..) | Stmt::Return(..) => {}
            Stmt::Call { .. } | Stmt::Local(_) | Stmt::Bad => {}
        }
    }
}

impl<'s> Op<'s> {
    /// The register that it assigns to.
    pub(crate) fn target(&self) -> Option<&Name<'s>> {
        match self {
            Op::Load(dst, ..) | Op::Assign(dst, _) | Op::Any(dst, _) | Op::New(dst, _) => Some(dst),
            Op::Locked(locked) => locked.dst.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn exprs(&self) -> Vec<&Expr<'s>> {
        match self {
            Op::Load(_, place, _) => place.exprs().collect(),
            Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e) => vec![e],
            Op::If(e, _) | Op::Free(e) => vec![e],
            Op::Store(place, value, _) => place.exprs().chain([value]).collect(),
            Op::Any(_, range) => vec![&range.lo, &range.hi],
            Op::Locked(locked) => std::iter::once(&locked.addr).chain(&locked.operands).collect(),
            Op::Place(..) | Op::New(..) => vec![],
            Op::Fence
            | Op::Partial(_)
            | Op::Membarrier
            | Op::Goto(_)
            | Op::Choose(_)
            | Op::Lock
            | Op::Unlock
            | Op::Halt
            | Op::Nop => vec![],
        }
    }

    /// The labels it may jump to.
    pub(crate) fn jumps(&self) -> &[Name<'s>] {
        match self {
            Op::Goto(label) | Op::If(_, label) => std::slice::from_ref(label),
            Op::Choose(labels) => labels,
            _ => &[],
        }
    }

    /// Does the text behind it follow only if something jumps there?
    pub(crate) fn never_goes_on(&self) -> bool {
        matches!(self, Op::Goto(_) | Op::Choose(_) | Op::Halt)
    }
}
