//! How does one write a program down? As text that `read` takes back.
//!
//! A program that came from a `.tso` file comes back as it was, with templates and repetitions unfolded. Any
//! other program comes back equivalent: `plain` first gives it a form that has a spelling, and what is
//! printed here is that form, location by location in their order.

mod legal;
mod plain;

use crate::front::const_fold;
use crate::limits::{Limit, Limits, Text};
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{Atom, Edge, Instr, Loc, Pred, Program, Property, Reg, RegExpr, RmwOp, Value, Variable};
use std::collections::HashSet;
use std::fmt::{self, Write};

/// Declarations are broken into lines of about this length.
const WIDTH: usize = 100;

/// What a location costs, in steps, beside its text.
const LOCATION: usize = 16;

pub fn write(program: &Program, limits: &Limits) -> Result<String, Limit> {
    let mut parts = plain::plain(program, limits)?;
    label_targets(&mut parts, limits)?;
    Text::of(limits, |text| write_parts(&parts, text))
}

fn write_parts(parts: &ProgramParts, text: &mut Text) -> fmt::Result {
    let memory = Memory::new(&parts.memory);
    text.write_str(&shared(&parts.memory))?;
    for (i, thread) in parts.threads.iter().enumerate() {
        if i > 0 || !parts.memory.is_empty() {
            text.write_str("\n")?;
        }
        ThreadText { thread, memory: &memory }.write(text)?;
    }
    for (i, property) in parts.properties.iter().enumerate() {
        if i == 0 {
            text.write_str("\n")?;
        }
        writeln!(text, "{}", property_text(property, parts, &memory))?;
    }
    Ok(())
}

fn shared(memory: &[Variable]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for declaration in memory.iter().map(declaration) {
        match lines.last_mut() {
            Some(line) if line.len() + declaration.len() < WIDTH => {
                *line += ", ";
                *line += &declaration;
            }
            _ => lines.push(format!("shared {declaration}")),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn declaration(variable: &Variable) -> String {
    let Variable { name, init } = variable;
    let size = if init.len() == 1 { String::new() } else { format!("[{}]", init.len()) };
    let given = init.iter().rposition(|v| *v != 0).map_or(0, |last| last + 1);
    match init[0] {
        _ if given == 0 => format!("{name}{size}"),
        value if init.iter().all(|v| *v == value) => format!("{name}{size} = {value}"),
        _ => {
            let values: Vec<String> = init[..given].iter().map(Value::to_string).collect();
            format!("{name}{size} = {{{}}}", values.join(", "))
        }
    }
}

/// Where control goes from a location, in the form that `plain` leaves.
enum Way<'a> {
    /// One instruction, and what comes behind it.
    On(&'a Instr, Loc),
    /// `if`: the condition, where it leads, and what comes behind it.
    Branch(&'a RegExpr, Loc, Loc),
    Choose(Vec<Loc>),
}

fn way<'a>(edges: &[&'a Edge]) -> Way<'a> {
    match edges {
        [edge] => Way::On(&edge.instr, edge.to),
        [Edge { instr: Instr::Assume(condition), to: taken, .. }, other] => {
            Way::Branch(condition, *taken, other.to)
        }
        _ => Way::Choose(edges.iter().map(|e| e.to).collect()),
    }
}

/// The edges of each location.
fn edges_by_location(thread: &ThreadParts) -> Vec<Vec<&Edge>> {
    let mut edges = vec![Vec::new(); thread.locations.len()];
    for edge in &thread.edges {
        edges[edge.from.index()].push(edge);
    }
    edges
}

/// Must one jump in order to get from the text of `from` to `to`?
fn needs_goto(thread: &ThreadParts, from: Loc, to: Loc) -> bool {
    to.0 != from.0 + 1 && to != thread.end
}

/// Gives a label to each location that is named in the text and has none.
fn label_targets(parts: &mut ProgramParts, limits: &Limits) -> Result<(), Limit> {
    let mut named: Vec<HashSet<Loc>> = parts.threads.iter().map(jump_targets).collect();
    for property in &parts.properties {
        property.pred.for_each_atom(&mut |atom| {
            if let Atom::At(t, locs) = atom {
                named[t.index()].extend(locs);
            }
        });
    }
    for (thread, named) in parts.threads.iter_mut().zip(named) {
        limits.spend(LOCATION * thread.locations.len())?;
        let taken: HashSet<&String> = thread.locations.iter().flat_map(|l| &l.labels).collect();
        let fresh: Vec<String> = (1..=taken.len() + named.len()).map(|n| format!("L{n}")).collect();
        let mut fresh = fresh.into_iter().filter(|l| !taken.contains(l)).collect::<Vec<_>>().into_iter();
        let unlabelled = thread.locations.iter_mut().enumerate().filter(|(_, l)| l.labels.is_empty());
        for (_, location) in unlabelled.filter(|(i, _)| named.contains(&Loc(*i as u32))) {
            location.labels.extend(fresh.next());
        }
    }
    Ok(())
}

fn jump_targets(thread: &ThreadParts) -> HashSet<Loc> {
    let mut targets = HashSet::new();
    let mut goto = |from, to| {
        if needs_goto(thread, from, to) {
            targets.insert(to);
        }
    };
    let mut named = Vec::new();
    for (from, edges) in edges_by_location(thread).iter().enumerate().filter(|(_, e)| !e.is_empty()) {
        let from = Loc(from as u32);
        match way(edges) {
            Way::On(_, to) => goto(from, to),
            Way::Branch(_, taken, other) => {
                named.push(taken);
                goto(from, other);
            }
            Way::Choose(ways) => named.extend(ways),
        }
    }
    if thread.initial != Loc(0) && thread.initial != thread.end {
        named.push(thread.initial);
    }
    targets.extend(named);
    targets
}

struct ThreadText<'a> {
    thread: &'a ThreadParts,
    memory: &'a Memory<'a>,
}

