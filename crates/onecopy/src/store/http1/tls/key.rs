//! A key as the handshake gives it, and what is counted under it.

use std::fmt::{self, Debug};

use rustls::{AlertDescription, ConnectionTrafficSecrets};

use super::breach::Breach;
use super::record::{Form, NONCE_LEN, counted_nonce};

/// A connection is not used again where fewer records than this are left under its key: 256 MiB of them.
const RESERVE: u64 = 1 << 14;

/// The ciphers that onecopy offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    Chacha20Poly1305,
}

impl Cipher {
    /// How its records are laid out.
    fn form(self, is_tls13: bool) -> Form {
        match self {
            _ if is_tls13 => Form::Tls13,
            Self::Aes128Gcm | Self::Aes256Gcm => Form::Tls12Explicit,
            Self::Chacha20Poly1305 => Form::Tls12Implicit,
        }
    }
}

/// A key that is not in use yet, of one direction.
pub(super) struct Secret<'a> {
    pub(super) cipher: Cipher,
    pub(super) key: &'a [u8],
    pub(super) iv: [u8; NONCE_LEN],
    pub(super) form: Form,
    /// How many records it protected before, and how many it may protect: the cipher's confidentiality limit, as rustls gives
    /// it.
    pub(super) used: (u64, u64),
}

impl<'a> Secret<'a> {
    /// The key in `secrets`, as rustls hands it over.
    pub(super) fn read(
        secrets: &'a ConnectionTrafficSecrets,
        is_tls13: bool,
        used: (u64, u64),
    ) -> Result<Self, Breach> {
        let (cipher, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (Cipher::Chacha20Poly1305, key, iv)
            }
            _ => {
                return Err(unusable(
                    "a cipher was agreed on that onecopy does not know",
                ));
            }
        };
        let iv = <[u8; NONCE_LEN]>::try_from(iv.as_ref())
            .map_err(|_length| unusable("a nonce of a wrong length"))?;
        Ok(Self {
            cipher,
            key: key.as_ref(),
            iv,
            form: cipher.form(is_tls13),
            used,
        })
    }
}

/// The agreed key cannot be used.
pub(super) fn unusable(why: &'static str) -> Breach {
    Breach::new(AlertDescription::InternalError, why)
}

/// How often a key was used, and what that makes of its nonce.
pub(super) struct Count {
    iv: [u8; NONCE_LEN],
    form: Form,
    seq: u64,
    limit: u64,
}

impl Count {
    pub(super) fn of(secret: &Secret<'_>) -> Self {
        let (seq, limit) = secret.used;
        Self {
            iv: secret.iv,
            form: secret.form,
            seq,
            // The last number is never used, so that counting on never wraps.
            limit: limit.min(u64::MAX - 1),
        }
    }

    pub(super) fn form(&self) -> Form {
        self.form
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

    /// The nonce of the record of this number.
    pub(super) fn nonce(&self, seq: u64) -> [u8; NONCE_LEN] {
        counted_nonce(&self.iv, seq)
    }
}

impl Debug for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Count")
            .field("form", &self.form)
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}
