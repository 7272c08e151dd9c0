//! Refusals as statuses: the reason is the message, the remedy is in the metadata.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// The metadata with the remedy, as UTF-8.
const REMEDY: &str = "remedy-bin";

/// The status that refuses a request.
pub(crate) fn refusal(code: Code, reason: impl Into<String>, remedy: &str) -> Status {
    let mut status = Status::new(code, reason);
    status.metadata_mut().insert_bin(REMEDY, MetadataValue::from_bytes(remedy.as_bytes()));
    status
}

/// What to do about a status, if it says so.
pub(crate) fn remedy(status: &Status) -> Option<String> {
    let bytes = status.metadata().get_bin(REMEDY)?.to_bytes().ok()?;
    String::from_utf8(bytes.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_and_remedy_are_apart() {
        let status = refusal(Code::Aborted, "a; b", "c; ü");
        assert_eq!((status.message(), remedy(&status).as_deref()), ("a; b", Some("c; ü")));
        assert_eq!(remedy(&Status::aborted("a; b")), None);
    }
}
