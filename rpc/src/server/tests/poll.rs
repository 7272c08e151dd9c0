//! Commands of a device of a server that are polled, and waits for them that stop.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use tilewright_hw::device::Command;
use tilewright_hw::interrupt::Interrupt;
use tilewright_testing::device::{Hooked, HostAccess};

use super::*;

/// A server of a device whose commands end when something is sent for each.
fn gated() -> (Running, Sender<()>) {
    let (open, gate) = channel();
    let gate: Arc<Mutex<Receiver<()>>> = Arc::new(Mutex::new(gate));
    let make = move |config: &HwConfig, _: Asked, _: &dyn Fn(&str)| -> Result<Box<dyn Device>, DeviceError> {
        let gate = gate.clone();
        let device = Hooked::new("gated", Fsim::new(config.clone(), config.memory_bytes())).before(move |access| {
            if access == HostAccess::Wait {
                // Nobody opens it any more when the test has failed.
                let _ = gate.lock().expect("no thread panics").recv();
            }
            Ok(())
        });
        Ok(Box::new(device))
    };
    let lends = Lends { open: Box::new(make), ..simulator(&small(), false, Arc::default()) };
    (start(loopback(), lends), open)
}

const SLICE: Duration = Duration::from_millis(20);

#[test]
fn other_frames_use_the_device_while_a_command_is_polled() {
    let (running, gate) = gated();
    let mut device = plain(&running);
    let first = device.submit(&Command::default()).expect("it is sent");
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(device.poll(first, SLICE).expect("it is polled"), None);
    }
    assert!(begun.elapsed() < within(2), "{:?}", begun.elapsed());
    // Another frame writes its inputs, more than a message, and submits.
    device.write(0, &[7; 1 << 20]).expect("it is sent");
    let second = device.submit(&Command::default()).expect("it is sent");
    assert_eq!(device.poll(second, SLICE).expect("it is polled"), None);
    gate.send(()).expect("the device waits");
    gate.send(()).expect("the device waits");
    // In the other order, and each once.
    device.wait(second).expect("it ends");
    assert!(device.poll(first, Duration::ZERO).expect("it has ended").is_some());
    for ticket in [first, second] {
        assert!(matches!(device.poll(ticket, SLICE), Err(DeviceError::UnknownTicket(_))));
    }
    let mut bytes = [0; 4];
    device.read((1 << 20) - 4, &mut bytes).expect("it is read");
    assert_eq!(bytes, [7; 4]);
}

#[test]
fn a_wait_and_a_read_behind_it_stop_with_their_work() {
    let (running, gate) = gated();
    let mut device = plain(&running);
    let ticket = device.submit(&Command::default()).expect("it is sent");
    for round in 0..2 {
        let work = Interrupt::alone();
        let stop = work.clone();
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            stop.stop();
        });
        let begun = Instant::now();
        let stopped = work.during(|| match round {
            0 => device.wait(ticket).map(drop),
            _ => device.read(0, &mut [0; 4]),
        });
        assert!(matches!(stopped, Err(DeviceError::Interrupted(_))), "{stopped:?}");
        assert!(begun.elapsed() < within(2), "{:?}", begun.elapsed());
        stopper.join().expect("it stops the work");
    }
    // The command goes on; the device can be used once it has ended.
    gate.send(()).expect("the device waits");
    device.flush().expect("it answers");
    assert!(matches!(device.wait(ticket), Err(DeviceError::UnknownTicket(_))));
    gate.send(()).expect("the device waits");
    device.run(&Command::default()).expect("it runs");
}

#[test]
fn requests_that_fill_the_connection_are_taken_once_a_command_has_ended() {
    let (running, gate) = gated();
    let mut device = plain(&running);
    let ticket = device.submit(&Command::default()).expect("it is sent");
    assert_eq!(device.poll(ticket, SLICE).expect("it is polled"), None);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        gate.send(()).expect("the device waits");
    });
    // More than what can be on its way.
    for _ in 0..8 {
        device.write(0, &vec![3; 8 << 20]).expect("it is sent");
    }
    opener.join().expect("it ends");
    device.wait(ticket).expect("it has ended");
    device.flush().expect("it answers");
}
