//! Programs in C on the devices of servers.

use tilewright::device::{DeviceKind, lends};
use tilewright_rpc::server::{Options, Running, Server, Tls};

use super::*;

const TOKEN: &str = "TILEWRIGHT_TOKEN";

fn server(token: Option<&str>, tls: Option<Tls>) -> Running {
    let config = HwConfig::load("1x8x8").expect("a preset");
    let options = Options {
        token: token.map(str::to_string),
        tls,
        ..Options::new("127.0.0.1:0".parse().expect("is an address"))
    };
    let lent = lends(DeviceKind::CSIM, config, 1).expect("it can be lent");
    Server::bind(options, lent).expect("it listens").start().expect("it starts")
}

/// The example of the page on the device of a server: with and without token and TLS, and through a tracker.
#[test]
fn a_network_answers_in_c_on_the_device_of_a_server() {
    let dir = tempfile::tempdir().expect("a folder");
    let [artifact, input, output] = network(dir.path());
    let program = dir.path().join("infer");
    compile(&here().join("../examples/c/infer.c"), &program);
    let infer = |device: &str, variables: &[(&str, &str)]| {
        let given = std::fs::File::open(&input).expect("it was written");
        let mut command = Command::new(&program);
        for name in [TOKEN, "TILEWRIGHT_TOKEN_FILE", "TILEWRIGHT_TLS_CERT", "TILEWRIGHT_INSECURE"] {
            command.env_remove(name);
        }
        command.arg(&artifact).arg(device).envs(variables.iter().copied()).stdin(given);
        command.output().expect("it runs")
    };
    let right = std::fs::read(&output).expect("it was written");
    let works = |device: &str, variables: &[(&str, &str)]| {
        let found = infer(device, variables);
        assert!(found.status.success(), "{device}: {}", String::from_utf8_lossy(&found.stderr));
        assert_eq!(found.stdout, right, "{device}");
    };
    let refused = |device: &str, variables: &[(&str, &str)], wanted: &str| {
        let found = infer(device, variables);
        let text = String::from_utf8_lossy(&found.stderr);
        assert!(found.status.code() == Some(1) && text.contains(wanted), "{text}");
    };
    let open = server(None, None);
    let device = |running: &Running| format!("remote:{}", running.address());
    works(&device(&open), &[]);
    let of = open.address();
    drop(open);
    refused(&format!("remote:{of}"), &[], "cannot be reached");
    refused("remote:nowhere", &[], "give HOST:PORT");

    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_string()]).expect("a certificate");
    let tls = Tls { certificate: certificate.cert.pem(), key: certificate.signing_key.serialize_pem() };
    let file = dir.path().join("cert.pem");
    std::fs::write(&file, &tls.certificate).expect("room");
    let file = file.display().to_string();
    let closed = server(Some("secret"), Some(tls));
    works(&device(&closed), &[(TOKEN, "secret"), ("TILEWRIGHT_TLS_CERT", &file)]);
    refused(&device(&closed), &[(TOKEN, "wrong"), ("TILEWRIGHT_TLS_CERT", &file)], "the token is wrong");
    refused(&device(&closed), &[(TOKEN, "secret")], "the connection to remote:");
    refused(&device(&closed), &[("TILEWRIGHT_TLS_CERT", "none.pem")], "none.pem");
    refused("tracker:127.0.0.1:1/model", &[], "tracker:127.0.0.1:1");
}
