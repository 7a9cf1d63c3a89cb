//! Do the decisions lead to a state that is against the goal?
//!
//! They are walked on the plain machine of the asked model, the events that come of that are replayed once
//! more, every address, value and source compared; and since every SC run is a TSO run too, a run under SC is
//! walked again on the plain TSO machine.

use super::{Confirmed, Doubt};
use crate::limits::Limits;
use crate::model::Program;
use crate::query::{Action, Goal, Model, Trace};
use crate::semantics::replay::{Stopped, as_tso, perform, replay};

/// What the refusal of a run begins with.
const CLAIM: &str = "the trace of a violation";

/// The run that the decisions determine, up to the first state that is against the goal.
pub fn run(
    program: &Program,
    goal: &Goal,
    model: Model,
    actions: &[Action],
    limits: &Limits,
) -> Result<Confirmed<Trace>, Doubt> {
    let stopped = |stopped: Stopped| Doubt::stopped(CLAIM, stopped);
    let misses = |what: &str| Doubt::refuted(format!("{CLAIM} does not reach the goal{what}"));
    let (events, against) =
        perform(program, model, goal, actions.iter().copied(), limits).map_err(stopped)?;
    let against = against.ok_or_else(|| misses(""))?;
    replay(program, model, &events, limits).map_err(stopped)?;
    if model == Model::Sc {
        let (_, under_tso) = perform(program, Model::Tso, goal, as_tso(&events), limits).map_err(stopped)?;
        under_tso.ok_or_else(|| misses(" under TSO"))?;
    }
    Ok(Confirmed(Trace { model, events, against }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;
    use crate::model::{EdgeId, ThreadId};
    use crate::query::Act;

    const SB: &str = "shared x, y; thread p; store [x], 1; load r, [y]; end
                      thread q; store [y], 1; load r, [x]; end
                      exists p.r == 0 && q.r == 0";

    fn step(t: u16, e: u32) -> Action {
        Action { thread: ThreadId(t), act: Act::Step { edge: EdgeId(e), choice: None } }
    }

    fn judged(model: Model, actions: &[Action]) -> Result<Confirmed<Trace>, Doubt> {
        let program = tso::read(SB, &[], &Limits::default()).expect("a program").program;
        run(&program, &Goal::of(&program), model, actions, &Limits::default())
    }

    #[test]
    fn a_run_to_the_goal_is_confirmed_and_no_other() {
        let flush = |t: u16| Action { thread: ThreadId(t), act: Act::Flush };
        let all = [step(0, 0), step(1, 0), step(1, 1), step(0, 1), flush(0), flush(1)];
        assert_eq!(judged(Model::Tso, &all).expect("a violation").events.len(), 6);
        let refused =
            |model, actions: &[Action]| judged(model, actions).expect_err("no violation").to_string();
        assert_eq!(refused(Model::Tso, &all[..5]), format!("{CLAIM} does not reach the goal"));
        let in_turn = [step(0, 0), step(0, 1), step(1, 0), step(1, 1)];
        assert_eq!(refused(Model::Sc, &in_turn), format!("{CLAIM} does not reach the goal"));
        let impossible = refused(Model::Tso, &[flush(0)]);
        assert!(impossible.starts_with(&format!("{CLAIM} does not replay: event 0")), "{impossible}");
    }
}
