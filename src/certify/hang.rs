//! Do the decisions lead to a hang? They are walked on the plain machine of the asked model, the events that
//! come of that are replayed once more, and the state they lead to is held against the definition.

use super::{Confirmed, Doubt};
use crate::limits::Limits;
use crate::model::Program;
use crate::query::{Action, Against, Model, Trace, Waiting};
use crate::semantics::hang::{Outlook, outlook};
use crate::semantics::replay::{follow, replay};

/// What the refusal of a run begins with.
const CLAIM: &str = "the run to a hang";

/// The run that the decisions determine, of a program whose waits try again, and who waits for what in the end.
pub fn hang(
    program: &Program,
    model: Model,
    actions: &[Action],
    limits: &Limits,
) -> Result<(Confirmed<Trace>, Vec<Waiting>), Doubt> {
    let stopped = |stopped| Doubt::stopped(CLAIM, stopped);
    let events = follow(program, model, actions.iter().copied(), limits).map_err(stopped)?;
    let last = replay(program, model, &events, limits).map_err(stopped)?;
    match outlook(program, model, &last, limits)? {
        Outlook::Hangs(waiting) => Ok((Confirmed(Trace { model, events, against: Against::Hang }), waiting)),
        _ => Err(Doubt::refuted(format!("{CLAIM} ends where something can still happen"))),
    }
}
