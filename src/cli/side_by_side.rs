//! Many things done at the same time, and told in their order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Does `work` to all, as many at a time as there are workers, and hands what comes of each to `tell`, in order.
pub(crate) fn side_by_side<T: Sync, A: Send>(
    all: &[T],
    workers: usize,
    work: impl Fn(&T) -> A + Sync,
    tell: impl FnMut(A),
) {
    let (next, (sender, answers)) = (AtomicUsize::new(0), mpsc::channel());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(all.len()) {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                while let Some((i, one)) = claim(&next, all) {
                    if sender.send((i, work(one))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        in_order(answers).for_each(tell);
    });
}

fn claim<'a, T>(next: &AtomicUsize, all: &'a [T]) -> Option<(usize, &'a T)> {
    let i = next.fetch_add(1, Ordering::Relaxed);
    Some((i, all.get(i)?))
}

/// What arrives with numbers from 0 up, in the order of the numbers.
fn in_order<T>(arriving: mpsc::Receiver<(usize, T)>) -> impl Iterator<Item = T> {
    let (mut early, mut next) = (BTreeMap::new(), 0);
    std::iter::from_fn(move || {
        while !early.contains_key(&next) {
            let (i, answer) = arriving.recv().ok()?;
            early.insert(i, answer);
        }
        next += 1;
        early.remove(&(next - 1))
    })
}
