//! Is there a witness? The search over all attacks at once, and the computation it finds.
//!
//! All attacks share one search, and so the SC states of its phase 1; being breadth first, it finds a witness with few
//! steps. What it finds is a sequence of decisions. They are performed on the plain TSO machine, events that do
//! not happen after the load are moved before it, and `hb` checks conditions W1 to W5 on the result: a
//! witness that does not pass is a bug of ours and never an answer.

use super::attack::{Attacks, Pruning};
use super::machine::AttackMachine;
use crate::model::Program;
use crate::reach::{Found, Order, Reductions, explore};
use crate::verdict::Limits;

pub fn search(program: &Program, limits: &Limits, workers: usize) -> Option<Found> {
    let attacks = Attacks::of(program, Pruning::On);
    if attacks.stores.is_empty() {
        return None;
    }
    let machine = AttackMachine::new(program, &attacks, Reductions::ALL);
    Some(explore(&machine, limits, Order::BreadthFirst, workers))
}