impl ThreadText<'_> {
    fn write(&self, text: &mut Text) -> fmt::Result {
        writeln!(text, "thread {}", self.thread.name)?;
        if self.thread.initial != Loc(0) {
            // Nothing stands before the first location, so this jumps unless it is the first one.
            self.jump(text, None, self.thread.initial)?;
        }
        for (from, edges) in edges_by_location(self.thread).iter().enumerate() {
            let from = Loc(from as u32);
            for label in &self.thread.locations[from.index()].labels {
                writeln!(text, "{label}:")?;
            }
            if from != self.thread.end {
                self.location(text, from, way(edges))?;
            }
        }
        text.write_str("end\n")
    }

    fn location(&self, text: &mut Text, from: Loc, way: Way) -> fmt::Result {
        text.spend(LOCATION)?;
        match &way {
            Way::On(instr, _) => writeln!(text, "    {}", self.instr(instr))?,
            Way::Branch(condition, taken, _) => {
                writeln!(text, "    if {} goto {}", self.expr(condition), self.label(*taken))?;
            }
            Way::Choose(ways) => {
                let labels: Vec<&str> = ways.iter().map(|to| self.label(*to)).collect();
                writeln!(text, "    choose {}", labels.join(", "))?;
            }
        }
        match way {
            Way::On(_, to) | Way::Branch(_, _, to) => self.jump(text, Some(from), to),
            Way::Choose(_) => Ok(()),
        }
    }

    fn jump(&self, text: &mut Text, from: Option<Loc>, to: Loc) -> fmt::Result {
        if from.is_some_and(|from| to.0 == from.0 + 1) {
            return Ok(());
        }
        if to == self.thread.end {
            return text.write_str("    halt\n");
        }
        writeln!(text, "    goto {}", self.label(to))
    }

    fn label(&self, loc: Loc) -> &str {
        let labels = &self.thread.locations[loc.index()].labels;
        labels.first().expect("locations that are jumped to were given labels")
    }

    fn expr(&self, e: &RegExpr) -> String {
        e.show(&|r| self.thread.registers[r.index()].clone())
    }

    fn address(&self, e: &RegExpr) -> String {
        match e {
            RegExpr::Const(address) => self.memory.cell(*address),
            _ => self.expr(e),
        }
    }

    fn instr(&self, instr: &Instr) -> String {
        let reg = |r: &Reg| &self.thread.registers[r.index()];
        match instr {
            Instr::Load { dst, addr } => format!("load {}, [{}]", reg(dst), self.address(addr)),
            Instr::Store { addr, value } => format!("store [{}], {}", self.address(addr), self.expr(value)),
            Instr::Fence => "fence".to_string(),
            Instr::Assign { dst, value } => format!("{} = {}", reg(dst), self.expr(value)),
            Instr::Any { dst, lo, hi } => format!("{} = any({lo}..={hi})", reg(dst)),
            Instr::Assume(e) => format!("assume {}", self.expr(e)),
            Instr::Assert(e) => format!("assert {}", self.expr(e)),
            Instr::Rmw { dst, addr, op } => {
                let (word, operands) = match op {
                    RmwOp::Swap(v) => ("xchg", self.expr(v)),
                    RmwOp::Add(v) => ("add", self.expr(v)),
                    RmwOp::Cas { old, new } => ("cas", format!("{}, {}", self.expr(old), self.expr(new))),
                };
                format!("{word} {}, [{}], {operands}", reg(dst), self.address(addr))
            }
            Instr::Lock => "lock".to_string(),
            Instr::Unlock => "unlock".to_string(),
            Instr::Nop => "nop".to_string(),
        }
    }
}

