//! The lock is right for two threads and for three; without the locked instruction it is not.

use overtake::{assert_robust, assert_safe, assert_violated};
use own_lock::{Acquire, counting};

#[test]
fn nobody_is_inside_with_another_and_no_count_is_lost() {
    for threads in [2, 3] {
        let program = counting(threads, Acquire::Exchange).expect("it fits together");
        assert_safe!(program);
        assert_robust!(program);
    }
}

#[test]
fn a_load_and_a_store_are_no_lock() {
    assert_violated!(counting(2, Acquire::LoadThenStore).expect("it fits together"));
}
