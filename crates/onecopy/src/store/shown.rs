//! URLs as they may be shown.

use std::borrow::Cow;

/// The schemes of stores whose keys can be listed. What stands between scheme and key names a bucket or container.
const LISTED: [&str; 7] = ["s3", "gs", "gcs", "az", "azure", "abfs", "abfss"];

/// What stands behind `scheme://`, where `url` names something in a store whose keys can be listed: bucket and key.
#[must_use]
pub fn behind_listed(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let is_listed = LISTED.iter().any(|name| scheme.eq_ignore_ascii_case(name));
    is_listed.then_some(rest)
}

/// What precedes a signature that somebody put into the URL of an object in a store, and the signature. Elsewhere `?` is a
/// letter like others there.
pub(super) fn split_signature(rest: &str) -> (&str, Option<&str>) {
    let is_signature = |query: &str| {
        let query = query.to_ascii_lowercase();
        query.contains("sig=") || query.contains("signature=")
    };
    let found = rest.match_indices('?').map(|(at, _)| rest.split_at(at));
    match found.into_iter().find(|(_, query)| is_signature(query)) {
        Some((before, query)) => (before, Some(query)),
        None => (rest, None),
    }
}

/// A URL as it may be shown: a query may be a signature, and before an `@` in the host's place stand a name and its
/// password. Only in keys of S3 and in paths is `?` a letter like others; whatever the scheme, known or not, no other is
/// trusted with that.
#[must_use]
pub fn shown(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Cow::Borrowed(url);
    };
    let scheme_is = |name: &str| scheme.eq_ignore_ascii_case(name);
    if scheme_is("file") || scheme_is("file+escaped") {
        return Cow::Borrowed(url);
    }
    let cut = match behind_listed(url) {
        Some(rest) if scheme_is("s3") => rest,
        Some(rest) => split_signature(rest).0,
        None => rest.split(['?', '#']).next().unwrap_or_default(),
    };
    let host_len = cut.find('/').unwrap_or(cut.len());
    let (host, path) = cut.split_at(host_len);
    // The name of a container stands where others have a user's; there is no password to it.
    let is_container = ["abfs", "abfss", "az", "azure"].into_iter().any(scheme_is);
    match host.rsplit_once('@') {
        Some((container, _)) if is_container && !container.contains(':') => Cow::Borrowed(
            url.get(..scheme.len() + "://".len() + cut.len())
                .unwrap_or(scheme),
        ),
        Some((_secret, host)) => Cow::Owned(format!("{scheme}://{host}{path}")),
        None => Cow::Borrowed(
            url.get(..scheme.len() + "://".len() + cut.len())
                .unwrap_or(scheme),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_urls_are_not_shown_whatever_the_scheme() {
        for (url, as_shown) in [
            ("https://h/a.tar?sig=hush", "https://h/a.tar"),
            ("HTTP://h/a?b?hush", "HTTP://h/a"),
            ("http://h/a#hush?hush", "http://h/a"),
            ("http://u:hush@h:80/a@b?hush", "http://h:80/a@b"),
            ("http://u@hush@h", "http://h"),
            ("ftp://u:hush@h/a?hush", "ftp://h/a"),
            ("gs://b/a?X-Goog-Signature=hush", "gs://b/a"),
            ("gs://b/a?b#c", "gs://b/a?b#c"),
            ("gs://u:hush@b/a", "gs://b/a"),
            ("az://c/a?b?sv=1&sig=hush", "az://c/a"),
            (
                "abfss://c@a.dfs.core.windows.net/k",
                "abfss://c@a.dfs.core.windows.net/k",
            ),
            (
                "azure://c@a.blob.core.windows.net/k",
                "azure://c@a.blob.core.windows.net/k",
            ),
            ("abfss://u:hush@h/k", "abfss://h/k"),
            ("httpx://h?hush", "httpx://h"),
            ("s3://u:hush@b/a@b?c#d", "s3://b/a@b?c#d"),
            ("s3://b/a?versionId=1", "s3://b/a?versionId=1"),
            ("file:///a@b?c", "file:///a@b?c"),
            ("a?b", "a?b"),
            ("http", "http"),
            ("://?hush", "://"),
            ("", ""),
        ] {
            assert_eq!(shown(url), as_shown, "{url}");
        }
        for url in ["ftp://u:hush@h/a?hush", "az://u:hush@h/a"] {
            let error = super::super::url::Place::read(url).unwrap_err();
            assert!(!format!("{error:#}").contains("hush"), "{error:?}");
        }
    }
}