fn property_text(property: &Property, parts: &ProgramParts, memory: &Memory) -> String {
    let atom = |atom: &Atom| match atom {
        Atom::At(t, locs) => match locs.as_slice() {
            [_] => at(&parts.threads[t.index()], locs),
            _ => format!("({})", at(&parts.threads[t.index()], locs)),
        },
        Atom::Reg(t, r) => {
            let thread = &parts.threads[t.index()];
            format!("{}.{}", thread.name, thread.registers[r.index()])
        }
        Atom::Mem(a) => format!("[{}]", memory.cell(Value::from(a.0))),
    };
    let pred = match &property.pred {
        Pred::Atom(Atom::At(t, locs)) => at(&parts.threads[t.index()], locs),
        pred => pred.show(&atom),
    };
    format!("{} {pred}", property.kind.word())
}

/// `t@a || t@b || …`, in the shape in which it is read back.
fn at(thread: &ThreadParts, locs: &[Loc]) -> String {
    let place = |loc: &Loc| format!("{}@{}", thread.name, thread.locations[loc.index()].labels[0]);
    let places: Vec<(String, usize)> = locs.iter().map(|loc| (place(loc), 1)).collect();
    let joined = const_fold::join(places, &mut |(a, m), (b, n)| match n {
        1 => (a + " || " + &b, m + n),
        _ => (a + " || (" + &b + ")", m + n),
    });
    joined.map_or("0".to_string(), |(text, _)| text)
}

/// The names of addresses.
struct Memory<'a> {
    /// Each variable with its first address.
    variables: Vec<(usize, &'a Variable)>,
    cells: usize,
}

