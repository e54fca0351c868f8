//! What the AWS configuration file says about endpoint and region. (Credentials in it are the signer's business.)

use super::super::small_file;
use crate::config::Variables;

/// A section of the file, as far as it concerns us.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) region: Option<String>,
    pub(super) endpoint_url: Option<String>,
    /// As it stands: the words are read elsewhere.
    pub(super) addressing_style: Option<String>,
    pub(super) dual_stack: Option<String>,
    pub(super) fips: Option<String>,
    pub(super) sessionless: Option<String>,
    /// Whether the file has such a section at all.
    pub(super) is_found: bool,
}

impl Profile {
    /// Reads the section of `name` from the files that the variables point to. A missing file is an empty one.
    pub(super) fn read(name: &str, variables: &Variables) -> Self {
        let mut profile = Self::parse(name, &text(variables, "AWS_CONFIG_FILE", "config"));
        // The credentials file may be all there is.
        let credentials = text(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
        profile.is_found |= credentials
            .lines()
            .any(|line| section(line).is_some_and(|section| section == name));
        profile
    }

    /// Whether the files give the profile an access key, and a secret key.
    pub(super) fn keys(name: &str, variables: &Variables) -> (bool, bool) {
        let files = [
            text(variables, "AWS_CONFIG_FILE", "config"),
            text(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        ];
        let has = |wanted: &str| {
            let mut all = files.iter().flat_map(|text| settings(text));
            all.any(|(place, key, _)| {
                place.strip_prefix("profile ").unwrap_or(&place) == name && key == wanted
            })
        };
        (has("aws_access_key_id"), has("aws_secret_access_key"))
    }

    fn parse(name: &str, text: &str) -> Self {
        let mut profile = Self::default();
        let mut services = None;
        let mut general = None;
        for (place, key, value) in settings(text) {
            let is_ours = if name == "default" {
                place == "default" || place == "profile default"
            } else {
                place
                    .strip_prefix("profile ")
                    .is_some_and(|rest| rest.trim() == name)
            };
            if !is_ours {
                continue;
            }
            profile.is_found = true;
            match key.as_str() {
                "region" => profile.region = Some(value),
                "endpoint_url" => general = Some(value),
                "services" => services = Some(format!("services {value}")),
                "s3.endpoint_url" => profile.endpoint_url = Some(value),
                "s3.addressing_style" => profile.addressing_style = Some(value),
                "use_dualstack_endpoint" | "s3.use_dualstack_endpoint" => {
                    profile.dual_stack = Some(value);
                }
                "s3_disable_express_session_auth" => profile.sessionless = Some(value),
                "use_fips_endpoint" => profile.fips = Some(value),
                _ => {}
            }
        }
        // An endpoint for S3 alone is closer than one for everything.
        let for_s3 = services.and_then(|services| {
            settings(text)
                .find(|(place, key, _)| *place == services && key == "s3.endpoint_url")
                .map(|(_, _, value)| value)
        });
        profile.endpoint_url = for_s3.or(profile.endpoint_url).or(general);
        profile
    }
}

/// The text of a file of the AWS tools, where the variable or their own folder has it; nothing where it is missing.
fn text(variables: &Variables, variable: &str, default: &str) -> String {
    let path = variables.get(variable).unwrap_or_else(|| {
        let home = variables.get("HOME").unwrap_or_default();
        format!("{home}/.aws/{default}")
    });
    small_file::read_text(path).unwrap_or_default()
}

/// The name in a `[section]` line.
fn section(line: &str) -> Option<String> {
    let line = line.split(['#', ';']).next().unwrap_or_default().trim();
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// All settings with their sections; one that is indented below another is `outer.inner`.
fn settings(text: &str) -> impl Iterator<Item = (String, String, String)> {
    let mut place = String::new();
    let mut outer = String::new();
    text.lines().filter_map(move |line| {
        if let Some(name) = section(line) {
            place = name;
            outer.clear();
            return None;
        }
        if line.trim_start().starts_with(['#', ';']) {
            return None;
        }
        let (key, value) = line.split_once('=')?;
        let is_inner = key.starts_with([' ', '\t']);
        let value = value.split(" #").next().unwrap_or_default().trim();
        let mut key = key.trim().to_ascii_lowercase();
        if is_inner && !outer.is_empty() {
            key = format!("{outer}.{key}");
        } else if value.is_empty() {
            outer.clone_from(&key);
            return None;
        } else {
            outer.clear();
        }
        Some((place.clone(), key, value.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
# a comment
[default]
region = eu-west-1
[profile lab]   ; the lab
region=us-west-2
endpoint_url = http://general
services = box
s3 =
    max_concurrent_requests = 20
output = json
[services box]
dynamodb =
    endpoint_url = http://no
s3 =
    endpoint_url = http://127.0.0.1:9000
";

    #[test]
    fn region_and_endpoint_come_from_the_right_section() {
        let default = Profile::parse("default", FILE);
        assert_eq!(default.region.as_deref(), Some("eu-west-1"));
        assert_eq!(default.endpoint_url, None);
        let lab = Profile::parse("lab", FILE);
        assert_eq!(lab.region.as_deref(), Some("us-west-2"));
        assert_eq!(lab.endpoint_url.as_deref(), Some("http://127.0.0.1:9000"));
        assert!(!Profile::parse("other", FILE).is_found);
        assert_eq!(
            Profile::parse("default", "[[\n=\n]x\n[default\n"),
            Profile::default()
        );
    }
}
