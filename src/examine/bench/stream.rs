//! Throughput of a stream of inputs, with host and accelerator working in parallel.
//!
//! An input alternates between both with its steps, so the larger of the two sums of times is only a bound. The parts
//! of many inputs are replayed in virtual time: the parts of an input in order, and one part at a time in each place.

use std::num::NonZeroUsize;

use serde_json::{Value, json};

/// Number of inputs in flight: one on the accelerator and one on the host, each with its own buffers.
pub const IN_FLIGHT: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Least number of inputs of a replay that count; as many run before and after them.
const COUNTED: usize = 16;

/// A place that does one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The CPU with all its threads, including conversions and transfers.
    Host,
    /// The accelerator, including the launches of its programs.
    Accel,
}

/// A part of an input's processing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Where it is.
    pub on: On,
    /// Milliseconds there.
    pub ms: f64,
}

/// Source of a stream's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Inputs ran one after another on this machine.
    Measured,
    /// Inputs ran at the same time, the accelerator's part of one beside the host's part of another.
    Overlapped,
    /// Replayed with the times of this machine.
    Replayed,
    /// Replayed with the modeled times of the target host.
    Modeled,
}

impl How {
    /// Describes the source.
    pub fn text(self) -> &'static str {
        match self {
            How::Measured => {
                "measured: inputs one after another, from the first one's arrival to the last one's answer"
            }
            How::Overlapped => {
                "measured: at most in_flight inputs at a time, from the first one's arrival to the last one's answer"
            }
            How::Replayed => {
                "replayed in virtual time: each input's parts in order, the host's as measured in each run, the \
                 accelerator's by its cycles, at most in_flight inputs at a time"
            }
            How::Modeled => {
                "replayed in virtual time: each input's parts in order, the host's by its model, the accelerator's by \
                 its cycles, at most in_flight inputs at a time"
            }
        }
    }
}

/// Throughput of a stream of inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Milliseconds from answer to answer.
    pub interval_ms: f64,
    /// Number of inputs that counted.
    pub inputs: usize,
    /// Number of inputs in flight.
    pub in_flight: usize,
    /// The fractions of time in which host and accelerator were busy, if known.
    pub busy: Option<(f64, f64)>,
    /// Source of the figures.
    pub how: How,
}

impl Stream {
    /// The throughput of inputs that ran one after another; none if nothing ran.
    pub fn measured(inputs: usize, all_ms: f64) -> Option<Stream> {
        Stream::took(inputs, 1, all_ms, How::Measured)
    }

    /// The throughput of inputs that ran with [`IN_FLIGHT`] of them at a time; none if nothing ran.
    pub fn overlapped(inputs: usize, all_ms: f64) -> Option<Stream> {
        Stream::took(inputs, IN_FLIGHT.get(), all_ms, How::Overlapped)
    }

    fn took(inputs: usize, in_flight: usize, all_ms: f64, how: How) -> Option<Stream> {
        let interval_ms = all_ms / inputs as f64;
        (inputs > 0 && all_ms > 0.0).then_some(Stream { interval_ms, inputs, in_flight, busy: None, how })
    }

    /// Replays the inputs, cyclically, with [`IN_FLIGHT`] of them at a time. A free place takes the older input first
    /// and finishes each part that it began. None if an input takes no time.
    pub fn replayed(ways: &[Vec<Segment>], how: How) -> Option<Stream> {
        let took = |way: &Vec<Segment>| way.iter().map(|part| part.ms).sum::<f64>() > 0.0;
        if ways.is_empty() || !ways.iter().all(took) {
            return None;
        }
        // Whole rounds, so that each way counts equally often; an even number of inputs, since the two in flight can
        // alternate.
        let rounds = COUNTED.div_ceil(ways.len());
        let inputs = ways.len()
            * if (ways.len() * rounds).is_multiple_of(IN_FLIGHT.get()) { rounds } else { IN_FLIGHT.get() * rounds };
        let played = play(ways, 3 * inputs);
        let (from, to) = (played.answers[inputs - 1], played.answers[2 * inputs - 1]);
        let busy = |on: On| {
            let parts = played.parts.iter().filter(|part| part.0 == on);
            parts.map(|(_, begun, ended)| (ended.min(to) - begun.max(from)).max(0.0)).sum::<f64>() / (to - from)
        };
        Some(Stream {
            interval_ms: (to - from) / inputs as f64,
            inputs,
            in_flight: IN_FLIGHT.get(),
            busy: Some((busy(On::Host), busy(On::Accel))),
            how,
        })
    }

    /// Answers per second.
    pub fn per_second(&self) -> f64 {
        1e3 / self.interval_ms
    }

