//! Which reductions are on? The one table of them: a row here is a field, a switch of the command line with
//! its help, a row of the documentation and an entry of the tests' list.
//!
//! A reduction leaves out what cannot change the answer. Each can be switched off, for doubters and for
//! tests. Not here: what a reduction does. The machine that has it says so where it is done.

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// The switch that turns it off, without its dashes.
    pub switch: &'static str,
    /// The switch's name before it was called by the literature's word.
    pub alias: Option<&'static str>,
    /// What the search does without it.
    pub without: &'static str,
    /// Its field.
    pub field: fn(&mut Reductions) -> &mut bool,
}

macro_rules! reductions {
    ($($(#[$what:meta])* $field:ident: $switch:literal $(or $alias:literal)?, $without:literal;)*) => {
        /// Which reductions are on; all of them, by default.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Reductions {
            $($(#[$what])* pub $field: bool,)*
        }

        impl Reductions {
            const fn all(on: bool) -> Reductions {
                Reductions { $($field: on,)* }
            }

            /// Every reduction, in the order in which they are listed.
            pub const TABLE: &[Reduction] = &[$(Reduction {
                switch: $switch,
                alias: [$(Some($alias),)? None][0],
                without: $without,
                field: |reductions| &mut reductions.$field,
            },)*];
        }
    };
}

reductions! {
    /// Local steps run together with the action before them.
    steps: "no-steps", "Stores the states between local steps too";
    /// Registers and cells that no longer matter are stored as 0.
    liveness: "no-liveness", "Stores what registers and cells hold even where nobody will read it";
    /// A step that conflicts with no other thread's future is taken alone: a singleton ample set.
    por: "no-por", "Takes independent steps in every order (no persistent sets)";
    /// Of two independent steps only one order is taken, where the other leads to the same states.
    sleep: "no-sleep", "Follows transitions whose result is known already (no sleep sets)";
    /// Values are stored in as few bits as they need.
    packing: "no-packing", "Stores every value in 64 bits";
    /// States that cannot lead to the goal are left out.
    prune: "no-prune", "Stores states that cannot lead to a forbidden one";
    /// Cells that nobody really reads are not stored, and touching them is a local step.
    faint: "no-faint" or "no-mute", "Stores faint cells, which nobody really reads";
    /// Of states that differ by the names of interchangeable threads alone one is stored.
    symmetry: "no-symmetry", "Stores states that differ by the names of interchangeable threads alone";
    /// A load that the goal cannot see is done where it begins to matter, and so is a store under TSO: both
    /// are movers.
    movers: "no-movers" or "no-late", "Does every load, and under TSO every store, where it stands; uses sleep sets instead";
    /// Under TSO, a store of what its cell holds anyway does not enter the buffer.
    silent: "no-silent", "Buffers silent stores too: those of what the thread, which alone writes the cell, wrote last";
    /// Under TSO, a store that a loop repeats while nothing that it reads changes is one entry of the buffer.
    repeats: "no-repeats", "Buffers each of the stores that a loop repeats while nothing that it reads changes";
}

impl Reductions {
    pub const ALL: Reductions = Reductions::all(true);
    pub const NONE: Reductions = Reductions::all(false);

    /// All but the one of a row of the table.
    pub fn all_but(reduction: &Reduction) -> Reductions {
        let mut reductions = Reductions::ALL;
        *(reduction.field)(&mut reductions) = false;
        reductions
    }

    /// The one of a row of the table alone.
    pub fn only(reduction: &Reduction) -> Reductions {
        let mut reductions = Reductions::NONE;
        *(reduction.field)(&mut reductions) = true;
        reductions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn rows_of_the_table_are_different_fields() {
        let distinct: HashSet<Reductions> = Reductions::TABLE.iter().map(Reductions::all_but).collect();
        assert_eq!(distinct.len(), Reductions::TABLE.len());
        let on = Reductions::TABLE.iter().fold(Reductions::NONE, |mut all, reduction| {
            *(reduction.field)(&mut all) = true;
            all
        });
        assert_eq!(on, Reductions::ALL);
    }
}
