//! Settings as texts name them.
//!
//! A help text writes a setting between backquotes, by the name that flags, variables and arguments share, with a value
//! where it has one to offer: `` `memory` ``, `` `on_error=skip` ``. That is plain enough to be read as it stands; the
//! command and the Python package each put it in their own words by [`spelled`]. `tests/words.rs` holds every text of
//! the engine against this.

/// Something that may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Where the store is.
    EndpointUrl,
    /// The region of the bucket.
    Region,
    /// The profile of the AWS tools.
    Profile,
    /// Whether requests go unsigned.
    NoSignRequest,
    /// Who pays for requests.
    RequestPayer,
    /// The certificates to trust.
    CaBundle,
    /// Whether certificates go unchecked.
    NoVerifySsl,
    /// How a bucket is named in requests.
    AddressingStyle,
    /// The key that objects are encrypted with.
    SseCKey,
    /// Whether checksums of objects go unchecked.
    NoVerifyChecksum,
    /// Memory for what is in flight.
    Memory,
    /// Connections to one endpoint.
    Connections,
    /// Threads that decode.
    DecodeThreads,
    /// What to do with a sample that cannot be read.
    OnError,
    /// How much may be left out.
    MaxSkipped,
    /// For how long nothing may move.
    WaitLimit,
    /// The route wished for.
    Route,
    /// The route that must be had.
    Require,
    /// Where batches go.
    Device,
    /// Samples in a batch.
    Batch,
    /// What becomes of samples that fill no batch.
    Tail,
    /// Lanes that the order is made of.
    Lanes,
    /// The index of the shards.
    Index,
    /// Samples to shuffle among.
    Shuffle,
    /// Steps that each rank makes.
    StepsPerEpoch,
    /// Worker processes of a rank.
    NumWorkers,
    /// Ranks that divide the data.
    WorldSize,
    /// Height and width of pictures.
    Size,
    /// The fields to keep.
    Fields,
    /// Which of two fields of one name to keep.
    Duplicates,
    /// Whether a copy takes everything below a prefix or folder.
    Recursive,
    /// Whether a transfer only says what it would do.
    DryRun,
    /// How much a sync may delete.
    MaxDelete,
    /// Where an index goes.
    Out,
    /// Whether an index is made anew, whatever is there.
    Force,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 35] = [
        Self::EndpointUrl,
        Self::Region,
        Self::Profile,
        Self::NoSignRequest,
        Self::RequestPayer,
        Self::CaBundle,
        Self::NoVerifySsl,
        Self::AddressingStyle,
        Self::SseCKey,
        Self::NoVerifyChecksum,
        Self::Memory,
        Self::Connections,
        Self::DecodeThreads,
        Self::OnError,
        Self::MaxSkipped,
        Self::WaitLimit,
        Self::Route,
        Self::Require,
        Self::Device,
        Self::Batch,
        Self::Tail,
        Self::Lanes,
        Self::Index,
        Self::Shuffle,
        Self::StepsPerEpoch,
        Self::NumWorkers,
        Self::WorldSize,
        Self::Size,
        Self::Fields,
        Self::Duplicates,
        Self::Recursive,
        Self::DryRun,
        Self::MaxDelete,
        Self::Out,
        Self::Force,
    ];

    /// Its name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndpointUrl => "endpoint_url",
            Self::Region => "region",
            Self::Profile => "profile",
            Self::NoSignRequest => "no_sign_request",
            Self::RequestPayer => "request_payer",
            Self::CaBundle => "ca_bundle",
            Self::NoVerifySsl => "no_verify_ssl",
            Self::AddressingStyle => "addressing_style",
            Self::SseCKey => "sse_c_key",
            Self::NoVerifyChecksum => "no_verify_checksum",
            Self::Memory => "memory",
            Self::Connections => "connections",
            Self::DecodeThreads => "decode_threads",
            Self::OnError => "on_error",
            Self::MaxSkipped => "max_skipped",
            Self::WaitLimit => "wait_limit",
            Self::Route => "route",
            Self::Require => "require",
            Self::Device => "device",
            Self::Batch => "batch",
            Self::Tail => "tail",
            Self::Lanes => "lanes",
            Self::Index => "index",
            Self::Shuffle => "shuffle",
            Self::StepsPerEpoch => "steps_per_epoch",
            Self::NumWorkers => "num_workers",
            Self::WorldSize => "world_size",
            Self::Size => "size",
            Self::Fields => "fields",
            Self::Duplicates => "duplicates",
            Self::Recursive => "recursive",
            Self::DryRun => "dry_run",
            Self::MaxDelete => "max_delete",
            Self::Out => "out",
            Self::Force => "force",
        }
    }

    /// Reads what stands between backquotes: the setting, and the value where there is one. None for anything else.
    #[must_use]
    pub fn read(text: &str) -> Option<(Self, Option<&str>)> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let setting = Self::ALL.into_iter().find(|one| one.name() == name)?;
        Some((setting, value))
    }
}

/// `text` with its settings as `spell` writes them, from the setting and the value offered; those of which `spell` knows
/// no other form stay as they are, and so does everything else.
#[must_use]
pub fn spelled(text: &str, spell: impl Fn(Setting, Option<&str>) -> Option<String>) -> String {
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        said.push_str(before);
        let found = after.split_once('`').and_then(|(inner, behind)| {
            let (setting, value) = Setting::read(inner)?;
            Some((spell(setting, value)?, behind))
        });
        match found {
            Some((word, behind)) => {
                said.push_str(&word);
                rest = behind;
            }
            None => {
                said.push('`');
                rest = after;
            }
        }
    }
    said.push_str(rest);
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upper(setting: Setting, value: Option<&str>) -> Option<String> {
        let name = setting.name().to_uppercase();
        match (setting, value) {
            (Setting::Route, _) => None,
            (_, Some(value)) => Some(format!("{name}:{value}")),
            (_, None) => Some(name),
        }
    }

    #[test]
    fn settings_are_spelled_and_nothing_else_is() {
        for (text, said) in [
            ("", ""),
            ("no setting", "no setting"),
            ("raise `memory`", "raise MEMORY"),
            (
                "`region=a-1`, or `on_error=skip`.",
                "REGION:a-1, or ON_ERROR:skip.",
            ),
            ("`fields=jpg,cls`", "FIELDS:jpg,cls"),
            ("`request_payer=a=b`", "REQUEST_PAYER:a=b"),
            (
                "`tar tf` lists it, `memory` bounds it",
                "`tar tf` lists it, MEMORY bounds it",
            ),
            ("`route=stream` stays", "`route=stream` stays"),
            ("a ` alone, then `memory`", "a ` alone, then MEMORY"),
            ("`memory", "`memory"),
            ("``memory``", "`MEMORY`"),
            ("memory, `Memory`, `memory `", "memory, `Memory`, `memory `"),
        ] {
            assert_eq!(spelled(text, upper), said, "{text}");
        }
    }

    #[test]
    fn every_setting_is_found_by_its_name() {
        for setting in Setting::ALL {
            assert_eq!(Setting::read(setting.name()), Some((setting, None)));
        }
        assert_eq!(Setting::read("bach=3"), None);
    }
}
