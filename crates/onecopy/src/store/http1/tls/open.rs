//! The key of one direction, and records opened with it.

use std::fmt::{self, Debug};
use std::ops::Range;

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::{AlertDescription, ConnectionTrafficSecrets, ContentType};

use super::breach::Breach;
use super::record::{Associated, Form, Header, NONCE_LEN};
use super::record::{counted_nonce, unpad};

/// A connection is not used again where fewer records than this are left under its key: 256 MiB of them.
const RESERVE: u64 = 1 << 14;

/// A key in use, and how often it was used.
pub(super) struct Key {
    aead: LessSafeKey,
    iv: [u8; NONCE_LEN],
    form: Form,
    seq: u64,
    /// Records under this key at most: the cipher's confidentiality limit, as rustls gives it.
    limit: u64,
}

impl Key {
    /// A key of `algorithm` that protected `seq` records before.
    pub(super) fn new(
        algorithm: &'static aead::Algorithm,
        key: &[u8],
        iv: [u8; NONCE_LEN],
        form: Form,
        (seq, limit): (u64, u64),
    ) -> Result<Self, Breach> {
        let key = UnboundKey::new(algorithm, key).map_err(|_unspecified| {
            Breach::new(
                AlertDescription::InternalError,
                "the agreed key has the wrong length",
            )
        })?;
        Ok(Self {
            aead: LessSafeKey::new(key),
            iv,
            form,
            seq,
            // The last number is never used, so that counting on never wraps.
            limit: limit.min(u64::MAX - 1),
        })
    }

    /// The key in `secrets`, as rustls hands it over.
    pub(super) fn from_secrets(
        secrets: &ConnectionTrafficSecrets,
        is_tls13: bool,
        used: (u64, u64),
    ) -> Result<Self, Breach> {
        let gcm = if is_tls13 {
            Form::Tls13
        } else {
            Form::Tls12Explicit
        };
        let chacha = if is_tls13 {
            Form::Tls13
        } else {
            Form::Tls12Implicit
        };
        let (algorithm, key, iv, form) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv, gcm),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv, gcm),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&aead::CHACHA20_POLY1305, key, iv, chacha)
            }
            _ => {
                return Err(Breach::new(
                    AlertDescription::InternalError,
                    "a cipher was agreed on that onecopy does not know",
                ));
            }
        };
        let iv = <[u8; NONCE_LEN]>::try_from(iv.as_ref()).map_err(|_length| {
            Breach::new(AlertDescription::InternalError, "a nonce of a wrong length")
        })?;
        Self::new(algorithm, key.as_ref(), iv, form, used)
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    pub(super) fn aead(&self) -> &LessSafeKey {
        &self.aead
    }

    /// Whether so few records are left that no new exchange should begin.
    pub(super) fn is_nearly_spent(&self) -> bool {
        self.seq.saturating_add(RESERVE) >= self.limit
    }

    /// The number of the next record, where the key allows one more.
    pub(super) fn next_seq(&self) -> Result<u64, Breach> {
        if self.seq >= self.limit {
            return Err(Breach::spent(self.seq));
        }
        Ok(self.seq)
    }

    /// Notes that the next record was opened or sealed.
    pub(super) fn used(&mut self) {
        self.seq += 1;
    }

    pub(super) fn counted_nonce(&self, seq: u64) -> [u8; NONCE_LEN] {
        counted_nonce(&self.iv, seq)
    }

    /// The nonce of a received record: counted, or its second part as it stands before the record.
    fn received_nonce(&self, seq: u64, prefix: &[u8]) -> Nonce {
        let mut nonce = self.counted_nonce(seq);
        if self.form == Form::Tls12Explicit {
            for (byte, explicit) in nonce.iter_mut().skip(4).zip(prefix) {
                *byte = *explicit;
            }
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("form", &self.form)
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}

/// What was in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) kind: ContentType,
    /// The content is the first so many bytes of what was protected.
    pub(super) len: usize,
}

/// Opens what the other side sent, record by record.
#[derive(Debug)]
pub(super) struct Opener {
    key: Key,
}

impl Opener {
    pub(super) fn new(key: Key) -> Self {
        Self { key }
    }

    pub(super) fn form(&self) -> Form {
        self.key.form
    }

    pub(super) fn is_nearly_spent(&self) -> bool {
        self.key.is_nearly_spent()
    }

    /// Opens `payload` into `out`, whose length is the header's `inner_len`. Behind the content, `out` holds its type
    /// and padding. Where this fails, `out` holds nothing that may be used.
    pub(super) fn open_into(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut [u8],
    ) -> Result<Opened, Breach> {
        let (seq, associated) = self.begin(header)?;
        let (prefix, protected) = payload.split_at(self.form().prefix_len());
        let (inner, tag) = protected.split_at(header.inner_len);
        let nonce = self.key.received_nonce(seq, prefix);
        let opened =
            self.key
                .aead
                .open_separate_gather(nonce, Aad::from(associated), inner, tag, out);
        opened.map_err(|_unspecified| unauthentic())?;
        self.opened(header, out)
    }

    /// Opens `payload` where it lies; the content begins at the returned place within it.
    pub(super) fn open_in_place(
        &mut self,
        header: &Header,
        payload: &mut [u8],
    ) -> Result<(ContentType, Range<usize>), Breach> {
        let (seq, associated) = self.begin(header)?;
        let prefix_len = self.form().prefix_len();
        let (prefix, protected) = payload.split_at_mut(prefix_len);
        let (inner, tag) = protected.split_at_mut(header.inner_len);
        let nonce = self.key.received_nonce(seq, prefix);
        self.key
            .aead
            .open_in_place_separate_tag(nonce, Aad::from(associated), tag, inner)
            .map_err(|_unspecified| unauthentic())?;
        let Opened { kind, len } = self.opened(header, inner)?;
        Ok((kind, prefix_len..prefix_len + len))
    }

    fn begin(&self, header: &Header) -> Result<(u64, Associated), Breach> {
        let seq = self.key.next_seq()?;
        Ok((seq, self.form().associated(seq, header.bytes)))
    }

    fn opened(&mut self, header: &Header, inner: &[u8]) -> Result<Opened, Breach> {
        self.key.used();
        if self.form() == Form::Tls13 {
            let (kind, len) = unpad(inner)?;
            return Ok(Opened { kind, len });
        }
        Ok(Opened {
            kind: header.kind,
            len: inner.len(),
        })
    }
}

fn unauthentic() -> Breach {
    Breach::new(
        AlertDescription::BadRecordMac,
        "a record was damaged or forged on its way: its tag does not match",
    )
}
