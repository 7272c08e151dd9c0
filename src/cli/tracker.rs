//! `tracker`: hands out the devices of several servers by kind.

use anyhow::Result;
use serde_json::json;
use tilewright::text_table::{Align, table};
use tilewright_rpc::Access;
use tilewright_rpc::endpoint::Endpoint;
use tilewright_rpc::server::Options;
use tilewright_rpc::tracker::{self, Listed, TrackerClient};

use super::serve::{self, Listen};
use super::{Verdict, write_or_print};

/// Where it listens without `--listen`.
const LISTEN: &str = "127.0.0.1:7879";

/// Arguments of `tracker`.
#[derive(clap::Args)]
pub struct Tracker {
    #[command(flatten)]
    listen: Listen,
    /// Servers and clients at the same time
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_sessions: u16,
    /// Print the servers of a tracker that runs there, instead of running one
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["listen", "token_file", "tls_cert", "insecure"])]
    list: Option<Endpoint>,
    /// With --list, print one JSON object on standard output
    #[arg(long, requires = "list")]
    json: bool,
}

impl Tracker {
    /// Prints the address, then hands out devices until the process ends.
    pub fn run(self) -> Result<Verdict> {
        if let Some(at) = &self.list {
            let servers = TrackerClient::connect(at, &Access::from_environment()?)?.list()?;
            let text = if self.json { format!("{}\n", json(&servers)) } else { text(&servers) };
            write_or_print(None, text.as_bytes())?;
            return Ok(Verdict::Fine);
        }
        serve::log();
        let limits = tracker::limits(self.max_sessions.into());
        let options = Options { limits, ..self.listen.options(LISTEN)? };
        let running = tracker::bind(options)?.start()?;
        write_or_print(None, format!("{}\n", running.address()).as_bytes())?;
        running.wait()?;
        Ok(Verdict::Fine)
    }
}

fn json(servers: &[Listed]) -> serde_json::Value {
    let server = |listed: &Listed| {
        let of = &listed.station;
        json!({ "kind": of.kind, "address": of.address, "device": of.device, "hw": of.config_name, "devices": of.devices,
                "lent": listed.lent, "waiting": listed.waiting })
    };
    json!({ "servers": servers.iter().map(server).collect::<Vec<_>>() })
}

fn text(servers: &[Listed]) -> String {
    if servers.is_empty() {
        return "no server is registered\n".into();
    }
    let head = ["kind", "address", "device", "hw", "devices", "lent", "waiting"].map(String::from).to_vec();
    let row = |listed: &Listed| {
        let of = listed.station.clone();
        let counts = [of.devices, listed.lent, listed.waiting].map(|count| count.to_string());
        [vec![of.kind, of.address, of.device, of.config_name], counts.to_vec()].concat()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(servers.iter().map(row)).collect();
    let (left, right) = (Align::Left, Align::Right);
    table(&[left, left, left, left, right, right, right], &rows)
}
