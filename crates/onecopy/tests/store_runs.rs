//! Reads that hand over what is full before they are over.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_signed;

use onecopy::buffer::{Slab, Slice};
use onecopy::ledger::{Ledger, Report};
use onecopy::route::Hop;
use onecopy::store::{Filled, Object, Source, Taker};

/// Keeps what is handed over.
#[derive(Debug, Default)]
struct Kept {
    told: Vec<Option<u64>>,
    slabs: Vec<Slice>,
}

impl Taker for Kept {
    fn told(&mut self, object: &Object) {
        self.told.push(object.len_bytes);
    }

    fn full(&mut self, _object: &Object, slab: Slice) {
        self.slabs.push(slab);
    }
}

async fn read(source: &Source, offset: u64, lens: &[usize]) -> (Filled, Kept, Report) {
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Recv);
    let target = lens.iter().map(|len| Slab::heap(*len)).collect();
    let mut kept = Kept::default();
    let run = source
        .store
        .read_run(&hop, &source.object, offset, target, &mut kept);
    (run.await.unwrap(), kept, ledger.report())
}

#[tokio::test]
async fn full_slabs_are_handed_over_in_order_and_the_last_one_is_the_answer() {
    let server = store_signed::server();
    let whole = store_signed::bytes(100_000);
    server.put("bkt", "k", whole.clone()).unwrap();
    let source = store_signed::open("s3://bkt/k", &store_signed::config(&server));
    let (filled, kept, _) = read(&source, 10_000, &[20_000, 30_000, 5_000]).await;
    assert_eq!(kept.told, [Some(100_000)]);
    assert_eq!(kept.slabs.len(), 2);
    assert_eq!(&kept.slabs[0][..], &whole[10_000..30_000]);
    assert_eq!(&kept.slabs[1][..], &whole[30_000..60_000]);
    assert_eq!(filled.len_bytes, 5_000);
    assert_eq!(&filled.target[0][..], &whole[60_000..65_000]);
    // The object ends in the second of three: that and the empty one are what is left.
    let (filled, kept, _) = read(&source, 60_000, &[30_000, 20_000, 5_000]).await;
    assert_eq!(&kept.slabs[0][..], &whole[60_000..90_000]);
    assert_eq!((filled.len_bytes, filled.target.len()), (10_000, 2));
    assert_eq!(&filled.target[0][..10_000], &whole[90_000..]);
}

#[tokio::test]
async fn what_was_handed_over_counts_for_the_checksum_of_the_object() {
    let server = store_signed::server();
    server
        .put("bkt", "k", store_signed::bytes(100_000))
        .unwrap();
    let source = store_signed::open("s3://bkt/k", &store_signed::config(&server));
    let (_, _, report) = read(&source, 0, &[20_000, 30_000]).await;
    assert!(report.verified.is_empty());
    let (_, _, report) = read(&source, 50_000, &[20_000, 20_000, 10_000]).await;
    assert_eq!(report.verified.get("crc64nvme"), Some(&1));
}

#[tokio::test]
async fn an_object_that_is_read_whole_is_kept_until_its_checksum_holds() {
    let server = store_signed::server();
    let whole = store_signed::bytes(1000);
    server.put("bkt", "k", whole.clone()).unwrap();
    let mut source = store_signed::open("s3://bkt/k", &store_signed::config(&server));
    source.object = source.store.head(&source.object).await.unwrap();
    let (filled, kept, report) = read(&source, 0, &[400, 600]).await;
    assert!(kept.slabs.is_empty());
    assert_eq!(store_signed::joined(&filled), whole);
    assert_eq!(report.verified.get("crc64nvme"), Some(&1));
}
