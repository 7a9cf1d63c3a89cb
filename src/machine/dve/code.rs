//! Expressions and writes with their places in the working state worked out.

use crate::dve::DveError;
use crate::model::{BinOp, UnOp, Value};

/// Where a process finds its value for a variable: in memory, unless its slot holds one. Slots of an array
/// lie in a row, two cells each: whether something waits, and what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storage {
    pub variable: usize,
    /// The first element.
    pub memory: usize,
    pub size: usize,
    /// The first slot of the process, if it ever writes the variable.
    pub slots: Option<usize>,
}

impl Storage {
    #[inline]
    fn read(&self, vals: &[Value], element: usize) -> Value {
        match self.slots.map(|first| first + 2 * element) {
            Some(slot) if vals[slot] != 0 => vals[slot + 1],
            _ => vals[self.memory + element],
        }
    }

    #[inline]
    fn element(&self, index: Value) -> Result<usize, DveError> {
        match usize::try_from(index) {
            Ok(i) if i < self.size => Ok(i),
            _ => Err(DveError::Index { variable: self.variable, index }),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum DveCode {
    Number(Value),
    /// A cell of the state that nobody buffers.
    Cell(usize),
    Read(Storage),
    Element(Storage, Box<DveCode>),
    /// Does the cell hold the value?
    Is(usize, Value),
    Unary(UnOp, Box<DveCode>),
    And(Box<DveCode>, Box<DveCode>),
    Or(Box<DveCode>, Box<DveCode>),
    Binary(BinOp, Box<DveCode>, Box<DveCode>),
}

impl DveCode {
    pub(crate) fn value(&self, vals: &[Value]) -> Result<Value, DveError> {
        Ok(match self {
            DveCode::Number(n) => *n,
            DveCode::Cell(cell) => vals[*cell],
            DveCode::Read(storage) => storage.read(vals, 0),
            DveCode::Element(storage, index) => {
                let element = storage.element(index.value(vals)?)?;
                storage.read(vals, element)
            }
            DveCode::Is(cell, value) => (vals[*cell] == *value) as Value,
            DveCode::Unary(op, a) => op.apply(a.value(vals)?),
            DveCode::And(a, b) => (a.value(vals)? != 0 && b.value(vals)? != 0) as Value,
            DveCode::Or(a, b) => (a.value(vals)? != 0 || b.value(vals)? != 0) as Value,
            DveCode::Binary(op, a, b) => {
                op.apply(a.value(vals)?, b.value(vals)?).map_err(|_| DveError::DivisionByZero)?
            }
        })
    }

    pub(crate) fn holds(&self, vals: &[Value]) -> Result<bool, DveError> {
        Ok(self.value(vals)? != 0)
    }
}

/// A place to write to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub storage: Storage,
    pub index: Option<DveCode>,
    pub range: (Value, Value),
    /// Does the value wait in the slot, or go to memory at once?
    pub delayed: bool,
}

impl Target {
    #[inline]
    pub(crate) fn write(&self, vals: &mut [Value], value: Value) -> Result<(), DveError> {
        let element = match &self.index {
            Some(index) => self.storage.element(index.value(vals)?)?,
            None => 0,
        };
        if value < self.range.0 || value > self.range.1 {
            return Err(DveError::Range { variable: self.storage.variable, value });
        }
        let slot = self.storage.slots.map(|first| first + 2 * element);
        match slot {
            Some(slot) if self.delayed => (vals[slot], vals[slot + 1]) = (1, value),
            _ => {
                if let Some(slot) = slot {
                    (vals[slot], vals[slot + 1]) = (0, 0);
                }
                vals[self.storage.memory + element] = value;
            }
        }
        Ok(())
    }
}
