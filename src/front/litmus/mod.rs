//! x86 litmus tests, `.litmus`, as herd and its relatives read them: 32-bit tests in Intel's order of
//! operands (`X86`) and 64-bit ones in AT&T's (`X86_64`).
//!
//! Reading goes one way: `sections` finds the parts of the file; `init`, `parse` and `condition` read them,
//! each with the words of `lex`; `width` settles how wide instructions and locations are; `memory` gives
//! locations their cells; `pointers` knows where addresses can be; `lower` turns instructions into steps.
//! What instructions mean is `front::x86`'s knowledge. All mistakes of a file come out of one run. A test
//! becomes a program whose one property is the test's condition; what is printed about final states beyond
//! that is in [`Litmus`]. `write` is the way back.

mod condition;
mod init;
mod lex;
mod lower;
mod memory;
mod parse;
mod patch;
mod pointers;
mod sections;
mod width;
mod write;

pub use patch::DIALECT;
pub use write::write;

use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::front::x86::{Arch, Flag, Form, Own, ThreadRegisters, fits, fitted, nothing_is_cut_off};
use crate::front::{Input, Unread};
use crate::limits::Limits;
use crate::model::litmus::{Litmus, Observed};
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{Addr, Atom, BinOp, Expr, Pred, Program, Property, ThreadId, Value};
use condition::{LitmusPlace, LitmusQuestion, Right, observed};
use init::{OfThread, RegisterValue};
use lower::{Context, lower};
use memory::{Initial, LitmusMemory, constant};
use parse::LitmusThread;
use pointers::Pointers;
use std::collections::{BTreeMap, BTreeSet};

/// Reads a test as a program.
pub fn read(source: &str, limits: &Limits) -> Result<Input, Unread> {
    read_test(source, limits).map(|(input, _)| input)
}

/// Reads a test, with what it says beside its program.
pub fn read_test(source: &str, limits: &Limits) -> Result<(Input, Litmus), Unread> {
    let mut problems = Problems::new(source, limits);
    let test = test(source, &mut problems);
    problems
        .finish(test)
        .map(|((program, litmus), warnings)| (Input { program, formulas: vec![], warnings }, litmus))
}

fn test(source: &str, problems: &mut Problems) -> Result<(Program, Litmus), Reported> {
    let sections = sections::split(source, problems)?;
    let clean = &sections.clean[..];
    let text = |span: Span| &clean[span.start..span.end];
    let Some(arch) = architecture(text(sections.arch)) else {
        let name = text(sections.arch);
        let unknown =
            Problem::error(format!("`{name}` is no architecture that is known here")).at(sections.arch);
        return Err(problems.report(unknown.help("a test begins with `X86` or `X86_64`")));
    };
    let mut memory = LitmusMemory::new(arch);
    let initial = init::read(clean, sections.init, &mut memory, problems);
    let mut threads = parse::threads(clean, sections.program, arch, problems);
    width::settle(&mut threads, &mut memory, problems);
    let question = condition::read(clean, sections.question, &mut memory, problems);
    memory.lay_out(problems);
    let pointers = Pointers::of(&threads, &initial, &memory, problems)?;
    let test =
        Test { source: clean, name: text(sections.name), threads, initial, question, memory, pointers };
    test.check_names(problems);
    if problems.has_errors() {
        return Err(Reported);
    }
    test.build(problems)
}

/// Everything that was read.
struct Test<'s> {
    source: &'s str,
    name: &'s str,
    threads: Vec<LitmusThread<'s>>,
    initial: Vec<RegisterValue<'s>>,
    question: LitmusQuestion<'s>,
    memory: LitmusMemory<'s>,
    pointers: Pointers<'s>,
}

impl<'s> Test<'s> {
    fn arch(&self) -> Arch {
        self.memory.arch
    }

    fn thread(&self, number: u64) -> Option<ThreadId> {
        self.threads.iter().position(|t| t.number == number).map(|t| ThreadId(t as u16))
    }

