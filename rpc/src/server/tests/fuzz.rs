//! Messages that no client sends.

use std::time::{Duration, Instant};

use super::bad::Raw;
use super::*;
use crate::wire::{self, request::Kind};

/// Seconds that messages are tried: SECONDS, or 2.
fn seconds() -> u64 {
    std::env::var("SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number that is small, large or next to a boundary.
    fn number(&mut self) -> u64 {
        let next = self.next();
        match next % 6 {
            0 => next >> 8 & 0xff,
            1 => next >> 8 & 0xfff_ffff,
            2 => u64::MAX - (next >> 8 & 0xf),
            3 => 1 << (next >> 8 & 63),
            4 => (next >> 8 & 0xffff) * 32,
            _ => next,
        }
    }

    fn kind(&mut self) -> Option<Kind> {
        let base = |random: &mut Random| wire::Base { addr: random.number(), limit: random.number() };
        Some(match self.next() % 12 {
            0 | 1 => Kind::Write(wire::Write {
                addr: self.number(),
                data: vec![self.next() as u8; (self.next() % 5000) as usize].into(),
            }),
            2 => Kind::Read(wire::Read { addr: self.number(), len: self.number() }),
            3 => Kind::CleanCache(wire::Span { addr: self.number(), len: self.number() }),
            4 => Kind::InvalidateCache(wire::Span { addr: self.number(), len: self.number() }),
            5 | 6 => Kind::Submit(wire::Command {
                stream_addr: self.number(),
                insns: self.number() as u32,
                bases: (0..self.next() % 20).map(|_| base(self)).collect(),
                cycle_limit: self.next().is_multiple_of(2).then(|| self.number()),
            }),
            7 => Kind::Wait(self.number()),
            8 => Kind::Wait(self.next() % 3),
            9 => Kind::Scratchpad(wire::Entries {
                mem: (self.next() % 9) as u32,
                entry: self.number() as u32,
                count: self.number() as u32,
            }),
            10 => Kind::Open(wire::Open { config: "x".into(), ..wire::Open::default() }),
            _ => return None,
        })
    }
}

#[test]
fn no_message_stops_the_server_or_reaches_another_session() {
    let limits = Limits { cycles: Some(10_000), run: Duration::from_secs(20), ..Limits::default() };
    let lends = Lends { devices: 2, ..simulator(&small(), true, Arc::default()) };
    let running = start(with_limits(limits), lends);
    let mut other = plain(&running);
    other.write(1000, b"other").expect("it is written");
    let begun = Instant::now();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut sessions = 0;
    while begun.elapsed() < Duration::from_secs(seconds()) || sessions < 3 {
        let mut raw = Raw::new(&running);
        raw.open(|open| match random.next() % 4 {
            0 => open.max_cycles = Some(random.number()),
            1 => open.strict = true,
            2 => open.spans = true,
            _ => {}
        });
        let count = random.next() % 200;
        for _ in 0..count {
            let kind = random.kind();
            if raw.requests.blocking_send(wire::Request { kind }).is_err() {
                break;
            }
        }
        if random.next().is_multiple_of(2) {
            // Its requests end, so its replies end, too.
            let (closed, _) = tokio::sync::mpsc::channel(1);
            drop(std::mem::replace(&mut raw.requests, closed));
            while let Ok(Some(_)) = raw.next() {
                assert!(begun.elapsed() < Duration::from_secs(seconds() + 60), "the session hangs");
            }
        }
        sessions += 1;
        let mut back = [0; 5];
        other.read(1000, &mut back).expect("the other session goes on");
        assert_eq!(&back, b"other");
    }
}
