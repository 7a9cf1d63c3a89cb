//! Formulas about the runs of a test, and the literals that ask them: does one go wrong, wait for good, go round
//! more often than the bound; are the commit points in this order?

use super::Calls;
use super::outcome::CheckEnd;
use super::serial::Serial;
use crate::model::Value;
use crate::model::datatype::DataTest;
use crate::symbolic::{Encoding, Lit, Solution, TermId};
use std::collections::BTreeMap;

/// A formula, and the literals that ask it.
pub(super) struct Asking<'a> {
    pub encoding: Encoding<'a>,
    /// Some thread goes wrong here; earlier places first.
    errors: Vec<Lit>,
    /// The run is one that counts.
    counts: Lit,
    pub deadlock: Lit,
    pub overrun: Lit,
    /// More and more of what is observed is what no serial run gives; in the end all of it.
    differs: Vec<Lit>,
    /// Assumptions under which there was no solution.
    pub refuted: Vec<Vec<Lit>>,
}

impl<'a> Asking<'a> {
    /// A formula of partial runs. If only runs `within` the bound count, one in which some thread goes round more
    /// often is none that goes wrong.
    pub(super) fn new(mut encoding: Encoding<'a>, within: bool) -> Result<Asking<'a>, CheckEnd> {
        let threads = encoding.streams.threads.len();
        let errors: Vec<_> = encoding.streams.errors.iter().map(|e| (e.thread, e.guard)).collect();
        let errors = each(&mut encoding, threads, &errors)?;
        let rounds = encoding.streams.overruns.clone();
        let rounds = each(&mut encoding, threads, &rounds)?;
        let waits: Vec<_> = encoding.streams.waits.iter().map(|w| (w.thread, w.guard)).collect();
        let waits = each(&mut encoding, threads, &waits)?;
        // Whoever stops for another reason has an `assume` that fails, which leaves the run out.
        let mut counts = Vec::new();
        for t in 0..threads {
            let mut ways = [&errors[t][..], &waits[t]].concat();
            if let Some((guard, _)) = encoding.streams.threads[t].ends.clone() {
                ways.push(encoding.holds(guard)?);
            }
            if !within {
                ways.extend(&rounds[t]);
            }
            counts.push(encoding.cnf.any(ways));
        }
        let counts = encoding.cnf.all(counts);
        let overrun = encoding.cnf.any(rounds.concat());
        let deadlock = Asking::deadlock(&mut encoding)?;
        let errors = in_turns(errors);
        Ok(Asking { encoding, errors, counts, deadlock, overrun, differs: vec![], refuted: vec![] })
    }

    /// A formula of complete runs in which something is observed that no serial run gives, or none in the order of
    /// the commit points of the `ordered` test.
    pub(super) fn unexplained(
        mut encoding: Encoding<'a>,
        ordered: Option<&DataTest>,
        serial: &Serial,
        calls: &Calls,
    ) -> Result<Asking<'a>, CheckEnd> {
        let ends: Vec<_> = encoding.streams.threads.iter().map(|s| s.ends.clone()).collect();
        for end in &ends {
            let ended = match end {
                Some((guard, _)) => encoding.holds(*guard)?,
                None => Lit::FALSE,
            };
            encoding.cnf.clause(&[ended]);
        }
        let commits = ordered.map(|test| Commits::of(test, &mut encoding)).transpose()?;
        let mut seen = BTreeMap::from([(Vec::new(), Lit::TRUE)]);
        let mut differs = Vec::new();
        let places = in_turns(calls.by_thread());
        for depth in 1..=places.len() {
            let (t, r) = calls.observed[places[depth - 1]];
            let mut longer: BTreeMap<Vec<Value>, Lit> = BTreeMap::new();
            for observation in serial.observations.keys() {
                let own: Vec<Value> = places[..depth].iter().map(|p| observation[*p]).collect();
                if longer.contains_key(&own) {
                    continue;
                }
                let value = match &ends[t.index()] {
                    Some((_, registers)) => encoding.is(registers[r.index()], own[depth - 1])?,
                    None => Lit::TRUE,
                };
                let both = encoding.cnf.and(seen[&own[..depth - 1]], value);
                longer.insert(own, both);
            }
            differs.push(!encoding.cnf.any(longer.values().copied().collect::<Vec<_>>()));
            seen = longer;
        }
        if let Some(commits) = &commits {
            let mut explained = Vec::new();
            for (observation, orders) in &serial.observations {
                let own: Vec<Value> = places.iter().map(|p| observation[*p]).collect();
                for order in orders {
                    let here = commits.against(order).into_iter().map(|l| !l);
                    explained.push(encoding.cnf.all(here.chain([seen[&own]])));
                }
            }
            differs.push(!encoding.cnf.any(explained));
        }
        if differs.is_empty() {
            // Nothing can be observed: a serial run explains everything, if there is one.
            differs.push(if serial.observations.is_empty() { Lit::TRUE } else { Lit::FALSE });
        }
        let (deadlock, overrun) = (Lit::FALSE, Lit::FALSE);
        Ok(Asking {
            encoding,
            errors: vec![],
            counts: Lit::TRUE,
            deadlock,
            overrun,
            differs,
            refuted: vec![],
        })
    }

