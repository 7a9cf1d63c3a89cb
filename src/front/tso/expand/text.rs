//! Where has the text come to lie? Gaps and statements of all threads, those of one byte of the text together.

use super::query::Cast;
use crate::front::cfg::MarkPassage;
use crate::model::source_map::{Passage, SourcePlace, Statement};
use crate::model::{EdgeId, SourceMap, ThreadId};
use std::collections::BTreeMap;

pub(crate) fn map(cast: &Cast) -> SourceMap {
    let mut places: BTreeMap<usize, Vec<Passage>> = BTreeMap::new();
    let mut statements: BTreeMap<usize, Vec<(ThreadId, EdgeId)>> = BTreeMap::new();
    for (t, thread) in cast.threads.iter().enumerate() {
        let t = ThreadId(t as u16);
        let Some(text) = &thread.text else { continue };
        for gap in &text.gaps {
            places.entry(gap.mark).or_default().push(passage(t, gap));
        }
        for (edge, at) in text.statements.iter().enumerate() {
            at.iter().for_each(|&at| statements.entry(at).or_default().push((t, EdgeId(edge as u32))));
        }
    }
    let place = |(at, copies)| SourcePlace { offset: Some(at), copies };
    let statement = |(at, edges)| Statement { offset: Some(at), edges };
    SourceMap {
        places: places.into_iter().map(place).collect(),
        statements: statements.into_iter().map(statement).collect(),
        owners: cast.owners.clone(),
    }
}

fn passage(t: ThreadId, gap: &MarkPassage) -> Passage {
    match gap.all {
        Some(loc) => Passage::All(t, loc),
        None => Passage::Some(t, gap.edges.clone()),
    }
}
