//! Tokens for Google Cloud Storage and Azure Blob Storage: where they come from, and where they never go.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;

use onecopy::ErrorKind;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::store::open_store;
use onecopy::sync::{Arc, AtomicUsize, Ordering};
use onecopy_testkit::cloud::{Access, CloudServer};
use store_scripted::{Server, Then, open, raw, serve_with, status};

fn config(endpoint: &str, set: &[(&str, &str)]) -> StoreConfig {
    StoreConfig {
        endpoint_url: Some(endpoint.to_owned()),
        variables: Variables::only(set.iter().copied()),
        limits: Limits {
            tries: 2,
            ..Limits::default()
        },
        ..StoreConfig::default()
    }
}

/// A metadata service, Google's and Microsoft's at once, which gives out `token-1`, `token-2`, ..
fn metadata() -> Server {
    let given = AtomicUsize::new(0);
    serve_with(move |request| {
        let is_right =
            request.contains("metadata-flavor: Google") || request.contains("metadata: true");
        if !is_right {
            return None;
        }
        let number = given.fetch_add(1, Ordering::Relaxed) + 1;
        let text = format!(
            "{{\"access_token\":\"token-{number}\",\"expires_in\":3600,\"expires_on\":\"4102444800\",\"token_type\":\"Bearer\"}}"
        );
        let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", text.len());
        Some((raw(&head, text.as_bytes()), Then::Keep))
    })
}

fn token(number: usize) -> Access {
    Access::Token(format!("token-{number}"))
}

async fn head(url: &str, config: &StoreConfig) -> Result<u64, onecopy::Error> {
    let source = open(url, config);
    let found = source.store.head(&source.object).await?;
    Ok(found.len_bytes.unwrap())
}

#[tokio::test]
async fn tokens_come_from_the_machine_and_another_is_fetched_once_where_one_is_refused() {
    let google = CloudServer::google("127.0.0.1:0", token(1)).unwrap();
    let azure = CloudServer::azure("127.0.0.1:0", "acc", token(1)).unwrap();
    for (server, url) in [(google, "gs://bkt/k"), (azure, "az://bkt/k")] {
        let machine = metadata();
        let host = machine.url.strip_prefix("http://").unwrap();
        let imds = format!("{}/metadata/identity/oauth2/token", machine.url);
        let set = [
            ("GCE_METADATA_HOST", host),
            ("AZURE_IMDS_ENDPOINT", imds.as_str()),
        ];
        let config = config(&server.endpoint(), &set);
        server.put("bkt", "k", "12345");
        let source = open(url, &config);
        let look = async || source.store.head(&source.object).await;
        for _ in 0..3 {
            look().await.unwrap();
        }
        assert_eq!(machine.seen.lock().len(), 1, "{url}: it is kept");
        server.set_access(token(2));
        look().await.unwrap();
        look().await.unwrap();
        assert_eq!(machine.seen.lock().len(), 2, "{url}: it is renewed once");
        server.set_access(Access::Token("another".into()));
        let error = look().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{url}");
        assert!(error.help().unwrap().contains("log in"), "{error:?}");
        assert!(!format!("{error:#}").contains("token-"), "{error:?}");
    }
}

#[tokio::test]
async fn tokens_may_be_given_outright() {
    let given = Access::Token("given".into());
    let google = CloudServer::google("127.0.0.1:0", given.clone()).unwrap();
    google.put("bkt", "k", "1");
    let with = config(
        &google.endpoint(),
        &[("CLOUDSDK_AUTH_ACCESS_TOKEN", "given")],
    );
    assert_eq!(head("gs://bkt/k", &with).await.unwrap(), 1);
    let azure = CloudServer::azure("127.0.0.1:0", "acc", given).unwrap();
    azure.put("bkt", "k", "1");
    let with = config(&azure.endpoint(), &[("AZURE_STORAGE_TOKEN", "given")]);
    assert_eq!(head("az://bkt/k", &with).await.unwrap(), 1);
}

#[tokio::test]
async fn a_sas_token_goes_along_and_is_shown_nowhere() {
    let sas = "sv=2023-11-03&sp=rl&sig=hush";
    let server = CloudServer::azure("127.0.0.1:0", "acc", Access::Sas(sas.into())).unwrap();
    server.put("bkt", "a b", "12");
    let with = |sas| config(&server.endpoint(), &[("AZURE_STORAGE_SAS_TOKEN", sas)]);
    let right = with("?sv=2023-11-03&sp=rl&sig=hush");
    assert_eq!(head("az://bkt/a b", &right).await.unwrap(), 2);
    let (store, _) = open_store("az://bkt/", &right).unwrap();
    let request = onecopy::store::ListRequest {
        prefix: onecopy::store::Key::new(*b""),
        is_folded: false,
        page: None,
    };
    assert_eq!(store.list(&request).await.unwrap().objects.len(), 1);
    let wrong = with("sp=rl&sig=hush-hush");
    let error = head("az://bkt/k", &wrong).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.help().unwrap().contains("expired"));
    let shown = format!("{error:#}{error:?}{store:?}{wrong:?}");
    assert!(!shown.contains("hush"), "{shown}");
}

