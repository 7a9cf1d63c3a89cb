//! Where does each location lie, and how wide is it?
//!
//! A cell of the model is a location, or an element of an array, with all its bits: accesses of another width
//! to the same location are refused, since parts of a location would have to pass through store buffers on
//! their own. Values in it are `fitted`.
//!
//! Addresses that programs compute with are numbers of bytes. Locations of one width lie together in a
//! *zone*, in which addresses go up by that width; zones are far apart, and none contains 0. An access finds
//! its cell from the zone of its own width alone, so that one of the wrong width, one in the middle of a
//! location, or one through a null pointer leads outside memory, which is an error of the program. Real
//! addresses are unlike the numbers that a test counts with, and so are these: they begin at numbers that no
//! few operations on small or round numbers make, and further on where the test itself mentions something
//! close by. Which places can hold an address at all is known to `pointers`. Invariant: cells are sorted by
//! width, and those of one width lie side by side. No number of the test, its negative or its complement has
//! the low 32 bits of an address, or of a number less than `APART` away from one.

use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::front::x86::{Arch, DEFAULT_BITS, fits, fitted};
use crate::model::litmus::Width;
use crate::model::{BinOp, Expr, MAX_CELLS, RegExpr, UnOp, Value, Variable};
use std::collections::{BTreeSet, HashMap};

/// Where the first zone begins, and how far behind it the next does, unless numbers are in the way. All
/// addresses fit into 31 bits, so that they are the same number at every width, and are aligned as compilers
/// do it.
const FIRST_ZONE: Value = 0x4b5a_2d40;
const ZONE: Value = 0x0872_9b40;
const ALIGNMENT: Value = 64;
/// How far the numbers of the test stay away from addresses.
const APART: Value = 0x1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initial<'s> {
    Const(Value),
    AddressOf(&'s str),
}

struct Location<'s> {
    name: &'s str,
    bits: Option<u32>,
    signed: bool,
    initial: Vec<Initial<'s>>,
    declared: bool,
    span: Span,
    /// Its first cell, once all are known.
    cell: usize,
}

pub(crate) struct LitmusMemory<'s> {
    pub arch: Arch,
    locations: Vec<Location<'s>>,
    by_name: HashMap<&'s str, usize>,
    zones: HashMap<u32, Zone>,
    /// The low bits of all numbers in the test, also with all bits or the sign turned round.
    numbers: BTreeSet<u32>,
    /// Cells that have been declared.
    cells: usize,
}

/// The type of a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    pub bits: u32,
    pub signed: bool,
}