    /// Do all threads and elements exist that the initial state and the condition name, and may they be what
    /// they are compared with?
    fn check_names(&self, problems: &mut Problems) {
        let mut places: Vec<(LitmusPlace, Span)> = self.question.locations.clone();
        places.iter_mut().for_each(|(place, _)| {
            // A whole array may be listed, and not compared.
            if let LitmusPlace::Cell(_, element) = place {
                element.get_or_insert(0);
            }
        });
        self.question.prop.for_each_place(&mut |place, span| places.push((place, span)));
        places.extend(self.initial.iter().map(|r| (LitmusPlace::Own(r.register), r.span)));
        for (place, span) in places {
            match place {
                LitmusPlace::Own(OfThread { thread, .. }) if self.thread(thread).is_none() => {
                    problems.report(Problem::error(format!("there is no thread P{thread}")).at(span));
                }
                LitmusPlace::Cell(name, None) if self.memory.len(name) > 1 => {
                    let whole = Problem::error(format!("`{name}` is an array")).at(span);
                    problems.report(whole.help(format!("ask for one of its elements, as in `{name}[0]`")));
                }
                LitmusPlace::Cell(name, Some(element)) if self.memory.element(name, element).is_none() => {
                    problems.report(Problem::error(format!("`{name}` has no element {element}")).at(span));
                }
                _ => {}
            }
        }
        self.question.prop.for_each_address(&mut |place, name, span| {
            if !self.may_be_address(&place) {
                let place = self.show(&place);
                let what = format!("`{name}` is the address of `{name}` here, and `{place}` never holds one");
                let help = format!("write `[{name}]` for the value that lies there");
                problems.report(Problem::warning(what).at(span).help(help));
            }
        });
        for initial in &self.initial {
            if let (Own::Flag(_), Initial::Const(value)) = (initial.register.own, initial.value)
                && !matches!(value, 0 | 1)
            {
                problems.report(Problem::error("a flag is 0 or 1").at(initial.span));
            }
        }
    }

    /// The program, as plainly as it can be put.
    fn build(&self, problems: &mut Problems) -> Result<(Program, Litmus), Reported> {
        let (program, litmus, uncut) = self.build_as(Form::Plain, problems)?;
        if uncut.is_empty() || nothing_is_cut_off(&program, &uncut, self.arch()) {
            return Ok((program, litmus));
        }
        drop(program);
        self.build_as(Form::Exact, problems).map(|(program, litmus, _)| (program, litmus))
    }

    /// Also the widths to which results were not cut.
    fn build_as(
        &self,
        form: Form,
        problems: &mut Problems,
    ) -> Result<(Program, Litmus, BTreeSet<u32>), Reported> {
        let context = Context { source: self.source, memory: &self.memory, form };
        let columns = observed(&self.question, &self.memory);
        let flags: Vec<Flag> = columns.iter().filter_map(flag_of).collect();
        let mut registers: Vec<ThreadRegisters> =
            self.threads.iter().map(|_| ThreadRegisters::default()).collect();
        let (mut threads, mut uncut) = (vec![], BTreeSet::new());
        for (thread, registers) in self.threads.iter().zip(&mut registers) {
            let first = self.first_values(thread, problems);
            let lowered = lower(thread, &first, &flags, registers, &context, problems)?;
            uncut.extend(lowered.uncut);
            let graph = lowered.graph;
            threads.push(ThreadParts {
                name: thread.name.to_string(),
                registers: vec![],
                locations: graph.locations,
                edges: graph.edges,
                initial: graph.initial,
                end: graph.end,
            });
        }
        let litmus = self.litmus(&columns, &mut registers);
        for (thread, registers) in threads.iter_mut().zip(registers) {
            thread.registers = registers.names;
        }
        let line = problems.line(self.question.span);
        let properties = vec![Property::new(litmus.kind, litmus.pred.clone(), line)];
        if problems.has_errors() {
            return Err(Reported);
        }
        let parts = ProgramParts {
            memory: self.memory.variables(),
            threads,
            properties,
            no_hang: None,
            stretches: vec![],
            code: vec![],
        };
        Ok((problems.program(parts)?, litmus, uncut))
    }

    /// The values that the thread's registers start with.
    fn first_values(&self, thread: &LitmusThread, problems: &mut Problems) -> Vec<(Own, Value, Span)> {
        let mut values = Vec::new();
        for initial in self.initial.iter().filter(|r| r.register.thread == thread.number) {
            let value = match initial.value {
                Initial::AddressOf(name) => Ok(self.memory.address(name)),
                Initial::Const(value) => {
                    constant(value, self.arch().bits(), self.arch(), initial.span, problems)
                }
            };
            if let Ok(value) = value {
                values.push((initial.register.own, value, initial.span));
            }
        }
        values
    }

