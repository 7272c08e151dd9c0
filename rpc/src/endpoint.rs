//! Where a server is, and what a client needs to be let in.

use std::net::IpAddr;
use std::path::PathBuf;

/// A server's address: `HOST:PORT`, with brackets around an IPv6 address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A text that is no `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address; give HOST:PORT, such as 127.0.0.1:7878, board.local:7878 or [::1]:7878")]
pub struct EndpointError {
    /// The text.
    pub text: String,
}

impl std::str::FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Endpoint, EndpointError> {
        let wrong = || EndpointError { text: text.to_string() };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let in_brackets = bare.is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !in_brackets && (host.is_empty() || !host.chars().all(is_name)) {
            return Err(wrong());
        }
        Ok(Endpoint { host: bare.unwrap_or(host).to_string(), port })
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Endpoint { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl Endpoint {
    /// Whether only programs of the same machine can be at this address.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Who lends a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lender {
    /// A server.
    Server(Endpoint),
    /// A tracker, which chooses a server that lends devices of a kind.
    Tracker(Endpoint, String),
}

/// A text that is no lender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LenderError {
    /// Its address is none.
    #[error("remote: {0}")]
    Server(EndpointError),
    /// A tracker's address is none.
    #[error("tracker: {0}, and a kind: tracker:HOST:PORT/KIND")]
    Tracker(EndpointError),
    /// A tracker without a kind.
    #[error(
        "{0:?} names no kind of devices; give tracker:HOST:PORT/KIND, with one of the kinds that `tilewright tracker --list HOST:PORT` prints"
    )]
    Kind(String),
}

impl std::str::FromStr for Lender {
    type Err = LenderError;

    fn from_str(text: &str) -> Result<Lender, LenderError> {
        let Some(tracker) = text.strip_prefix("tracker:") else {
            let server = text.strip_prefix("remote:").unwrap_or(text);
            return server.parse().map(Lender::Server).map_err(LenderError::Server);
        };
        let (address, kind) = tracker.split_once('/').unwrap_or((tracker, ""));
        let address = address.parse().map_err(LenderError::Tracker)?;
        match is_kind(kind) {
            true => Ok(Lender::Tracker(address, kind.to_string())),
            false => Err(LenderError::Kind(text.to_string())),
        }
    }
}

impl std::fmt::Display for Lender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lender::Server(server) => write!(f, "remote:{server}"),
            Lender::Tracker(tracker, kind) => write!(f, "tracker:{tracker}/{kind}"),
        }
    }
}

impl From<Endpoint> for Lender {
    fn from(server: Endpoint) -> Lender {
        Lender::Server(server)
    }
}

/// Environment variable with the token.
pub const TOKEN: &str = "TILEWRIGHT_TOKEN";
/// Environment variable with the path of a file that has the token.
pub const TOKEN_FILE: &str = "TILEWRIGHT_TOKEN_FILE";
/// Environment variable with the path of the certificate that servers are checked against; set, it turns TLS on.
pub const CERTIFICATE: &str = "TILEWRIGHT_TLS_CERT";
/// Environment variable that allows to send the token without TLS beyond this machine, if it is `1`.
pub const INSECURE: &str = "TILEWRIGHT_INSECURE";

/// What a client shows a server, and asks of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The token that the server wants, if it wants one.
    pub token: Option<String>,
    /// The certificate, in PEM, that the server's must be or be signed by; without it, there is no TLS.
    pub certificate: Option<String>,
    /// Whether to send the token unencrypted beyond this machine.
    pub insecure: bool,
}

/// Why a client's or server's secrets are not there.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A file cannot be read.
    #[error("{what} {path}: {source}")]
    File {
        /// The variable or option that names the file.
        what: String,
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A token that cannot be sent.
    #[error("{what} has no token of 1 to 512 visible ASCII characters; make one with: openssl rand -hex 32")]
    Token {
        /// The variable, option or file.
        what: String,
    },
}

/// Reads a file that an option or a variable names.
pub(crate) fn read(what: &str, path: &std::path::Path) -> Result<String, AccessError> {
    std::fs::read_to_string(path).map_err(|source| AccessError::File {
        what: what.to_string(),
        path: path.display().to_string(),
        source,
    })
}