impl<'a> Memory<'a> {
    fn new(memory: &'a [Variable]) -> Memory<'a> {
        let mut cells = 0;
        let mut variables = Vec::new();
        for variable in memory {
            variables.push((cells, variable));
            cells += variable.init.len();
        }
        Memory { variables, cells }
    }

    /// `x`, `a + 2`, or the number if nothing has this address.
    fn cell(&self, address: Value) -> String {
        let Some(cell) = usize::try_from(address).ok().filter(|a| *a < self.cells) else {
            return address.to_string();
        };
        let (first, variable) =
            self.variables[self.variables.partition_point(|(first, _)| *first <= cell) - 1];
        match cell - first {
            0 => variable.name.clone(),
            offset => format!("{} + {offset}", variable.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso::read;
    use crate::model::expr::Expr;
    use crate::model::{Addr, BinOp, Location, PropertyKind, ThreadId, UnOp};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn reread(text: &str) -> Program {
        read(text, &[], &Limits::default()).unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
    }

    /// What two readings of one program have in common.
    fn without_places(program: &Program) -> ProgramParts {
        let mut parts = program.to_parts();
        for edge in parts.threads.iter_mut().flat_map(|t| &mut t.edges) {
            (edge.line, edge.text) = (0, String::new());
        }
        parts.properties.iter_mut().for_each(|p| p.line = 0);
        parts
    }

    /// Programs from text come back equal.
    fn check_text(source: &str) {
        let program = reread(source);
        let text = write(&program, &Limits::default()).unwrap();
        assert_eq!(without_places(&reread(&text)), without_places(&program), "{text}");
    }

    /// Programs from anywhere come back as text that does not change any more.
    fn check_parts(parts: ProgramParts) -> String {
        let program = Program::new(parts).expect("a valid program");
        let text = write(&program, &Limits::default()).unwrap();
        let again = reread(&text);
        assert_eq!(write(&again, &Limits::default()).unwrap(), text);
        assert_eq!(again.variables().len(), program.variables().len());
        assert_eq!(again.threads().len(), program.threads().len());
        assert_eq!(again.properties().len(), program.properties().len());
        assert_eq!(behaviours(&again), behaviours(&program), "{text}");
        text
    }

    /// What each thread may do to memory, up to three steps of it, whatever its registers hold.
    fn behaviours(program: &Program) -> Vec<BTreeSet<Vec<&'static str>>> {
        program
            .threads()
            .iter()
            .map(|thread| {
                let mut seen = BTreeSet::from([(thread.initial(), vec![])]);
                let mut todo = vec![(thread.initial(), vec![])];
                while let Some((loc, done)) = todo.pop() {
                    for (_, edge) in
                        thread.edges_from(loc).into_iter().filter(|(_, e)| !never_passes(&e.instr))
                    {
                        let mut done = done.clone();
                        done.extend(visible(&edge.instr));
                        if done.len() <= 3 && seen.insert((edge.to, done.clone())) {
                            todo.push((edge.to, done));
                        }
                    }
                }
                seen.into_iter().map(|(_, done)| done).collect()
            })
            .collect()
    }

    /// Is it false whatever the registers hold? A few values tell, and tell the same of equal expressions.
    fn never_passes(instr: &Instr) -> bool {
        let values = [0, 1, 7];
        matches!(instr, Instr::Assume(e) if values.iter().all(|v| e.eval(&|_| *v) == Ok(0)))
    }

    fn visible(instr: &Instr) -> Option<&'static str> {
        match instr {
            Instr::Load { .. } => Some("load"),
            Instr::Store { .. } => Some("store"),
            Instr::Rmw { .. } => Some("rmw"),
            Instr::Fence => Some("fence"),
            Instr::Lock => Some("lock"),
            Instr::Assert(_) => Some("assert"),
            _ => None,
        }
    }

    #[test]
    fn programs_from_text_come_back_equal() {
        check_text("thread p\nend");
        check_text("shared x, y = -3, a[3], b[2] = 7, c[4] = {1, 0, 2}\nthread p\nl: m:\nend\nforbid p@m");
        check_text(
            "thread p\ngoto b\na: nop\nb: nop\nend\nthread q\nhalt\nnop\nend\nthread r\nl: goto l\nend",
        );
        check_text(
            "thread p[i in -1..=1]\nl: r = i\nif r == i goto l\nchoose l, m\nm:\nend\nforbid two i: p[i]@l",
        );
        check_text("thread p\nrepeat k in 0..3 { l: nop }\nend\nforbid p@l && !p@l || p@l");
        check_text("thread p\nrepeat k in 0..300 { l: nop }\nend\nforbid p@l || 0 && p@l_3 || p@l");
        check_text(
            "shared x\nthread p\nif !r goto l\nif 1 goto l\nif 0 goto l\nr = - -r - -1 - (q - 1)\nl: r = any(-3..3)\nend",
        );
        check_text(
            "thread p\nr = 0 - 9223372036854775807 - 1; q = -r; q = !(q == -1) * ~q % 3\nend\nexists p.r - p.q",
        );
    }

    #[test]
    fn long_disjunctions_come_back_equal() {
        let many: Vec<String> = (0..200).map(|i| format!("p.r == {i}")).collect();
        check_text(&format!(
            "thread p\nr = 1\nend\nnever {}\nforall {}",
            many.join(" || "),
            many.join(" && ")
        ));
        check_text(
            "thread p[i in 0..40]\nc: r = 1\nend\nforbid two i: p[i]@c\nnever all i: p[i].r == 1 || p[i]@c",
        );
    }

    #[test]
    fn the_text_is_the_one_a_person_would_write() {
        let source = "shared x, a[2] = 1\n\nthread p\n    store [x], 1\nspin:\n    load r, [a + 1]\n    if r == 0 goto spin\nend\n\nnever p.r == 0\n";
        assert_eq!(write(&reread(source), &Limits::default()).unwrap(), source);
    }

    fn edge(from: u32, to: u32, instr: Instr) -> Edge {
        Edge { from: Loc(from), to: Loc(to), instr, line: 0, text: String::new(), origin: None }
    }

    fn thread(name: &str, registers: &[&str], locations: usize, end: u32, edges: Vec<Edge>) -> ThreadParts {
        ThreadParts {
            name: name.to_string(),
            registers: registers.iter().map(|r| r.to_string()).collect(),
            locations: vec![Location::default(); locations],
            edges,
            initial: Loc(0),
            end: Loc(end),
        }
    }

    #[test]
    fn a_location_with_mixed_ways_out_chooses_and_stays_itself() {
        let edges = vec![edge(0, 1, Instr::Fence), edge(0, 2, Instr::Lock), edge(2, 0, Instr::Unlock)];
        let at = Pred::Atom(Atom::At(ThreadId(0), vec![Loc(0)]));
        let text = check_parts(ProgramParts {
            memory: vec![],
            threads: vec![thread("p", &[], 3, 1, edges)],
            properties: vec![Property { kind: PropertyKind::Forbid, pred: at, line: 0 }],
        });
        let expect = "thread p\nL1:\n    choose L2, L3\nL2:\n    fence\n    halt\nL3:\n    lock\n    unlock\n    goto L1\nend\n\nforbid p@L1 || p@L2 || p@L3\n";
        assert_eq!(text, expect);
    }

    #[test]
    fn opposite_assumptions_are_a_branch() {
        let compare = |op| Instr::Assume(Expr::binary(op, Expr::Atom(Reg(0)), Expr::Const(0)));
        let edges = vec![edge(0, 1, compare(BinOp::Eq)), edge(0, 0, compare(BinOp::Ne))];
        let text = check_parts(ProgramParts {
            threads: vec![thread("p", &["r"], 2, 1, edges)],
            ..ProgramParts::default()
        });
        assert_eq!(text, "thread p\nL1:\n    if r == 0 goto L2\n    goto L1\nL2:\nend\n");
    }

    #[test]
    fn odd_names_dead_ends_and_silent_registers_can_be_written() {
        let load =
            Instr::Load { dst: Reg(1), addr: Expr::binary(BinOp::Div, Expr::Const(1), Expr::Const(0)) };
        let asked = Pred::Atom(Atom::Reg(ThreadId(0), Reg(0)));
        let text = check_parts(ProgramParts {
            memory: vec![Variable { name: "q=".to_string(), init: vec![0] }],
            threads: vec![thread("load", &["q_", "zero"], 3, 2, vec![edge(0, 1, load)])],
            properties: vec![Property { kind: PropertyKind::Never, pred: asked, line: 0 }],
        });
        let expect = "shared q_\n\nthread load_\n    q__2 = 0\n    load zero, [1 / zero_2]\n    assume 0\nend\n\nnever load_.q__2\n";
        assert_eq!(text, expect);
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("x".to_string()),
            Just("r".to_string()),
            Just("load".to_string()),
            Just("q=".to_string()),
            Just("p[1]".to_string()),
            Just(String::new()),
            Just("zero".to_string()),
            Just("L1".to_string()),
            "[a-c]{1,2}",
        ]
    }

    fn distinct_names(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<String>> {
        prop::collection::hash_set(name(), count).prop_map(|names| {
            let mut names: Vec<String> = names.into_iter().collect();
            names.sort();
            names
        })
    }

    fn constant() -> impl Strategy<Value = Value> {
        prop_oneof![-2..4i64, Just(Value::MIN), Just(Value::MAX)]
    }

    fn binary_operator() -> impl Strategy<Value = BinOp> {
        use BinOp::*;
        prop::sample::select(vec![
            Or, And, BitOr, BitXor, BitAnd, Eq, Ne, Lt, Le, Gt, Ge, Shl, Shr, Add, Sub, Mul, Div, Rem,
        ])
    }

    /// Divisions in properties are by constants.
    fn expr<A: std::fmt::Debug + Clone + 'static>(
        atom: impl Strategy<Value = A> + 'static,
        divisions: bool,
    ) -> impl Strategy<Value = Expr<A>> {
        let leaf = prop_oneof![constant().prop_map(Expr::Const), atom.prop_map(Expr::Atom)];
        leaf.prop_recursive(4, 16, 2, move |inner| {
            let unary = prop::sample::select(vec![UnOp::Neg, UnOp::Not, UnOp::BitNot]);
            let keep = move |op| match op {
                BinOp::Div | BinOp::Rem if !divisions => BinOp::Add,
                op => op,
            };
            prop_oneof![
                (unary, inner.clone()).prop_map(|(op, a)| Expr::unary(op, a)),
                (binary_operator(), inner.clone(), inner).prop_map(move |(op, a, b)| Expr::binary(
                    keep(op),
                    a,
                    b
                )),
            ]
        })
    }

    fn instr(registers: usize) -> BoxedStrategy<Instr> {
        if registers == 0 {
            return prop_oneof![Just(Instr::Nop), Just(Instr::Fence), Just(Instr::Lock)].boxed();
        }
        let reg = move || (0..registers).prop_map(|r| Reg(r as u16));
        let e = move || expr(reg(), true);
        prop_oneof![
            Just(Instr::Nop),
            Just(Instr::Fence),
            (reg(), e()).prop_map(|(dst, addr)| Instr::Load { dst, addr }),
            (e(), e()).prop_map(|(addr, value)| Instr::Store { addr, value }),
            (reg(), e()).prop_map(|(dst, value)| Instr::Assign { dst, value }),
            (reg(), constant()).prop_map(|(dst, lo)| Instr::Any { dst, lo, hi: lo.saturating_add(2) }),
            e().prop_map(Instr::Assume),
            e().prop_map(Instr::Assert),
            (reg(), e(), e(), e()).prop_map(|(dst, addr, old, new)| Instr::Rmw {
                dst,
                addr,
                op: RmwOp::Cas { old, new }
            }),
        ]
        .boxed()
    }

    fn any_thread() -> impl Strategy<Value = ThreadParts> {
        (distinct_names(0..4), 1..6usize).prop_flat_map(|(registers, count)| {
            let loc = move || (0..count as u32).prop_map(Loc);
            let location = prop::collection::vec(name(), 0..3).prop_map(Location::labelled);
            let edges = prop::collection::vec((loc(), loc(), instr(registers.len())), 0..10);
            let locations = prop::collection::vec(location, count);
            (locations, edges, loc(), loc()).prop_map(move |(locations, edges, initial, end)| ThreadParts {
                name: String::new(),
                registers: registers.clone(),
                locations,
                edges: (edges.into_iter())
                    .filter(|(from, _, _)| *from != end)
                    .map(|(from, to, instr)| edge(from.0, to.0, instr))
                    .collect(),
                initial,
                end,
            })
        })
    }

    fn any_parts() -> impl Strategy<Value = ProgramParts> {
        let threads = (distinct_names(1..4), prop::collection::vec(any_thread(), 3));
        let threads = threads.prop_map(|(names, threads)| {
            let named = names.into_iter().zip(threads);
            named.map(|(name, thread)| ThreadParts { name, ..thread }).collect::<Vec<_>>()
        });
        let init = prop::collection::vec(constant(), 1..4);
        let memory = (distinct_names(1..4), prop::collection::vec(init, 3)).prop_map(|(names, inits)| {
            names.into_iter().zip(inits).map(|(name, init)| Variable { name, init }).collect::<Vec<_>>()
        });
        (memory, threads).prop_flat_map(|(memory, threads)| {
            let preds = prop::collection::vec(pred(&memory, &threads), 0..3);
            let property = |pred| Property { kind: PropertyKind::Never, pred, line: 0 };
            preds.prop_map(move |preds| ProgramParts {
                memory: memory.clone(),
                threads: threads.clone(),
                properties: preds.into_iter().map(property).collect(),
            })
        })
    }

    fn pred(memory: &[Variable], threads: &[ThreadParts]) -> BoxedStrategy<Pred> {
        let cells: usize = memory.iter().map(|v| v.init.len()).sum();
        let sizes: Vec<(usize, usize)> =
            threads.iter().map(|t| (t.locations.len(), t.registers.len())).collect();
        let atom =
            (0..threads.len(), any::<u32>(), any::<u32>(), 0..3usize).prop_map(move |(t, n, m, kind)| {
                let (locations, registers) = sizes[t];
                let id = ThreadId(t as u16);
                let loc = |n: u32| Loc(n % locations as u32);
                match kind {
                    0 => Atom::Mem(Addr(n % cells as u32)),
                    1 if registers > 0 => Atom::Reg(id, Reg((n as usize % registers) as u16)),
                    _ => Atom::At(id, vec![loc(n), loc(m)]),
                }
            });
        expr(atom, false).boxed()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

        #[test]
        fn any_program_can_be_written_and_read(parts in any_parts()) {
            check_parts(parts);
        }
    }
}
