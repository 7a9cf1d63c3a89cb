//! Where does control go? Branches, calls and returns, to all addresses that they can have.

use super::super::access::none_of;
use super::super::lift::RSP;
use super::super::ops::*;
use super::super::refusal::{Refusal, Result};
use super::super::sink::Sink;
use super::super::state::State;
use super::super::value::Numbers;
use super::{CodePlace, Contexts, Continuation, Exec, PathEnd, UNINITIALISED};
use crate::model::Expr;

/// Calls inside one another.
const DEEPEST: usize = 100;

pub(super) enum Branch {
    Known(bool),
    Open(VarExpr),
    Ended,
}

impl Exec<'_, '_> {
    pub(super) fn branch(
        &mut self,
        state: &mut State,
        condition: &VarExpr,
        sink: &mut dyn Sink,
    ) -> Result<Branch> {
        if self.meant(state, condition, sink).is_none() {
            if self.alone.is_none() {
                sink.assert(constant(0), UNINITIALISED);
            }
            return Ok(Branch::Ended);
        }
        if let Some(number) = state.number(condition) {
            return Ok(Branch::Known(number != 0));
        }
        let short = state.simplified(condition);
        Ok(match &short {
            Expr::Const(c) => Branch::Known(*c != 0),
            _ => Branch::Open(short),
        })
    }

    /// To all addresses that the term can be.
    pub(super) fn go(
        &mut self,
        place: CodePlace,
        mut state: State,
        to: &VarExpr,
        flags: Flags,
        back: Option<u64>,
        sink: &mut dyn Sink,
    ) -> Result<PathEnd> {
        if self.meant(&mut state, to, sink).is_none() {
            if self.alone.is_some() {
                return Ok(PathEnd::NotAlone);
            }
            sink.assert(constant(0), UNINITIALISED);
            return Ok(PathEnd::Next(vec![]));
        }
        let targets = match state.numbers(to) {
            Ok(Numbers::Few(few)) => few,
            _ => {
                let why = "control goes to an address that is not known";
                let help = "compile with -fno-jump-tables, or give functions through fewer pointers";
                return Err(Refusal::new(why).help(help).at(place.address));
            }
        };
        let context = match back {
            Some(back) => {
                let context = self.contexts.enter(place.context, back);
                if self.contexts.calls(context).len() > DEEPEST {
                    return Err(self.too_deep(context).at(place.address));
                }
                context
            }
            None => place.context,
        };
        let several = targets.len() > 1;
        if several {
            let here = sink.here();
            sink.assume(none_of(&state.simplified(to), targets.iter().copied()));
            sink.assert(constant(0), "a target that was thought to be impossible");
            sink.go(here);
        }
        let mut ways = Vec::new();
        for target in targets {
            let mut state = state.clone();
            let is = eq(to.clone(), constant(target));
            if several && self.alone.is_some() {
                return Ok(PathEnd::NotAlone);
            }
            if several && !state.refine(&is) {
                continue;
            }
            let condition = several.then_some(is);
            let next = self.arrive(context, target, flags, &mut state);
            if self.memory.region(target).is_none() {
                if self.alone.is_some() {
                    return Ok(PathEnd::NotAlone);
                }
                let nowhere = CodePlace { address: self.world.calls.nowhere(), ..next };
                ways.push(Continuation { place: nowhere, state, condition });
                continue;
            }
            ways.push(Continuation { place: next, state, condition });
        }
        Ok(PathEnd::Next(ways))
    }

    fn too_deep(&self, context: u32) -> Refusal {
        let mut names: Vec<&str> = Vec::new();
        for back in self.contexts.calls(context) {
            let name = self.world.image.function(back).unwrap_or("?");
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.truncate(5);
        let why = format!("calls are nested more than {DEEPEST} deep: {}", names.join(", "));
        Refusal::new(why).help("the depth of a recursion has to be known when the program is read")
    }

    pub(super) fn back(&mut self, place: CodePlace, mut state: State, to: &VarExpr) -> Result<PathEnd> {
        let Some(target) = state.number(to) else {
            let why = "the address that a function returns to is not known";
            return Err(Refusal::new(why).help("is the stack written past its end?").at(place.address));
        };
        let context = match self.contexts.innermost(place.context) {
            Some((outer, back)) if back == target => outer,
            None if self.world.image.libraries.contains_key(&target) => Contexts::NONE,
            _ => {
                let why = format!("a function returns to {target:#x}, and was not called from there");
                return Err(Refusal::new(why).at(place.address));
            }
        };
        // What lies below the stack's end after a return is nobody's any more.
        if let Some(rsp) = state.known(Var::Gpr(RSP)) {
            let (bottom, top) = self.stack;
            // A program may have put its stack elsewhere.
            let rsp = rsp.min(top);
            if self.alone.is_some() {
                self.memory.forget_all(bottom, rsp);
            }
            state.retain(
                |var| !matches!(var, Var::Slot(at, bytes) if at >= bottom && at + u64::from(bytes) <= rsp),
            );
        }
        let next = self.arrive(context, target, Flags::Lost, &mut state);
        Ok(PathEnd::Next(vec![Continuation { place: next, state, condition: None }]))
    }
}

/// Both ways of a branch, as far as they are possible.
pub(super) fn fork(
    place: CodePlace,
    state: &State,
    condition: &VarExpr,
    yes: OpLabel,
    no: OpLabel,
) -> Vec<Continuation> {
    let mut ways = Vec::new();
    for (condition, op) in [(condition.clone(), yes), (negated(condition.clone()), no)] {
        let mut state = state.clone();
        if state.refine(&condition) {
            ways.push(Continuation { place: CodePlace { op, ..place }, state, condition: Some(condition) });
        }
    }
    ways
}
