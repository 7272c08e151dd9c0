//! A stream of inputs: how long from answer to answer where host and accelerator work beside each other.
//!
//! An input's way alternates between both as often as its steps do, so that the busier of two sums is only a bound. Here the
//! parts of many inputs are played through in virtual time, each in its order and each place one part at a time.

use serde_json::{Value, json};

/// Inputs that are on their way at a time: one on the accelerator and one on the host. Each has buffers of its own.
pub const IN_FLIGHT: usize = 2;

/// Inputs of a replay that count, at least; as many again lie before them and behind.
const COUNTED: usize = 16;

/// A place that does one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The processor with all its threads, conversions and transfers too.
    Host,
    /// The accelerator, with the starts of its programs.
    Accel,
}

/// A part of an input's way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Where it is.
    pub on: On,
    /// Milliseconds there.
    pub ms: f64,
}

/// How a stream's figure was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Inputs ran one behind the other on this machine.
    Measured,
    /// Replayed, with what this machine took in each run.
    Replayed,
    /// Replayed, with what the target host's model says.
    Modelled,
}

impl How {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            How::Measured => {
                "measured: inputs one behind the other, from the first one's arrival to the last one's answer"
            }
            How::Replayed => {
                "replayed in virtual time: each input's parts in their order, the host's as each run was measured, the \
                 accelerator's by its cycles, at most in_flight inputs at a time"
            }
            How::Modelled => {
                "replayed in virtual time: each input's parts in their order, the host's by its model, the accelerator's by its \
                 cycles, at most in_flight inputs at a time"
            }
        }
    }
}

/// What a stream of inputs comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Milliseconds from answer to answer.
    pub interval_ms: f64,
    /// Inputs that counted.
    pub inputs: usize,
    /// Inputs on their way at a time.
    pub in_flight: usize,
    /// The shares of the time in which host and accelerator had work, where that is told apart.
    pub busy: Option<(f64, f64)>,
    /// How it was made.
    pub how: How,
}

impl Stream {
    /// Of inputs that ran one behind the other; none where nothing ran.
    pub fn measured(inputs: usize, all_ms: f64) -> Option<Stream> {
        let interval_ms = all_ms / inputs as f64;
        (inputs > 0 && all_ms > 0.0).then_some(Stream {
            interval_ms,
            inputs,
            in_flight: 1,
            busy: None,
            how: How::Measured,
        })
    }

    /// Plays the ways of inputs through, again from the first behind the last, with [`IN_FLIGHT`] of them at a time. A place
    /// that is free takes the older input first, and ends what it began. None where a way takes no time.
    pub fn replayed(ways: &[Vec<Segment>], how: How) -> Option<Stream> {
        let took = |way: &Vec<Segment>| way.iter().map(|part| part.ms).sum::<f64>() > 0.0;
        if ways.is_empty() || !ways.iter().all(took) {
            return None;
        }
        // Whole rounds of the ways, so that each counts as often as the others; an even number of inputs, since two on their
        // way may take turns.
        let rounds = COUNTED.div_ceil(ways.len());
        let inputs =
            ways.len() * if (ways.len() * rounds).is_multiple_of(IN_FLIGHT) { rounds } else { IN_FLIGHT * rounds };
        let played = play(ways, 3 * inputs);
        let (from, to) = (played.answers[inputs - 1], played.answers[2 * inputs - 1]);
        let busy = |on: On| {
            let parts = played.parts.iter().filter(|part| part.0 == on);
            parts.map(|(_, begun, ended)| (ended.min(to) - begun.max(from)).max(0.0)).sum::<f64>() / (to - from)
        };
        Some(Stream {
            interval_ms: (to - from) / inputs as f64,
            inputs,
            in_flight: IN_FLIGHT,
            busy: Some((busy(On::Host), busy(On::Accel))),
            how,
        })
    }

    /// Answers a second.
    pub fn per_second(&self) -> f64 {
        1e3 / self.interval_ms
    }

    /// As an object.
    pub fn json(&self) -> Value {
        json!({ "per_s": self.per_second(), "interval_ms": self.interval_ms, "inputs": self.inputs,
                "in_flight": self.in_flight, "host_busy": self.busy.map(|busy| busy.0),
                "accelerator_busy": self.busy.map(|busy| busy.1), "from": self.how.text() })
    }
}

/// What came of a replay.
struct Played {
    /// When each input had its answer.
    answers: Vec<f64>,
    /// Where each part was, from when to when.
    parts: Vec<(On, f64, f64)>,
}

/// An input on its way.
struct Flight<'a> {
    number: usize,
    left: &'a [Segment],
    /// When its next part may begin.
    ready: f64,
}

fn play(ways: &[Vec<Segment>], inputs: usize) -> Played {
    let mut played = Played { answers: vec![0.0; inputs], parts: Vec::new() };
    let way = |number: usize| &ways[number % ways.len()][..];
    let first = 0..IN_FLIGHT.min(inputs);
    let mut flights: Vec<Flight> = first.map(|number| Flight { number, left: way(number), ready: 0.0 }).collect();
    let mut entered = flights.len();
    let mut free = [0.0f64; 2];
    loop {
        // Whose next part begins first; of several the oldest, which stands before the others.
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
        // Behind 0 and 1 answers come at 15, 19, 30, 34: two inputs meet on the accelerator and leave the host idle. The busier
        // of both sums, 6, is never reached.
        let alternating = way(&[(Accel, 5.0), (Host, 1.0), (Accel, 1.0), (Host, 4.0)]);
        check(&[alternating], 7.5, (5.0 / 7.5, 6.0 / 7.5));
        check(&[way(&[(Accel, 3.0), (Host, 2.0), (Accel, 3.0), (Host, 2.0)])], 6.0, (4.0 / 6.0, 1.0));
    }

    #[test]
    fn inputs_that_take_different_times_count_alike() {
        let ways = [way(&[(Host, 1.0), (Accel, 1.0)]), way(&[(Host, 3.0), (Accel, 1.0)])];
        check(&ways, 2.0, (1.0, 0.5));
        assert_eq!(Stream::replayed(&ways, How::Modelled).unwrap().inputs, COUNTED);
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
