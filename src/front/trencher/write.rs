//! How is a program said in the input format of Trencher, the robustness and reachability tool?
//!
//! Threads are automata there as here, so locations become states and edges transitions; expressions are
//! prefix and over C's `int`. What the format lacks is built from what it has:
//! - a locked read-modify-write is `lock`, `read`, perhaps `check`, `write`, `unlock`;
//! - an `any` is one transition for each value;
//! - cells that do not start at 0 are set by a thread of their own, and everyone waits for its flag;
//! - an error of a thread (a failing `assert`, an address outside memory) leads to a state without a way out.
//!
//! The one question the format can ask is whether all threads are in their `final` states at once. A single
//! `forbid` that is a conjunction of one location for each thread, in a program without errors to look for,
//! becomes that; any other program is written without `final`, says why in a comment, and still serves for
//! questions of robustness. The version of Trencher that answers those knows no division, which is spelled
//! out for it. Invariant: what is written means the same; everything else is [`Inexpressible`].

use crate::analysis::interval::{Interval, Intervals, range};
use crate::front::{Inexpressible, Unwritten};
use crate::limits::Limits;
use crate::model::{
    Atom, BinOp, Edge, Expr, Instr, Loc, Pred, Program, PropertyKind, Reg, RegExpr, RmwOp, Thread, ThreadId,
    UnOp, Value,
};
use std::collections::HashSet;
use std::fmt::Write;

const FORMAT: &str = "a Trencher program";
/// Tokens of one expression: `|` and `^` have to be spelled with their operands twice, divisions more often.
const MAX_TOKENS: u64 = 10_000;
/// Quotients that are spelled out are no larger.
const MAX_QUOTIENT: Value = 64;
/// What it costs to write an edge, in steps of an analysis.
const EDGE: usize = 50;

/// With `final` states where the program's question can be put so, and otherwise without, saying why.
pub fn write(program: &Program, limits: &Limits) -> Result<String, Unwritten> {
    crate::front::only_ours(program, FORMAT)?;
    let intervals = Intervals::of(program, limits)?;
    compose(program, &intervals, question(program, &intervals), limits)
}

/// With `final` states, or not at all: for questions of reachability.
pub fn write_goal(program: &Program, limits: &Limits) -> Result<String, Unwritten> {
    crate::front::only_ours(program, FORMAT)?;
    let intervals = Intervals::of(program, limits)?;
    let refused = |why| Inexpressible {
        format: FORMAT,
        place: "the properties".to_string(),
        construct: "what is asked".to_string(),
        why,
    };
    let goal = question(program, &intervals).map_err(refused)?;
    compose(program, &intervals, Ok(goal), limits)
}

/// Without `final` states: for questions of robustness, which builds ask that do not know the word.
pub fn write_plain(program: &Program, limits: &Limits) -> Result<String, Unwritten> {
    let intervals = Intervals::of(program, limits)?;
    compose(program, &intervals, Err("robustness needs none".to_string()), limits)
}

fn compose(
    program: &Program,
    intervals: &Intervals,
    goal: Result<Vec<Loc>, String>,
    limits: &Limits,
) -> Result<String, Unwritten> {
    let (goal, comment) = match goal {
        Ok(goal) => (Some(goal), "every thread in its final state at once is the violation".to_string()),
        Err(why) => (None, format!("without final states: {why}")),
    };
    let mut text = format!("# {comment}\n# values have 32 bits here and 64 in the original\n");
    memory_comment(program, &mut text);
    let initialised = program.initial_memory().iter().any(|&v| v != 0);
    let mut names = HashSet::new();
    if initialised {
        text.push_str(&initialiser(program, &mut names, goal.is_some())?);
    }
    for t in program.thread_ids() {
        let name = thread_name(program.thread(t).name(), &mut names);
        let mut writer = TrencherWriter::new(program, intervals, t, goal.is_some());
        let begin = writer.begin(initialised);
        for (_, edge) in program.thread(t).edges() {
            limits.spend(EDGE)?;
            writer.edge(edge)?;
        }
        limits.reserve(writer.text.len())?;
        let _ = writeln!(text, "\nthread {name}\ninitial {begin}");
        if let Some(goal) = &goal {
            let _ = writeln!(text, "final {}", writer.state(goal[t.index()]));
        }
        let _ = writeln!(text, "{}end", writer.text);
    }
    Ok(text)
}

