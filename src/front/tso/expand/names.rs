//! What do the names of a file stand for? Parameters, fields, shared variables, and constants made from them.
//!
//! Parameters come in the order of the file, each from those above it. Then the sizes of arrays, which fix
//! all addresses; then initial values, which may be addresses. Registers are not known here.

use super::lower::{Leaves, Role, lower};
use crate::front::const_fold::{self, Leaf};
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::tso::ast::{Bound, Expr, File, Init, Name, Param, ParamKind, Range, Shared, ThreadRef};
use crate::model::{self, BinOp, MAX_CELLS, RegExpr, Value, Variable};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What a name stands for, wherever it is used.
pub(crate) enum Meaning {
    Constant(Value),
    Address(Value),
    /// What an `inline` was given for it.
    Argument(Rc<Argument>),
    /// A parameter used above its declaration.
    TooEarly(Span),
    /// Its declaration has been reported as wrong.
    Doubtful,
    Unknown,
}

pub(crate) struct TsoNames<'s, 'f> {
    params: HashMap<&'s str, (Span, Option<Value>)>,
    shared: HashMap<&'s str, Value>,
    /// Cells that a struct takes.
    structs: HashMap<&'s str, Value>,
    /// The offset of each field; none if structs disagree about it.
    fields: HashMap<&'s str, Option<Value>>,
    doubtful: &'f HashSet<&'s str>,
}

/// What a name can mean in one place only, innermost last.
pub(crate) type Locals<'s> = Vec<(&'s str, Local)>;

#[derive(Clone, Debug)]
pub(crate) enum Local {
    /// The index of a template or quantifier, the counter of a `repeat`.
    Constant(Value),
    /// Memory of the thread's own.
    Address(Value),
    Argument(Rc<Argument>),
}

/// What an `inline` is called with, in the caller's terms.
#[derive(Debug)]
pub(crate) struct Argument {
    pub expr: RegExpr,
    /// As the caller wrote it.
    pub text: String,
}

