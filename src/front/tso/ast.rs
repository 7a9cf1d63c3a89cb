//! What did the user write? The file as a tree, with places, before any name is looked up.
//!
//! Statements that could not be read stand in the tree as `Bad`: they have been reported, and whoever walks
//! the tree knows that something is missing there.

use crate::front::diagnostics::Span;
use crate::model::{BinOp, PropertyKind, UnOp, Value};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug)]
pub struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

#[derive(Debug, Default)]
pub struct File<'s> {
    pub params: Vec<Param<'s>>,
    pub structs: Vec<Struct<'s>>,
    pub shared: Vec<Shared<'s>>,
    pub inlines: Vec<Inline<'s>>,
    pub threads: Vec<ThreadDecl<'s>>,
    pub properties: Vec<Property<'s>>,
    /// Names in declarations that could not be read: what they mean is unknown, and no fault of their uses.
    pub doubtful: HashSet<&'s str>,
}

#[derive(Debug)]
pub struct Param<'s> {
    pub name: Name<'s>,
    pub value: Expr<'s>,
    pub kind: ParamKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// `param`: the command line may give it another value.
    Open,
    /// `const`
    Fixed,
}

/// `struct node { value, next }`
#[derive(Debug)]
pub struct Struct<'s> {
    pub name: Name<'s>,
    pub fields: Vec<Name<'s>>,
}

/// `inline NAME(x) … end`
#[derive(Debug)]
pub struct Inline<'s> {
    pub name: Name<'s>,
    pub params: Vec<Name<'s>>,
    pub body: Vec<Stmt<'s>>,
}

/// `x`, `x = 3`, `a[4]`, `a[4] = 7`, `a[4] = {1, 2}`
#[derive(Debug)]
pub struct Shared<'s> {
    pub name: Name<'s>,
    pub size: Option<Expr<'s>>,
    pub init: Init<'s>,
}

#[derive(Debug)]
pub enum Init<'s> {
    Zero,
    Each(Expr<'s>),
    List(Vec<Expr<'s>>),
}

#[derive(Debug)]
pub struct ThreadDecl<'s> {
    pub name: Name<'s>,
    pub index: ThreadIndex<'s>,
    pub body: Vec<Stmt<'s>>,
}

#[derive(Debug)]
pub enum ThreadIndex<'s> {
    /// `thread p`
    None,
    /// `thread p[3]`
    One(Expr<'s>),
    /// `thread p[i in 1..=3]`
    Each(Name<'s>, Range<'s>),
}

#[derive(Debug)]
pub struct Range<'s> {
    pub lo: Expr<'s>,
    pub hi: Expr<'s>,
    pub bound: Bound,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Excluded,
    Included,
}

#[derive(Debug)]
pub enum Stmt<'s> {
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
    /// `local a[4]`: memory of each thread's own.
    Local(Vec<Shared<'s>>),
    Bad,
}

/// A condition, and what is done if it holds.
#[derive(Debug)]
pub struct Arm<'s> {
    pub condition: Expr<'s>,
    /// The word and the condition.
    pub head: Span,
    pub body: Vec<Stmt<'s>>,
}

#[derive(Debug)]
pub enum Op<'s> {
    Load(Name<'s>, Expr<'s>, Width),
    Store(Expr<'s>, Expr<'s>, Width),
    Fence,
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

/// How many low bits of a value are stored, or loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(pub u32);

impl Width {
    pub const WHOLE: Width = Width(64);

    /// The bits that are kept.
    pub fn mask(self) -> Value {
        (u64::MAX >> (64 - self.0)) as Value
    }
}

/// A locked instruction; without a register, nobody gets the old value.
#[derive(Debug)]
pub struct Locked<'s> {
    pub how: LockedKind,
    pub dst: Option<Name<'s>>,
    pub addr: Expr<'s>,
    /// As many as [`LockedKind::operands`].
    pub operands: Vec<Expr<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedKind {
    Xchg,
    Cas,
    Add,
    Sub,
    Inc,
    Dec,
    And,
    Or,
    Xor,
}

