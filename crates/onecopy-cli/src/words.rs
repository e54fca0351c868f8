//! The engine's settings as flags: how this command says what a help text names.

use onecopy::setting::Setting;

/// The flag for `setting`, with the value that a text offers; none where the command has no such flag.
pub(crate) fn flag(setting: Setting, value: Option<&str>) -> Option<String> {
    let flag = match setting {
        Setting::EndpointUrl => "--endpoint-url",
        Setting::Region => "--region",
        Setting::Profile => "--profile",
        Setting::NoSignRequest => "--no-sign-request",
        Setting::RequestPayer => "--request-payer",
        Setting::CaBundle => "--ca-bundle",
        Setting::NoVerifySsl => "--no-verify-ssl",
        Setting::AddressingStyle => "--addressing-style",
        Setting::SseCKey => "--sse-c-key",
        Setting::NoVerifyChecksum => "--no-verify-checksum",
        Setting::Memory => "--memory",
        Setting::Connections => "--connections",
        Setting::DecodeThreads => "--decode-threads",
        Setting::OnError => "--on-error",
        Setting::MaxSkipped => "--max-skipped",
        Setting::WaitLimit => "--wait-limit",
        Setting::Batch => "--batch",
        Setting::Size => "--size",
        Setting::Fields => "--fields",
        Setting::Recursive => "--recursive",
        Setting::DryRun => "--dry-run",
        Setting::MaxDelete => "--max-delete",
        Setting::Duplicates => "--duplicates",
        Setting::Out => "--out",
        Setting::Force => "--force",
        Setting::Route
        | Setting::Require
        | Setting::Device
        | Setting::Tail
        | Setting::Lanes
        | Setting::Index
        | Setting::Shuffle
        | Setting::StepsPerEpoch
        | Setting::NumWorkers
        | Setting::WorldSize => return None,
    };
    Some(value.map_or_else(|| flag.to_owned(), |value| format!("{flag} {value}")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Args;

    #[test]
    fn every_flag_is_one_that_some_command_takes() {
        let command = Args::command();
        let flags: Vec<String> = command
            .get_subcommands()
            .flat_map(clap::Command::get_arguments)
            .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
            .collect();
        for setting in Setting::ALL {
            let Some(flag) = flag(setting, None) else {
                continue;
            };
            assert!(flags.contains(&flag), "{flag} is not in {flags:?}");
            assert_eq!(flag, format!("--{}", setting.name().replace('_', "-")));
        }
        assert_eq!(
            flag(Setting::OnError, Some("skip")).unwrap(),
            "--on-error skip"
        );
    }

    #[test]
    fn a_setting_that_the_command_lacks_is_one_that_it_does_not_take() {
        let command = Args::command();
        for setting in Setting::ALL {
            let long = setting.name().replace('_', "-");
            let is_taken = command
                .get_subcommands()
                .flat_map(clap::Command::get_arguments)
                .any(|arg| arg.get_long() == Some(&long));
            assert_eq!(flag(setting, None).is_some(), is_taken, "{long}");
        }
    }
}