impl<'s> TsoNames<'s, '_> {
    /// How many cells a struct takes.
    pub(crate) fn cells_of(&self, structure: &str) -> Option<Value> {
        self.structs.get(structure).copied()
    }

    pub(crate) fn structs(&self) -> impl Iterator<Item = &'s str> {
        self.structs.keys().copied()
    }

    /// Inner names hide outer ones.
    pub(crate) fn meaning(&self, name: &Name<'s>, locals: &Locals<'s>) -> Meaning {
        if let Some((_, local)) = locals.iter().rev().find(|(local, _)| *local == name.text) {
            return match local {
                Local::Constant(value) => Meaning::Constant(*value),
                Local::Address(address) => Meaning::Address(*address),
                Local::Argument(argument) => match argument.expr {
                    RegExpr::Const(value) => Meaning::Constant(value),
                    _ => Meaning::Argument(argument.clone()),
                },
            };
        }
        if let Some((declared, value)) = self.params.get(name.text) {
            return match value {
                _ if name.span.start < declared.end => Meaning::TooEarly(*declared),
                Some(value) => Meaning::Constant(*value),
                None => Meaning::Doubtful,
            };
        }
        if let Some(cells) = self.structs.get(name.text) {
            return Meaning::Constant(*cells);
        }
        match self.shared.get(name.text) {
            Some(address) => Meaning::Address(*address),
            None if self.doubtful.contains(name.text) => Meaning::Doubtful,
            None => Meaning::Unknown,
        }
    }

    pub(crate) fn is_doubtful(&self, name: &str) -> bool {
        self.doubtful.contains(name)
    }

    /// Is there a declaration that could not be read, so that addresses may be other than they seem?
    pub(crate) fn has_gaps(&self) -> bool {
        !self.doubtful.is_empty()
    }

    /// Every name with a meaning, for suggestions.
    pub(crate) fn known<'a>(&'a self, locals: &'a Locals<'s>) -> impl Iterator<Item = &'s str> + 'a {
        let globals = self.params.keys().chain(self.shared.keys()).chain(self.structs.keys()).copied();
        globals.chain(locals.iter().map(|(name, _)| *name))
    }

    pub(crate) fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    pub(crate) fn is_field(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// How far behind the beginning of its block a field lies.
    pub(crate) fn offset(&self, field: &Name<'s>, problems: &mut Problems<'s>) -> Result<Value, Reported> {
        match self.fields.get(field.text) {
            Some(Some(offset)) => Ok(*offset),
            Some(None) => {
                let problem = Problem::error(format!("which field `{}`?", field.text))
                    .at(field.span)
                    .label("structs have it in different places")
                    .help("give fields names of their own, or the same place");
                Err(problems.report(problem))
            }
            None if self.is_doubtful(field.text) => Err(Reported),
            None => {
                let meant = problems.nearest(field.text, self.fields.keys().copied());
                let problem = Problem::error(format!("no struct has a field `{}`", field.text))
                    .at(field.span)
                    .suggest(meant);
                Err(problems.report(problem))
            }
        }
    }

    pub(crate) fn constant(
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
    pub(crate) fn range(
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
pub(crate) fn declare<'s, 'f>(
    file: &'f File<'s>,
    defines: &[(String, Value)],
    problems: &mut Problems<'s>,
) -> (TsoNames<'s, 'f>, Vec<Variable>) {
    let mut names = TsoNames {
        params: HashMap::new(),
        shared: HashMap::new(),
        structs: HashMap::new(),
        fields: HashMap::new(),
        doubtful: &file.doubtful,
    };
    let declared = check_declared_once(file, problems);
    declare_structs(file, &mut names, problems);
    declare_params(file, &declared, defines, &mut names, problems);
    let sizes = declare_shared(file, &declared, &mut names, problems);
    let memory = file
        .shared
        .iter()
        .zip(sizes)
        .filter_map(|(variable, size)| Some((variable, size?)))
        .map(|(v, size)| Variable {
            name: v.name.text.to_string(),
            init: cells(v, size, &names, &Vec::new(), problems),
        })
        .collect();
    (names, memory)
}

/// Where each name is declared first. A second declaration is an error, and ignored from then on.
fn check_declared_once<'s>(file: &File<'s>, problems: &mut Problems<'s>) -> HashMap<&'s str, Span> {
    let what = |p: &Param| match p.kind {
        ParamKind::Open => "parameter",
        ParamKind::Fixed => "constant",
    };
    let params = file.params.iter().map(|p| (p.name, what(p)));
    let shared = file.shared.iter().map(|v| (v.name, "shared variable"));
    let structs = file.structs.iter().map(|s| (s.name, "struct"));
    let mut all: Vec<_> = params.chain(shared).chain(structs).collect();
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
                let line = problems.line_name(*span);
                let problem = Problem::error(format!("`{}` is declared twice", name.text))
                    .at(name.span)
                    .label(format!("already a {before}, on line {line}"));
                problems.report(problem);
            }
        }
    }
    first.into_iter().map(|(name, (span, _))| (name, span)).collect()
}

