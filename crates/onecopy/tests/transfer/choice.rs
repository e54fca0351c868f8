//! Which sources go where, and what they may replace.

use std::fs::{self, File};
use std::time::Duration;

use onecopy::ErrorKind;
use onecopy::transfer::{CopySettings, Replace};

use crate::world::World;

#[test]
fn patterns_braces_flattening_and_names_go_where_users_expect() {
    let world = World::new();
    for key in [
        "t/a-0.tar",
        "t/a-1.tar",
        "t/x/a-2.tar",
        "t/x/b.json",
        "u/a-0.tar",
    ] {
        world.put(key, key);
    }
    let flat = CopySettings {
        is_flat: true,
        is_recursive: true,
        ..CopySettings::default()
    };
    let plain = CopySettings::default();
    for (sources, target, how, files) in [
        (&["s3://bkt/t/a-0.tar"][..], "1", &plain, &["1"][..]),
        (&["s3://bkt/t/a-0.tar"], "2/", &plain, &["2/a-0.tar"]),
        (
            &["s3://bkt/t/*.tar"],
            "3",
            &plain,
            &["3/a-0.tar", "3/a-1.tar"],
        ),
        (
            &["s3://bkt/t/**"],
            "4",
            &plain,
            &["4/a-0.tar", "4/a-1.tar", "4/x/a-2.tar", "4/x/b.json"],
        ),
        (
            &["s3://bkt/t/a-{0..1}.tar"],
            "5/",
            &plain,
            &["5/a-0.tar", "5/a-1.tar"],
        ),
        (
            &["s3://bkt/t/"],
            "6",
            &flat,
            &["6/a-0.tar", "6/a-1.tar", "6/a-2.tar", "6/b.json"],
        ),
    ] {
        let ended = world.cp(sources, &world.text(target), how);
        assert_eq!(
            ended.counts(),
            [files.len() as u64, 0, 0, 0],
            "{sources:?} {:?}",
            ended.failed
        );
        let found: Vec<String> = world
            .files()
            .into_iter()
            .filter(|name| name.split('/').next() == Some(target.trim_end_matches('/')))
            .collect();
        assert_eq!(found, files, "{sources:?}");
    }
    // Two of one name: the second is refused, and the first stays what it is.
    let both = ["s3://bkt/t/a-0.tar", "s3://bkt/u/a-0.tar"];
    let ended = world.cp(&both, &world.text("7/"), &plain);
    assert_eq!(ended.counts(), [1, 0, 0, 1]);
    assert_eq!(fs::read(world.path("7/a-0.tar")).unwrap(), b"t/a-0.tar");
}

#[test]
fn what_is_there_is_replaced_only_as_asked() {
    let world = World::new();
    world.put("k", "four");
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (replace, there, is_old, is_replaced) in [
        (Replace::Always, "same", false, true),
        (Replace::Never, "other size", true, false),
        (Replace::IfSizeDiffers, "same", true, false),
        (Replace::IfSizeDiffers, "other size", false, true),
        (Replace::IfSourceNewer, "other size", false, false),
        (Replace::IfSourceNewer, "same", true, true),
        (Replace::IfEither, "same", false, false),
        (Replace::IfEither, "same", true, true),
    ] {
        world.write("f", there);
        let file = File::options().write(true).open(world.path("f")).unwrap();
        let newer = std::time::SystemTime::now() + Duration::from_secs(60);
        file.set_modified(if is_old { long_ago } else { newer })
            .unwrap();
        let how = CopySettings {
            replace,
            ..CopySettings::default()
        };
        let ended = world.cp(&["s3://bkt/k"], &world.text("f"), &how);
        let expected = if is_replaced {
            [1, 0, 0, 0]
        } else {
            [0, 0, 1, 0]
        };
        assert_eq!(ended.counts(), expected, "{replace:?} {there} {is_old}");
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_done() {
    let world = World::new();
    world.put("a", "1");
    world.put("b", "2");
    world.write("f", "x");
    let plain = CopySettings::default();
    for (sources, target, kind) in [
        (
            &["s3://bkt/a", "s3://bkt/b"][..],
            "one",
            ErrorKind::InvalidInput,
        ),
        (&["s3://bkt/"], "out/", ErrorKind::InvalidInput),
        (&["s3://bkt/{"], "https://h/x", ErrorKind::Unsupported),
    ] {
        let target = if target.contains("://") {
            target.to_owned()
        } else {
            world.text(target)
        };
        let ended = world.cp(sources, &target, &plain);
        let error = ended.result.unwrap_err();
        assert_eq!(error.kind(), kind, "{sources:?}: {error}");
        assert!(error.help().is_some(), "{error}");
    }
    let file = world.text("f");
    let error = world
        .cp(&[&file], &world.text("g"), &plain)
        .result
        .unwrap_err();
    assert!(
        error.to_string().contains("both are on this machine"),
        "{error}"
    );
    assert_eq!(world.files(), ["f"]);
    // What is missing is an item that failed, and the others go on.
    let ended = world.cp(
        &["s3://bkt/none", "s3://bkt/a", "s3://bkt/z*"],
        &world.text("out/"),
        &plain,
    );
    assert_eq!(ended.counts(), [1, 0, 0, 2], "{:?}", ended.failed);
    assert_eq!(ended.failed["s3://bkt/none"].0, ErrorKind::NotFound);
    assert_eq!(ended.failed["s3://bkt/z*"].0, ErrorKind::NotFound);
}