fn memory_comment(program: &Program, text: &mut String) {
    let mut address = 0;
    for variable in program.variables() {
        let last = address + variable.init.len() - 1;
        let place = if last == address { address.to_string() } else { format!("{address}..{last}") };
        let _ = writeln!(text, "# {place} {}", one_token(&variable.name));
        address = last + 1;
    }
}

/// The goal location of each thread, or why `final` cannot ask what the program asks.
fn question(program: &Program, intervals: &Intervals) -> Result<Vec<Loc>, String> {
    let [property] = program.properties() else {
        return Err(format!("the program has {} properties, not one", program.properties().len()));
    };
    if property.kind != PropertyKind::Forbid {
        return Err(format!("`{}` is about more than locations", property.kind.word()));
    }
    let errors = |t: ThreadId| program.thread(t).edges().any(|(_, e)| may_go_wrong(program, intervals, t, e));
    if let Some(t) = program.thread_ids().find(|&t| errors(t)) {
        let name = one_token(program.thread(t).name());
        return Err(format!("an error of thread {name} would be a violation too"));
    }
    let mut goal = vec![None; program.threads().len()];
    collect(&property.pred, &mut goal)?;
    goal.into_iter().collect::<Option<Vec<Loc>>>().ok_or("the forbid leaves out a thread".to_string())
}

fn collect(pred: &Pred, goal: &mut [Option<Loc>]) -> Result<(), String> {
    match pred {
        Expr::Binary(BinOp::And, a, b) => {
            collect(a, goal)?;
            collect(b, goal)
        }
        Expr::Atom(Atom::At(t, locs)) => match locs.as_slice() {
            [loc] if goal[t.index()].is_none_or(|known| known == *loc) => {
                goal[t.index()] = Some(*loc);
                Ok(())
            }
            _ => Err("the forbid names several locations of one thread".to_string()),
        },
        _ => Err("the forbid is no conjunction of locations".to_string()),
    }
}

fn may_go_wrong(program: &Program, intervals: &Intervals, t: ThreadId, edge: &Edge) -> bool {
    let outside = edge.instr.address().is_some() && {
        let range = intervals.address(t, edge);
        range.lo < 0 || range.hi >= program.cells() as Value
    };
    intervals.is_reachable(t, edge.from) && (outside || matches!(edge.instr, Instr::Assert(_)))
}

/// Sets the cells, then the flag behind the last cell. Stores reach memory in order, so the flag comes last.
fn initialiser(program: &Program, names: &mut HashSet<String>, asked: bool) -> Result<String, Inexpressible> {
    let mut text = format!("\nthread {}\ninitial s0\n", thread_name("initial_values", names));
    let values = program.initial_memory().iter().enumerate().filter(|(_, v)| **v != 0);
    let mut count = 0;
    for (address, &value) in values.chain([(program.cells(), &1)]) {
        if i32::try_from(value).is_err() {
            return Err(Inexpressible {
                format: FORMAT,
                place: "the shared memory".to_string(),
                construct: format!("initial value {value}"),
                why: TOO_LARGE.to_string(),
            });
        }
        let _ = writeln!(text, "transition s{count} s{} write {value} {address}", count + 1);
        count += 1;
    }
    if asked {
        let _ = writeln!(text, "final s{count}");
    }
    text.push_str("end\n");
    Ok(text)
}

fn thread_name(wanted: &str, names: &mut HashSet<String>) -> String {
    let base = one_token(wanted);
    let mut name = base.clone();
    for k in 2.. {
        if names.insert(name.clone()) {
            break;
        }
        name = format!("{base}_{k}");
    }
    name
}

/// Tokens are whatever stands between blanks.
fn one_token(name: &str) -> String {
    name.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

const NO_DIVISION: &str =
    "who answers questions of robustness has no division, and the number may be large or negative";
const TOO_LARGE: &str = "values have 32 bits there";
const ERROR: &str = "error";

/// Writes the transitions of one thread.
struct TrencherWriter<'a> {
    program: &'a Program,
    intervals: &'a Intervals,
    t: ThreadId,
    /// Locations that may lie inside a `lock` … `unlock` block.
    inside: Vec<bool>,
    /// Those who know `final` know `/` and `%` too.
    divides: bool,
    text: String,
    /// States made up between those of the program.
    extra: usize,
}

