//! What did the user write? The file as a tree, with places, before any name is looked up.
//!
//! Statements that could not be read stand in the tree as `Bad`: they have been reported, and whoever walks
//! the tree knows that something is missing there. The tree is one table, and so one file.

use crate::front::diagnostics::Span;
use crate::model::formula::Connective;
use crate::model::{BinOp, FenceKinds, PropertyKind, UnOp, Value};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct File<'s> {
    pub params: Vec<Param<'s>>,
    pub structs: Vec<Struct<'s>>,
    pub shared: Vec<Shared<'s>>,
    pub inlines: Vec<Inline<'s>>,
    pub threads: Vec<ThreadDecl<'s>>,
    pub properties: Vec<Property<'s>>,
    pub formulas: Vec<FormulaDecl<'s>>,
    /// `no hang`, wherever it stands.
    pub no_hang: Vec<Span>,
    /// What a data type has beside that; nothing in a program.
    pub datatype: Option<DataTypeText<'s>>,
    /// Names in declarations that could not be read: what they mean is unknown, and no fault of their uses.
    pub doubtful: HashSet<&'s str>,
}

/// What `datatype NAME` and the declarations that belong to it say.
#[derive(Debug)]
pub(super) struct DataTypeText<'s> {
    pub name: Name<'s>,
    pub alloc: Option<(AllocText, Span)>,
    pub init: Option<Vec<Stmt<'s>>>,
    pub operations: Vec<Operation<'s>>,
    pub tests: Vec<TestText<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllocText {
    Fresh,
    Reuse,
    Unfenced,
}

/// `op NAME(a, b) -> r … end`
#[derive(Debug)]
pub(super) struct Operation<'s> {
    pub name: Name<'s>,
    pub params: Vec<Name<'s>>,
    pub results: Vec<Name<'s>>,
    pub body: Vec<Stmt<'s>>,
}

/// `test T = push ; push*2 pop | pop`
#[derive(Debug)]
pub(super) struct TestText<'s> {
    pub name: Name<'s>,
    pub initial: Vec<Invocation<'s>>,
    pub threads: Vec<Vec<Invocation<'s>>>,
    /// What stands behind the `=`.
    pub span: Span,
}

/// `push`, `push(7)`, `push(any(0..2))*3`
#[derive(Debug)]
pub(super) struct Invocation<'s> {
    pub operation: Name<'s>,
    pub args: Option<Vec<ArgText<'s>>>,
    pub times: Option<Expr<'s>>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) enum ArgText<'s> {
    Given(Expr<'s>),
    Any(Range<'s>),
}

#[derive(Debug)]
pub(crate) struct Param<'s> {
    pub name: Name<'s>,
    pub value: Expr<'s>,
    pub kind: ParamKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamKind {
    /// `param`: the command line may give it another value.
    Open,
    /// `const`
    Fixed,
}

/// `struct node { value, next }`
#[derive(Debug)]
pub(crate) struct Struct<'s> {
    pub name: Name<'s>,
    pub fields: Vec<Name<'s>>,
}

/// `inline NAME(x) … end`
#[derive(Debug)]
pub(crate) struct Inline<'s> {
    pub name: Name<'s>,
    pub params: Vec<Name<'s>>,
    pub body: Vec<Stmt<'s>>,
}

/// `x`, `x = 3`, `a[4]`, `a[4] = 7`, `a[4] = {1, 2}`
#[derive(Debug)]
pub(crate) struct Shared<'s> {
    pub name: Name<'s>,
    pub size: Option<Expr<'s>>,
    pub init: Init<'s>,
}

#[derive(Debug)]
pub(crate) enum Init<'s> {
    Zero,
    Each(Expr<'s>),
    List(Vec<Expr<'s>>),
}

#[derive(Debug)]
pub(crate) struct ThreadDecl<'s> {
    pub name: Name<'s>,
    pub index: ThreadIndex<'s>,
    pub body: Vec<Stmt<'s>>,
}

#[derive(Debug)]
pub(crate) enum ThreadIndex<'s> {
    /// `thread p`
    None,
    /// `thread p[3]`
    One(Expr<'s>),
    /// `thread p[i in 1..=3]`
    Each(Name<'s>, Range<'s>),
}

