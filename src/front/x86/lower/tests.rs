//! Steps of single instructions, over a memory that has no names: a cell is its address in bytes.

use super::*;
use crate::front::x86::{Mem, mnemonic, register};
use crate::model::{BinOp, RmwOp};

/// Memory as machine code sees it.
struct Flat;

impl Resolver for Flat {
    type Symbol = usize;

    fn displaced(&self, registers: Option<RegExpr>, symbol: Option<usize>, offset: Value) -> RegExpr {
        let constant = Expr::Const(symbol.map_or(0, |s| s as Value) + offset);
        match registers {
            Some(registers) => Expr::binary(BinOp::Add, registers, constant),
            None => constant,
        }
    }

    fn cell(&mut self, symbol: usize, offset: Value) -> RegExpr {
        self.displaced(None, Some(symbol), offset)
    }

    fn cell_at(&self, address: RegExpr, _bits: u32) -> RegExpr {
        address
    }

    fn label(&mut self, label: usize, _at: Span) -> Option<LabelId> {
        Some(LabelId(label))
    }
}

fn reg(name: &str) -> Operand<usize> {
    Operand::Reg(register(name, Arch::X86_64).expect("it is a register"))
}

/// The place so far behind what a register points to.
fn at(base: &str, offset: Value) -> Operand<usize> {
    Operand::Mem(Mem { base: register(base, Arch::X86_64), offset, ..Mem::default() })
}

/// What an instruction of 64 bits does, with every flag in `used` looked at.
fn steps(word: &str, locked: bool, operands: Vec<Operand<usize>>, used: &[Flag]) -> Vec<Action> {
    let (op, _) = mnemonic(word).expect("it is a mnemonic");
    let operands = operands.into_iter().map(|operand| (operand, Span::default())).collect();
    let mnemonic = word.to_string();
    let instruction = Instruction { op, locked, bits: Some(64), operands, mnemonic, span: Span::default() };
    let mut registers = ThreadRegisters::default();
    let mut lowering = Lowering::new(Arch::X86_64, Form::Exact, &mut registers, used.to_vec(), Flat);
    lowering.instruction(&instruction);
    lowering.finish().0.into_iter().map(|step| step.action).collect()
}

#[test]
fn a_locked_addition_is_one_step() {
    let locked = steps("add", true, vec![at("rdi", 8), Operand::Const(1)], &[]);
    assert!(matches!(&locked[..], [Action::Do(Instr::Rmw { op: RmwOp::Add(_), .. })]), "{locked:?}");
    let plain = steps("add", false, vec![at("rdi", 8), Operand::Const(1)], &[]);
    let [Action::Do(Instr::Load { addr: read, .. }), Action::Do(Instr::Store { addr: written, .. })] =
        &plain[..]
    else {
        panic!("{plain:?}")
    };
    assert_eq!(read, written);
}

#[test]
fn locked_arithmetic_without_a_step_of_its_own_is_a_block() {
    let block = steps("or", true, vec![at("rdi", 0), reg("rax")], &[]);
    use Instr::{Load, Lock, Store, Unlock};
    assert!(
        matches!(
            &block[..],
            [Action::Do(Lock), Action::Do(Load { .. }), Action::Do(Store { .. }), Action::Do(Unlock)]
        ),
        "{block:?}"
    );
}

#[test]
fn only_flags_that_are_looked_at_are_computed() {
    let compare = |used: &[Flag]| steps("cmp", false, vec![reg("rax"), reg("rbx")], used).len();
    assert_eq!(compare(&[]), 0);
    assert_eq!(compare(&[Flag::Zero]), 1);
    assert_eq!(compare(&[Flag::Zero, Flag::Carry, Flag::Less]), 3);
}

#[test]
fn jumps_lead_where_the_resolver_says() {
    let jump = steps("jne", false, vec![Operand::Label(7)], &[]);
    assert!(matches!(&jump[..], [Action::If(_, LabelId(7))]), "{jump:?}");
}
