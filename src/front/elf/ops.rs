//! What does an instruction do? A few small operations over terms: the one form in which instructions and functions
//! of libraries are run, analysed and translated.
//!
//! A term is an expression of the model over [`Var`]s. Numbers of fewer than 64 bits lie in it without sign.

use crate::model::{BinOp, Expr, UnOp, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Var {
    /// By the processor's number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    Gpr(u8),
    /// Half a vector register.
    Xmm(u8, u8),
    /// What the thread's own pointer (`fs`) is.
    Own,
    /// The operands of what set the flags, while nobody has asked for a flag.
    Left,
    Right,
    Flag(StatusFlag),
    /// Of one instruction.
    Temp(u8),
    /// Memory that no other thread looks at: address and bytes.
    Slot(u64, u8),
    /// What a locked instruction finds in memory.
    Old,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum StatusFlag {
    Carry,
    Zero,
    Sign,
    Overflow,
    Parity,
}

/// Where the flags are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Flags {
    /// Nobody knows.
    #[default]
    Lost,
    /// Those of `Left - Right`, both of so many bits.
    Sub(u8),
    /// Those of `Left + Right`.
    Add(u8),
    /// Those of the result `Left`, without carry and overflow.
    Logic(u8),
    /// Each in its own variable.
    Single,
}

pub(super) type VarExpr = Expr<Var>;

/// A place within the operations of one instruction.
pub(super) type OpLabel = u16;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum MicroOp {
    Set(Var, VarExpr),
    /// The low bits of a register change.
    SetLow {
        var: Var,
        bits: u8,
        value: VarExpr,
    },
    Load {
        dst: Var,
        addr: VarExpr,
        bytes: u8,
    },
    Store {
        addr: VarExpr,
        value: VarExpr,
        bytes: u8,
    },
    /// One indivisible step, which no store of the thread waits past.
    Rmw {
        dst: Var,
        addr: VarExpr,
        bytes: u8,
        new: New,
    },
    Fence,
    /// Goes to the operation if the condition holds, else on.
    If(VarExpr, OpLabel),
    Goto(OpLabel),
    /// A value out of these, both included.
    Any {
        dst: Var,
        lo: Value,
        hi: Value,
    },
    /// To an address.
    Jump(VarExpr),
    Call(VarExpr),
    /// To where a function was called from.
    Return(VarExpr),
    /// What must not happen has happened.
    Fail(String),
    /// The thread is at its end.
    Stop,
    /// From here on main is not alone any more, if others run.
    Wait,
    Special(Special),
}

/// What a locked instruction leaves in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum New {
    Swap(VarExpr),
    Cas {
        old: VarExpr,
        new: VarExpr,
    },
    /// A term over `Old`.
    Update(VarExpr),
}

/// A block of memory is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BlockRequest {
    pub dst: Var,
    /// Where it begins, if no block is used again.
    pub fresh: VarExpr,
    pub length: VarExpr,
    /// Blocks of one class can stand for each other.
    pub class: VarExpr,
}

/// What needs more than terms.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Special {
    /// A thread begins; its handle goes to the first.
    Create {
        handle: VarExpr,
        function: VarExpr,
        argument: VarExpr,
    },
    Allocate(BlockRequest),
    Free(VarExpr),
    /// Bytes are copied.
    Copy {
        to: VarExpr,
        from: VarExpr,
        length: VarExpr,
    },
    Fill {
        to: VarExpr,
        byte: VarExpr,
        length: VarExpr,
    },
    /// Not more, if the condition fails.
    Assume(VarExpr),
    /// Two accesses to eight bytes each follow: the other way round from the label on, if others can tell.
    Halves {
        at: VarExpr,
        backwards: OpLabel,
    },
    /// How many bytes a block of the heap has, or fewer.
    BlockLength {
        dst: Var,
        at: VarExpr,
        most: VarExpr,
    },
    Refuse(String, Option<String>),
    /// How many bytes there are before a zero.
    Length {
        dst: Var,
        at: VarExpr,
    },
}

/// All operations of one instruction, and where control goes afterwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lifted {
    pub ops: Vec<MicroOp>,
    /// Where flags are afterwards.
    pub flags: Flags,
    /// The instruction behind it.
    pub next: u64,
}

pub(super) fn constant(value: u64) -> VarExpr {
    Expr::Const(value as Value)
}

pub(super) fn var(var: Var) -> VarExpr {
    Expr::Atom(var)
}

