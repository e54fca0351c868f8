//! What the shard maker promises.

use onecopy_testkit::shards::{Dtype, Field, Member, Shard, ShardMaker};

fn all_fields() -> Vec<Field> {
    vec![
        Field::jpg(),
        Field::npy(Dtype::U8, &[3, 5]).named("u8.npy"),
        Field::npy(Dtype::F16, &[7]).named("f16.npy"),
        Field::npy(Dtype::F32, &[2, 2, 2]).named("f32.npy"),
        Field::json(),
        Field::cls(),
        Field::txt(),
        Field::raw(1000),
    ]
}

fn content<'s>(shard: &'s Shard, member: &Member) -> &'s [u8] {
    let at = |offset: u64| usize::try_from(offset).expect("64 bits");
    &shard.bytes[at(member.offset)..at(member.offset + member.len)]
}

#[test]
fn makes_the_same_bytes_for_the_same_seed_only() {
    let make = |seed| {
        ShardMaker::new(seed)
            .samples(5)
            .size(64, 48)
            .fields(all_fields())
            .build()
    };
    assert_eq!(make(1)[0].bytes, make(1)[0].bytes);
    assert_ne!(make(1)[0].bytes, make(2)[0].bytes);
}

#[test]
fn cuts_the_same_samples_into_any_number_of_shards() {
    let maker = ShardMaker::new(3)
        .samples(11)
        .size(64, 48)
        .fields(all_fields());
    let one = maker.clone().build();
    let four = maker.shards(4).build();
    assert_eq!(
        four.iter().map(|s| s.members.len() / 8).collect::<Vec<_>>(),
        [3, 3, 3, 2]
    );
    let sums = |shards: &[Shard]| -> Vec<_> {
        let members = shards.iter().flat_map(|s| &s.members);
        members
            .map(|m| (m.key.clone(), m.field.clone(), m.crc32))
            .collect()
    };
    assert_eq!(sums(&one), sums(&four));
    assert_eq!(four[3].name, "train-00003.tar");
}

#[test]
fn tells_where_each_member_lies() {
    let shards = ShardMaker::new(9)
        .samples(4)
        .size(64, 48)
        .fields(all_fields())
        .build();
    for member in &shards[0].members {
        assert_eq!(member.offset % 512, 0);
        assert_eq!(crc32fast::hash(content(&shards[0], member)), member.crc32);
        let header = &shards[0].bytes[usize::try_from(member.offset).unwrap() - 512..];
        let name = format!("{}.{}", member.key, member.field);
        assert!(header.starts_with(name.as_bytes()));
    }
    assert!(shards[0].bytes.ends_with(&[0; 1024]));
}

#[test]
fn makes_each_member_of_a_small_pool_unique() {
    let shards = ShardMaker::new(9)
        .samples(8)
        .size(64, 48)
        .distinct(2)
        .build();
    let mut sums: Vec<_> = shards[0]
        .members
        .iter()
        .filter(|m| m.field == "jpg")
        .collect();
    assert!(
        sums.iter()
            .all(|m| content(&shards[0], m).starts_with(&[0xFF, 0xD8, 0xFF, 0xFE]))
    );
    sums.sort_by_key(|m| m.crc32);
    sums.dedup_by_key(|m| m.crc32);
    assert_eq!(sums.len(), 8);
}

#[test]
fn weighs_what_photographs_weigh() {
    let shards = ShardMaker::new(1).samples(32).build();
    let sizes: Vec<_> = shards[0]
        .members
        .iter()
        .filter(|m| m.field == "jpg")
        .map(|m| m.len)
        .collect();
    let mean = sizes.iter().sum::<u64>() / sizes.len() as u64;
    assert!(
        (105_000..115_000).contains(&mean),
        "mean {mean} bytes, {sizes:?}"
    );
    assert!(
        sizes.iter().max() > sizes.iter().min().map(|m| m * 5 / 4).as_ref(),
        "{sizes:?}"
    );
}

#[test]
fn writes_arrays_that_numpy_describes() {
    let shards = ShardMaker::new(5)
        .samples(1)
        .fields(all_fields())
        .size(8, 8)
        .build();
    let array = |field: &str| {
        let member = shards[0].members.iter().find(|m| m.field == field).unwrap();
        let bytes = content(&shards[0], member);
        let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert!(bytes.starts_with(b"\x93NUMPY\x01\x00") && (10 + length).is_multiple_of(64));
        (
            String::from_utf8_lossy(&bytes[10..10 + length])
                .trim()
                .to_owned(),
            bytes[10 + length..].len(),
        )
    };
    let told = |descr, shape| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    };
    assert_eq!(array("u8.npy"), (told("|u1", "(3, 5)"), 15));
    assert_eq!(array("f16.npy"), (told("<f2", "(7,)"), 14));
    assert_eq!(array("f32.npy"), (told("<f4", "(2, 2, 2)"), 32));
}

#[test]
fn makes_pictures_that_a_decoder_takes() {
    let shards = ShardMaker::new(4)
        .samples(3)
        .size(61, 47)
        .distinct(2)
        .build();
    for member in shards[0].members.iter().filter(|m| m.field == "jpg") {
        let bytes = zune_core::bytestream::ZCursor::new(content(&shards[0], member));
        let pixels = zune_jpeg::JpegDecoder::new(bytes).decode().unwrap();
        assert_eq!(pixels.len(), 61 * 47 * 3);
        let mean = pixels.iter().map(|p| usize::from(*p)).sum::<usize>() / pixels.len();
        assert!((30..226).contains(&mean), "neither black nor white: {mean}");
    }
}
