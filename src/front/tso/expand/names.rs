//! What do the names of a file stand for? Parameters, shared variables, and constants made from them.
//!
//! Parameters come in the order of the file, each from those above it. Then the sizes of arrays, which fix
//! all addresses; then initial values, which may be addresses. Registers are not known here.

use super::lower::{Leaves, Role, lower};
use crate::front::const_fold::Leaf;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::tso::ast::{Bound, Expr, File, Init, Name, Param, Range, Shared};
use crate::model::{self, MAX_CELLS, Value, Variable};
use std::collections::{HashMap, HashSet};

/// What a name stands for, wherever it is used.
pub enum Meaning {
    Constant(Value),
    Address(Value),
    /// A parameter used above its declaration.
    TooEarly(Span),
    /// Its declaration has been reported as wrong.
    Doubtful,
    Unknown,
}

pub struct TsoNames<'s, 'f> {
    params: HashMap<&'s str, (Span, Option<Value>)>,
    shared: HashMap<&'s str, Value>,
    doubtful: &'f HashSet<&'s str>,
}

/// Constants that a name can mean in one place only, innermost last: indices of templates and quantifiers,
/// counters of `repeat`.
pub type Locals<'s> = Vec<(&'s str, Value)>;

impl<'s> TsoNames<'s, '_> {
    /// Inner names hide outer ones.
    pub fn meaning(&self, name: &Name<'s>, locals: &Locals<'s>) -> Meaning {
        if let Some((_, value)) = locals.iter().rev().find(|(local, _)| *local == name.text) {
            return Meaning::Constant(*value);
        }
        if let Some((declared, value)) = self.params.get(name.text) {
            return match value {
                _ if name.span.start < declared.end => Meaning::TooEarly(*declared),
                Some(value) => Meaning::Constant(*value),
                None => Meaning::Doubtful,
            };
        }
        match self.shared.get(name.text) {
            Some(address) => Meaning::Address(*address),
            None if self.doubtful.contains(name.text) => Meaning::Doubtful,
            None => Meaning::Unknown,
        }
    }

    pub fn is_doubtful(&self, name: &str) -> bool {
        self.doubtful.contains(name)
    }

    /// Is there a declaration that could not be read, so that addresses may be other than they seem?
    pub fn has_gaps(&self) -> bool {
        !self.doubtful.is_empty()
    }

    /// Every name with a meaning, for suggestions.
    pub fn known<'a>(&'a self, locals: &'a Locals<'s>) -> impl Iterator<Item = &'s str> + 'a {
        let globals = self.params.keys().chain(self.shared.keys()).copied();
        globals.chain(locals.iter().map(|(name, _)| *name))
    }

    pub fn constant(
        &self,
        e: &Expr<'s>,
        locals: &Locals<'s>,
        problems: &mut Problems<'s>,
    ) -> Result<Value, Reported> {
        match lower(&mut Constants { names: self, locals, problems }, e)? {
            model::Expr::Const(value) => Ok(value),
            _ => unreachable!("an expression without atoms folds to a constant"),
        }
    }

    /// First and last value of a range; the last is smaller if there are none.
    pub fn range(
        &self,
        range: &Range<'s>,
        locals: &Locals<'s>,
        problems: &mut Problems<'s>,
    ) -> Result<(Value, Value), Reported> {
        let lo = self.constant(&range.lo, locals, problems);
        let hi = self.constant(&range.hi, locals, problems);
        let (lo, hi) = (lo?, hi?);
        Ok(match (range.bound, hi.checked_sub(1)) {
            (Bound::Included, _) => (lo, hi),
            (Bound::Excluded, Some(last)) => (lo, last),
            (Bound::Excluded, None) => (1, 0),
        })
    }
}

/// Reads the declarations of a file: the names, and the shared memory.
pub fn declare<'s, 'f>(
    file: &'f File<'s>,
    defines: &[(String, Value)],
    problems: &mut Problems<'s>,
) -> (TsoNames<'s, 'f>, Vec<Variable>) {
    let mut names = TsoNames { params: HashMap::new(), shared: HashMap::new(), doubtful: &file.doubtful };
    let declared = check_declared_once(file, problems);
    declare_params(file, &declared, defines, &mut names, problems);
    let sizes = declare_shared(file, &declared, &mut names, problems);
    let memory = file
        .shared
        .iter()
        .zip(sizes)
        .filter_map(|(variable, size)| Some((variable, size?)))
        .map(|(v, size)| Variable { name: v.name.text.to_string(), init: cells(v, size, &names, problems) })
        .collect();
    (names, memory)
}

/// Where each name is declared first. A second declaration is an error, and ignored from then on.
fn check_declared_once<'s>(file: &File<'s>, problems: &mut Problems<'s>) -> HashMap<&'s str, Span> {
    let params = file.params.iter().map(|p| (p.name, "parameter"));
    let shared = file.shared.iter().map(|v| (v.name, "shared variable"));
    let mut all: Vec<_> = params.chain(shared).collect();
    all.sort_by_key(|(name, _)| name.span.start);
    let mut first: HashMap<&str, (Span, &str)> = HashMap::new();
    for (name, what) in all {
        if problems.spend(INSTRUCTION).is_err() {
            break;
        }
        match first.get(name.text) {
            None => {
                first.insert(name.text, (name.span, what));
            }
            Some((span, before)) => {
                let line = problems.line(*span);
                let problem = Problem::error(format!("`{}` is declared twice", name.text))
                    .at(name.span)
                    .label(format!("already a {before}, on line {line}"));
                problems.report(problem);
            }
        }
    }
    first.into_iter().map(|(name, (span, _))| (name, span)).collect()
}