impl<'a> TrencherWriter<'a> {
    fn new(program: &'a Program, intervals: &'a Intervals, t: ThreadId, divides: bool) -> Self {
        let inside = program.thread(t).inside_blocks();
        TrencherWriter { program, intervals, t, inside, divides, text: String::new(), extra: 0 }
    }

    fn thread(&self) -> &'a Thread {
        self.program.thread(self.t)
    }

    /// A state's name is none that Trencher uses itself, and shows the label.
    fn state(&self, loc: Loc) -> String {
        match self.thread().location(loc).labels.first() {
            Some(label) => format!("s{}_{}", loc.0, one_token(label)),
            None => format!("s{}", loc.0),
        }
    }

    fn register(&self, r: Reg) -> String {
        format!("r{}_{}", r.0, one_token(self.thread().register_name(r)))
    }

    fn fresh(&mut self) -> String {
        self.extra += 1;
        format!("between{}", self.extra)
    }

    fn transition(&mut self, from: &str, to: &str, instr: &str) {
        let _ = writeln!(self.text, "transition {from} {to} {instr}");
    }

    /// A chain of transitions through states of its own.
    fn chain(&mut self, from: &str, to: &str, instrs: &[String]) {
        let mut at = from.to_string();
        for (k, instr) in instrs.iter().enumerate() {
            let next = if k + 1 == instrs.len() { to.to_string() } else { self.fresh() };
            self.transition(&at, &next, instr);
            at = next;
        }
    }

    /// The initial state; with an initialiser, the one that waits for it.
    fn begin(&mut self, initialised: bool) -> String {
        let start = self.state(self.thread().initial());
        if !initialised {
            return start;
        }
        let flag = self.program.cells();
        self.chain("begin", &start, &[format!("read ready {flag}"), "check ready".to_string()]);
        "begin".to_string()
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Inexpressible> {
        let (from, to) = (self.state(edge.from), self.state(edge.to));
        let from = match self.guarded(edge, from)? {
            Some(from) => from,
            None => return Ok(()),
        };
        let instr = match &edge.instr {
            Instr::Load { bytes, .. } | Instr::Store { bytes, .. } if !bytes.is_whole() => {
                return Err(self.refuse(edge, "there every access is one of a whole cell"));
            }
            Instr::Load { dst, addr, .. } => {
                format!("read {} {}", self.register(*dst), self.expr(edge, addr)?)
            }
            Instr::Store { addr, value, .. } => {
                format!("write {} {}", self.expr(edge, value)?, self.expr(edge, addr)?)
            }
            Instr::Membarrier => return Err(self.refuse(edge, "there is no fence for all threads")),
            instr if instr.is_fence() => "mfence".to_string(),
            Instr::Assign { dst, value } => {
                format!("local {} {}", self.register(*dst), self.expr(edge, value)?)
            }
            Instr::Any { dst, lo, hi } => return self.any(edge, *dst, *lo, *hi),
            Instr::Assume(e) => format!("check {}", self.expr(edge, e)?),
            Instr::Assert(e) => {
                let e = self.expr(edge, e)?;
                self.transition(&from, ERROR, &format!("check ! {e}"));
                format!("check {e}")
            }
            Instr::Rmw { dst, addr, op } => return self.locked(edge, &from, *dst, addr, op),
            Instr::Lock => "lock".to_string(),
            Instr::Unlock => "unlock".to_string(),
            Instr::Fence | Instr::Partial(_) | Instr::Nop => "noop".to_string(),
        };
        self.transition(&from, &to, &instr);
        Ok(())
    }

    /// Where the instruction begins once its address is known to lie in memory; `None` if it never does.
    fn guarded(&mut self, edge: &Edge, from: String) -> Result<Option<String>, Inexpressible> {
        let Some(addr) = edge.instr.address() else { return Ok(Some(from)) };
        let (range, cells) = (self.intervals.address(self.t, edge), self.program.cells() as Value);
        if range.lo >= 0 && range.hi < cells {
            return Ok(Some(from));
        }
        if range.hi < 0 || range.lo >= cells {
            self.transition(&from, ERROR, "noop");
            return Ok(None);
        }
        let (addr, start) = (self.expr(edge, addr)?, self.fresh());
        self.transition(&from, ERROR, &format!("check || < {addr} 0 >= {addr} {cells}"));
        self.transition(&from, &start, &format!("check && >= {addr} 0 < {addr} {cells}"));
        Ok(Some(start))
    }

    fn any(&mut self, edge: &Edge, dst: Reg, lo: Value, hi: Value) -> Result<(), Inexpressible> {
        let (from, to, dst) = (self.state(edge.from), self.state(edge.to), self.register(dst));
        for v in lo..=hi {
            let v = self.expr(edge, &Expr::Const(v))?;
            self.transition(&from, &to, &format!("local {dst} {v}"));
        }
        Ok(())
    }

    fn locked(
        &mut self,
        edge: &Edge,
        from: &str,
        dst: Reg,
        addr: &RegExpr,
        op: &RmwOp,
    ) -> Result<(), Inexpressible> {
        if self.inside[edge.from.index()] {
            return Err(self.refuse(edge, "inside a `lock` block it would wait for its own thread"));
        }
        let mut uses_dst = false;
        edge.instr.uses(|r| uses_dst |= r == dst);
        if let RmwOp::New(new) = op {
            return self.modified(edge, from, (dst, addr), new);
        }
        let old = if uses_dst { "old".to_string() } else { self.register(dst) };
        let (addr, to) = (self.expr(edge, addr)?, self.state(edge.to));
        let read = ["lock".to_string(), format!("read {old} {addr}")];
        // The register changes last, when no operand is needed any more.
        let settle = uses_dst.then(|| format!("local {} {old}", self.register(dst)));
        let rest = |steps: Vec<String>| {
            [steps, vec!["unlock".to_string()], settle.clone().into_iter().collect()].concat()
        };
        match op {
            RmwOp::Swap(v) => {
                let write = format!("write {} {addr}", self.expr(edge, v)?);
                self.chain(from, &to, &[read.to_vec(), rest(vec![write])].concat());
            }
            RmwOp::Add(v) | RmwOp::And(v) | RmwOp::Or(v) | RmwOp::Xor(v) => {
                let operator = op.combines().map_or(BinOp::Add, |(operator, _)| operator);
                let new = combined(operator, &old, &self.expr(edge, v)?);
                let write = format!("write {new} {addr}");
                self.chain(from, &to, &[read.to_vec(), rest(vec![write])].concat());
            }
            RmwOp::New(_) => unreachable!("it was written above"),
            RmwOp::Cas { old: wanted, new } => {
                let (wanted, new) = (self.expr(edge, wanted)?, self.expr(edge, new)?);
                let decide = self.fresh();
                self.chain(from, &decide, &read);
                let equal = rest(vec![format!("check == {old} {wanted}"), format!("write {new} {addr}")]);
                self.chain(&decide, &to, &equal);
                self.chain(&decide, &to, &rest(vec![format!("check != {old} {wanted}")]));
            }
        }
        Ok(())
    }

    /// The new value is an expression over the old one, which the register gets first.
    fn modified(
        &mut self,
        edge: &Edge,
        from: &str,
        (dst, addr): (Reg, &RegExpr),
        new: &RegExpr,
    ) -> Result<(), Inexpressible> {
        if !self.divides && divides(new) {
            return Err(self.refuse(edge, NO_DIVISION));
        }
        let (spelled, old, to) = (self.expr(edge, addr)?, self.register(dst), self.state(edge.to));
        let mut moves = false;
        addr.for_each_atom(&mut |r| moves |= *r == dst);
        // The register changes before the cell does, so an address that it is part of is kept.
        let keep = moves.then(|| format!("local old {spelled}"));
        let cell = if moves { "old".to_string() } else { spelled };
        let new = self.expr(edge, new)?;
        let steps = ["lock".to_string(), format!("read {old} {cell}"), format!("write {new} {cell}")];
        let steps = keep.into_iter().chain(steps).chain(["unlock".to_string()]).collect::<Vec<_>>();
        self.chain(from, &to, &steps);
        Ok(())
    }

    fn expr(&self, edge: &Edge, e: &RegExpr) -> Result<String, Inexpressible> {
        if tokens(e, self.divides) > MAX_TOKENS {
            return Err(self.refuse(edge, "its operators are nested too deeply to be spelled out"));
        }
        self.prefix(edge.from, e).map_err(|why| self.refuse(edge, why))
    }

    /// The expression in prefix form. Identities replace the operators that are missing; they hold in
    /// two's complement.
    fn prefix(&self, at: Loc, e: &RegExpr) -> Result<String, &'static str> {
        Ok(match e {
            Expr::Const(c) => i32::try_from(*c).map_err(|_| TOO_LARGE)?.to_string(),
            Expr::Atom(r) => self.register(*r),
            Expr::Unary(UnOp::Not, a) => format!("! {}", self.prefix(at, a)?),
            Expr::Unary(UnOp::Neg, a) => format!("- 0 {}", self.prefix(at, a)?),
            Expr::Unary(UnOp::BitNot, a) => format!("- - 0 {} 1", self.prefix(at, a)?),
            Expr::Binary(op, a, b) => {
                let (x, y) = (self.prefix(at, a)?, self.prefix(at, b)?);
                match op {
                    BinOp::Shl => match b.constant() {
                        Some(k @ 0..=30) => format!("* {x} {}", 1 << k),
                        _ => return Err("a shift must be by a constant below 31"),
                    },
                    BinOp::Shr => return Err("there is no shift to the right"),
                    BinOp::Div | BinOp::Rem if matches!(b.constant(), None | Some(0)) => {
                        return Err("a division by zero would end Trencher itself");
                    }
                    BinOp::Div | BinOp::Rem if !self.divides => {
                        let known =
                            |r: &Reg| self.intervals.register(self.t, at, *r).unwrap_or(Interval::FULL);
                        divided(*op, &x, range(a, &known), b.constant().unwrap_or_default())
                            .ok_or(NO_DIVISION)?
                    }
                    _ => combined(*op, &x, &y),
                }
            }
        })
    }

    fn refuse(&self, edge: &Edge, why: &str) -> Inexpressible {
        Inexpressible {
            format: FORMAT,
            place: format!("thread `{}`, line {}", self.thread().name(), edge.line),
            construct: format!("`{}`", self.thread().show_instr(self.program, &edge.instr)),
            why: why.to_string(),
        }
    }
}

