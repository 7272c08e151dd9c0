//! Messages that no client sends.

use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tilewright_runtime::tensor::{DType, Tensor};
use tilewright_runtime::value::Value;

use super::bad::Raw;
use super::calls::{doubling, functions};
use super::*;
use crate::host::pieces;
use crate::values::{Packed, pack_list, tests::Nothing};
use crate::wire::{self, request::Kind};

/// Seconds that messages are tried: SECONDS, or 2.
pub(crate) fn seconds() -> u64 {
    std::env::var("SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// Bytes of this process's memory.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("it is there");
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
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

    /// A value with everything that one can have.
    fn value(&mut self, depth: u64) -> Value {
        match self.next() % (if depth > 30 { 6 } else { 8 }) {
            0 => Value::None,
            1 => Value::Integer(self.number() as i64),
            2 => Value::Float(f64::from_bits(self.next())),
            3 => Value::String("x".repeat((self.next() % 300) as usize)),
            4 => Value::Bytes(self.artifact().into()),
            5 => {
                let shape = vec![(self.next() % 5) as usize, (self.next() % 9) as usize];
                let bytes = vec![0; shape[0] * shape[1] * 4];
                Tensor::new(DType::F32, shape, bytes).expect("has as many").into()
            }
            6 => (0..self.next() % 4).map(|_| self.value(depth + 1)).collect(),
            _ => (0..self.next() % 3).map(|index| (index.to_string(), self.value(depth + 1))).collect(),
        }
    }

    /// An artifact, damaged in its bytes, or in its manifest under a checksum that holds.
    fn artifact(&mut self) -> Vec<u8> {
        let mut bytes = doubling().encode();
        let manifest = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes")) as usize;
        let end = if self.next().is_multiple_of(4) { bytes.len() } else { 64 + manifest };
        for _ in 0..self.next() % 4 {
            let at = 64 + self.next() as usize % (end - 64);
            bytes[at] = match self.next() % 3 {
                0 => b'0' + (self.next() % 10) as u8,
                1 => b"[]{},:\"-"[(self.next() % 8) as usize],
                _ => self.next() as u8,
            };
        }
        if !self.next().is_multiple_of(4) {
            let digest = Sha256::digest(&bytes[64..64 + manifest]);
            bytes[24..56].copy_from_slice(&digest);
        }
        bytes
    }

    /// A call and its bytes. Mostly they are a call that a client could make, sometimes random bytes.
    fn call(&mut self) -> Vec<Kind> {
        let names = [
            "load",
            "load",
            "double",
            "echo",
            "adder",
            "run",
            "report",
            "time",
            "submit",
            "submit",
            "specialize",
            "specialized",
            "close",
            "",
            "",
            "none",
        ];
        let name = names[self.next() as usize % names.len()];
        let arguments: Vec<Value> = match name {
            "load" => vec!["m".into(), Value::Bytes(self.artifact().into())],
            _ => (0..self.next() % 4).map(|_| self.value(0)).collect(),
        };
        let Ok(Packed { mut tree, bulk }) = pack_list(&arguments, &mut Nothing) else { return Vec::new() };
        if self.next().is_multiple_of(3) && !tree.is_empty() {
            let at = self.next() as usize % tree.len();
            tree[at] = self.next() as u8;
        }
        let object = if name == "load" { 0 } else { self.next() % 6 };
        let mut kinds: Vec<Kind> = pieces(bulk).map(Kind::Bulk).collect();
        if self.next().is_multiple_of(8) {
            kinds.pop();
        }
        kinds.push(Kind::Call(wire::Call { object, name: name.into(), arguments: tree.into() }));
        kinds
    }

    /// Requests that belong together.
    pub fn kinds(&mut self) -> Vec<Option<Kind>> {
        match self.next() % 4 {
            0 => self.call().into_iter().map(Some).collect(),
            1 if self.next().is_multiple_of(4) => vec![Some(Kind::Release(self.next() % 6))],
            1 if self.next().is_multiple_of(4) => vec![Some(Kind::Bulk(vec![1; 999].into()))],
            _ => vec![self.kind()],
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
    let limits = Limits { memory: 4 << 20, ..limits };
    let lends = Lends { devices: 2, functions: functions(), ..simulator(&small(), true, Arc::default()) };
    let running = start(with_limits(limits), lends);
    let mut other = plain(&running);
    other.write(1000, b"other").expect("it is written");
    let begun = Instant::now();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut sessions = 0;
    let mut early = None;
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
            let mut sent = random.kinds().into_iter().map(|kind| raw.requests.blocking_send(wire::Request { kind }));
            if sent.any(|sent| sent.is_err()) {
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
        if begun.elapsed() > Duration::from_secs(seconds() / 4) {
            early.get_or_insert_with(memory);
        }
        let mut back = [0; 5];
        other.read(1000, &mut back).expect("the other session goes on");
        assert_eq!(&back, b"other");
    }
    // Other tests of this process run at the same time, and take some.
    let (early, late) = (early.unwrap_or_else(memory), memory());
    assert!(late < early + (256 << 20), "memory grew from {early} to {late} bytes");
}