impl<'s> LitmusMemory<'s> {
    pub(crate) fn new(arch: Arch) -> LitmusMemory<'s> {
        LitmusMemory {
            arch,
            locations: vec![],
            by_name: HashMap::new(),
            zones: HashMap::new(),
            numbers: BTreeSet::new(),
            cells: 0,
        }
    }

    /// A location that the initial state mentions.
    pub(crate) fn declare(
        &mut self,
        name: &'s str,
        ty: Option<Type>,
        initial: Vec<Initial<'s>>,
        span: Span,
        problems: &mut Problems,
    ) {
        let index = self.find(name);
        if self.locations[index].declared {
            problems.report(Problem::error(format!("location `{name}` is there twice")).at(span));
        }
        self.cells += initial.len();
        if self.cells > MAX_CELLS {
            let message = format!("at most {MAX_CELLS} locations and elements are supported");
            problems.report(Problem::error(message).at(span));
            return;
        }
        let location = &mut self.locations[index];
        location.declared = true;
        location.span = span;
        location.bits = ty.map(|t| t.bits);
        location.signed = ty.is_none_or(|t| t.signed);
        location.initial = initial;
    }

    /// A number that the test mentions.
    pub(crate) fn number(&mut self, value: Value) {
        self.numbers.extend([value, value.wrapping_neg(), !value].map(|v| v as u32));
    }

    /// The location's place in the list; one that was never mentioned before is 0.
    fn find(&mut self, name: &'s str) -> usize {
        let next = self.locations.len();
        let index = *self.by_name.entry(name).or_insert(next);
        if index == next {
            let initial = vec![Initial::Const(0)];
            self.locations.push(Location {
                name,
                bits: None,
                signed: true,
                initial,
                declared: false,
                span: Span::default(),
                cell: 0,
            });
        }
        index
    }

    /// A location that a condition or an address mentions.
    pub(crate) fn mention(&mut self, name: &'s str) {
        self.find(name);
    }

    /// The location's width, as far as it is known.
    pub(crate) fn known_bits(&self, name: &str) -> Option<u32> {
        self.locations[*self.by_name.get(name)?].bits
    }

    /// An access of so many bits to the location itself.
    pub(crate) fn access_location(&mut self, name: &'s str, bits: u32, span: Span, problems: &mut Problems) {
        let index = self.find(name);
        let location = &mut self.locations[index];
        let known = *location.bits.get_or_insert(bits);
        if known != bits {
            let message = format!("`{name}` has {known} bits, and this is an access of {bits} bits");
            let why = match location.declared {
                true => "accesses of another width than the location's type are not supported",
                false => "accesses of different widths to one location are not supported",
            };
            problems.report(Problem::error(message).at(span).help(why));
        }
    }

    /// Gives every location its cells. From here on no location may be added.
    pub(crate) fn lay_out(&mut self, problems: &mut Problems) {
        for location in &mut self.locations {
            let bits = *location.bits.get_or_insert(DEFAULT_BITS);
            for initial in &location.initial {
                if let Initial::Const(value) = initial
                    && !fits(*value, bits)
                {
                    let message =
                        format!("{value} does not fit into `{}`, which has {bits} bits", location.name);
                    let help = "the width of a location is that of its type, as in `int64_t x=…`, or of the accesses to it";
                    problems.report(Problem::error(message).at(location.span).help(help));
                }
            }
        }
        self.locations.sort_by_key(|l| l.bits);
        self.by_name = self.locations.iter().enumerate().map(|(i, l)| (l.name, i)).collect();
        let mut next = 0;
        for location in &mut self.locations {
            location.cell = next;
            let end = next + location.initial.len();
            let bits = location.bits.unwrap_or(DEFAULT_BITS);
            self.zones.entry(bits).or_insert(Zone { cells: (next, next), ..Zone::empty(bits) }).cells.1 = end;
            next = end;
        }
        for (bits, zone) in &mut self.zones {
            match zone.apart_from(&self.numbers) {
                Some(address) => zone.address = address,
                None => {
                    let message =
                        format!("locations of {bits} bits have no address that no number here is like");
                    let first = self.locations.iter().find(|l| l.bits == Some(*bits));
                    problems.report(Problem::error(message).at(first.map_or(Span::default(), |l| l.span)));
                }
            }
        }
    }

    fn location(&self, name: &str) -> &Location<'s> {
        &self.locations[self.by_name[name]]
    }

    /// The cell so many bytes behind the beginning of a location, if it is there.
    pub(crate) fn cell(&self, name: &str, offset: Value) -> Option<usize> {
        let location = self.location(name);
        let bytes = Value::from(self.bits_of(location) / 8);
        let element = usize::try_from(offset / bytes).ok().filter(|_| offset % bytes == 0)?;
        (element < location.initial.len()).then_some(location.cell + element)
    }

    /// The cell of an element.
    pub(crate) fn element(&self, name: &str, element: usize) -> Option<usize> {
        let location = self.location(name);
        (element < location.initial.len()).then_some(location.cell + element)
    }

    pub(crate) fn len(&self, name: &str) -> usize {
        self.location(name).initial.len()
    }

    pub(crate) fn ty(&self, name: &str) -> Type {
        let location = self.location(name);
        Type { bits: self.bits_of(location), signed: location.signed }
    }

    fn bits_of(&self, location: &Location) -> u32 {
        location.bits.unwrap_or(DEFAULT_BITS)
    }

    pub(crate) fn address(&self, name: &str) -> Value {
        self.address_of_element(self.location(name), 0)
    }

    fn address_of_element(&self, location: &Location, element: usize) -> Value {
        let zone = self.zone(self.bits_of(location));
        zone.address + (location.cell + element - zone.cells.0) as Value * zone.bytes
    }

    /// The zone of accesses of so many bits.
    pub(crate) fn zone(&self, bits: u32) -> Zone {
        self.zones.get(&bits).copied().unwrap_or(Zone::empty(bits))
    }

    /// Is the number an address, or close to one as no number of the test is?
    pub(crate) fn is_near(&self, number: Value) -> bool {
        self.zones.values().any(|zone| zone.is_near(number))
    }

    /// The memory of the program, and whatever does not fit into it.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        let value = |location: &Location, initial: &Initial| match initial {
            Initial::Const(c) => fitted(*c, self.bits_of(location), self.arch),
            Initial::AddressOf(name) => self.address(name),
        };
        let variable = |l: &Location| Variable {
            name: l.name.to_string(),
            init: l.initial.iter().map(|i| value(l, i)).collect(),
        };
        self.locations.iter().map(variable).collect()
    }

    /// How wide the program's variables are.
    pub(crate) fn widths(&self) -> Vec<Width> {
        self.locations.iter().map(|l| Width { bits: self.bits_of(l), signed: l.signed }).collect()
    }

    /// Where the program's variables lie.
    pub(crate) fn addresses(&self) -> Vec<Value> {
        self.locations.iter().map(|l| self.address_of_element(l, 0)).collect()
    }

    /// Those that begin with the address of a location.
    pub(crate) fn locations_with_addresses(&self) -> BTreeSet<&'s str> {
        let holds = |l: &&Location| l.initial.iter().any(|i| matches!(i, Initial::AddressOf(_)));
        self.locations.iter().filter(holds).map(|l| l.name).collect()
    }

    /// What addresses are called.
    pub(crate) fn symbols(&self) -> Vec<(Value, String)> {
        let mut symbols = Vec::new();
        for location in &self.locations {
            for element in 0..location.initial.len() {
                let bytes = element as u32 * self.bits_of(location) / 8;
                let name =
                    if bytes == 0 { location.name.to_string() } else { format!("{}+{bytes}", location.name) };
                symbols.push((self.address_of_element(location, element), name));
            }
        }
        symbols
    }
}

