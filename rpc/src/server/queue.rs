//! Who has a device, and who waits for one: first come, first served.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// The queue for a machine's devices. The semaphore is fair: permits go to those who wait in the order of their
/// requests.
pub(super) struct Queue {
    devices: Arc<Semaphore>,
    all: usize,
    sessions: Arc<Semaphore>,
    /// Sessions that wait, in order.
    waiting: Arc<Mutex<Vec<u64>>>,
    /// Changes of `waiting`.
    changed: Arc<Notify>,
    next: AtomicUsize,
}

/// A session's place among those that are allowed at the same time.
pub(super) struct Place {
    _session: OwnedSemaphorePermit,
}

/// A place in the row of those who wait; dropping it leaves the row.
struct Waits {
    id: u64,
    waiting: Arc<Mutex<Vec<u64>>>,
    changed: Arc<Notify>,
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| *id != self.id);
        self.changed.notify_waiters();
    }
}

impl Queue {
    pub fn new(devices: usize, sessions: usize) -> Queue {
        Queue {
            devices: Arc::new(Semaphore::new(devices)),
            all: devices,
            sessions: Arc::new(Semaphore::new(sessions)),
            waiting: Arc::default(),
            changed: Arc::default(),
            next: AtomicUsize::new(0),
        }
    }

    /// A place for a session; none if too many are there.
    pub fn enter(&self) -> Option<Place> {
        self.sessions.clone().try_acquire_owned().ok().map(|session| Place { _session: session })
    }

    /// Whether there is no place for another session.
    pub fn is_full(&self) -> bool {
        self.sessions.available_permits() == 0
    }

    /// Devices that are lent.
    pub fn lent(&self) -> usize {
        self.all - self.devices.available_permits()
    }

    /// Sessions that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits for a device. `told` receives how many sessions are before this one, whenever that changes.
    pub async fn device(&self, mut told: impl FnMut(usize)) -> OwnedSemaphorePermit {
        let devices = self.devices.clone();
        if let Ok(permit) = devices.clone().try_acquire_owned() {
            return permit;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed) as u64;
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        let waits = Waits { id, waiting: self.waiting.clone(), changed: self.changed.clone() };
        let permit = devices.acquire_owned();
        tokio::pin!(permit);
        let mut last = None;
        loop {
            let changed = self.changed.notified();
            let before = {
                let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.iter().position(|other| *other == waits.id).unwrap_or_default()
            };
            if last.replace(before) != Some(before) {
                told(before);
            }
            tokio::select! {
                permit = &mut permit => match permit {
                    Ok(permit) => return permit,
                    // Nobody closes the semaphore.
                    Err(_) => std::future::pending().await,
                },
                () = changed => {}
            }
        }
    }
}

/// Limits how many runs go on after their session has ended.
pub(super) struct Abandoned(Semaphore);

impl Abandoned {
    pub const fn new(most: usize) -> Abandoned {
        Abandoned(Semaphore::const_new(most))
    }

    pub fn one_more(&'static self) -> Option<SemaphorePermit<'static>> {
        self.0.try_acquire().ok()
    }
}
