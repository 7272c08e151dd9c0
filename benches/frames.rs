//! Measures how well frames overlap: a network whose fallback runs on this machine, one frame after the other and with
//! several submitted. The accelerator is replayed in real time: a command takes the time of its cycles at the
//! configuration's clock, and leaves in memory what the cycle model left there.
//!
//! An accelerator stores results while it computes others, without the processor. The replay needs the processor to
//! copy them, so it does that within the command's time: who waits for the command copies results piece by piece before
//! it sleeps. Nothing reads them before the command ends. What does not fit into the command's time makes it longer.
//!
//! The interrupt of a device wakes who waits at once, whereas a timer of the operating system is late by 50 us and more,
//! so the end of a command is waited for in a loop. How long the accelerator was idle with a command in its queue is
//! printed.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tilewright::device::{self, DeviceKind, Extras};
use tilewright::model::inference::made_up;
use tilewright::model::{CompileRequest, ImportOptions, ModelFile};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::queue::Queue;
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Ticket};
use tilewright_runtime::artifact::Place;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{Frames, Session};

const NETWORK: &str = "tests/models/efficientnet-lite0/model_qdq_perchannel.onnx";

/// Frames of a measurement, and measurements of each kind, which alternate.
const COUNT: usize = 20;
const ROUNDS: usize = 5;

/// Bytes that are compared to find what a command changed, and the most that are copied between two looks at the clock.
const PIECE: usize = 64;
const COPIED: usize = 64 << 10;

/// Time before the end of a command from which on the clock is read in a loop.
const NEAR: Duration = Duration::from_micros(150);

/// What a command did: its report, and the ranges of bytes that it changed.
struct Done {
    report: RunReport,
    changed: Vec<(u64, Vec<u8>)>,
}

/// A command that runs.
struct Running {
    ticket: Ticket,
    command: Command,
    end: Instant,
    /// Number of ranges that were already copied.
    copied: usize,
}

/// A device that computes each command once and then repeats it in real time, for inputs that are always the same. As on
/// a peripheral of the host, the next command starts when somebody sees the end of the one before.
struct RealTime {
    inner: Box<dyn Device>,
    done: HashMap<Command, Done>,
    queue: Queue,
    running: Option<Running>,
    /// Time between the end of commands and the start of the next, which was already in the queue.
    idle: Arc<Mutex<Duration>>,
}

impl RealTime {
    fn memory(&mut self) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = vec![0; self.memory_bytes() as usize];
        self.inner.read(0, &mut bytes)?;
        Ok(bytes)
    }

    fn record(&mut self, command: &Command) -> Result<(), DeviceError> {
        let before = self.memory()?;
        let report = self.inner.run(command)?;
        let after = self.memory()?;
        let mut changed: Vec<(u64, Vec<u8>)> = Vec::new();
        for (index, (old, new)) in before.chunks(PIECE).zip(after.chunks(PIECE)).enumerate() {
            let addr = (index * PIECE) as u64;
            match changed.last_mut() {
                _ if old == new => {}
                Some((start, bytes)) if *start + bytes.len() as u64 == addr && bytes.len() < COPIED => {
                    bytes.extend(new);
                }
                _ => changed.push((addr, new.to_vec())),
            }
        }
        self.done.insert(command.clone(), Done { report, changed });
        Ok(())
    }

    fn start_next(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some((ticket, command)) = self.queue.next(Ticket(u64::MAX)) else { return };
        let cycles = self.done[&command].report.cycles.unwrap_or(0);
        let takes = Duration::from_secs_f64(cycles as f64 / (self.config().host.clock_mhz * 1e6));
        self.running = Some(Running { ticket, command, end: Instant::now() + takes, copied: 0 });
    }

    /// Starts the command that was queued behind one that ended at `end`.
    fn follow(&mut self, end: Instant) {
        self.start_next();
        if self.running.is_some() {
            *self.idle.lock().expect("no thread panics with it") += end.elapsed();
        }
    }
}

impl Device for RealTime {
    fn config(&self) -> &HwConfig {
        self.inner.config()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.inner.write(addr, bytes)
    }

    fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(addr, bytes)
    }

    fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError> {
        if !self.done.contains_key(command) {
            self.record(command)?;
        }
        let config = self.inner.config().clone();
        let ticket = self.queue.submit(command, &config)?;
        self.start_next();
        Ok(ticket)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError> {
        loop {
            if let Some(report) = self.poll(ticket, Duration::MAX)? {
                return Ok(report);
            }
        }
    }

    fn poll(&mut self, ticket: Ticket, at_most: Duration) -> Result<Option<RunReport>, DeviceError> {
        let begun = Instant::now();
        while let Some(mut running) = self.running.take_if(|running| running.ticket <= ticket) {
            let done = &self.done[&running.command];
            while let Some((addr, bytes)) = done.changed.get(running.copied) {
                let now = Instant::now();
                if now < running.end && now - begun >= at_most {
                    self.running = Some(running);
                    return Ok(None);
                }
                self.inner.write(*addr, bytes)?;
                running.copied += 1;
            }
            let left = running.end.saturating_duration_since(Instant::now());
            let at_most = at_most.saturating_sub(begun.elapsed());
            if left > at_most + NEAR {
                self.running = Some(running);
                thread::sleep(at_most);
                return Ok(None);
            }
            thread::sleep(left.saturating_sub(NEAR));
            while Instant::now() < running.end {
                std::hint::spin_loop();
            }
            self.queue.done(running.ticket, Ok(done.report.clone()));
            self.follow(running.end);
        }
        self.queue.take(ticket).map(Some)
    }
}

fn main() {
    let config = HwConfig::load("1x16x16").expect("a preset");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(NETWORK);
    let (request, import) = (CompileRequest::default(), ImportOptions::default());
    let compiled = request.compile_file(&ModelFile::from(&*file), &import, &config, DeviceKind::CSIM, &mut |_, _| {});
    let artifact = compiled.expect("the network compiles").artifact;
    let inputs = made_up(&artifact.manifest.input_values());
    let inner = device::open(DeviceKind::CSIM, &config, Extras::default(), &|_| {}).expect("the device opens");
    let inner = inner.expect("the cycle model is a device");
    let idle = Arc::new(Mutex::new(Duration::ZERO));
    let (done, queue) = (HashMap::new(), Queue::default());
    let device = RealTime { inner, done, queue, running: None, idle: idle.clone() };
    let mut session = Session::new(artifact, Registry::global(), Some(Box::new(device))).expect("the network opens");
    let (expected, report) = session.run(&inputs).expect("it runs");
    let accel_s = report.cycles().unwrap_or(0) as f64 / (config.host.clock_mhz * 1e6);
    println!(
        "efficientnet-lite0 on 1x16x16 at {} MHz, {COUNT} frames, {ROUNDS} rounds, medians",
        config.host.clock_mhz
    );
    println!("accelerator                {:8.2} ms a frame", accel_s * 1e3);
    let most = [2, 3].map(|count| NonZeroUsize::new(count).expect("not zero"));
    let frames = most.map(|most| Frames::new(&session, most).expect("there is memory for frames"));
    let (mut alone, mut together, mut host): (Vec<f64>, [Vec<f64>; 2], Vec<f64>) = Default::default();
    let mut gaps: [Vec<f64>; 2] = Default::default();
    for _ in 0..ROUNDS {
        let (started, mut host_s) = (Instant::now(), 0.0);
        for _ in 0..COUNT {
            let begun = Instant::now();
            let (outputs, report) = session.run(&inputs).expect("it runs");
            assert!(outputs == expected, "outputs differ");
            let steps = report.steps.iter().filter(|step| step.place == Place::Accel);
            let there: f64 = steps.map(|step| step.wall_s - step.convert_s).sum();
            host_s += begun.elapsed().as_secs_f64() - there;
        }
        alone.push(started.elapsed().as_secs_f64() / COUNT as f64);
        host.push(host_s / COUNT as f64);
        for ((frames, times), gaps) in frames.iter().zip(&mut together).zip(&mut gaps) {
            let (started, before) = (Instant::now(), *idle.lock().expect("no thread panics with it"));
            let pending: Vec<_> = (0..COUNT).map(|_| frames.submit(inputs.clone()).expect("it is taken")).collect();
            for pending in pending {
                assert!(pending.wait().expect("it runs").0 == expected, "outputs differ");
            }
            times.push(started.elapsed().as_secs_f64() / COUNT as f64);
            let idle = *idle.lock().expect("no thread panics with it") - before;
            gaps.push(idle.as_secs_f64() / COUNT as f64);
        }
    }
    let median = |list: &mut Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    };
    let (alone, host) = (median(&mut alone), median(&mut host));
    println!("host                       {:8.2} ms a frame", host * 1e3);
    println!("one frame after the other  {:8.2} ms a frame", alone * 1e3);
    // The first frame's host part before, or the last one's behind, cannot overlap with anything.
    let busier = accel_s.max(host);
    let ideal = busier + (alone - busier) / COUNT as f64;
    println!("ideal overlap              {:8.2} ms a frame", ideal * 1e3);
    for ((most, mut times), mut gaps) in most.into_iter().zip(together).zip(gaps) {
        let found = median(&mut times);
        let share = (alone - found) / (alone - ideal);
        println!(
            "{most} frames at once          {:8.2} ms a frame, {:.0} % of the ideal gain, {:.3} ms idle with a command queued",
            found * 1e3,
            share * 100.0,
            median(&mut gaps) * 1e3
        );
    }
}
