//! Records opened where they lie, or further ahead in the same memory.

use std::fmt::{self, Debug};

use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::{AlertDescription, ContentType};

use super::breach::Breach;
use super::key::{Cipher, Count, Secret, unusable};
use super::record::{Form, Header, unpad};

/// What was in a record: the first `len` bytes of the memory that it was opened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) kind: ContentType,
    pub(super) len: usize,
}

/// Opens what the other side sent, record by record.
///
/// By ring, and not by the library that shakes hands: on a processor with VAES and without AVX-512 (Zen 3) ring takes
/// 0.135 s/GB where aws-lc takes 0.248, and it opens to an earlier place in the same memory without a copy, which lets `recv` bring
/// records into the slab itself.
pub(super) struct Opener {
    aead: LessSafeKey,
    count: Count,
}

impl Opener {
    pub(super) fn new(secret: &Secret<'_>) -> Result<Self, Breach> {
        let algorithm = match secret.cipher {
            Cipher::Aes128Gcm => &aead::AES_128_GCM,
            Cipher::Aes256Gcm => &aead::AES_256_GCM,
            Cipher::Chacha20Poly1305 => &aead::CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, secret.key)
            .map_err(|_unspecified| unusable("the agreed key has the wrong length"))?;
        Ok(Self {
            aead: LessSafeKey::new(key),
            count: Count::of(secret),
        })
    }

    pub(super) fn form(&self) -> Form {
        self.count.form()
    }

    pub(super) fn is_nearly_spent(&self) -> bool {
        self.count.is_nearly_spent()
    }

    /// Opens the record that ends `memory`, whose header is `header`, to the front of `memory`. Behind the content lies what
    /// the cipher left there. Where this fails, `memory` holds nothing that may be used.
    pub(super) fn open(&mut self, header: &Header, memory: &mut [u8]) -> Result<Opened, Breach> {
        let seq = self.count.next_seq()?;
        let associated = self.form().associated(seq, header.bytes);
        let payload = memory.len() - header.len;
        let mut nonce = self.count.nonce(seq);
        if self.form() == Form::Tls12Explicit {
            // Its second part stands in front of what is protected.
            for (byte, explicit) in nonce.iter_mut().skip(4).zip(&memory[payload..]) {
                *byte = *explicit;
            }
        }
        let opened = self.aead.open_within(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(associated),
            memory,
            payload + self.form().prefix_len()..,
        );
        let inner = opened.map_err(|_unspecified| unauthentic())?;
        self.count.used();
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

impl Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Opener").field(&self.count).finish()
    }
}

fn unauthentic() -> Breach {
    Breach::new(
        AlertDescription::BadRecordMac,
        "a record was damaged or forged on its way: its tag does not match",
    )
}