/// What nobody knows: a variable that is never set.
pub(super) fn nobody() -> VarExpr {
    var(Var::Temp(u8::MAX - 2))
}

pub(super) fn mask(bits: u8) -> u64 {
    u64::MAX.checked_shr(64 - u32::from(bits)).unwrap_or(0)
}

pub(super) fn binary(op: BinOp, a: VarExpr, b: VarExpr) -> VarExpr {
    if let (Expr::Const(x), Expr::Const(y)) = (&a, &b)
        && let Ok(value) = op.apply(*x, *y)
    {
        return Expr::Const(value);
    }
    let neutral = match op {
        BinOp::Add | BinOp::Sub | BinOp::BitOr | BinOp::BitXor | BinOp::Shl | BinOp::Shr => Some(0),
        BinOp::Mul => Some(1),
        BinOp::BitAnd => Some(-1),
        _ => None,
    };
    if neutral.is_some_and(|n| b == Expr::Const(n)) {
        return a;
    }
    Expr::binary(op, a, b)
}

pub(super) fn add(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::Add, a, b)
}

pub(super) fn sub(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::Sub, a, b)
}

pub(super) fn and(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::BitAnd, a, b)
}

pub(super) fn or(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::BitOr, a, b)
}

pub(super) fn xor(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::BitXor, a, b)
}

pub(super) fn eq(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::Eq, a, b)
}

pub(super) fn ne(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::Ne, a, b)
}

pub(super) fn both(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::And, a, b)
}

pub(super) fn either(a: VarExpr, b: VarExpr) -> VarExpr {
    binary(BinOp::Or, a, b)
}

pub(super) fn shl(a: VarExpr, places: VarExpr) -> VarExpr {
    binary(BinOp::Shl, a, places)
}

/// Zeros come in from the left.
pub(super) fn shr(a: VarExpr, places: VarExpr, bits: u8) -> VarExpr {
    let shifted = binary(BinOp::Shr, a, places.clone());
    if bits < 64 {
        return shifted;
    }
    let sign = shl(binary(BinOp::Shr, Expr::Const(Value::MIN), places), constant(1));
    and(shifted, not(sign))
}

pub(super) fn not(a: VarExpr) -> VarExpr {
    match a {
        Expr::Const(c) => Expr::Const(!c),
        a => Expr::unary(UnOp::BitNot, a),
    }
}

/// The condition's opposite.
pub(super) fn negated(a: VarExpr) -> VarExpr {
    match a {
        Expr::Const(c) => Expr::Const((c == 0) as Value),
        Expr::Unary(UnOp::Not, inner) if is_truth(&inner) => *inner,
        Expr::Binary(BinOp::Eq, a, b) => Expr::Binary(BinOp::Ne, a, b),
        Expr::Binary(BinOp::Ne, a, b) => Expr::Binary(BinOp::Eq, a, b),
        Expr::Binary(BinOp::Lt, a, b) => Expr::Binary(BinOp::Ge, a, b),
        Expr::Binary(BinOp::Ge, a, b) => Expr::Binary(BinOp::Lt, a, b),
        Expr::Binary(BinOp::Le, a, b) => Expr::Binary(BinOp::Gt, a, b),
        Expr::Binary(BinOp::Gt, a, b) => Expr::Binary(BinOp::Le, a, b),
        a => Expr::unary(UnOp::Not, a),
    }
}

/// Is the term 0 or 1, whatever its variables are?
pub(super) fn is_truth(a: &VarExpr) -> bool {
    use BinOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    match a {
        Expr::Const(c) => matches!(c, 0 | 1),
        Expr::Unary(UnOp::Not, _) => true,
        Expr::Binary(op, ..) => matches!(op, And | Eq | Ge | Gt | Le | Lt | Ne | Or),
        _ => false,
    }
}

/// The low bits.
pub(super) fn cut(a: VarExpr, bits: u8) -> VarExpr {
    if bits == 64 { a } else { and(a, constant(mask(bits))) }
}

/// The low bits as a number with sign.
pub(super) fn signed(a: VarExpr, bits: u8) -> VarExpr {
    let unused = || constant(64 - u64::from(bits));
    binary(BinOp::Shr, shl(a, unused()), unused())
}

pub(super) fn sign(a: VarExpr, bits: u8) -> VarExpr {
    binary(BinOp::Lt, signed(a, bits), constant(0))
}