fn declare_structs<'s>(file: &File<'s>, names: &mut TsoNames<'s, '_>, problems: &mut Problems<'s>) {
    for structure in &file.structs {
        let cells = structure.fields.len() as Value;
        names.structs.entry(structure.name.text).or_insert(cells);
        let mut own: HashSet<&str> = HashSet::new();
        for (offset, field) in structure.fields.iter().enumerate() {
            if problems.spend(INSTRUCTION).is_err() {
                return;
            }
            if !own.insert(field.text) {
                let problem = Problem::error(format!("field `{}` stands twice in its struct", field.text));
                problems.report(problem.at(field.span));
                continue;
            }
            let offset = Some(offset as Value);
            match names.fields.entry(field.text) {
                Entry::Vacant(entry) => {
                    entry.insert(offset);
                }
                Entry::Occupied(mut entry) if *entry.get() != offset => {
                    entry.insert(None);
                }
                Entry::Occupied(_) => {}
            }
        }
    }
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
        let defined = defined.filter(|_| param.kind == ParamKind::Open);
        names.params.insert(param.name.text, (extent(param), defined.or(written)));
    }
    let open = || file.params.iter().filter(|p| p.kind == ParamKind::Open).map(|p| p.name.text);
    for (name, _) in defines.iter().filter(|(name, _)| !open().any(|open| open == name)) {
        if names.is_doubtful(name) {
            continue;
        }
        let fixed = file.params.iter().find(|p| p.name.text == name);
        let meant = problems.nearest(name, open());
        let problem =
            Problem::error(format!("`-D {name}=…` sets a parameter that the file does not declare"));
        problems.report(match (fixed, meant) {
            (Some(_), _) => problem.help(format!("`{name}` is a constant; `param {name} = …` can be set")),
            (None, Some(meant)) => problem.suggest(Some(meant)),
            (None, None) => problem.help(format!("the file would need a line `param {name} = …`")),
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
        .map(|v| {
            let first = declared.get(v.name.text) == Some(&v.name.span);
            first.then(|| size(v, names, &Vec::new(), problems))
        })
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
pub(crate) fn size<'s>(
    variable: &Shared<'s>,
    names: &TsoNames<'s, '_>,
    locals: &Locals<'s>,
    problems: &mut Problems<'s>,
) -> usize {
    let Some(e) = &variable.size else { return 1 };
    let Ok(size) = names.constant(e, locals, problems) else { return 1 };
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

pub(crate) fn cells<'s>(
    variable: &Shared<'s>,
    size: usize,
    names: &TsoNames<'s, '_>,
    locals: &Locals<'s>,
    problems: &mut Problems<'s>,
) -> Vec<Value> {
    let mut value = |e| names.constant(e, locals, problems).unwrap_or(0);
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

impl<'s> Constants<'_, 's, '_> {
    fn name(&mut self, name: &Name<'s>) -> Result<model::Expr<NoLeaf>, Reported> {
        match self.names.meaning(name, self.locals) {
            Meaning::Constant(value) | Meaning::Address(value) => Ok(model::Expr::Const(value)),
            Meaning::Argument(_) => Err(not_constant(name.span, self.problems)),
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
}

impl<'s> Leaves<'s> for Constants<'_, 's, '_> {
    type Leaf = NoLeaf;

    fn leaf(&mut self, e: &Expr<'s>, _: Role) -> Result<model::Expr<NoLeaf>, Reported> {
        match e {
            Expr::Name(name) => self.name(name),
            Expr::Dot(ThreadRef { name, index: None }, field) if self.names.is_field(field.text) => {
                let base = self.name(name)?;
                Ok(shifted(base, self.names.offset(field, self.problems)?))
            }
            _ => Err(not_constant(e.span(), self.problems)),
        }
    }

    fn problems(&mut self) -> &mut Problems<'s> {
        self.problems
    }
}

/// So many cells behind an address.
pub(crate) fn shifted<A: Leaf>(base: model::Expr<A>, offset: Value) -> model::Expr<A> {
    match offset {
        0 => base,
        _ => const_fold::binary(BinOp::Add, base, model::Expr::Const(offset))
            .unwrap_or_else(|_| unreachable!("`+` does not divide")),
    }
}

pub(crate) fn not_constant(span: Span, problems: &mut Problems) -> Reported {
    let problem = Problem::error("expected a constant").at(span);
    problems.report(problem.label("this changes while the program runs"))
}

pub(crate) fn used_too_early(name: &Name, declared: Span, problems: &mut Problems) -> Reported {
    let line = problems.line_name(declared);
    let problem = Problem::error(format!("parameter `{}` is used before it has a value", name.text))
        .at(name.span)
        .label(format!("declared on line {line}"))
        .help("move the `param` line up");
    problems.report(problem)
}
