//! Why is an answer right? The part of the file below the header: numbers, compressed as `gzip` does.
//!
//! The order of things is that of the data types; the page docs/certificates.md has it as a table.

use super::numbers::{Reader, Writer, spend};
use super::{Grounds, Unreadable};
use crate::certify::attacks::Harmless;
use crate::certify::invariant::{Ideal, Interchangeable, Invariant, Members, Past, Place};
use crate::limits::{Limit, Limits};
use crate::model::{Addr, EdgeId, Loc, Reg, ThreadId, Value};
use crate::query::{Act, Action, Model};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{Read, Write};

const INVARIANT: u64 = 0;
const RUN: u64 = 1;
const HARMLESS: u64 = 2;
const WITNESS: u64 = 3;

/// Bytes that are compressed at a time.
const PART: usize = 1 << 16;

pub(super) fn write(grounds: &Grounds, limits: &Limits) -> Result<Vec<u8>, Limit> {
    let mut to = Writer::default();
    match grounds {
        Grounds::Invariant(invariant) => {
            to.number(INVARIANT);
            write_invariant(&mut to, invariant);
        }
        Grounds::Run(model, actions) => {
            to.number(RUN);
            to.number(u64::from(*model == Model::Tso));
            write_actions(&mut to, actions);
        }
        Grounds::Harmless(harmless) => {
            to.number(HARMLESS);
            write_places(&mut to, &harmless.places);
            to.list(&harmless.states, |to, row| to.list(row, |to, &v| to.value(v)));
        }
        Grounds::Witness(actions) => {
            to.number(WITNESS);
            write_actions(&mut to, actions);
        }
    }
    let bytes = to.into_bytes();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    for part in bytes.chunks(PART) {
        spend(limits, part.len())?;
        gzip.write_all(part).expect("memory takes any bytes");
    }
    Ok(gzip.finish().expect("memory takes any bytes"))
}

fn write_places(to: &mut Writer, places: &[Vec<Place>]) {
    to.list(places, |to, thread| {
        to.list(thread, |to, place| {
            to.number(place.stop.into());
            to.list(&place.live, |to, r| to.number(r.0.into()));
            to.list(&place.relevant, |to, cell| to.number(cell.0.into()));
        });
    });
}

fn write_invariant(to: &mut Writer, invariant: &Invariant) {
    write_places(to, &invariant.places);
    let symmetry = &invariant.symmetry;
    to.list(&symmetry.register_sorts, |to, thread| to.list(thread, |to, &sort| to.number(sort.into())));
    to.list(&symmetry.cell_sorts, |to, &sort| to.number(sort.into()));
    to.list(&symmetry.groups, |to, group| {
        to.list(&group.threads, |to, t| to.number(t.0.into()));
        to.list(&group.cells, |to, cells| to.list(cells, |to, cell| to.number(cell.0.into())));
        to.list(&group.values, |to, (sort, values)| {
            to.number((*sort).into());
            to.list(values, |to, &v| to.value(v));
        });
    });
    to.list(&invariant.pasts, |to, past| {
        to.list(&past.segments, |to, segment| to.list(segment, |to, set| to.list(set, write_pair)));
        to.list(&past.marks, write_pair);
    });
    to.list(&invariant.states, |to, state| {
        to.list(&state.at, |to, loc| to.number(loc.0.into()));
        to.number(state.lock.map_or(0, |t| u64::from(t.0) + 1));
        to.list(&state.registers, |to, thread| to.list(thread, |to, &v| to.value(v)));
        to.list(&state.memory, |to, &v| to.value(v));
        to.list(&state.pasts, |to, &past| to.number(past.into()));
    });
}

fn write_pair(to: &mut Writer, (cell, value): &(Addr, Value)) {
    to.number(cell.0.into());
    to.value(*value);
}

