//! The engine's settings in Python: how this package says what a help text names.

use onecopy::setting::Setting;

/// `setting` as it is written in a call, with the value that a text offers; a setting without a value keeps its name,
/// which is the argument's.
pub(crate) fn argument(setting: Setting, value: Option<&str>) -> Option<String> {
    let name = setting.name();
    match setting {
        Setting::NoSignRequest | Setting::NoVerifySsl | Setting::NoVerifyChecksum => {
            Some(format!("{name}=True"))
        }
        Setting::Batch => Some(format!("batch({})", value.unwrap_or_default())),
        Setting::Shuffle => Some(format!("shuffle({})", value.unwrap_or_default())),
        Setting::Device => Some(format!("to({})", value.map_or_else(String::new, quoted))),
        Setting::Fields => {
            let names = value.map(|names| names.split(',').map(quoted).collect::<Vec<_>>());
            Some(format!(
                "to_tuple({})",
                names.unwrap_or_default().join(", ")
            ))
        }
        Setting::Size => value.map(|size| format!("decode(\"rgb\", size={size})")),
        // Of the command's only: the package copies no whole objects and makes no indexes.
        Setting::Recursive
        | Setting::DryRun
        | Setting::MaxDelete
        | Setting::Out
        | Setting::Force => None,
        Setting::EndpointUrl
        | Setting::Region
        | Setting::Profile
        | Setting::RequestPayer
        | Setting::CaBundle
        | Setting::AddressingStyle
        | Setting::SseCKey
        | Setting::Memory
        | Setting::Connections
        | Setting::DecodeThreads
        | Setting::OnError
        | Setting::MaxSkipped
        | Setting::WaitLimit
        | Setting::Route
        | Setting::Require
        | Setting::Duplicates
        | Setting::Tail
        | Setting::Lanes
        | Setting::Index
        | Setting::StepsPerEpoch
        | Setting::NumWorkers
        | Setting::WorldSize => value.map(|value| format!("{name}={}", literal(value))),
    }
}

/// A number as it is, everything else as a string.
fn literal(value: &str) -> String {
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.to_owned();
    }
    quoted(value)
}

fn quoted(value: &str) -> String {
    format!("\"{value}\"")
}