/// In prefix form; of the operators on bits there is one, which makes the others.
fn combined(op: BinOp, x: &str, y: &str) -> String {
    match op {
        BinOp::BitOr => format!("- + {x} {y} & {x} {y}"),
        BinOp::BitXor => format!("- + {x} {y} * 2 & {x} {y}"),
        _ => format!("{} {x} {y}", op.symbol()),
    }
}

/// A division by a constant without the operator for it: of what is known to be small, by comparing it with
/// every multiple, and remainders of powers of two, by their bits.
fn divided(op: BinOp, x: &str, range: Interval, by: Value) -> Option<String> {
    if op == BinOp::Rem && by > 0 && by & (by - 1) == 0 {
        let low = format!("& {x} {}", by - 1);
        // A remainder has the sign of what is divided.
        return Some(if range.lo >= 0 { low } else { format!("- {low} * {by} && < {x} 0 != 0 {low}") });
    }
    if range.lo < 0 || by < 0 || range.hi / by > MAX_QUOTIENT {
        return None;
    }
    let reached = (1..=range.hi / by).map(|k| format!(">= {x} {}", k * by));
    let quotient = reached.reduce(|sum, more| format!("+ {sum} {more}")).unwrap_or("0".to_string());
    Some(if op == BinOp::Div { quotient } else { format!("- {x} * {by} {quotient}") })
}

fn divides(e: &RegExpr) -> bool {
    match e {
        Expr::Const(_) | Expr::Atom(_) => false,
        Expr::Unary(_, a) => divides(a),
        Expr::Binary(op, a, b) => matches!(op, BinOp::Div | BinOp::Rem) || divides(a) || divides(b),
    }
}

/// At most so many.
fn tokens(e: &RegExpr, divides: bool) -> u64 {
    let of = |e: &RegExpr| tokens(e, divides);
    match e {
        Expr::Const(_) | Expr::Atom(_) => 1,
        Expr::Unary(_, a) => of(a).saturating_add(4),
        Expr::Binary(BinOp::BitOr | BinOp::BitXor, a, b) => {
            of(a).saturating_add(of(b)).saturating_mul(2).saturating_add(5)
        }
        Expr::Binary(BinOp::Div | BinOp::Rem, a, _) if !divides => {
            of(a).saturating_add(3).saturating_mul(MAX_QUOTIENT as u64 + 1)
        }
        Expr::Binary(_, a, b) => of(a).saturating_add(of(b)).saturating_add(1),
    }
}

#[cfg(test)]
mod tests;
