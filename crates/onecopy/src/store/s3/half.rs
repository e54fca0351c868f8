//! Half of a pair of keys: an access key without its secret, or the other way round.

use super::super::http1::Failure;
use super::profile::Profile;
use crate::config::StoreConfig;
use crate::error::ErrorKind;

/// What of a pair was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Half {
    /// Whether it is the access key: that names somebody, a secret alone nobody.
    pub(super) is_key: bool,
    given: String,
    missing: String,
}

impl Half {
    /// The half that the environment gives, or else the profile. None where both halves are there, or neither.
    pub(super) fn of(config: &StoreConfig) -> Option<Self> {
        let variables = &config.variables;
        let profile = config.profile.clone();
        let in_environment = (
            variables.get("AWS_ACCESS_KEY_ID").is_some(),
            variables.get("AWS_SECRET_ACCESS_KEY").is_some(),
        );
        // A profile that is named on purpose is taken before the environment.
        if profile.is_none() && in_environment != (false, false) {
            return Self::among(
                in_environment,
                ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
                "",
            );
        }
        let name = profile
            .or_else(|| variables.get("AWS_PROFILE"))
            .unwrap_or_else(|| "default".to_owned());
        let keys = Profile::keys(&name, variables);
        let of_profile = format!(" of the profile {name}");
        Self::among(
            keys,
            ["aws_access_key_id", "aws_secret_access_key"],
            &of_profile,
        )
    }

    fn among(
        (has_key, has_secret): (bool, bool),
        [key, secret]: [&str; 2],
        place: &str,
    ) -> Option<Self> {
        if has_key == has_secret {
            return None;
        }
        let (given, missing) = if has_key {
            (key, secret)
        } else {
            (secret, key)
        };
        Some(Self {
            is_key: has_key,
            given: format!("{given}{place}"),
            missing: missing.to_owned(),
        })
    }

    pub(super) fn failure(&self) -> Failure {
        let Self { given, missing, .. } = self;
        let why = format!("no credentials were found: {given} is set, and {missing} is not");
        Failure::new(ErrorKind::Denied, "no_credentials", why).with_help(format!(
            "set {missing}, too; or unset {given} for credentials from elsewhere, or read a public bucket with \
             `no_sign_request`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Variables;

    #[test]
    fn the_half_that_is_missing_is_named_wherever_the_other_stands() {
        let folder = tempfile::tempdir().unwrap();
        let [config, credentials] = ["config", "credentials"].map(|name| folder.path().join(name));
        std::fs::write(&config, "[profile lab]\naws_access_key_id = hush\n").unwrap();
        let text = "[default]\naws_secret_access_key = hush\n[whole]\naws_access_key_id = a\n\
                    aws_secret_access_key = b\n[lab]\nregion = r\n";
        std::fs::write(&credentials, text).unwrap();
        let files = [
            ("AWS_CONFIG_FILE", config.to_str().unwrap()),
            ("AWS_SHARED_CREDENTIALS_FILE", credentials.to_str().unwrap()),
        ];
        let [key, secret] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
        for (variables, profile, wanted) in [
            (vec![(key, "hush")], None, Some((true, key, secret))),
            (
                vec![(key, "hush"), (secret, "")],
                None,
                Some((true, key, secret)),
            ),
            (vec![(secret, "hush")], None, Some((false, secret, key))),
            (vec![(key, "hush"), (secret, "hush")], None, None),
            (
                vec![],
                None,
                Some((false, "profile default", "aws_access_key_id")),
            ),
            (
                vec![],
                Some("lab"),
                Some((true, "profile lab", "aws_secret_access_key")),
            ),
            (vec![(key, "hush")], Some("whole"), None),
            (vec![], Some("none"), None),
        ] {
            let half = Half::of(&StoreConfig {
                profile: profile.map(str::to_owned),
                variables: Variables::only(files.iter().copied().chain(variables.clone())),
                ..StoreConfig::default()
            });
            assert_eq!(
                half.is_some(),
                wanted.is_some(),
                "{variables:?} {profile:?}"
            );
            let (Some(half), Some((is_key, given, missing))) = (half, wanted) else {
                continue;
            };
            assert_eq!(half.is_key, is_key);
            let failure = half.failure();
            assert!(
                failure
                    .why
                    .contains(&format!("{given} is set, and {missing} is not")),
                "{}",
                failure.why
            );
            assert!(!format!("{failure:?}").contains("hush"));
        }
    }
}
