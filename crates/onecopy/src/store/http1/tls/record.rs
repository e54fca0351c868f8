//! The form of a protected record.

use rustls::{AlertDescription, ContentType};

use super::breach::Breach;

/// Type, version, length.
pub(super) const HEADER_LEN: usize = 5;

/// Content of one record at most (RFC 8446, 5.1; RFC 5246, 6.2.1).
pub(super) const CONTENT_MAX: usize = 1 << 14;

/// The tag of each of the three ciphers.
pub(super) const TAG_LEN: usize = 16;

pub(super) const NONCE_LEN: usize = 12;

/// The longest record of any form: a header, and a payload of TLS 1.2 with GCM.
pub(super) const RECORD_MAX: usize = HEADER_LEN + Form::Tls12Explicit.payload_max();

/// On the wire, TLS 1.2 and 1.3 bear the same number.
const WIRE_VERSION: [u8; 2] = [3, 3];

/// How a record is laid out around what it protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `content, type, padding` are protected together; the nonce is counted (RFC 8446, 5.2 and 5.3).
    Tls13,
    /// Eight bytes of the nonce stand in front; the type is in the header (RFC 5288).
    Tls12Explicit,
    /// The nonce is counted as in TLS 1.3; the type is in the header (RFC 7905).
    Tls12Implicit,
}

impl Form {
    /// Bytes of the nonce in front of what is protected.
    pub(super) const fn prefix_len(self) -> usize {
        match self {
            Self::Tls12Explicit => 8,
            Self::Tls13 | Self::Tls12Implicit => 0,
        }
    }

    /// Bytes that are protected with the content, at least.
    pub(super) const fn inner_extra(self) -> usize {
        match self {
            Self::Tls13 => 1,
            Self::Tls12Explicit | Self::Tls12Implicit => 0,
        }
    }

    /// What a payload is longer than what it protects.
    pub(super) const fn overhead(self) -> usize {
        self.prefix_len() + TAG_LEN
    }

    /// The longest payload. TLS 1.3 would allow 255 bytes more to ciphers that expand more than these three, and an
    /// inner plaintext of more than 2^14 + 1 is refused anyway.
    const fn payload_max(self) -> usize {
        CONTENT_MAX + self.inner_extra() + self.overhead()
    }

    /// Reads a header: the type that it names, and the length of the payload behind it.
    pub(super) fn header(self, header: [u8; HEADER_LEN]) -> Result<Header, Breach> {
        let [kind, major, minor, high, low] = header;
        let len = usize::from(u16::from_be_bytes([high, low]));
        let kind = ContentType::from(kind);
        let is_known = match self {
            // After the handshake, everything is protected and poses as application data.
            Self::Tls13 => kind == ContentType::ApplicationData,
            Self::Tls12Explicit | Self::Tls12Implicit => is_content(kind),
        };
        if !is_known {
            return Err(Breach::unexpected(format!("a record of type {kind:?}")));
        }
        if [major, minor] != WIRE_VERSION {
            return Err(Breach::new(
                AlertDescription::ProtocolVersion,
                format!("a record of version {major}.{minor}"),
            ));
        }
        if len > self.payload_max() {
            return Err(Breach::new(
                AlertDescription::RecordOverflow,
                format!(
                    "a record of {len} bytes, where {} are allowed",
                    self.payload_max()
                ),
            ));
        }
        let Some(inner_len) = len.checked_sub(self.overhead()) else {
            return Err(too_short(len));
        };
        if inner_len < self.inner_extra() {
            return Err(too_short(len));
        }
        Ok(Header {
            bytes: header,
            kind,
            len,
        })
    }

    /// The header of a record that protects `content_len` bytes of `kind`.
    pub(super) fn header_for(self, kind: ContentType, content_len: usize) -> [u8; HEADER_LEN] {
        let kind = match self {
            Self::Tls13 => ContentType::ApplicationData,
            Self::Tls12Explicit | Self::Tls12Implicit => kind,
        };
        let len = content_len + self.inner_extra() + self.overhead();
        let [high, low] = length_bytes(len);
        let [major, minor] = WIRE_VERSION;
        [kind.into(), major, minor, high, low]
    }

    /// What is authenticated beside the protected bytes (RFC 8446, 5.2; RFC 5246, 6.2.3.3).
    pub(super) fn associated(self, seq: u64, header: [u8; HEADER_LEN]) -> Associated {
        let [kind, major, minor, high, low] = header;
        if self == Self::Tls13 {
            return Associated {
                bytes: [kind, major, minor, high, low, 0, 0, 0, 0, 0, 0, 0, 0],
                len: HEADER_LEN,
            };
        }
        let payload_len = usize::from(u16::from_be_bytes([high, low]));
        let [high, low] = length_bytes(payload_len.saturating_sub(self.overhead()));
        let [a, b, c, d, e, f, g, h] = seq.to_be_bytes();
        Associated {
            bytes: [a, b, c, d, e, f, g, h, kind, major, minor, high, low],
            len: 13,
        }
    }
}

/// A record's header, once it was found to be allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    /// As it came.
    pub(super) bytes: [u8; HEADER_LEN],
    /// The type that it names: in TLS 1.3 never the real one.
    pub(super) kind: ContentType,
    /// Length of the payload.
    pub(super) len: usize,
}

