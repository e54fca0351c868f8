//! CPU of opening AES-128-GCM records that lie in the cache, into memory that was touched before:
//! `open_bench BYTES MEMORY_BYTES` prints one JSON object.
//!
//! Bursts of fifteen full records of TLS 1.3 are opened, each burst behind the one before, into MEMORY_BYTES that are filled to
//! their end before they are used again. aws-lc opens them out of a buffer of 240 KiB; ring opens them where they lie, a few bytes
//! ahead, and the burst that is laid there before is not charged, but a look at the clock is (about 1 %). What a client needs
//! beside the bare receiving of bytes is at least the lesser of the two, which is given as `cpu`.
#![expect(clippy::print_stdout, reason = "the result is what this is for")]
#![expect(
    clippy::disallowed_methods,
    reason = "the cost of this copy is not measured"
)]

use std::error::Error;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Content and type of a full record.
const INNER: usize = (1 << 14) + 1;
const TAG: usize = 16;
const RECORDS: usize = 15;
const HEADER: [u8; 5] = [23, 3, 3, 0x40, 0x11];
const RECORD: usize = HEADER.len() + INNER + TAG;
const KEY: [u8; 16] = [7; 16];

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |name: &str| -> Outcome<usize> {
        let text = arguments.next().ok_or_else(|| format!("usage: {name}"))?;
        Ok(text.parse()?)
    };
    let wanted = number("open_bench BYTES MEMORY_BYTES")?;
    let memory_len = number("open_bench BYTES MEMORY_BYTES")?;

    let burst = burst()?;
    let mut memory = vec![1_u8; memory_len.max(burst.len())];
    let bursts = wanted.div_ceil(RECORDS * (INNER - 1));
    let aws_lc = by_aws_lc(bursts, &burst, &mut memory)?.as_secs_f64();
    let ring = by_ring(bursts, &burst, &mut memory)?.as_secs_f64();
    println!(
        "{{\"bytes\": {}, \"cpu\": {:.6}, \"aws_lc\": {aws_lc:.6}, \"ring\": {ring:.6}}}",
        bursts * RECORDS * (INNER - 1),
        aws_lc.min(ring),
    );
    Ok(())
}

/// Fifteen sealed records as they come over the wire.
fn burst() -> Outcome<Vec<u8>> {
    use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    let key = UnboundKey::new(&AES_128_GCM, &KEY).map_err(|_unspecified| "no such key")?;
    let key = LessSafeKey::new(key);
    let mut burst = Vec::new();
    for seq in 0..RECORDS {
        let mut record = vec![0_u8; INNER];
        let nonce = Nonce::assume_unique_for_key(nonce(seq));
        key.seal_in_place_append_tag(nonce, Aad::from(HEADER), &mut record)
            .map_err(|_unspecified| "cannot seal")?;
        burst.extend(HEADER);
        burst.extend(record);
    }
    Ok(burst)
}

fn by_aws_lc(bursts: usize, burst: &[u8], memory: &mut [u8]) -> Outcome<Duration> {
    use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    let key = UnboundKey::new(&AES_128_GCM, &KEY).map_err(|_unspecified| "no such key")?;
    let key = LessSafeKey::new(key);
    let (mut at, cpu) = (0, cpu_time()?);
    for _ in 0..bursts {
        if at + burst.len() > memory.len() {
            at = 0;
        }
        for (seq, record) in burst.chunks_exact(RECORD).enumerate() {
            let (inner, tag) = record[HEADER.len()..].split_at(INNER);
            let nonce = Nonce::assume_unique_for_key(nonce(seq));
            let out = &mut memory[at..at + INNER];
            key.open_separate_gather(nonce, Aad::from(HEADER), inner, tag, out)
                .map_err(|_unspecified| "cannot open")?;
            at += INNER - 1;
        }
    }
    Ok(cpu_time()? - cpu)
}

fn by_ring(bursts: usize, burst: &[u8], memory: &mut [u8]) -> Outcome<Duration> {
    use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    let key = UnboundKey::new(&AES_128_GCM, &KEY).map_err(|_unspecified| "no such key")?;
    let key = LessSafeKey::new(key);
    let (mut at, mut spent) = (0, Duration::ZERO);
    for _ in 0..bursts {
        if at + burst.len() > memory.len() {
            at = 0;
        }
        memory[at..at + burst.len()].copy_from_slice(burst);
        let (sealed, cpu) = (at, cpu_time()?);
        for seq in 0..RECORDS {
            let end = sealed + (seq + 1) * RECORD;
            let protected = end - at - INNER - TAG;
            let nonce = Nonce::assume_unique_for_key(nonce(seq));
            key.open_within(nonce, Aad::from(HEADER), &mut memory[at..end], protected..)
                .map_err(|_unspecified| "cannot open")?;
            at += INNER - 1;
        }
        spent += cpu_time()? - cpu;
    }
    Ok(spent)
}

fn nonce(seq: usize) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = (seq as u64).to_be_bytes();
    [1, 2, 3, 4, a, b, c, d, e, f, g, h]
}

fn cpu_time() -> Outcome<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = |time: TimeVal| -> Outcome<u64> {
        Ok(u64::try_from(time.tv_sec())? * 1_000_000 + u64::try_from(time.tv_usec())?)
    };
    Ok(Duration::from_micros(
        micros(usage.user_time())? + micros(usage.system_time())?,
    ))
}