/// Checks a token's characters; white space around it is dropped.
pub(crate) fn token(what: &str, text: &str) -> Result<String, AccessError> {
    let text = text.trim();
    match (1..=512).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_string()),
        false => Err(AccessError::Token { what: what.to_string() }),
    }
}

/// A token that a caller gives; white space around it is dropped.
///
/// # Errors
/// [`AccessError::Token`].
pub fn given_token(text: &str) -> Result<String, AccessError> {
    token("the given token", text)
}

/// The token of the environment: [`TOKEN`], or the file that [`TOKEN_FILE`] names.
///
/// # Errors
/// [`AccessError`].
pub fn token_from_environment() -> Result<Option<String>, AccessError> {
    if let Some(text) = variable(TOKEN) {
        return token(TOKEN, &text).map(Some);
    }
    let file = variable(TOKEN_FILE).map(PathBuf::from);
    file.map(|path| token(&format!("{TOKEN_FILE} {}", path.display()), &read(TOKEN_FILE, &path)?)).transpose()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

impl Access {
    /// What the environment's variables say.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn from_environment() -> Result<Access, AccessError> {
        let certificate = variable(CERTIFICATE).map(|path| read(CERTIFICATE, path.as_ref())).transpose()?;
        Ok(Access {
            token: token_from_environment()?,
            certificate,
            insecure: variable(INSECURE).is_some_and(|text| text == "1"),
        })
    }
}

impl Access {
    /// The same with parts that a caller gives in place of the environment's: a token, the path of a certificate, and
    /// whether the token may cross unencrypted.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn with(
        self,
        token: Option<&str>,
        certificate: Option<&std::path::Path>,
        insecure: Option<bool>,
    ) -> Result<Access, AccessError> {
        let token = token.map(given_token).transpose()?;
        let certificate = certificate.map(|path| read("certificate", path)).transpose()?;
        Ok(Access {
            token: token.or(self.token),
            certificate: certificate.or(self.certificate),
            insecure: insecure.unwrap_or(self.insecure),
        })
    }
}

/// Whether a text can name a kind of devices.
pub fn is_kind(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=64).contains(&text.len()) && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_and_others_are_refused() {
        for (text, host, loopback) in [
            ("127.0.0.1:7878", "127.0.0.1", true),
            ("localhost:1", "localhost", true),
            ("[::1]:65535", "::1", true),
            ("board-3.local:80", "board-3.local", false),
            ("10.0.0.7:80", "10.0.0.7", false),
        ] {
            let endpoint: Endpoint = text.parse().expect("is an address");
            assert_eq!((endpoint.host.as_str(), endpoint.is_loopback()), (host, loopback));
            assert_eq!(endpoint.to_string(), text);
        }
        for text in ["", "host", ":80", "host:", "host:99999", "::1:80", "[host]:80", "a b:1", "h/x:1", "user@h:1"] {
            assert_eq!(text.parse::<Endpoint>(), Err(EndpointError { text: text.into() }), "{text}");
        }
    }

    #[test]
    fn lenders_read_back_and_others_are_refused() {
        for text in ["remote:board.local:80", "tracker:[::1]:7879/1x16x16", "tracker:10.0.0.7:80/ulx3s-85f_2.1"] {
            assert_eq!(text.parse::<Lender>().expect("is a lender").to_string(), text);
        }
        for (text, message) in [
            ("remote:here", "remote: \"here\" is not an address; give HOST:PORT"),
            ("tracker:here/k", "tracker: \"here\" is not an address; give HOST:PORT"),
            ("tracker:h:1", "\"tracker:h:1\" names no kind of devices; give tracker:HOST:PORT/KIND"),
            ("tracker:h:1/a b", "\"tracker:h:1/a b\" names no kind of devices"),
        ] {
            let error = text.parse::<Lender>().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn tokens_are_visible_characters() {
        assert_eq!(token("f", " abc\n").unwrap(), "abc");
        let wrong = "f has no token of 1 to 512 visible ASCII characters; make one with: openssl rand -hex 32";
        for text in ["", "\n", "a b", "ü", &"x".repeat(513)] {
            assert_eq!(token("f", text).unwrap_err().to_string(), wrong);
        }
    }
}