#[tokio::test]
async fn what_anybody_could_use_is_not_sent_in_the_clear() {
    for (url, endpoint, set) in [
        (
            "gs://bkt/k",
            "http://store.example:1",
            ("CLOUDSDK_AUTH_ACCESS_TOKEN", "hush"),
        ),
        (
            "az://bkt/k",
            "http://store.example:1/acc",
            ("AZURE_STORAGE_SAS_TOKEN", "sig=hush"),
        ),
        (
            "az://bkt/k",
            "http://store.example:1/acc",
            ("AZURE_STORAGE_TOKEN", "hush"),
        ),
    ] {
        let error = head(url, &config(endpoint, &[set])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.why().contains("in the clear"), "{error}");
        assert!(error.help().unwrap().contains("`no_sign_request`"));
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Arc::new(serve_with(|_| None));
    let location = format!("{}/bkt/k?token=hush", elsewhere.url);
    let server = serve_with(move |_| {
        let head = format!("HTTP/1.1 307 X\nContent-Length: 0\nLocation: {location}");
        Some((raw(&head, b""), Then::Keep))
    });
    for (url, set) in [
        ("gs://bkt/k", ("CLOUDSDK_AUTH_ACCESS_TOKEN", "hush")),
        ("az://bkt/k", ("AZURE_STORAGE_TOKEN", "hush")),
    ] {
        let error = head(url, &config(&server.url, &[set])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.why().contains("points elsewhere"), "{error}");
    }
    assert!(elsewhere.seen.lock().is_empty());
}

#[tokio::test]
async fn without_credentials_nothing_is_asked_and_the_help_names_the_ways() {
    let nobody = [
        ("GCE_METADATA_HOST", "127.0.0.1:1"),
        (
            "AZURE_IMDS_ENDPOINT",
            "http://127.0.0.1:1/metadata/identity/",
        ),
        ("PATH", "/nowhere"),
    ];
    let server = serve_with(|_| None);
    let config = |set: &[(&str, &str)]| config(&server.url, &[&nobody[..], set].concat());
    let error = head("gs://bkt/k", &config(&[])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.help().unwrap().contains("gcloud auth"), "{error:?}");
    // A file that is named and cannot be read is not passed over for another identity.
    let file = ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json");
    let error = head("gs://bkt/k", &config(&[file])).await.unwrap_err();
    assert!(error.why().contains("GOOGLE_APPLICATION_CREDENTIALS"));
    let error = head("az://bkt/k", &config(&[])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.help().unwrap().contains("az login"), "{error:?}");
    assert!(server.seen.lock().is_empty());
}

#[tokio::test]
async fn an_identity_that_is_named_and_fails_is_told_and_no_other_taken_in_its_place() {
    let server = CloudServer::azure("127.0.0.1:0", "acc", token(1)).unwrap();
    server.put("bkt", "k", "1");
    let machine = metadata();
    let imds = format!("{}/metadata/identity/oauth2/token", machine.url);
    let entra = serve_with(|_| Some((status("401 No"), Then::Keep)));
    let set = [
        ("AZURE_IMDS_ENDPOINT", imds.as_str()),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "id"),
        ("AZURE_AUTHORITY_HOST", entra.url.as_str()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "hush").unwrap();
    for (name, value, is_asked) in [
        ("AZURE_CLIENT_SECRET", "hush", true),
        ("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap(), true),
        ("AZURE_FEDERATED_TOKEN_FILE", "/nowhere", false),
        ("AZURE_CLIENT_CERTIFICATE_PATH", "/nowhere", false),
    ] {
        let set = [&set[..], &[(name, value)]].concat();
        let error = head("az://bkt/k", &config(&server.endpoint(), &set)).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{name}");
        assert!(error.help().unwrap().contains(name), "{error:?}");
        let told = format!("{} refused them (status 401)", entra.url);
        assert_eq!(error.why().contains(&told), is_asked, "{error}");
        assert!(!format!("{error:#}").contains("hush"), "{error:?}");
    }
    assert!(machine.seen.lock().is_empty());
    assert!(server.records().is_empty());
    // Where none is named, the machine's own is taken.
    let found = head("az://bkt/k", &config(&server.endpoint(), &set)).await;
    assert_eq!(found.unwrap(), 1);
}

#[tokio::test]
async fn the_project_that_pays_and_the_wish_for_stored_bytes_are_told() {
    let server = CloudServer::google("127.0.0.1:0", Access::Anyone).unwrap();
    server.put("bkt", "k", "1");
    let config = StoreConfig {
        is_requester_paying: true,
        is_anonymous: true,
        ..config(&server.endpoint(), &[("GOOGLE_CLOUD_QUOTA_PROJECT", "pay")])
    };
    head("gs://bkt/k", &config).await.unwrap();
    let records = server.records();
    let sent = |name: &str| {
        let headers = &records[0].headers;
        headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    };
    assert_eq!(sent("x-goog-user-project"), Some("pay"));
    assert_eq!(sent("accept-encoding"), Some("gzip"));
    // A HEAD has no text, and so no code: the first byte is asked for to learn it.
    server.refuse(2, 400, "UserProjectMissing");
    let error = head("gs://bkt/k", &config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.help().unwrap().contains("`request_payer=requester`"));
}