/// Where the locations of one width lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    pub address: Value,
    pub bytes: Value,
    /// The first cell and the one behind the last.
    pub cells: (usize, usize),
}

impl Zone {
    /// The zone of a width that nothing has.
    pub(crate) fn empty(bits: u32) -> Zone {
        let address = FIRST_ZONE + ZONE * Value::from(bits.trailing_zeros() - 3);
        Zone { address, bytes: Value::from(bits / 8), cells: (0, 0) }
    }

    fn end(&self) -> Value {
        self.address + (self.cells.1 - self.cells.0) as Value * self.bytes
    }

    /// Does the number lie in the zone, or so close to it that no number of the test does?
    pub(crate) fn is_near(&self, number: Value) -> bool {
        (self.address - APART + 1..self.end() + APART).contains(&number)
    }

    /// The first address from where it is now at which no number is in the way, if there is one before the
    /// next zone.
    fn apart_from(&self, numbers: &BTreeSet<u32>) -> Option<Value> {
        let room = self.end() - self.address + APART;
        let mut address = self.address;
        loop {
            let near = (address - APART) as u32..(address + room) as u32;
            match numbers.range(near).next_back() {
                None => return Some(address),
                Some(number) => {
                    address = Value::from(*number) + APART + ALIGNMENT;
                    address -= address % ALIGNMENT;
                }
            }
            if address + room > self.address + ZONE {
                return None;
            }
        }
    }