#[derive(Debug)]
pub(crate) struct Range<'s> {
    pub lo: Expr<'s>,
    pub hi: Expr<'s>,
    pub bound: Bound,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Excluded,
    Included,
}

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

#[derive(Debug)]
pub(crate) struct Property<'s> {
    pub kind: PropertyKind,
    pub name: Option<Name<'s>>,
    pub quantifiers: Vec<Quantifier<'s>>,
    pub body: Expr<'s>,
    pub span: Span,
}

/// `ltl F`, or `terminates`.
#[derive(Debug)]
pub(crate) struct FormulaDecl<'s> {
    pub name: Option<Name<'s>>,
    pub quantifiers: Vec<Quantifier<'s>>,
    pub body: Temporal<'s>,
    pub span: Span,
}

/// A formula of temporal logic over conditions.
#[derive(Debug)]
pub(crate) enum Temporal<'s> {
    State(Expr<'s>),
    /// All threads have ended.
    Terminated,
    Not(Box<Temporal<'s>>),
    Next(Box<Temporal<'s>>),
    Finally(Box<Temporal<'s>>),
    Globally(Box<Temporal<'s>>),
    Binary(Connective, Box<Temporal<'s>>, Box<Temporal<'s>>),
}

#[derive(Debug)]
pub(crate) struct Quantifier<'s> {
    pub how_many: HowMany,
    pub var: Name<'s>,
    pub range: Option<Range<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HowMany {
    All,
    Two,
    Some,
}

/// Instructions and properties share one grammar of expressions; which leaves are allowed where is checked
/// later, when it can be said what to write instead.
#[derive(Debug)]
pub(crate) enum Expr<'s> {
    Number(Value, Span),
    Name(Name<'s>),
    Unary(UnOp, Span, Box<Expr<'s>>),
    /// Operators of one precedence, from left to right. A list, because `1 + 1 + …` may be long, and a tree
    /// of it would be as deep.
    Chain(Box<Expr<'s>>, Vec<(BinOp, Span, Expr<'s>)>),
    /// `[e]`
    Memory(Box<Expr<'s>>, Span),
    /// `t@label`
    At(ThreadRef<'s>, LabelRef<'s>),
    /// `t.r` in a property; `n.field`, which is an address
    Dot(ThreadRef<'s>, Name<'s>),
    /// `a[e]`, which is not of this language but of many others
    Index(Name<'s>, Box<Expr<'s>>, Span),
}

#[derive(Debug)]
pub(crate) struct ThreadRef<'s> {
    pub name: Name<'s>,
    pub index: Option<Box<Expr<'s>>>,
}

/// `label`, or `NAME.label` for one of an `inline`.
#[derive(Debug)]
pub(crate) struct LabelRef<'s> {
    pub inline: Option<Name<'s>>,
    pub name: Name<'s>,
}

impl<'s> Expr<'s> {
    pub(crate) fn span(&self) -> Span {
        match self {
            Expr::Number(_, span) | Expr::Memory(_, span) | Expr::Index(_, _, span) => *span,
            Expr::Name(name) => name.span,
            Expr::Unary(_, span, a) => span.to(a.span()),
            Expr::Chain(first, rest) => {
                let first = first.span();
                first.to(rest.last().map_or(first, |(_, _, e)| e.span()))
            }
            Expr::At(t, LabelRef { name, .. }) | Expr::Dot(t, name) => t.name.span.to(name.span),
        }
    }

    /// Every name that stands for a value, from left to right.
    pub(crate) fn for_each_name(&self, visit: &mut impl FnMut(&Name<'s>)) {
        match self {
            Expr::Number(..) => {}
            Expr::Name(name) => visit(name),
            Expr::Unary(_, _, a) | Expr::Memory(a, _) => a.for_each_name(visit),
            Expr::Chain(first, rest) => {
                first.for_each_name(visit);
                rest.iter().for_each(|(_, _, e)| e.for_each_name(visit));
            }
            Expr::At(ThreadRef { index: Some(index), .. }, _)
            | Expr::Dot(ThreadRef { index: Some(index), .. }, _) => index.for_each_name(visit),
            Expr::At(..) => {}
            Expr::Dot(base, _) => visit(&base.name),
            Expr::Index(name, index, _) => {
                visit(name);
                index.for_each_name(visit);
            }
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