fn write_actions(to: &mut Writer, actions: &[Action]) {
    to.list(actions, |to, action| {
        to.number(action.thread.0.into());
        match action.act {
            Act::Flush => to.number(0),
            Act::Step { edge, choice } => {
                to.number(1 + u64::from(choice.is_some()));
                to.number(edge.0.into());
                choice.into_iter().for_each(|v| to.value(v));
            }
        }
    });
}

pub(super) fn read(body: &[u8], limits: &Limits) -> Result<Grounds, Unreadable> {
    let mut from = Reader::new(GzDecoder::new(body), limits);
    let grounds = match from.number()? {
        INVARIANT => Grounds::Invariant(read_invariant(&mut from)?),
        RUN => {
            let model = match from.number()? {
                0 => Model::Sc,
                1 => Model::Tso,
                n => return Err(Unreadable::Wrong(format!("there is no model {n}"))),
            };
            Grounds::Run(model, read_actions(&mut from)?)
        }
        HARMLESS => {
            let places = read_places(&mut from)?;
            let states = from.list(|from| from.list(Reader::value))?;
            Grounds::Harmless(Harmless { places, states })
        }
        WITNESS => Grounds::Witness(read_actions(&mut from)?),
        n => return Err(Unreadable::Wrong(format!("there are no grounds of kind {n}"))),
    };
    from.end()?;
    Ok(grounds)
}

fn read_places<R: Read>(from: &mut Reader<'_, R>) -> Result<Vec<Vec<Place>>, Unreadable> {
    from.list(|from| {
        from.list(|from| {
            Ok(Place {
                stop: from.number()? != 0,
                live: from.list(|from| from.small().map(Reg))?,
                relevant: from.list(|from| from.small().map(Addr))?,
            })
        })
    })
}

fn read_invariant<R: Read>(from: &mut Reader<'_, R>) -> Result<Invariant, Unreadable> {
    Ok(Invariant {
        places: read_places(from)?,
        symmetry: Interchangeable {
            register_sorts: from.list(|from| from.list(Reader::small))?,
            cell_sorts: from.list(Reader::small)?,
            groups: from.list(read_members)?,
        },
        pasts: from.list(|from| {
            Ok(Past {
                segments: from.list(|from| from.list(|from| from.list(read_pair)))?,
                marks: from.list(read_pair)?,
            })
        })?,
        states: from.list(read_state)?,
    })
}

fn read_members<R: Read>(from: &mut Reader<'_, R>) -> Result<Members, Unreadable> {
    Ok(Members {
        threads: from.list(|from| from.small().map(ThreadId))?,
        cells: from.list(|from| from.list(|from| from.small().map(Addr)))?,
        values: from.list(|from| Ok((from.small()?, from.list(Reader::value)?)))?,
    })
}

fn read_state<R: Read>(from: &mut Reader<'_, R>) -> Result<Ideal, Unreadable> {
    Ok(Ideal {
        at: from.list(|from| from.small().map(Loc))?,
        lock: from.small::<u16>()?.checked_sub(1).map(ThreadId),
        registers: from.list(|from| from.list(Reader::value))?,
        memory: from.list(Reader::value)?,
        pasts: from.list(Reader::small)?,
    })
}

fn read_pair<R: Read>(from: &mut Reader<'_, R>) -> Result<(Addr, Value), Unreadable> {
    Ok((Addr(from.small()?), from.value()?))
}

fn read_actions<R: Read>(from: &mut Reader<'_, R>) -> Result<Vec<Action>, Unreadable> {
    from.list(|from| {
        let thread = ThreadId(from.small()?);
        let act = match from.number()? {
            0 => Act::Flush,
            kind @ (1 | 2) => {
                let edge = EdgeId(from.small()?);
                let choice = if kind == 2 { Some(from.value()?) } else { None };
                Act::Step { edge, choice }
            }
            n => return Err(Unreadable::Wrong(format!("there is no decision of kind {n}"))),
        };
        Ok(Action { thread, act })
    })
}
