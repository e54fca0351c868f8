//! Every kind of store, with a way to write behind its back.
#![allow(unreachable_pub, reason = "it is a part of tests")]

use onecopy::config::{StoreConfig, Variables};
use onecopy::store::{Named, Object, Store, open_store};
use onecopy::sync::Arc;
use onecopy_testkit::cloud::{Access, CloudServer};
use onecopy_testkit::s3::S3Server;

/// A store under test, with a way to write behind its back.
pub struct Bench {
    pub name: &'static str,
    pub config: StoreConfig,
    /// What precedes a key in a URL.
    pub base: String,
    pub kind: Kind,
}

pub enum Kind {
    Folder(tempfile::TempDir),
    Server(S3Server),
    Cloud(CloudServer),
}

impl Bench {
    pub fn all() -> Vec<Self> {
        let folder = tempfile::tempdir().unwrap();
        let variables = Variables::only([
            ("AWS_ACCESS_KEY_ID", "onecopy"),
            ("AWS_SECRET_ACCESS_KEY", "onecopy-secret"),
        ]);
        let file = Self {
            name: "file",
            config: StoreConfig::default(),
            base: format!("{}/", folder.path().display()),
            kind: Kind::Folder(folder),
        };
        let server = || {
            let server = S3Server::builder().anonymous(true).start().unwrap();
            server.create_bucket("bkt").unwrap();
            server
        };
        let (s3, http) = (server(), server());
        let config = StoreConfig {
            endpoint_url: Some(s3.endpoint()),
            variables,
            ..StoreConfig::default()
        };
        let s3 = Self {
            name: "s3",
            config,
            base: "s3://bkt/".into(),
            kind: Kind::Server(s3),
        };
        let http = Self {
            name: "http",
            config: StoreConfig::default(),
            base: format!("{}/bkt/", http.endpoint()),
            kind: Kind::Server(http),
        };
        let google = CloudServer::google("127.0.0.1:0", Access::Anyone).unwrap();
        let azure = CloudServer::azure("127.0.0.1:0", "acc", Access::Anyone).unwrap();
        let gs = Self::cloud(google, "gs", "gs://bkt/");
        let az = Self::cloud(azure, "az", "az://bkt/");
        vec![file, s3, http, gs, az]
    }

    fn cloud(server: CloudServer, name: &'static str, base: &str) -> Self {
        server.create_bucket("bkt");
        Self {
            name,
            config: StoreConfig {
                endpoint_url: Some(server.endpoint()),
                is_anonymous: true,
                ..StoreConfig::default()
            },
            base: base.to_owned(),
            kind: Kind::Cloud(server),
        }
    }

    pub fn put(&self, key: &str, bytes: &[u8]) {
        match &self.kind {
            Kind::Folder(folder) => {
                let path = folder.path().join(key);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            }
            Kind::Server(server) => server.put("bkt", key, bytes.to_owned()).unwrap(),
            Kind::Cloud(server) => server.put("bkt", key, bytes.to_owned()),
        }
    }

    pub fn open(&self, key: &str) -> (Arc<dyn Store>, Object) {
        match open_store(&format!("{}{key}", self.base), &self.config).unwrap() {
            (store, Named::Object(object)) => (store, object),
            (_, Named::Prefix(key)) => panic!("{key} is a prefix"),
        }
    }
}
