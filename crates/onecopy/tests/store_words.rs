//! What people write to name objects, down to the objects that are meant: braces, globs, escapes, lists, and their limits.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::fs;
use std::path::Path;

use onecopy::config::StoreConfig;
use onecopy::ledger::Ledger;
use onecopy::store::{Absent, Named, open_store, resolve, resolve_with};
use onecopy::{Error, ErrorKind};

const NAMES: [&str; 8] = [
    "a*.tar",
    "a-1.tar",
    "a-2.tar",
    "b?.tar",
    "b{1,2}.tar",
    "c[1].tar",
    r"d\e.tar",
    "f/g.tar",
];

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in NAMES.into_iter().chain(["x*/h.tar", "x1/i.tar"]) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "1").unwrap();
    }
    folder
}

/// What `words` name below `folder`.
async fn found(folder: &Path, words: &[&str]) -> Result<Vec<String>, Error> {
    let base = format!("{}/", folder.display());
    let urls: Vec<String> = words.iter().map(|word| format!("{base}{word}")).collect();
    let sources = resolve(&urls, &StoreConfig::default()).await?;
    let names = sources
        .iter()
        .map(|source| &source.object.url[base.len()..]);
    Ok(names.map(str::to_owned).collect())
}

#[tokio::test]
async fn a_backslash_makes_names_of_what_looks_like_a_pattern() {
    let folder = folder();
    for (word, names) in [
        // A file that bears the very name is meant.
        ("a*.tar", &["a*.tar"][..]),
        (r"a\*.tar", &["a*.tar"]),
        ("a-*.tar", &["a-1.tar", "a-2.tar"]),
        (r"{a\*,b\?}.tar", &["a*.tar", "b?.tar"]),
        (r"b\{1\,2\}.tar", &["b{1,2}.tar"]),
        (r"b\{*", &["b{1,2}.tar"]),
        (r"c\[1\].tar", &["c[1].tar"]),
        ("c[[]*", &["c[1].tar"]),
        (r"d\e.tar", &[r"d\e.tar"]),
        (r"d\\e.tar", &[r"d\e.tar"]),
        (r"d\\*", &[r"d\e.tar"]),
        (r"[ad]\e.tar", &[r"d\e.tar"]),
        ("a-{2..1}.tar", &["a-2.tar", "a-1.tar"]),
        ("{f..f}/{g..g}.tar", &["f/g.tar"]),
        ("f/", &["f/g.tar"]),
        ("x*/", &["x*/h.tar"]),
        (r"x\*/", &["x*/h.tar"]),
        ("x*/*", &["x*/h.tar", "x1/i.tar"]),
        (r"x\*/*", &["x*/h.tar"]),
    ] {
        assert_eq!(
            found(folder.path(), &[word]).await.unwrap(),
            names,
            "{word}"
        );
    }
    let open = |word: &str| {
        let url = format!("{}/{word}", folder.path().display());
        match open_store(&url, &StoreConfig::default()).unwrap().1 {
            Named::Object(object) => String::from_utf8_lossy(object.key.as_bytes()).into_owned(),
            Named::Prefix(prefix) => String::from_utf8_lossy(prefix.as_bytes()).into_owned(),
        }
    };
    assert!(open(r"a\*.tar").ends_with("/a*.tar"));
    assert!(open("a*.tar").ends_with("/a*.tar"));
    assert!(open(r"x\*").ends_with("/x*/"), "a folder");
}

#[tokio::test]
async fn web_urls_have_braces_and_no_globs() {
    let urls = ["https://h/{a..c..2}*.tar", r"http://h/\{x\}?q={1,2}"].map(str::to_owned);
    let sources = resolve(&urls, &StoreConfig::default()).await.unwrap();
    let shown: Vec<&str> = sources.iter().map(|source| &*source.object.url).collect();
    assert_eq!(
        shown,
        [
            "https://h/a*.tar",
            "https://h/c*.tar",
            "http://h/{x}",
            "http://h/{x}"
        ]
    );
}

#[tokio::test]
async fn what_stands_for_too_much_is_refused_before_it_is_made() {
    let config = StoreConfig::default();
    let long = format!("s3://b/{}", "x".repeat(64 << 10));
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("urls.txt");
    fs::write(&list, "https://h/{0..9}\nhttps://h/{0..999999}\n").unwrap();
    for (words, why) in [
        (&["https://h/{0..9999999}"][..], "its 10000000 names"),
        (&["https://h/{0..1000000}"], "its 1000001 names"),
        (
            &["https://h/{0..9}", "https://h/{0..999995}"],
            "its 999996 names",
        ),
        (
            &["s3://b/{0..99999}{0..99999}{0..99999}{0..99999}"],
            "more names than can be counted",
        ),
        (&[list.to_str().unwrap()], "its 1000000 names"),
        (&["{0..9999999}"], "its 10000000 names"),
        (&[&long], "it has 65543 bytes"),
    ] {
        let urls: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let error = resolve(&urls, &config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitReached, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(
            error.to_string().len() < 400 && error.help().is_some(),
            "{error}"
        );
    }
}

#[tokio::test]
async fn devices_are_no_lists() {
    for url in ["@/dev/zero", "@/", "@/no/such/list"] {
        let error = resolve(&[url.to_owned()], &StoreConfig::default())
            .await
            .unwrap_err();
        let kinds = [ErrorKind::InvalidInput, ErrorKind::NotFound];
        assert!(kinds.contains(&error.kind()), "{error}");
        assert_eq!(error.target(), &url[1..]);
    }
}

#[tokio::test]
async fn what_is_not_there_is_refused_kept_or_ignored_as_asked() {
    let folder = folder();
    let config = StoreConfig::default();
    let count = async |word: &str, absent| {
        let url = format!("{}/{word}", folder.path().display());
        let sources = resolve_with(&[url], &config, absent, &Ledger::unread()).await;
        sources
            .map(|sources| sources.len())
            .map_err(|error| error.kind())
    };
    let nothing = Err(ErrorKind::NotFound);
    for (word, refused, kept, ignored) in [
        ("a-{1..3}.tar", nothing, Ok(3), Ok(3)),
        ("none-*.tar", nothing, nothing, Ok(0)),
        // As a bucket that is not there.
        ("none/", nothing, nothing, nothing),
        ("a-{1..2}.tar", Ok(2), Ok(2), Ok(2)),
    ] {
        assert_eq!(count(word, Absent::Refused).await, refused, "{word}");
        assert_eq!(count(word, Absent::Kept).await, kept, "{word}");
        assert_eq!(count(word, Absent::Ignored).await, ignored, "{word}");
    }
}