    /// All threads have ended or wait for good, and some wait.
    fn deadlock(encoding: &mut Encoding<'a>) -> Result<Lit, CheckEnd> {
        let waits = encoding.streams.waits.clone();
        if waits.is_empty() {
            return Ok(Lit::FALSE);
        }
        let deadlock = encoding.cnf.fresh();
        let mut waiting = Vec::new();
        for wait in &waits {
            let here = encoding.holds(wait.guard)?;
            let both = encoding.cnf.and(deadlock, here);
            encoding.reads_last(both, wait.access)?;
            waiting.push((wait.thread, here));
        }
        for t in 0..encoding.streams.threads.len() {
            let mut done: Vec<Lit> = waiting.iter().filter(|(u, _)| *u == t).map(|(_, l)| *l).collect();
            if let Some((guard, _)) = encoding.streams.threads[t].ends.clone() {
                done.push(encoding.holds(guard)?);
            }
            done.push(!deadlock);
            encoding.cnf.clause(&done);
        }
        let mut some: Vec<Lit> = waiting.iter().map(|(_, l)| *l).collect();
        some.push(!deadlock);
        encoding.cnf.clause(&some);
        Ok(deadlock)
    }

    pub(super) fn ask(
        &mut self,
        asked: &[Lit],
        fences: &[(usize, usize)],
    ) -> Result<Option<Solution>, CheckEnd> {
        if asked.contains(&Lit::FALSE) {
            return Ok(None);
        }
        let mut assumptions = asked.to_vec();
        assumptions.extend(fences.iter().map(|(place, kind)| self.encoding.place(*place, *kind)));
        match self.encoding.solve(&assumptions)? {
            Ok(solution) => Ok(Some(solution)),
            Err(core) => {
                self.refuted.push(core);
                Ok(None)
            }
        }
    }

    /// A run in which a thread goes wrong. Places are asked about one by one: that one of them is safe helps to
    /// show that the next one is.
    pub(super) fn error(&mut self, fences: &[(usize, usize)]) -> Result<Option<Solution>, CheckEnd> {
        for error in self.errors.clone() {
            if let Some(solution) = self.ask(&[error, self.counts], fences)? {
                return Ok(Some(solution));
            }
        }
        Ok(None)
    }

    /// A run that nothing explains. First results are asked about before later ones, for the same reason.
    pub(super) fn difference(&mut self, fences: &[(usize, usize)]) -> Result<Option<Solution>, CheckEnd> {
        for differs in self.differs.clone() {
            if let Some(solution) = self.ask(&[differs], fences)? {
                return Ok(Some(solution));
            }
        }
        Ok(None)
    }
}

/// What comes early in each of the lists first.
fn in_turns<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut all: Vec<(usize, usize, T)> = Vec::new();
    for list in lists {
        let count = list.len();
        all.extend(list.into_iter().enumerate().map(|(k, item)| (k, count, item)));
    }
    all.sort_by(|(j, m, _), (k, n, _)| (j * n).cmp(&(k * m)));
    all.into_iter().map(|(_, _, item)| item).collect()
}

/// For each thread the literals of its conditions.
fn each(
    encoding: &mut Encoding<'_>,
    threads: usize,
    conditions: &[(usize, TermId)],
) -> Result<Vec<Vec<Lit>>, CheckEnd> {
    let mut all = vec![Vec::new(); threads];
    for (t, condition) in conditions {
        all[*t].push(encoding.holds(*condition)?);
    }
    Ok(all)
}

/// Which operation's commit point comes before which.
struct Commits {
    /// For each thread its calls, by their numbers.
    numbers: Vec<Vec<usize>>,
    before: Vec<Vec<Lit>>,
}

impl Commits {
    fn of(test: &DataTest, encoding: &mut Encoding<'_>) -> Result<Commits, CheckEnd> {
        let mut numbers = Vec::new();
        let mut points: Vec<Vec<(usize, Lit)>> = Vec::new();
        for (t, thread) in test.threads.iter().enumerate() {
            let mut own = Vec::new();
            for call in &thread.calls {
                own.push(points.len());
                let accesses = 0..encoding.streams.accesses.len();
                let is_commit = |k: &usize| {
                    let access = &encoding.streams.accesses[*k];
                    access.thread == t && call.commits.contains(&access.edge)
                };
                let own_points: Vec<usize> = accesses.filter(is_commit).collect();
                let mut executed = Vec::new();
                for k in own_points {
                    let guard = encoding.streams.accesses[k].guard;
                    executed.push((k, encoding.holds(guard)?));
                }
                points.push(executed);
            }
            numbers.push(own);
        }
        let count = points.len();
        let mut before = vec![vec![Lit::FALSE; count]; count];
        for a in 0..count {
            for b in (0..count).filter(|b| *b != a) {
                let mut ways = Vec::new();
                for &(x, x_there) in &points[a] {
                    for &(y, y_there) in &points[b] {
                        let order = encoding.access_before(x, y);
                        ways.push(encoding.cnf.all([x_there, y_there, order]));
                    }
                }
                before[a][b] = encoding.cnf.any(ways);
            }
        }
        Ok(Commits { numbers, before })
    }
    /// Literals of which one holds if the commit points are not in this order of threads.
    fn against(&self, order: &[usize]) -> Vec<Lit> {
        let mut next = vec![0; self.numbers.len()];
        let calls: Vec<usize> = order
            .iter()
            .map(|t| {
                next[*t] += 1;
                self.numbers[*t][next[*t] - 1]
            })
            .collect();
        calls.windows(2).map(|pair| !self.before[pair[0]][pair[1]]).collect()
    }
}
