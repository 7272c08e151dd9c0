//! Time of a round trip over the loopback interface, and speed of a large tensor in both directions.

use std::time::{Duration, Instant};

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Command, Device};
use tilewright_rpc::client::{Asked, Client};
use tilewright_rpc::server::{Lends, Options, Server};
use tilewright_rpc::{Access, Endpoint, RemoteDevice};
use tilewright_runtime::Registry;
use tilewright_sim::Fsim;

const TRIPS: usize = 5000;
const BYTES: usize = 100_000_000;
const TIMES: usize = 7;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn trips(mut trip: impl FnMut()) -> String {
    let time = |trip: &mut dyn FnMut()| {
        let begun = Instant::now();
        trip();
        begun.elapsed()
    };
    (0..200).for_each(|_| trip());
    let mut times: Vec<Duration> = (0..TRIPS).map(|_| time(&mut trip)).collect();
    times.sort_unstable();
    let micros = |at: usize| times[at].as_secs_f64() * 1e6;
    format!("{:.0} us (90 % within {:.0} us)", micros(TRIPS / 2), micros(TRIPS * 9 / 10))
}

fn speed(times: Vec<Duration>) -> String {
    format!("{:.2} GB/s", BYTES as f64 / median(times).as_secs_f64() / 1e9)
}

fn main() {
    let config = HwConfig::load("1x16x16").expect("is a preset");
    let open = |config: &HwConfig, _: Asked, _: &dyn Fn(&str)| -> Result<Box<dyn Device>, _> {
        Ok(Box::new(Fsim::new(config.clone(), config.memory_bytes())))
    };
    let lends = Lends {
        name: "fsim".into(),
        config: config.clone(),
        devices: 1,
        disposable: true,
        open: Box::new(open),
        functions: Registry::new(),
        native: None,
    };
    let listen = Options::new(Endpoint { host: "127.0.0.1".into(), port: 0 });
    let running = Server::bind(listen, lends).expect("it listens").start().expect("it starts");
    let at = Endpoint { host: "127.0.0.1".into(), port: running.address().port() };
    let client = Client::connect(&at, &Access::default()).expect("it connects");
    println!("request for nothing                {}", trips(|| client.ping().expect("it answers")));
    let mut device = RemoteDevice::open(&at, &Access::default(), &config, Asked::default(), &|_| ()).expect("a device");
    println!("nothing in a session               {}", trips(|| device.flush().expect("it answers")));
    let command = Command::default();
    let empty = trips(|| drop(device.run(&command).expect("it runs")));
    println!("run of an empty program            {empty}");

    let data: Vec<u8> = (0..BYTES).map(|at| (at >> 3) as u8).collect();
    let mut back = vec![0; BYTES];
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let begun = Instant::now();
        device.write(0, &data).expect("it is written");
        device.flush().expect("it is written");
        written.push(begun.elapsed());
        let begun = Instant::now();
        device.read(0, &mut back).expect("it is read");
        read.push(begun.elapsed());
        assert!(back == data);
        back.fill(0);
    }
    println!("write of 100 MB, until it is done  {}", speed(written));
    println!("read of 100 MB                     {}", speed(read));
}