    /// The figures as JSON.
    pub fn json(&self) -> Value {
        json!({ "per_s": self.per_second(), "interval_ms": self.interval_ms, "inputs": self.inputs,
                "in_flight": self.in_flight, "host_busy": self.busy.map(|busy| busy.0),
                "accelerator_busy": self.busy.map(|busy| busy.1), "from": self.how.text() })
    }
}

/// Result of a replay.
struct Played {
    /// Time of each input's answer.
    answers: Vec<f64>,
    /// Place, start and end of each part.
    parts: Vec<(On, f64, f64)>,
}

/// An input in flight.
struct Flight<'a> {
    number: usize,
    left: &'a [Segment],
    /// Earliest start of its next part.
    ready: f64,
}

fn play(ways: &[Vec<Segment>], inputs: usize) -> Played {
    let mut played = Played { answers: vec![0.0; inputs], parts: Vec::new() };
    let way = |number: usize| &ways[number % ways.len()][..];
    let first = 0..IN_FLIGHT.get().min(inputs);
    let mut flights: Vec<Flight> = first.map(|number| Flight { number, left: way(number), ready: 0.0 }).collect();
    let mut entered = flights.len();
    let mut free = [0.0f64; 2];
    loop {
        // The input whose next part starts first; for equal starts the oldest, which comes first in the list.
        let mut next: Option<(usize, f64)> = None;
        for (at, flight) in flights.iter().enumerate() {
            let Some(part) = flight.left.first() else { continue };
            let start = flight.ready.max(free[part.on as usize]);
            if next.is_none_or(|(_, least)| start < least) {
                next = Some((at, start));
            }
        }
        let Some((at, start)) = next else { return played };
        let flight = &mut flights[at];
        let Some((part, left)) = flight.left.split_first() else { return played };
        let end = start + part.ms;
        played.parts.push((part.on, start, end));
        (free[part.on as usize], flight.ready, flight.left) = (end, end, left);
        if left.is_empty() {
            played.answers[flight.number] = end;
            flights.remove(at);
            if entered < inputs {
                flights.push(Flight { number: entered, left: way(entered), ready: end });
                entered += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(parts: &[(On, f64)]) -> Vec<Segment> {
        parts.iter().map(|(on, ms)| Segment { on: *on, ms: *ms }).collect()
    }

    #[track_caller]
    fn check(ways: &[Vec<Segment>], interval_ms: f64, busy: (f64, f64)) {
        let found = Stream::replayed(ways, How::Replayed).unwrap();
        let (host, accel) = found.busy.unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(found.interval_ms, interval_ms) && near(host, busy.0) && near(accel, busy.1), "{found:?}");
    }

    use On::{Accel, Host};

    #[test]
    fn one_stretch_on_the_accelerator_leaves_the_busier_place_no_gap() {
        check(&[way(&[(Host, 1.0), (Accel, 5.0), (Host, 2.0)])], 5.0, (0.6, 1.0));
        check(&[way(&[(Host, 4.0), (Accel, 2.0), (Host, 3.0)])], 7.0, (1.0, 2.0 / 7.0));
        check(&[way(&[(Host, 2.0)])], 2.0, (1.0, 0.0));
        check(&[way(&[(Accel, 2.0)])], 2.0, (0.0, 1.0));
    }

    #[test]
    fn ways_that_alternate_wait_for_each_other() {
        // After 0 and 1, answers come at 15, 19, 30, 34: two inputs meet on the accelerator and leave the host idle.
        // The larger sum, 6, is never reached.
        let alternating = way(&[(Accel, 5.0), (Host, 1.0), (Accel, 1.0), (Host, 4.0)]);
        check(&[alternating], 7.5, (5.0 / 7.5, 6.0 / 7.5));
        check(&[way(&[(Accel, 3.0), (Host, 2.0), (Accel, 3.0), (Host, 2.0)])], 6.0, (4.0 / 6.0, 1.0));
    }

    #[test]
    fn inputs_that_take_different_times_count_alike() {
        let ways = [way(&[(Host, 1.0), (Accel, 1.0)]), way(&[(Host, 3.0), (Accel, 1.0)])];
        check(&ways, 2.0, (1.0, 0.5));
        assert_eq!(Stream::replayed(&ways, How::Modeled).unwrap().inputs, COUNTED);
        assert_eq!(Stream::replayed(&[way(&[(Host, 0.0)])], How::Replayed), None);
        assert_eq!(Stream::replayed(&[], How::Replayed), None);
    }

    #[test]
    fn what_was_measured_is_a_plain_mean() {
        let found = Stream::measured(4, 10.0).unwrap();
        assert_eq!((found.interval_ms, found.per_second(), found.in_flight), (2.5, 400.0, 1));
        assert_eq!(Stream::measured(0, 0.0), None);
    }
}