    /// The cell that lies at an address; all bits set, and so no cell, if nothing of the zone's width lies
    /// there.
    pub(crate) fn cell_at(&self, address: RegExpr) -> RegExpr {
        let end = self.end();
        let with = |op, e: RegExpr, constant| Expr::binary(op, e, Expr::Const(constant));
        let is = |op, limit| with(op, address.clone(), limit);
        let outside = Expr::binary(BinOp::BitOr, is(BinOp::Lt, self.address), is(BinOp::Ge, end));
        let middle = with(BinOp::Ne, is(BinOp::Rem, self.bytes), 0);
        let wrong = Expr::unary(UnOp::Neg, Expr::binary(BinOp::BitOr, outside, middle));
        let element = with(BinOp::Div, is(BinOp::Sub, self.address), self.bytes);
        Expr::binary(BinOp::BitOr, with(BinOp::Add, element, self.cells.0 as Value), wrong)
    }

    /// The address that was given to `cell_at`, if the expression came from there.
    pub(crate) fn address_in<'e>(&self, cell: &'e RegExpr) -> Option<&'e RegExpr> {
        let left = |e: &'e RegExpr, wanted| match e {
            Expr::Binary(op, a, _) if *op == wanted => Some(&**a),
            _ => None,
        };
        let sum = left(cell, BinOp::BitOr)?;
        let address = left(left(left(sum, BinOp::Add)?, BinOp::Div)?, BinOp::Sub)?;
        (self.cell_at(address.clone()) == *cell).then_some(address)
    }
}

/// A constant as so many bits, or a complaint.
pub(crate) fn constant(
    value: Value,
    bits: u32,
    arch: Arch,
    at: Span,
    problems: &mut Problems,
) -> Result<Value, Reported> {
    if fits(value, bits) {
        return Ok(fitted(value, bits, arch));
    }
    Err(problems.report(Problem::error(format!("{value} does not fit into {bits} bits")).at(at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn locations_of_one_width_lie_together() {
        let limits = Limits::default();
        let mut problems = Problems::new("", &limits);
        let mut memory = LitmusMemory::new(Arch::X86_64);
        let span = Span::default();
        memory.access_location("x", 32, span, &mut problems);
        memory.declare(
            "t",
            Some(Type { bits: 64, signed: true }),
            vec![Initial::Const(1); 2],
            span,
            &mut problems,
        );
        memory.access_location("y", 32, span, &mut problems);
        memory.lay_out(&mut problems);
        assert!(problems.shown().is_empty());
        assert_eq!(
            (memory.cell("x", 0), memory.cell("y", 0), memory.cell("t", 8)),
            (Some(0), Some(1), Some(3))
        );
        assert_eq!((memory.cell("t", 4), memory.cell("t", 16), memory.cell("x", -4)), (None, None, None));
        assert_eq!(memory.address("y") - memory.address("x"), 4);
        assert_eq!(memory.zone(64).cells, (2, 4));
        assert_eq!(memory.zone(8).cells, (0, 0));
    }

    #[test]
    fn no_number_of_the_test_is_close_to_an_address() {
        let address = |numbers: &[Value]| {
            let limits = Limits::default();
            let (mut memory, mut problems) = (LitmusMemory::new(Arch::X86_64), Problems::new("", &limits));
            memory.access_location("x", 32, Span::default(), &mut problems);
            memory.access_location("y", 32, Span::default(), &mut problems);
            numbers.iter().for_each(|n| memory.number(*n));
            memory.lay_out(&mut problems);
            (!problems.has_errors()).then(|| memory.address("x"))
        };
        let plain = address(&[0, -1, 1 << 30, i64::MIN]).expect("there is room");
        for n in [plain, -plain, !plain, plain + 7, plain - 4000, plain | 1 << 40, plain + 4] {
            let moved = address(&[n, plain]).expect("there is room");
            assert!(moved > plain && moved % 64 == 0, "{n}");
            assert!([n, -n, !n].iter().all(|n| (n & 0xffff_ffff).abs_diff(moved) >= APART as u64), "{n}");
        }
        let everywhere: Vec<Value> = (0..1 << 20).map(|k| k << 12).collect();
        assert_eq!(address(&everywhere), None);
    }
}
