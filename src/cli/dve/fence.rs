//! `overtake fence` of a DVE model: the fewest atomic writes or barriers with which formulas hold under slots.

use super::super::fence::{self, AimArg, KindArg, MOST_SETS};
use super::super::input::DveSource;
use super::super::terminal::Terminal;
use super::super::{Exit, FenceArgs, answer, limits};
use super::{Typed, refused};
use crate::dve::Memory;
use crate::engine::Options;
use crate::query::Limits;
use crate::report;
use crate::report::synthesis::Repaired;
use crate::temporal::TemporalOptions;
use crate::temporal::ltl::TemporalFormula;
use crate::temporal::synthesis::{Prices, synthesise};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(
    file: &Path,
    model: &DveSource,
    args: &FenceArgs,
    limits: &Arc<Limits>,
    terminal: &Terminal,
) -> Exit {
    let text = match (args.aim, &args.dve.formula.ltl) {
        (Some(AimArg::Ltl), Some(text)) => text,
        _ => return refused(file, "a DVE model is repaired with --for ltl and --ltl FORMULA", terminal),
    };
    if args.model.is_some() {
        return refused(file, "--model is for programs: a DVE model is repaired for slots", terminal);
    }
    if args.output.is_some() || args.prune || !args.only.is_empty() || !args.forbid_at.is_empty() {
        return refused(file, "--output, --prune, --only and --forbid-at are for programs", terminal);
    }
    let prices = match prices(args) {
        Ok(prices) => prices,
        Err(why) => return refused(file, &why, terminal),
    };
    let typed = Typed::new(model, &args.search.input, limits, terminal).and_then(|mut t| t.formulas(text));
    let typed = match typed {
        Ok(typed) => typed,
        Err(exit) => return exit,
    };
    let formulas: Vec<TemporalFormula> = typed.iter().map(|t| t.formula.clone()).collect();
    let workers = args.search.threads.map_or_else(Options::default, Options::with_workers).workers;
    let (fair, por) = (!args.dve.no_fairness, args.search.without.reductions.por);
    let options = TemporalOptions { memory: Memory::slots(), workers, fair, por };
    let list = if args.all { MOST_SETS } else { 1 };
    let result = {
        let _progress = (!args.search.json && !args.search.quiet).then(|| terminal.progress(limits));
        synthesise(&model.system, &formulas, prices, list, &options, limits)
    };
    match result {
        Ok(synthesis) => {
            let texts: Vec<&str> = typed.iter().map(|t| &t.text[..]).collect();
            let name = file.display().to_string();
            let repaired = Repaired { system: &model.system, file: &name, formulas: &texts };
            let document = report::synthesis::document(&repaired, &synthesis, limits::peak_kb());
            answer::show(&document, &args.search, terminal)
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

/// What is allowed, and what it costs. Fences are the default of programs; that of models are atomic writes.
fn prices(args: &FenceArgs) -> Result<Prices, String> {
    let default = args.with == [KindArg::Fence];
    if args.with.contains(&KindArg::Fence) && !default {
        return Err("DVE models have no fences: --with takes atomic and barrier".to_string());
    }
    let atomic = fence::price(args, KindArg::Atomic).or(default.then_some(1));
    Ok(Prices { atomic, barrier: fence::price(args, KindArg::Barrier) })
}
