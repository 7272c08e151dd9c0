//! Checks tokens.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tonic::service::interceptor::InterceptedService;
use tonic::{Code, Request, Status};

use super::peer::Peer;
use crate::refusal::refusal;

/// Lets clients in.
#[derive(Clone)]
pub(crate) struct Guard {
    /// The digest of what the header must be. Digests have the same length, so that a comparison tells nothing about
    /// the token's.
    wanted: Option<[u8; 32]>,
}

impl Guard {
    pub fn new(token: Option<&str>) -> Guard {
        Guard { wanted: token.map(|token| Sha256::digest(format!("Bearer {token}")).into()) }
    }

    /// The service behind this guard.
    pub fn before<S>(
        self,
        service: S,
    ) -> InterceptedService<S, impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone> {
        InterceptedService::new(service, move |request| self.check(request))
    }

    /// Refuses a request without the token.
    pub fn check(&self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(wanted) = &self.wanted else { return Ok(request) };
        let given = request.metadata().get("authorization");
        let digest: [u8; 32] = Sha256::digest(given.map_or(&[][..], |given| given.as_bytes())).into();
        if bool::from(digest.ct_eq(wanted)) {
            return Ok(request);
        }
        let what = if given.is_some() { "the token is wrong" } else { "no token was given" };
        tracing::warn!("{}: refused, because {what}", Peer::of(&request));
        let remedy = "set TILEWRIGHT_TOKEN, or TILEWRIGHT_TOKEN_FILE to the path of a file that has the server's token";
        Err(refusal(Code::Unauthenticated, what, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_let_in() {
        let ask = |guard: &Guard, header: Option<&str>| {
            let mut request = Request::new(());
            if let Some(header) = header {
                request.metadata_mut().insert("authorization", header.parse().expect("is a header"));
            }
            guard.check(request).map(|_| ()).map_err(|status| status.message().to_string())
        };
        let guard = Guard::new(Some("right"));
        assert_eq!(ask(&guard, Some("Bearer right")), Ok(()));
        assert_eq!(ask(&guard, None), Err("no token was given".into()));
        for wrong in ["", "right", "Bearer", "Bearer righ", "Bearer rightt", "bearer right", "Bearer  right"] {
            assert_eq!(ask(&guard, Some(wrong)), Err("the token is wrong".into()), "{wrong:?}");
        }
        assert_eq!(ask(&Guard::new(None), None), Ok(()));
    }
}
