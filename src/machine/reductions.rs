//! Which reductions are on?

/// Which reductions are on; all of them, by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reductions {
    /// Local steps run together with the action before them.
    pub steps: bool,
    /// Registers and cells that no longer matter are stored as 0.
    pub liveness: bool,
    /// A step that conflicts with nobody's future is taken alone.
    pub por: bool,
    /// Of two independent steps only one order is taken, where the other leads to the same states.
    pub sleep: bool,
    /// Values are stored in as few bits as they need.
    pub packing: bool,
    /// States that cannot lead to the goal are left out.
    pub prune: bool,
    /// Cells that nobody really reads are not stored, and touching them is a local step.
    pub faint: bool,
    /// Of states that differ by the names of interchangeable threads alone one is stored.
    pub symmetry: bool,
    /// A load that the goal cannot see waits until it matters, and so does a store under TSO.
    pub late: bool,
    /// Under TSO, a store of what its cell holds anyway does not enter the buffer.
    pub silent: bool,
    /// Under TSO, a store that a loop repeats while nothing that it reads changes is one entry of the buffer.
    pub repeats: bool,
}

impl Reductions {
    pub const ALL: Reductions = Reductions::all(true);
    pub const NONE: Reductions = Reductions::all(false);

    const fn all(on: bool) -> Reductions {
        Reductions {
            steps: on,
            liveness: on,
            por: on,
            sleep: on,
            packing: on,
            prune: on,
            faint: on,
            symmetry: on,
            late: on,
            silent: on,
            repeats: on,
        }
    }
}