/// Is one less than the other, both of so many bits and without sign?
pub(super) fn below(a: VarExpr, b: VarExpr, bits: u8) -> VarExpr {
    let turned = |e| if bits == 64 { xor(e, Expr::Const(Value::MIN)) } else { e };
    binary(BinOp::Lt, turned(a), turned(b))
}

/// One of two values; the condition is 0 or 1.
pub(super) fn choose(condition: VarExpr, yes: VarExpr, no: VarExpr) -> VarExpr {
    let other = negated(condition.clone());
    add(binary(BinOp::Mul, condition, yes), binary(BinOp::Mul, other, no))
}

/// Is the number of ones among the low eight bits even?
pub(super) fn parity(a: VarExpr) -> VarExpr {
    let fold = |a: VarExpr, n: u64| xor(a.clone(), binary(BinOp::Shr, a, constant(n)));
    let folded = fold(fold(fold(cut(a, 8), 4), 2), 1);
    xor(and(folded, constant(1)), constant(1))
}

/// The flag as a term, where it can be told.
pub(super) fn flag(flag: StatusFlag, flags: Flags) -> Option<VarExpr> {
    let (left, right) = (|| var(Var::Left), || var(Var::Right));
    let (result, bits) = match flags {
        Flags::Lost => return None,
        Flags::Single => return Some(var(Var::Flag(flag))),
        Flags::Sub(bits) => (cut(sub(left(), right()), bits), bits),
        Flags::Add(bits) => (cut(add(left(), right()), bits), bits),
        Flags::Logic(bits) => (left(), bits),
    };
    Some(match (flag, flags) {
        (StatusFlag::Zero, Flags::Sub(_)) => eq(left(), right()),
        (StatusFlag::Zero, _) => eq(result, constant(0)),
        (StatusFlag::Sign, _) => sign(result, bits),
        (StatusFlag::Parity, _) => parity(result),
        (StatusFlag::Carry, Flags::Sub(_)) => below(left(), right(), bits),
        (StatusFlag::Carry, Flags::Add(_)) => below(result, left(), bits),
        (StatusFlag::Carry | StatusFlag::Overflow, _) if matches!(flags, Flags::Logic(_)) => constant(0),
        // Both operands differ in sign from the result, or from each other and the first from the result.
        (_, Flags::Add(_)) => sign(and(xor(left(), result.clone()), xor(right(), result)), bits),
        (_, _) => sign(and(xor(left(), right()), xor(left(), result)), bits),
    })
}

/// The conditions of jumps, by the processor's numbers without the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JumpCondition {
    Overflow,
    Below,
    Equal,
    BelowOrEqual,
    Sign,
    Parity,
    Less,
    LessOrEqual,
}

pub(super) fn condition(condition: JumpCondition, flags: Flags) -> Option<VarExpr> {
    let (left, right) = (|| var(Var::Left), || var(Var::Right));
    let one = |f| flag(f, flags);
    Some(match (condition, flags) {
        (JumpCondition::BelowOrEqual, Flags::Sub(bits)) => negated(below(right(), left(), bits)),
        (JumpCondition::Less, Flags::Sub(bits)) => {
            binary(BinOp::Lt, signed(left(), bits), signed(right(), bits))
        }
        (JumpCondition::LessOrEqual, Flags::Sub(bits)) => {
            binary(BinOp::Le, signed(left(), bits), signed(right(), bits))
        }
        (JumpCondition::BelowOrEqual, Flags::Logic(_)) => one(StatusFlag::Zero)?,
        (JumpCondition::Less, Flags::Logic(_)) => one(StatusFlag::Sign)?,
        (JumpCondition::LessOrEqual, Flags::Logic(bits)) => {
            binary(BinOp::Le, signed(left(), bits), constant(0))
        }
        (JumpCondition::Overflow, _) => one(StatusFlag::Overflow)?,
        (JumpCondition::Below, _) => one(StatusFlag::Carry)?,
        (JumpCondition::Equal, _) => one(StatusFlag::Zero)?,
        (JumpCondition::Sign, _) => one(StatusFlag::Sign)?,
        (JumpCondition::Parity, _) => one(StatusFlag::Parity)?,
        (JumpCondition::BelowOrEqual, _) => either(one(StatusFlag::Carry)?, one(StatusFlag::Zero)?),
        (JumpCondition::Less, _) => ne(one(StatusFlag::Sign)?, one(StatusFlag::Overflow)?),
        (JumpCondition::LessOrEqual, _) => {
            either(one(StatusFlag::Zero)?, ne(one(StatusFlag::Sign)?, one(StatusFlag::Overflow)?))
        }
    })
}
