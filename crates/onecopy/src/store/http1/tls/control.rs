//! Records that carry no payload: alerts, tickets, key updates.

use rustls::{AlertDescription, ContentType, HandshakeType};

use super::breach::Breach;
use super::open::Opener;
use super::record::Form;
use super::session::Session;

/// Records without payload in a row, at most: a server could keep us busy for ever with less than that.
/// BoringSSL allows 32 empty records, and as many key updates.
const BARREN_MAX: u32 = 32;

/// A handshake message at most. A ticket with the longest identity and the longest extensions would be twice as long;
/// no server sends such a one, and rustls takes none longer than this either.
const MESSAGE_MAX: usize = 0xffff;

/// Type and length in front of a handshake message.
const MESSAGE_HEADER: usize = 4;

/// Whether the other side goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlook {
    Open,
    /// It said that nothing follows.
    Closed,
}

/// What is known between one such record and the next.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// A handshake message that is not whole yet.
    message: Vec<u8>,
    /// Records without payload since the last with some.
    barren: u32,
    /// Whether the other side asked for a key update of ours. Due before the next request (RFC 8446, 4.6.3).
    is_update_due: bool,
}

impl Control {
    /// Whether a key update of ours is due; it is taken for made.
    pub(super) fn take_update_due(&mut self) -> bool {
        std::mem::take(&mut self.is_update_due)
    }

    /// Notes a record of `len` bytes of payload, which may be none.
    pub(super) fn payload(&mut self, len: usize) -> Result<(), Breach> {
        if !self.message.is_empty() {
            return Err(Breach::unexpected(
                "payload in the middle of a handshake message",
            ));
        }
        if len == 0 {
            return self.barren();
        }
        self.barren = 0;
        Ok(())
    }

    /// Takes a record that is no payload.
    pub(super) fn take(
        &mut self,
        kind: ContentType,
        content: &[u8],
        opener: &mut Opener,
        session: &mut dyn Session,
    ) -> Result<Outlook, Breach> {
        self.barren()?;
        match kind {
            ContentType::Alert if self.message.is_empty() => self.alert(content, opener.form()),
            ContentType::Handshake => {
                self.handshake(content, opener, session)?;
                Ok(Outlook::Open)
            }
            _ => Err(Breach::unexpected(format!("a record of type {kind:?}"))),
        }
    }

    fn barren(&mut self) -> Result<(), Breach> {
        self.barren += 1;
        if self.barren > BARREN_MAX {
            return Err(Breach::unexpected(format!(
                "more than {BARREN_MAX} records in a row without payload"
            )));
        }
        Ok(())
    }

    fn alert(&mut self, content: &[u8], form: Form) -> Result<Outlook, Breach> {
        const WARNING: u8 = 1;
        let &[level, description] = content else {
            return Err(Breach::new(
                AlertDescription::DecodeError,
                format!("an alert of {} bytes", content.len()),
            ));
        };
        let description = AlertDescription::from(description);
        let is_passing = match form {
            // In TLS 1.3 the level means nothing, and only these two do not end everything (RFC 8446, 6).
            Form::Tls13 => description == AlertDescription::UserCanceled,
            Form::Tls12Explicit | Form::Tls12Implicit => level == WARNING,
        };
        match description {
            AlertDescription::CloseNotify => Ok(Outlook::Closed),
            _ if is_passing => Ok(Outlook::Open),
            _ => Err(Breach::received(description)),
        }
    }

    fn handshake(
        &mut self,
        content: &[u8],
        opener: &mut Opener,
        session: &mut dyn Session,
    ) -> Result<(), Breach> {
        if opener.form() != Form::Tls13 {
            return Err(Breach::unexpected(
                "the server wants to negotiate anew, which TLS 1.2 allows and onecopy does not",
            ));
        }
        if content.is_empty() {
            return Err(Breach::unexpected("a handshake record without content"));
        }
        self.message.extend(content);
        let whole = std::mem::take(&mut self.message);
        let mut rest = whole.as_slice();
        while let Some((kind, payload, next)) = message(rest)? {
            rest = next;
            match kind {
                HandshakeType::NewSessionTicket => session.keep_ticket(payload)?,
                HandshakeType::KeyUpdate => {
                    if !rest.is_empty() {
                        return Err(Breach::unexpected("a message across a change of keys"));
                    }
                    self.is_update_due |= asks_for_update(payload)?;
                    *opener = session.next_to_open()?;
                }
                _ => {
                    return Err(Breach::unexpected(format!(
                        "the handshake message {kind:?} after the handshake"
                    )));
                }
            }
        }
        self.message.extend(rest);
        Ok(())
    }
}

/// The first handshake message in `bytes`, and what follows it; none where it is not whole yet.
#[expect(clippy::type_complexity, reason = "read at one place")]
fn message(bytes: &[u8]) -> Result<Option<(HandshakeType, &[u8], &[u8])>, Breach> {
    let &[kind, high, middle, low, ref rest @ ..] = bytes else {
        return Ok(None);
    };
    let len = u32::from_be_bytes([0, high, middle, low]);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len > MESSAGE_MAX {
        return Err(Breach::new(
            AlertDescription::DecodeError,
            format!("a handshake message of {len} bytes, where {MESSAGE_MAX} are allowed"),
        ));
    }
    Ok(rest
        .split_at_checked(len)
        .map(|(payload, next)| (HandshakeType::from(kind), payload, next)))
}

/// What a key update says: whether it asks for one of ours.
fn asks_for_update(payload: &[u8]) -> Result<bool, Breach> {
    match payload {
        [0] => Ok(false),
        [1] => Ok(true),
        [_] => Err(Breach::new(
            AlertDescription::IllegalParameter,
            "a key update that neither asks for one nor does not",
        )),
        _ => Err(Breach::new(
            AlertDescription::DecodeError,
            format!("a key update of {} bytes", payload.len()),
        )),
    }
}

/// A key update of ours, which asks for none.
pub(super) fn key_update() -> [u8; MESSAGE_HEADER + 1] {
    [HandshakeType::KeyUpdate.into(), 0, 0, 1, 0]
}
