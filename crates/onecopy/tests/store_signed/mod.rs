//! An S3 server that checks signatures, and a client that signs.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses another part of this one"
)]

use onecopy::Result;
use onecopy::buffer::Slab;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::Ledger;
use onecopy::route::Hop;
use onecopy::store::{Filled, Named, Source, open_store, resolve};
use onecopy_testkit::s3::S3Server;

pub fn server() -> S3Server {
    let server = S3Server::builder().start().unwrap();
    server.create_bucket("bkt").unwrap();
    server
}

pub fn config(server: &S3Server) -> StoreConfig {
    StoreConfig {
        endpoint_url: Some(server.endpoint()),
        variables: Variables::only([
            ("AWS_ACCESS_KEY_ID", "onecopy"),
            ("AWS_SECRET_ACCESS_KEY", "onecopy-secret"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]),
        limits: Limits {
            tries: 2,
            ..Limits::default()
        },
        ..StoreConfig::default()
    }
}

/// Bytes that differ at every offset that a mistake is likely to hit.
pub fn bytes(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)).to_le_bytes()[0])
        .collect()
}

pub async fn read(source: &Source, offset: u64, slabs: &[usize]) -> Result<Filled> {
    let hop = Ledger::unread().hop(Hop::Recv);
    let target = slabs.iter().map(|len| Slab::heap(*len)).collect();
    source
        .store
        .read_into(&hop, &source.object, offset, target)
        .await
}

pub fn joined(filled: &Filled) -> Vec<u8> {
    let all: Vec<u8> = filled
        .target
        .iter()
        .flat_map(|slab| slab.iter().copied())
        .collect();
    all[..usize::try_from(filled.len_bytes).unwrap()].into()
}

pub fn open(url: &str, config: &StoreConfig) -> Source {
    match open_store(url, config).unwrap() {
        (store, Named::Object(object)) => Source { store, object },
        (_, Named::Prefix(key)) => panic!("{key} is a prefix"),
    }
}

pub async fn resolved(urls: &[&str], config: &StoreConfig) -> Result<Vec<String>> {
    let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
    let sources = resolve(&urls, config).await?;
    Ok(sources
        .iter()
        .map(|source| source.object.url.to_string())
        .collect())
}
