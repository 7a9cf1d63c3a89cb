//! `overtake show` of a DVE model: what was understood, or how large its state space is.

use super::super::Exit;
use super::super::input::DveSource;
use super::super::show::ShowArgs;
use super::super::terminal::Terminal;
use super::{memory, refused};
use crate::engine::Options;
use crate::query::Limits;
use crate::report;
use crate::temporal::{TemporalOptions, safety};

pub(crate) fn run(model: &DveSource, args: &ShowArgs, limits: &Limits, terminal: &Terminal) -> Exit {
    if args.dot || args.extend.is_some() || args.svg.is_some() {
        return refused(&args.file, "--dot, --svg and --extend are for programs", terminal);
    }
    if !args.states {
        terminal.print(&report::dve::listing(&model.system));
        return Exit::Good;
    }
    let (memory, name) = match memory(&model.system, args.model, &args.given) {
        Ok(memory) => memory,
        Err(why) => return refused(&args.file, &why, terminal),
    };
    let options = TemporalOptions { memory, workers: Options::default().workers, fair: false, por: false };
    let space = safety::count(&model.system, &options, limits);
    super::super::show::sizes(args, name, space, terminal)
}