fn declare_params<'s>(
    file: &File<'s>,
    declared: &HashMap<&'s str, Span>,
    defines: &[(String, Value)],
    names: &mut TsoNames<'s, '_>,
    problems: &mut Problems<'s>,
) {
    // Above its declaration a parameter is known but has no value, so that its uses there are noticed.
    let extent = |param: &Param<'s>| param.name.span.to(param.value.span());
    for param in &file.params {
        names.params.entry(param.name.text).or_insert((extent(param), None));
    }
    for param in file.params.iter().filter(|p| declared.get(p.name.text) == Some(&p.name.span)) {
        let written = names.constant(&param.value, &Vec::new(), problems).ok();
        let defined = defines.iter().rev().find(|(name, _)| name == param.name.text).map(|(_, v)| *v);
        names.params.insert(param.name.text, (extent(param), defined.or(written)));
    }
    for (name, _) in defines.iter().filter(|(name, _)| !names.params.contains_key(name.as_str())) {
        if names.is_doubtful(name) {
            continue;
        }
        let meant = problems.nearest(name, names.params.keys().copied());
        let problem =
            Problem::error(format!("`-D {name}=…` sets a parameter that the file does not declare"));
        problems.report(match meant {
            Some(_) => problem.suggest(meant),
            None => problem.help(format!("the file would need a line `param {name} = …`")),
        });
    }
}

/// Gives every variable its address; the size of each, unless it is a second declaration.
fn declare_shared<'s>(
    file: &File<'s>,
    declared: &HashMap<&'s str, Span>,
    names: &mut TsoNames<'s, '_>,
    problems: &mut Problems<'s>,
) -> Vec<Option<usize>> {
    let mut sizes: Vec<Option<usize>> = file
        .shared
        .iter()
        .map(|v| (declared.get(v.name.text) == Some(&v.name.span)).then(|| size(v, names, problems)))
        .collect();
    let mut address: usize = 0;
    let mut full = false;
    for (variable, size) in file.shared.iter().zip(&mut sizes) {
        let Some(size) = size else { continue };
        names.shared.insert(variable.name.text, address as Value);
        if address + *size > MAX_CELLS {
            if !full {
                let problem = Problem::error(format!("the shared memory has more than {MAX_CELLS} cells"));
                problems.report(problem.at(variable.name.span).label("does not fit any more"));
            }
            full = true;
            *size = 1;
        }
        address += *size;
    }
    sizes
}

/// A size that is wrong counts as 1, so that reading can go on.
fn size<'s>(variable: &Shared<'s>, names: &TsoNames<'s, '_>, problems: &mut Problems<'s>) -> usize {
    let Some(e) = &variable.size else { return 1 };
    let Ok(size) = names.constant(e, &Vec::new(), problems) else { return 1 };
    match usize::try_from(size) {
        Ok(size @ 1..=MAX_CELLS) => size,
        _ => {
            let problem = Problem::error(format!("`{}` cannot have {size} cells", variable.name.text))
                .at(e.span())
                .label(format!("expected a size from 1 to {MAX_CELLS}"));
            problems.report(problem);
            1
        }
    }
}

fn cells<'s>(
    variable: &Shared<'s>,
    size: usize,
    names: &TsoNames<'s, '_>,
    problems: &mut Problems<'s>,
) -> Vec<Value> {
    let mut value = |e| names.constant(e, &Vec::new(), problems).unwrap_or(0);
    match &variable.init {
        Init::Zero => vec![0; size],
        Init::Each(e) => vec![value(e); size],
        Init::List(list) => {
            let mut cells: Vec<Value> = list.iter().map(&mut value).collect();
            if let Some(extra) = list.get(size) {
                let problem = Problem::error(format!(
                    "`{}` has {size} cells, and {} initial values",
                    variable.name.text,
                    list.len()
                ))
                .at(extra.span())
                .label("one too many");
                problems.report(problem);
            }
            cells.resize(size, 0);
            cells
        }
    }
}

/// The leaves of constants: there are none.
enum NoLeaf {}

impl Leaf for NoLeaf {}

struct Constants<'a, 's, 'f> {
    names: &'a TsoNames<'s, 'f>,
    locals: &'a Locals<'s>,
    problems: &'a mut Problems<'s>,
}

impl<'s> Leaves<'s> for Constants<'_, 's, '_> {
    type Leaf = NoLeaf;

    fn leaf(&mut self, e: &Expr<'s>, _: Role) -> Result<model::Expr<NoLeaf>, Reported> {
        let Expr::Name(name) = e else {
            let problem = Problem::error("expected a constant").at(e.span());
            return Err(self.problems.report(problem.label("this changes while the program runs")));
        };
        match self.names.meaning(name, self.locals) {
            Meaning::Constant(value) | Meaning::Address(value) => Ok(model::Expr::Const(value)),
            Meaning::Doubtful => Err(Reported),
            Meaning::TooEarly(declared) => Err(used_too_early(name, declared, self.problems)),
            Meaning::Unknown => {
                let meant = self.problems.nearest(name.text, self.names.known(self.locals));
                let problem = Problem::error(format!("`{}` is not a constant", name.text))
                    .at(name.span)
                    .label("expected numbers and parameters declared above")
                    .suggest(meant);
                Err(self.problems.report(problem))
            }
        }
    }

    fn problems(&mut self) -> &mut Problems<'s> {
        self.problems
    }
}

pub fn used_too_early(name: &Name, declared: Span, problems: &mut Problems) -> Reported {
    let line = problems.line(declared);
    let problem = Problem::error(format!("parameter `{}` is used before it has a value", name.text))
        .at(name.span)
        .label(format!("declared on line {line}"))
        .help("move the `param` line up");
    problems.report(problem)
}
