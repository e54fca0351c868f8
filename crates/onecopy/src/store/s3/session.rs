//! Sessions of S3 Express One Zone: short credentials for one directory bucket.

use std::time::Duration;

use reqsign_aws_v4::Credential;

use super::super::http1::Failure;
use super::list;

/// A session lasts five minutes; it is renewed a minute before its end.
pub(super) const MARGIN: Duration = Duration::from_secs(60);

/// Reads the answer to CreateSession.
pub(super) fn read(text: &[u8]) -> Result<Credential, Failure> {
    let bad = |why: &str| Failure::corrupt(format!("the session is not what S3 sends: {why}"));
    let mut credential = Credential::default();
    for (path, text) in list::leaves(text).map_err(|why| bad(&why))? {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names.as_slice() {
            [_, "Credentials", "AccessKeyId"] => credential.access_key_id = text,
            [_, "Credentials", "SecretAccessKey"] => credential.secret_access_key = text,
            [_, "Credentials", "SessionToken"] => credential.session_token = Some(text),
            [_, "Credentials", "Expiration"] => {
                let end = text.parse().map_err(|_odd| bad("its end is no time"))?;
                credential.expires_in = Some(end);
            }
            _ => {}
        }
    }
    let is_whole = !credential.access_key_id.is_empty()
        && !credential.secret_access_key.is_empty()
        && credential.session_token.is_some();
    if !is_whole {
        return Err(bad("a part of it is missing"));
    }
    Ok(credential)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "<?xml version=\"1.0\"?><CreateSessionResult xmlns=\"x\"><Credentials>
        <SessionToken>TOKEN</SessionToken><SecretAccessKey>SECRET</SecretAccessKey>
        <AccessKeyId>ID</AccessKeyId><Expiration>2023-11-27T22:59:58Z</Expiration></Credentials></CreateSessionResult>";

    #[test]
    fn the_parts_are_read() {
        let session = read(TEXT.as_bytes()).unwrap();
        assert_eq!(
            (&*session.access_key_id, &*session.secret_access_key),
            ("ID", "SECRET")
        );
        assert_eq!(session.session_token.as_deref(), Some("TOKEN"));
        assert_eq!(session.expires_in.unwrap().as_second(), 1_701_125_998);
    }

    #[test]
    fn what_is_no_session_is_an_error_and_shows_no_secret() {
        for (from, to) in [
            ("AccessKeyId", "Other"),
            ("<SessionToken>TOKEN</SessionToken>", ""),
            ("2023-11-27T22:59:58Z", "soon"),
            ("</CreateSessionResult>", ""),
        ] {
            let failure = read(TEXT.replace(from, to).as_bytes()).unwrap_err();
            assert_eq!(failure.cause, "bad_answer");
            assert!(!failure.why.contains("SECRET"));
        }
    }

    #[test]
    fn no_damage_makes_it_panic() {
        for at in 0..TEXT.len() {
            for byte in [0, b'<', b'>', b'/', b'&', b'9', 0xff] {
                let mut damaged = TEXT.as_bytes().to_owned();
                damaged[at] = byte;
                let _whole = read(&damaged);
                let _cut = read(&damaged[..at]);
            }
        }
    }
}
