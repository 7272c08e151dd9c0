//! Who is let in, and where a server listens.

use super::*;
use crate::client::Client;
use crate::server::Tls;

fn refused(running: &Running, access: &Access) -> String {
    match RemoteDevice::open(&endpoint(running), access, &small(), Asked::default(), &|_| ()) {
        Ok(_) => panic!("it was let in"),
        Err(error) => error.to_string().replace(&endpoint(running).to_string(), "SERVER"),
    }
}

fn token(token: &str) -> Access {
    Access { token: Some(token.into()), ..Access::default() }
}

#[test]
fn without_the_token_nobody_is_let_in() {
    let options = Options { token: Some("secret".into()), ..loopback() };
    let running = start(options, simulator(&small(), false, Arc::default()));
    let remedy = "set TILEWRIGHT_TOKEN, or TILEWRIGHT_TOKEN_FILE to the path of a file that has the server's token";
    assert_eq!(refused(&running, &Access::default()), format!("remote:SERVER: refuses: no token was given; {remedy}"));
    assert_eq!(refused(&running, &token("secre")), format!("remote:SERVER: refuses: the token is wrong; {remedy}"));
    log::has(&[" WARN ", ": refused, because the token is wrong"]);
    let client = Client::connect(&endpoint(&running), &token("wrong")).expect("it connects");
    assert!(client.describe().is_err() && client.ping().is_err());
    let device = RemoteDevice::open(&endpoint(&running), &token("secret"), &small(), Asked::default(), &|_| ());
    assert!(device.is_ok());
}

#[test]
fn another_configuration_is_refused_and_told() {
    let running = functional();
    let other = HwConfig::load("1x8x8").expect("is a preset");
    let Err(error) = open(&running, &other, Asked::default()) else { panic!("it was let in") };
    let wanted = format!(
        "remote:{}: refuses: the device has configuration 1x4x4 ({:016x}), not 1x8x8 ({:016x}); give its own with --hw, or use another server",
        endpoint(&running),
        small().hash(),
        other.hash()
    );
    assert_eq!(error.to_string(), wanted);
    let DeviceError::Tool { remedy, .. } = error else { panic!("another kind") };
    assert_eq!(remedy, "give its own with --hw, or use another server");
}

#[test]
fn servers_are_described() {
    let running = functional();
    let client = Client::connect(&endpoint(&running), &Access::default()).expect("it connects");
    client.ping().expect("it answers");
    let about = client.describe().expect("it answers");
    assert_eq!((about.device.as_str(), about.config_name.as_str()), ("fsim", "1x4x4"));
    assert_eq!((about.devices, about.lent, about.waiting), (1, 0, 0));
    assert_eq!(about.config, small().to_toml());
}

#[test]
fn a_server_is_not_open_to_the_network_by_accident() {
    let wide = || Options::new("0.0.0.0:0".parse().expect("is an address"));
    let bind = |options: Options| {
        let lends = simulator(&small(), false, Arc::default());
        Server::bind(options, lends).map(|_| ()).map_err(|error| error.to_string())
    };
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate");
    let tls = || Some(Tls { certificate: certificate.cert.pem(), key: certificate.signing_key.serialize_pem() });
    let missing = |what: &str| {
        Err(format!(
            "0.0.0.0:0 can be reached from other machines, and {what} is missing; give it, listen on 127.0.0.1, or give --insecure \
             on a network that you trust"
        ))
    };
    assert_eq!(bind(wide()), missing("a token (--token-file) and TLS (--tls-cert, --tls-key)"));
    assert_eq!(bind(Options { token: Some("t".into()), ..wide() }), missing("TLS (--tls-cert, --tls-key)"));
    assert_eq!(bind(Options { tls: tls(), ..wide() }), missing("a token (--token-file)"));
    assert_eq!(bind(Options { tls: tls(), token: Some("t".into()), ..wide() }), Ok(()));
    assert_eq!(bind(Options { insecure: true, ..wide() }), Ok(()));
    let wrong = Tls { certificate: "none".into(), key: "none".into() };
    assert!(bind(Options { tls: Some(wrong), ..loopback() }).unwrap_err().contains("docs/remote.md"));
}

#[test]
fn with_tls_the_certificate_is_checked() {
    let make = || rcgen::generate_simple_self_signed(["127.0.0.1".to_string()]).expect("a certificate");
    let (own, other) = (make(), make());
    let tls = Tls { certificate: own.cert.pem(), key: own.signing_key.serialize_pem() };
    let options = Options { tls: Some(tls), token: Some("secret".into()), ..loopback() };
    let running = start(options, simulator(&small(), false, Arc::default()));
    let with = |certificate: String| Access { certificate: Some(certificate), ..token("secret") };
    let mut device =
        RemoteDevice::open(&endpoint(&running), &with(own.cert.pem()), &small(), Asked::default(), &|_| ())
            .expect("it is let in");
    device.write(0, &[5; 100]).expect("it is written");
    let mut back = [0; 100];
    device.read(0, &mut back).expect("it is read");
    assert_eq!(back, [5; 100]);
    assert!(refused(&running, &with(other.cert.pem())).contains("cannot be reached"));
    let plain = refused(&running, &token("secret"));
    assert!(plain.starts_with("remote:SERVER: the connection to remote:SERVER ended: "), "{plain}");
}

#[test]
fn the_token_does_not_cross_the_network_unencrypted() {
    let far: Endpoint = "192.0.2.1:7878".parse().expect("is an address");
    let Err(error) = RemoteDevice::open(&far, &token("secret"), &small(), Asked::default(), &|_| ()) else {
        panic!("it connects")
    };
    assert_eq!(
        error.to_string(),
        "remote:192.0.2.1:7878: the token for remote:192.0.2.1:7878 would cross the network unencrypted; set TILEWRIGHT_TLS_CERT to \
         the server's certificate, or TILEWRIGHT_INSECURE=1 on a network that you trust"
    );
}
