use super::*;

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

fn threads(count: usize) -> Threads {
    Threads::new(count).unwrap()
}

/// Adds one to number `i` of the context.
extern "C" fn count_up(context: *mut u8, i: i64) {
    // SAFETY: the tests pass as many numbers as the loop has iterations.
    unsafe { (*context.cast::<AtomicU32>().add(i as usize)).fetch_add(1, Ordering::Relaxed) };
}

fn run(threads: &Threads, numbers: &[AtomicU32]) {
    // SAFETY: the numbers are atomic.
    unsafe { threads.each(count_up, numbers.as_ptr() as *mut u8, numbers.len() as i64) };
}

#[test]
fn every_iteration_runs_once_and_before_the_loop_returns() {
    for count in [1, 2, 3, 8] {
        let threads = threads(count);
        for round in 0..2000 {
            let numbers: Vec<AtomicU32> = (0..round % 67).map(|_| AtomicU32::new(0)).collect();
            run(&threads, &numbers);
            assert!(numbers.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{count} threads, loop {round}");
        }
    }
}

#[test]
fn loops_of_several_callers_at_once_are_all_done() {
    let threads = threads(3);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let numbers: Vec<AtomicU32> = (0..40).map(|_| AtomicU32::new(0)).collect();
                    run(&threads, &numbers);
                    assert!(numbers.iter().all(|n| n.load(Ordering::Relaxed) == 1));
                }
            });
        }
    });
}

/// Runs a loop inside each iteration.
extern "C" fn nested(context: *mut u8, _: i64) {
    // SAFETY: the context is that of the inner loop, of eight numbers.
    unsafe { each(count_up, context, 8) };
}

#[test]
fn a_loop_inside_of_a_loop_is_done_by_its_caller() {
    let threads = threads(4);
    let numbers: Vec<AtomicU32> = (0..8).map(|_| AtomicU32::new(0)).collect();
    // SAFETY: the numbers are atomic.
    threads.install(|| unsafe { each(nested, numbers.as_ptr() as *mut u8, 5) });
    assert!(numbers.iter().all(|n| n.load(Ordering::Relaxed) == 5));
}

struct Meeting {
    here: AtomicU32,
    wanted: u32,
}

/// Waits until `wanted` threads are here: no thread can do two of these iterations.
extern "C" fn meet(context: *mut u8, _: i64) {
    // SAFETY: the context is a meeting that outlives the loop.
    let meeting = unsafe { &*context.cast::<Meeting>() };
    meeting.here.fetch_add(1, Ordering::AcqRel);
    let begun = Instant::now();
    while meeting.here.load(Ordering::Acquire) < meeting.wanted && begun.elapsed() < Duration::from_secs(60) {
        thread::yield_now();
    }
}

#[test]
fn threads_that_sleep_are_woken_and_all_take_part() {
    let threads = threads(3);
    for _ in 0..5 {
        while threads.0.shared.asleep.iter().any(|asleep| !asleep.load(Ordering::Relaxed)) {
            thread::yield_now();
        }
        let meeting = Meeting { here: AtomicU32::new(0), wanted: 3 };
        let begun = Instant::now();
        // SAFETY: the meeting's numbers are atomic.
        unsafe { threads.each(meet, (&raw const meeting).cast_mut().cast(), 3) };
        assert!(begun.elapsed() < Duration::from_secs(60), "a thread never came");
    }
}

#[test]
fn installed_threads_are_current_until_the_call_ends() {
    let two = threads(2);
    let before = Threads::current().count();
    two.install(|| {
        assert_eq!(Threads::current().count(), 2);
        threads(3).install(|| assert_eq!(Threads::current().count(), 3));
        assert_eq!(Threads::current().count(), 2);
    });
    assert_eq!(Threads::current().count(), before);
}
