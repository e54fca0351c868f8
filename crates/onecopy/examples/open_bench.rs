//! CPU of opening AES-128-GCM records that lie in the cache, into memory that was touched before:
//! `open_bench BYTES MEMORY_BYTES` prints one JSON object.
//!
//! Fifteen full records of TLS 1.3 are opened again and again out of a buffer of 256 KiB, each behind the one before,
//! into MEMORY_BYTES that are filled to their end before they are used again. What a client needs beside the bare
//! receiving of bytes is at least this.
#![expect(clippy::print_stdout, reason = "the result is what this is for")]

use std::error::Error;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Content and type of a full record.
const INNER: usize = (1 << 14) + 1;
const TAG: usize = 16;
const RECORDS: usize = 15;
const HEADER: [u8; 5] = [23, 3, 3, 0x40, 0x11];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |name: &str| -> Result<usize, Box<dyn Error>> {
        let text = arguments.next().ok_or_else(|| format!("usage: {name}"))?;
        Ok(text.parse()?)
    };
    let wanted = number("open_bench BYTES MEMORY_BYTES")?;
    let memory_len = number("open_bench BYTES MEMORY_BYTES")?;

    let key = UnboundKey::new(&AES_128_GCM, &[7; 16]).map_err(|_unspecified| "no such key")?;
    let key = LessSafeKey::new(key);
    let mut records = vec![0_u8; RECORDS * (INNER + TAG)];
    for (seq, record) in records.chunks_exact_mut(INNER + TAG).enumerate() {
        let (inner, tag) = record.split_at_mut(INNER);
        let sealed = key.seal_in_place_separate_tag(nonce(seq), Aad::from(HEADER), inner);
        let sealed = sealed.map_err(|_unspecified| "cannot seal")?;
        for (to, from) in tag.iter_mut().zip(sealed.as_ref()) {
            *to = *from;
        }
    }
    let mut memory = vec![1_u8; memory_len.max(INNER)];

    let (start, cpu) = (Instant::now(), cpu_time()?);
    let (mut done, mut at) = (0, 0);
    while done < wanted {
        for (seq, record) in records.chunks_exact(INNER + TAG).enumerate() {
            if at + INNER > memory.len() {
                at = 0;
            }
            let (inner, tag) = record.split_at(INNER);
            let out = &mut memory[at..at + INNER];
            key.open_separate_gather(nonce(seq), Aad::from(HEADER), inner, tag, out)
                .map_err(|_unspecified| "cannot open")?;
            at += INNER - 1;
            done += INNER - 1;
        }
    }
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_time()? - cpu);
    println!(
        "{{\"bytes\": {done}, \"wall\": {wall:.6}, \"cpu\": {:.6}}}",
        cpu.as_secs_f64()
    );
    Ok(())
}

fn nonce(seq: usize) -> Nonce {
    let [a, b, c, d, e, f, g, h] = (seq as u64).to_be_bytes();
    Nonce::assume_unique_for_key([1, 2, 3, 4, a, b, c, d, e, f, g, h])
}

fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = |time: TimeVal| -> Result<u64, Box<dyn Error>> {
        Ok(u64::try_from(time.tv_sec())? * 1_000_000 + u64::try_from(time.tv_usec())?)
    };
    Ok(Duration::from_micros(
        micros(usage.user_time())? + micros(usage.system_time())?,
    ))
}
