//! Formulas about the runs of a test, and the literals that ask them: does one go wrong, wait for good, go round
//! more often than the bound; are the commit points in this order?

use super::Calls;
use super::outcome::CheckEnd;
use super::serial::Serial;
use crate::model::datatype::DataTest;
use crate::symbolic::{Encoding, Lit, Solution};

/// A formula, and the literals that ask it.
pub(super) struct Asking<'a> {
    pub encoding: Encoding<'a>,
    pub error: Lit,
    pub deadlock: Lit,
    pub overrun: Lit,
    /// Assumptions under which there was no solution.
    pub refuted: Vec<Vec<Lit>>,
}

impl<'a> Asking<'a> {
    /// A formula of partial runs.
    pub(super) fn new(mut encoding: Encoding<'a>) -> Result<Asking<'a>, CheckEnd> {
        let guards: Vec<_> = encoding.streams.errors.iter().map(|e| e.guard).collect();
        let errors = guards.into_iter().map(|g| encoding.holds(g)).collect::<Result<Vec<_>, _>>()?;
        let error = encoding.cnf.any(errors);
        let rounds = encoding.streams.overruns.clone();
        let rounds = rounds.into_iter().map(|g| encoding.holds(g)).collect::<Result<Vec<_>, _>>()?;
        let overrun = encoding.cnf.any(rounds);
        let deadlock = Asking::deadlock(&mut encoding)?;
        Ok(Asking { encoding, error, deadlock, overrun, refuted: vec![] })
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
        for (observation, orders) in &serial.observations {
            let mut differs = Vec::new();
            for ((t, r), value) in calls.observed.iter().zip(observation) {
                if let Some((_, registers)) = &ends[t.index()] {
                    differs.push(!encoding.is(registers[r.index()], *value)?);
                }
            }
            match &commits {
                None => encoding.cnf.clause(&differs),
                Some(commits) => {
                    for order in orders {
                        let mut clause = differs.clone();
                        clause.extend(commits.against(order));
                        encoding.cnf.clause(&clause);
                    }
                }
            }
        }
        let (error, deadlock, overrun) = (Lit::FALSE, Lit::FALSE, Lit::FALSE);
        Ok(Asking { encoding, error, deadlock, overrun, refuted: vec![] })
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
        asked: Lit,
        fences: &[(usize, usize)],
    ) -> Result<Option<Solution>, CheckEnd> {
        let mut assumptions = vec![asked];
        assumptions.extend(fences.iter().map(|(place, kind)| self.encoding.place(*place, *kind)));
        match self.encoding.solve(&assumptions)? {
            Ok(solution) => Ok(Some(solution)),
            Err(core) => {
                self.refuted.push(core);
                Ok(None)
            }
        }
    }
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
