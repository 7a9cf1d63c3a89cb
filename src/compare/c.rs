//! Tools that read C: CBMC, Nidhugg and GenMC. There is no writer for C, so they are found and not run; every
//! row of theirs says why.

use super::export::Export;
use super::{Command, Discipline, Way, nothing};

pub(crate) const CBMC: Way = reader("cbmc");
pub(crate) const NIDHUGG: Way = reader("nidhugg");
pub(crate) const GENMC: Way = reader("genmc");

const fn reader(name: &'static str) -> Way {
    Way {
        name,
        tool: name,
        usual: true,
        answers: &[Discipline::Tso],
        reads: Export::unwritten("C", "c"),
        prepare: nothing,
        rehearse: None,
        search: |asked, _| Command::tool([asked.file]),
        read: |finished, _| finished.failure().into(),
    }
}
