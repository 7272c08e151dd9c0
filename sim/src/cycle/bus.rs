//! The bus: which request is granted next, and when.

use super::bursts::BurstRequest;
use super::engine::{Engine, Environment};
use super::slots::Time;
use crate::dram::{Burst, Direction};
use tilewright_hw::isa::Unit;

/// A client of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Fetch,
    Load,
    Store,
}

/// The next burst of each client, and the first cycle in which it is requested, if known.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Requests {
    pub(super) fetch: Option<(Time, BurstRequest)>,
    pub(super) load: Option<(Time, BurstRequest)>,
    pub(super) store: Option<(Time, BurstRequest)>,
}

impl<E: Environment> Engine<'_, E> {
    /// Grants the earliest request, if it comes no later than `until`. Returns its cycle and client.
    pub(super) fn grant(&mut self, until: Time) -> Option<(Time, Client)> {
        let Requests { fetch, load, store } = self.requests;
        let read_at = |asked: Option<(Time, BurstRequest)>| asked.map_or(Time::MAX, |(t, _)| t.max(self.last_read + 1));
        let [fetch_at, load_at] = [read_at(fetch), read_at(load)];
        let (read, write) = (fetch_at.min(load_at), store.map_or(Time::MAX, |(t, _)| t));
        let at = read.min(write);
        if at > until || at == Time::MAX {
            return None;
        }
        // Within a cycle, reads go to the memory model first. Of two reads, the client that was not granted last wins.
        let fetches = fetch_at == read && (load_at > read || self.last_load);
        let requests = &mut self.requests;
        match (fetch, load, store) {
            (Some((asked, request)), ..) if read == at && fetches => {
                requests.fetch = None;
                let burst = self.ask(at, request, Direction::Read);
                self.fetch.granted(asked, at, request, burst);
                (self.last_read, self.last_load) = (at, false);
                Some((at, Client::Fetch))
            }
            (_, Some((asked, request)), _) if read == at => {
                requests.load = None;
                let burst = self.ask(at, request, Direction::Read);
                self.load.granted(asked, at, request, burst);
                (self.last_read, self.last_load) = (at, true);
                Some((at, Client::Load))
            }
            (_, _, Some((_, request))) => {
                requests.store = None;
                let burst = self.ask(at, request, Direction::Write);
                let retired = self.store.granted(at, request, burst);
                if let Some(retired) = retired {
                    self.retire(Unit::Store, retired);
                }
                Some((at, Client::Store))
            }
            _ => None,
        }
    }

    fn ask(&mut self, at: Time, request: BurstRequest, direction: Direction) -> Burst {
        let burst = self.dram.request(at, request.addr, request.beats, direction);
        if direction == Direction::Read {
            self.read += u64::from(request.beats) * u64::from(self.config.bus_bytes());
        }
        burst
    }
}
