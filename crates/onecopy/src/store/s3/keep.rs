//! When a credential of AWS is another one, and what to say where it has expired.

use reqsign_aws_v4::Credential;

use super::super::credentials::{self, Kept};
use super::super::http1::Failure;
use crate::error::ErrorKind;

/// A credential that requests were signed with.
pub(super) type Held = credentials::Held<Credential>;

/// The credential that requests are signed with.
pub(super) type Keep = credentials::Keep<Credential>;

impl Kept for Credential {
    fn is(&self, other: &Self) -> bool {
        self.access_key_id == other.access_key_id
            && self.secret_access_key == other.secret_access_key
            && self.session_token == other.session_token
    }

    fn expired() -> Failure {
        expired()
    }
}

/// The credentials are past their time, and there are no others.
pub(super) fn expired() -> Failure {
    Failure::new(
        ErrorKind::Denied,
        "expired_token",
        "the credentials have expired",
    )
    .with_help("log in again (aws sso login), or set fresh keys and session token")
}
