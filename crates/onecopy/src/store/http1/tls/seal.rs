//! Records sealed for the other side.

use std::fmt::{self, Debug};

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::{AlertDescription, ContentType};

use super::breach::Breach;
use super::key::{Cipher, Count, Secret, unusable};
use super::record::{CONTENT_MAX, Form, TAG_LEN};

/// Seals what we send, record by record.
///
/// By aws-lc, which reads the content in one place and writes the record in another: with ring it would be copied first.
pub(super) struct Sealer {
    aead: LessSafeKey,
    count: Count,
}

impl Sealer {
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

    /// Appends a record with `content`, at most [`CONTENT_MAX`] bytes, to `out`.
    pub(super) fn seal(
        &mut self,
        kind: ContentType,
        content: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Breach> {
        let extra = [u8::from(kind)];
        self.seal_with(kind, content, &extra, out)
    }

    /// As `seal`, with `extra` behind the content where the form has room for that: the type, and padding.
    pub(super) fn seal_with(
        &mut self,
        kind: ContentType,
        content: &[u8],
        extra: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Breach> {
        let form = self.count.form();
        let extra = if form == Form::Tls13 { extra } else { &[] };
        let padding = extra.len().saturating_sub(form.inner_extra());
        if content.len() + padding > CONTENT_MAX {
            return Err(failed());
        }
        let seq = self.count.next_seq()?;
        let header = form.header_for(kind, content.len() + padding);
        let associated = form.associated(seq, header);
        let nonce = self.count.nonce(seq);
        out.extend(header);
        // The counted nonce serves TLS 1.2 too: there only its uniqueness matters, and rustls counts it the same way.
        out.extend(nonce.iter().skip(NONCE_FIXED).take(form.prefix_len()));
        let at = out.len();
        out.resize(at + content.len() + extra.len() + TAG_LEN, 0);
        let (sealed, extra_and_tag) = out[at..].split_at_mut(content.len());
        self.aead
            .seal_out_of_place_scatter(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(associated),
                content,
                sealed,
                extra,
                extra_and_tag,
            )
            .map_err(|_unspecified| failed())?;
        self.count.used();
        Ok(())
    }
}

impl Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sealer").field(&self.count).finish()
    }
}

/// The part of a TLS 1.2 nonce that is not sent.
const NONCE_FIXED: usize = 4;

fn failed() -> Breach {
    Breach::new(
        AlertDescription::InternalError,
        "a record could not be sealed",
    )
}