    fn litmus(&self, columns: &[LitmusPlace<'s>], registers: &mut [ThreadRegisters]) -> Litmus {
        let mut atoms: BTreeMap<LitmusPlace, Atom> = BTreeMap::new();
        for place in columns {
            atoms.insert(*place, self.atom(place, registers));
        }
        let atom = |place: &LitmusPlace<'s>| atoms[place].clone();
        let compare = |left: &LitmusPlace<'s>, equal: bool, right: &Right<'s>| -> Pred {
            let right = match right {
                Right::Const(value) => Expr::Const(self.as_kept(left, *value)),
                // A number is no address, even if it should have the same bits.
                Right::AddressOf(_) if !self.may_be_address(left) => return Expr::Const(!equal as Value),
                Right::AddressOf(name) => Expr::Const(self.memory.address(name)),
                Right::Place(place) => Expr::Atom(atom(place)),
            };
            Expr::binary(if equal { BinOp::Eq } else { BinOp::Ne }, Expr::Atom(atom(left)), right)
        };
        let column = |place: &LitmusPlace<'s>| {
            let (bits, signed) = self.width(place);
            let may_be_address = self.may_be_address(place);
            Observed { name: self.show(place), atom: atom(place), bits, signed, may_be_address }
        };
        let observed: Vec<Observed> = columns.iter().map(column).collect();
        let shows_addresses = observed.iter().any(|o| o.may_be_address);
        Litmus {
            name: self.name.to_string(),
            kind: self.question.kind,
            pred: self.question.prop.pred(&compare),
            condition: self.question.prop.show(&|place| self.show(place)),
            observed,
            symbols: if shows_addresses { self.memory.symbols() } else { vec![] },
            bits: self.arch().bits(),
            widths: self.memory.widths(),
            addresses: self.memory.addresses(),
        }
    }

    fn atom(&self, place: &LitmusPlace<'s>, registers: &mut [ThreadRegisters]) -> Atom {
        match place {
            LitmusPlace::Own(OfThread { thread, own }) => {
                let t = self.thread(*thread).expect("names have been checked");
                Atom::Reg(t, registers[t.index()].own(*own, self.arch()))
            }
            LitmusPlace::Cell(name, element) => {
                let cell = self.memory.element(name, element.unwrap_or(0)).expect("names have been checked");
                Atom::Mem(Addr(cell as u32))
            }
        }
    }

    /// A number that the condition compares a place with, as the place would hold it.
    fn as_kept(&self, place: &LitmusPlace, value: Value) -> Value {
        let (bits, _) = self.width(place);
        if fits(value, bits) { fitted(value, bits, self.arch()) } else { value }
    }

    fn may_be_address(&self, place: &LitmusPlace) -> bool {
        match place {
            LitmusPlace::Own(OfThread { thread, own: Own::Gpr(gpr) }) => {
                self.pointers.in_register(*thread, *gpr)
            }
            LitmusPlace::Own(OfThread { own: Own::Flag(_), .. }) => false,
            LitmusPlace::Cell(name, _) => self.pointers.in_location(name),
        }
    }

    fn width(&self, place: &LitmusPlace) -> (u32, bool) {
        match place {
            LitmusPlace::Own(OfThread { own: Own::Flag(_), .. }) => (8, false),
            LitmusPlace::Own(_) => (self.arch().bits(), true),
            LitmusPlace::Cell(name, _) => {
                let ty = self.memory.ty(name);
                (ty.bits, ty.signed)
            }
        }
    }

    /// The place as final states and conditions show it.
    fn show(&self, place: &LitmusPlace) -> String {
        match place {
            LitmusPlace::Own(OfThread { thread, own: Own::Gpr(gpr) }) => {
                format!("{thread}:{}", gpr.name(self.arch()))
            }
            LitmusPlace::Own(OfThread { thread, own: Own::Flag(flag) }) => {
                format!("{thread}:{}", flag.name())
            }
            LitmusPlace::Cell(name, None) => name.to_string(),
            LitmusPlace::Cell(name, Some(element)) => format!("{name}[{element}]"),
        }
    }
}

fn flag_of(place: &LitmusPlace) -> Option<Flag> {
    match place {
        LitmusPlace::Own(OfThread { own: Own::Flag(flag), .. }) => Some(*flag),
        _ => None,
    }
}

/// The architecture that a test names first.
fn architecture(name: &str) -> Option<Arch> {
    match name {
        "X86" => Some(Arch::X86),
        "X86_64" => Some(Arch::X86_64),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
