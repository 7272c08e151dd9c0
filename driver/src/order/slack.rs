//! Which transfers wait for others, by the time that each instruction has to spare.

use super::Work;
use super::list::Schedule;
use crate::conflicts::{ByPort, Conflicts};

/// The delayed transfers that have more time to spare than the transfer that delays them.
///
/// On the bus, two transfers run at the same time and slow each other down. A wait makes the second one run after the
/// first. It also leaves the bus idle until the first has retired and the second has started, so where the bus is what
/// the program waits for, transfers do not wait for each other.
pub(super) fn waits(conflicts: &[Conflicts], works: &[Work], schedule: &Schedule) -> Vec<(u32, u32)> {
    if schedule.delayed.is_empty() {
        return Vec::new();
    }
    let latest = latest(conflicts, works, schedule);
    let slack = |place: u32| latest[place as usize].saturating_sub(schedule.starts[place as usize]);
    schedule.delayed.iter().copied().filter(|&(later, first)| slack(later) > slack(first)).collect()
}

/// By place, the last cycle in which an instruction can start without delaying the program's end.
fn latest(conflicts: &[Conflicts], works: &[Work], schedule: &Schedule) -> Vec<u64> {
    let mut latest = vec![schedule.cycles; conflicts.len()];
    let mut ports = ByPort::all(schedule.cycles);
    let mut next: [Option<u64>; 4] = [None; 4];
    // Latest first beat of the next transfer.
    let mut next_beat = schedule.cycles;
    for &place in schedule.places.iter().rev() {
        let at = place as usize;
        let (own, work) = (&conflicts[at], &works[at]);
        // All instructions that wait for it come later in the schedule, so `latest` has its latest end.
        let end = ports.others(own).fold(latest[at], u64::min);
        let mut start = end.saturating_sub(schedule.ends[at] - schedule.starts[at]);
        if let Some(next) = next[own.unit as usize] {
            start = start.min(next.saturating_sub(work.busy));
        }
        if work.beats > 0 {
            start = start.min(next_beat.saturating_sub(work.lead + work.beats));
            next_beat = start + work.lead;
        }
        next[own.unit as usize] = Some(start);
        for &port in &own.ports {
            let used = &mut ports.of(port)[own.unit as usize];
            *used = (*used).min(start);
        }
        for &before in own.after.iter().filter(|&&before| conflicts[before as usize].unit != own.unit) {
            latest[before as usize] = latest[before as usize].min(start);
        }
        latest[at] = start;
    }
    latest
}