impl Header {
    /// Length of the whole record.
    pub(super) fn record_len(&self) -> usize {
        HEADER_LEN + self.len
    }
}

/// Additional data of the AEAD.
#[derive(Debug)]
pub(super) struct Associated {
    bytes: [u8; 13],
    len: usize,
}

impl AsRef<[u8]> for Associated {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The counted nonce: the number of the record, over the fixed part (RFC 8446, 5.3).
pub(super) fn counted_nonce(iv: &[u8; NONCE_LEN], seq: u64) -> [u8; NONCE_LEN] {
    let mut nonce = *iv;
    for (byte, seq) in nonce.iter_mut().skip(4).zip(seq.to_be_bytes()) {
        *byte ^= seq;
    }
    nonce
}

fn is_content(kind: ContentType) -> bool {
    matches!(
        kind,
        ContentType::ApplicationData | ContentType::Alert | ContentType::Handshake
    )
}

/// The real type, and the length, of what was in a record of TLS 1.3: the type is the last byte that is not zero, and
/// what follows is padding.
pub(super) fn unpad(inner: &[u8]) -> Result<(ContentType, usize), Breach> {
    let Some(at) = inner.iter().rposition(|byte| *byte != 0) else {
        return Err(Breach::unexpected("a record of nothing but padding"));
    };
    let kind = ContentType::from(inner[at]);
    if !is_content(kind) {
        return Err(Breach::unexpected(format!("a record of type {kind:?}")));
    }
    Ok((kind, at))
}

fn too_short(len: usize) -> Breach {
    Breach::new(
        AlertDescription::DecodeError,
        format!("a record of {len} bytes is too short to hold its tag"),
    )
}

/// A length of at most 2^14 and a little.
fn length_bytes(len: usize) -> [u8; 2] {
    u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(form: Form, kind: u8, version: [u8; 2], len: usize) -> Result<Header, Breach> {
        let [high, low] = length_bytes(len);
        form.header([kind, version[0], version[1], high, low])
    }

    #[test]
    fn lengths_are_held_to_the_byte() {
        // Form, shortest payload, longest payload.
        let table = [
            (Form::Tls13, 17, 16_401),
            (Form::Tls12Explicit, 24, 16_408),
            (Form::Tls12Implicit, 16, 16_400),
        ];
        for (form, least, most) in table {
            for len in [least, most] {
                let header = payload(form, 23, [3, 3], len).unwrap();
                assert_eq!(header.record_len(), len + 5);
            }
            assert!(payload(form, 23, [3, 3], least - 1).is_err(), "{form:?}");
            assert!(payload(form, 23, [3, 3], most + 1).is_err(), "{form:?}");
            assert!(payload(form, 23, [3, 3], 0).is_err());
            assert!(payload(form, 23, [3, 3], 65_535).is_err());
        }
        assert_eq!(RECORD_MAX, 16_413);
    }

    #[test]
    fn only_known_types_of_the_right_version_are_read() {
        for kind in 0..=255 {
            let is_allowed = |form| payload(form, kind, [3, 3], 100).is_ok();
            assert_eq!(is_allowed(Form::Tls13), kind == 23, "{kind}");
            for form in [Form::Tls12Explicit, Form::Tls12Implicit] {
                assert_eq!(is_allowed(form), (21..=23).contains(&kind), "{kind}");
            }
        }
        for version in [[3, 1], [3, 4], [2, 3], [0, 0]] {
            assert!(payload(Form::Tls13, 23, version, 100).is_err());
        }
    }

    #[test]
    fn the_type_is_the_last_byte_that_is_not_zero() {
        let data = ContentType::ApplicationData;
        assert_eq!(unpad(&[1, 2, 23]).unwrap(), (data, 2));
        assert_eq!(unpad(&[0, 0, 23, 0, 0]).unwrap(), (data, 2));
        assert_eq!(unpad(&[23]).unwrap(), (data, 0));
        assert_eq!(unpad(&[2, 40, 21, 0]).unwrap(), (ContentType::Alert, 2));
        for inner in [&[0, 0, 0][..], &[], &[1, 20], &[1, 24], &[1, 255]] {
            assert!(unpad(inner).is_err(), "{inner:?}");
        }
    }

    #[test]
    fn nonces_and_associated_data_are_those_of_the_standard() {
        let iv = [0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        assert_eq!(counted_nonce(&iv, 0), iv);
        assert_eq!(
            counted_nonce(&iv, 0x0100_0000_0000_00ff),
            [0xff, 1, 2, 3, 5, 5, 6, 7, 8, 9, 10, 0xf4]
        );
        let header = [23, 3, 3, 0, 34];
        assert_eq!(Form::Tls13.associated(7, header).as_ref(), header);
        assert_eq!(
            Form::Tls12Explicit.associated(7, header).as_ref(),
            [0, 0, 0, 0, 0, 0, 0, 7, 23, 3, 3, 0, 10]
        );
        assert_eq!(
            Form::Tls12Implicit.associated(1 << 56, header).as_ref(),
            [1, 0, 0, 0, 0, 0, 0, 0, 23, 3, 3, 0, 18]
        );
    }
}