impl LockedKind {
    pub const TABLE: [(&'static str, LockedKind); 9] = [
        ("xchg", LockedKind::Xchg),
        ("cas", LockedKind::Cas),
        ("add", LockedKind::Add),
        ("sub", LockedKind::Sub),
        ("inc", LockedKind::Inc),
        ("dec", LockedKind::Dec),
        ("and", LockedKind::And),
        ("or", LockedKind::Or),
        ("xor", LockedKind::Xor),
    ];

    pub fn named(word: &str) -> Option<LockedKind> {
        LockedKind::TABLE.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
    }

    pub fn example(self) -> &'static str {
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
        }
    }

    /// How many stand behind the address.
    pub fn operands(self) -> usize {
        match self {
            LockedKind::Inc | LockedKind::Dec => 0,
            LockedKind::Cas => 2,
            _ => 1,
        }
    }
}

#[derive(Debug)]
pub struct Property<'s> {
    pub kind: PropertyKind,
    pub name: Option<Name<'s>>,
    pub quantifiers: Vec<Quantifier<'s>>,
    pub body: Expr<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Quantifier<'s> {
    pub how_many: HowMany,
    pub var: Name<'s>,
    pub range: Option<Range<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowMany {
    All,
    Two,
    Some,
}

/// Instructions and properties share one grammar of expressions; which leaves are allowed where is checked
/// later, when it can be said what to write instead.
#[derive(Debug)]
pub enum Expr<'s> {
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
pub struct ThreadRef<'s> {
    pub name: Name<'s>,
    pub index: Option<Box<Expr<'s>>>,
}

/// `label`, or `NAME.label` for one of an `inline`.
#[derive(Debug)]
pub struct LabelRef<'s> {
    pub inline: Option<Name<'s>>,
    pub name: Name<'s>,
}

impl<'s> Expr<'s> {
    pub fn span(&self) -> Span {
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
    pub fn for_each_name(&self, visit: &mut impl FnMut(&Name<'s>)) {
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
pub fn own_labels<'b, 's>(body: &'b [Stmt<'s>]) -> Vec<&'b Name<'s>> {
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
            Stmt::Gap(_) | Stmt::Repeat { .. } | Stmt::Instr(..) => {}
            Stmt::Call { .. } | Stmt::Local(_) | Stmt::Bad => {}
        }
    }
}

impl<'s> Op<'s> {
    /// The register that it assigns to.
    pub fn target(&self) -> Option<&Name<'s>> {
        match self {
            Op::Load(dst, ..) | Op::Assign(dst, _) | Op::Any(dst, _) => Some(dst),
            Op::Locked(locked) => locked.dst.as_ref(),
            _ => None,
        }
    }

    pub fn exprs(&self) -> Vec<&Expr<'s>> {
        match self {
            Op::Load(_, e, _) | Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e) | Op::If(e, _) => vec![e],
            Op::Store(a, b, _) => vec![a, b],
            Op::Any(_, range) => vec![&range.lo, &range.hi],
            Op::Locked(locked) => std::iter::once(&locked.addr).chain(&locked.operands).collect(),
            Op::Fence | Op::Goto(_) | Op::Choose(_) | Op::Lock | Op::Unlock | Op::Halt | Op::Nop => vec![],
        }
    }

    /// The labels it may jump to.
    pub fn jumps(&self) -> &[Name<'s>] {
        match self {
            Op::Goto(label) | Op::If(_, label) => std::slice::from_ref(label),
            Op::Choose(labels) => labels,
            _ => &[],
        }
    }

    /// Does the text behind it follow only if something jumps there?
    pub fn never_goes_on(&self) -> bool {
        matches!(self, Op::Goto(_) | Op::Choose(_) | Op::Halt)
    }
}
