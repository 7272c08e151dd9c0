//! Who lends what, who has it, and who waits: first come, first served within a kind.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tonic::{Code, Status};

use crate::refusal::refusal;
use crate::wire;
use crate::wire::grant::Kind;

/// Messages to a client that does not take them.
const QUEUE: usize = 16;

type Messages<T> = mpsc::Receiver<Result<T, Status>>;
type Sender<T> = mpsc::Sender<Result<T, Status>>;

/// The servers and clients of a tracker.
pub(super) struct Pool {
    state: Arc<Mutex<State>>,
    /// Most servers and clients together.
    most: usize,
}

#[derive(Default)]
struct State {
    next: u64,
    servers: BTreeMap<u64, Server>,
    /// Clients that have a device.
    lent: BTreeMap<u64, Lent>,
    waiting: VecDeque<Waiting>,
}

struct Server {
    peer: String,
    station: wire::Station,
    /// Keeps the server's stream open.
    _open: Sender<wire::Nothing>,
}

struct Lent {
    peer: String,
    server: u64,
    to: Sender<wire::Grant>,
}

struct Waiting {
    id: u64,
    peer: String,
    kind: String,
    to: Sender<wire::Grant>,
    /// What it was told of those before it.
    told: Option<usize>,
}

/// A server's or client's place, which it has until this is dropped.
pub(super) struct Place {
    state: Arc<Mutex<State>>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.state).leave(self.id);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub fn new(most: usize) -> Pool {
        Pool { state: Arc::default(), most }
    }

    fn place(&self, state: &mut State) -> Result<u64, Status> {
        if state.servers.len() + state.lent.len() + state.waiting.len() >= self.most {
            let reason = format!("{} servers and clients are there, the tracker's limit", self.most);
            return Err(refusal(Code::ResourceExhausted, reason, "try again later"));
        }
        state.next += 1;
        Ok(state.next)
    }

    /// Adds a server.
    pub fn register(&self, peer: String, station: wire::Station) -> Result<(Place, Messages<wire::Nothing>), Status> {
        let mut state = lock(&self.state);
        let id = self.place(&mut state)?;
        let (open, messages) = mpsc::channel(1);
        state.servers.insert(id, Server { peer, station, _open: open });
        state.settle();
        Ok((Place { state: self.state.clone(), id }, messages))
    }

    /// Adds a client that wants a device of a kind, which must be known.
    pub fn borrow(&self, peer: String, kind: &str) -> Result<(Place, Messages<wire::Grant>), Status> {
        let mut state = lock(&self.state);
        state.check(kind)?;
        let id = self.place(&mut state)?;
        let (to, messages) = mpsc::channel(QUEUE);
        state.waiting.push_back(Waiting { id, peer, kind: kind.to_string(), to, told: None });
        state.settle();
        Ok((Place { state: self.state.clone(), id }, messages))
    }

    /// Ends all streams.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        // Numbers are not used again, since their places are dropped later.
        *state = State { next: state.next, ..State::default() };
    }

    /// The servers.
    pub fn list(&self) -> Vec<wire::Listed> {
        let state = lock(&self.state);
        let listed = |(id, server): (&u64, &Server)| wire::Listed {
            lent: state.lent_by(*id) as u32,
            waiting: state.waiting.iter().filter(|waiting| waiting.kind == server.station.kind).count() as u32,
            station: Some(server.station.clone()),
        };
        state.servers.iter().map(listed).collect()
    }
}

impl State {
    fn lent_by(&self, server: u64) -> usize {
        self.lent.values().filter(|lent| lent.server == server).count()
    }

    /// Fails if no server lends devices of this kind.
    fn check(&self, kind: &str) -> Result<(), Status> {
        let kinds: BTreeSet<&str> = self.servers.values().map(|server| server.station.kind.as_str()).collect();
        if kinds.contains(kind) {
            return Ok(());
        }
        let known = match kinds.is_empty() {
            true => "no server is registered".to_string(),
            false => format!("there are: {}", kinds.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let kind: String = kind.chars().filter(|c| !c.is_control()).take(64).collect();
        let reason = format!("no server lends a device of kind {kind}, {known}");
        Err(refusal(Code::NotFound, reason, "start one with serve --tracker"))
    }

    /// A server or client is gone.
    fn leave(&mut self, id: u64) {
        if let Some(server) = self.servers.remove(&id) {
            tracing::info!("{}: gone, with its {}", server.peer, server.station.kind);
            self.lent.retain(|_, lent| {
                let stays = lent.server != id;
                if !stays {
                    let _ = lent.to.try_send(Err(Status::unavailable("the device's server is gone")));
                }
                stays
            });
            let kind = server.station.kind;
            if let Err(status) = self.check(&kind) {
                self.waiting.retain(|waiting| {
                    let stays = waiting.kind != kind;
                    if !stays {
                        let _ = waiting.to.try_send(Err(status.clone()));
                    }
                    stays
                });
            }
        }
        if let Some(lent) = self.lent.remove(&id) {
            let at = self.servers.get(&lent.server).map_or("", |server| &server.station.address);
            tracing::info!("{}: gave back the device of {at}", lent.peer);
        }
        self.waiting.retain(|waiting| waiting.id != id);
        self.settle();
    }

    /// Hands out what is free to those who wait, and tells the others how many are before them.
    fn settle(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut before: BTreeMap<String, usize> = BTreeMap::new();
        while let Some(mut client) = waiting.pop_front() {
            let free = |(id, server): &(&u64, &Server)| {
                server.station.kind == client.kind && self.lent_by(**id) < server.station.devices as usize
            };
            // The least busy one, so that a server that others use directly does not get all clients.
            let found = self.servers.iter().filter(free).min_by_key(|(id, _)| self.lent_by(**id));
            match found {
                Some((id, server)) => {
                    let grant = wire::Grant { kind: Some(Kind::Address(server.station.address.clone())) };
                    if client.to.try_send(Ok(grant)).is_err() {
                        // Without its sender, its stream ends. The next one gets the device.
                        tracing::warn!("{}: ended, because it does not take its messages", client.peer);
                        continue;
                    }
                    tracing::info!("{}: has the device of {}", client.peer, server.station.address);
                    let (id, Waiting { id: place, peer, to, .. }) = (*id, client);
                    self.lent.insert(place, Lent { peer, server: id, to });
                }
                None => {
                    let before = before.entry(client.kind.clone()).or_default();
                    if client.told.replace(*before) != Some(*before) {
                        let text = format!("waiting for a device of kind {}, {before} before this one", client.kind);
                        let progress = wire::Grant { kind: Some(Kind::Progress(wire::Progress { text })) };
                        let _ = client.to.try_send(Ok(progress));
                    }
                    *before += 1;
                    self.waiting.push_back(client);
                }
            }
        }
    }
}
