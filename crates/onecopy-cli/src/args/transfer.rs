//! What was typed behind `cp` and `sync`.

use clap::builder::PossibleValuesParser;
use clap::parser::ArgMatches;
use clap::{Arg, ArgAction, Args as ClapArgs, Command, FromArgMatches};

use super::examples::{CP, RUN, SYNC};
use super::{ReadingArgs, StoreArgs};

/// `onecopy cp`
#[derive(Debug, ClapArgs)]
#[command(after_help = CP)]
pub(crate) struct CpArgs {
    /// Objects (s3://, gs://, az://), files, globs, braces, URLs; - for standard input; with
    /// --recursive prefixes and folders
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) sources: Vec<String>,
    /// An object (s3://), a file, what ends in / or is a folder; - for standard output
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) flags: CpFlags,
}

/// How `cp` copies.
#[derive(Debug, Clone, PartialEq, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "flags as they are typed")]
pub(crate) struct CpFlags {
    /// Copy everything below a prefix or folder
    #[arg(long = "recursive", short = 'r')]
    pub(crate) is_recursive: bool,
    /// Leave out the folders between: put every file right into the target
    #[arg(long = "flatten")]
    pub(crate) is_flat: bool,
    /// Take * ? [ { in sources for what they are
    #[arg(long = "raw")]
    pub(crate) is_raw: bool,
    /// Leave what is at the target as it is
    #[arg(long = "no-clobber", short = 'n', conflicts_with_all = ["is_if_size_differ", "is_if_source_newer"])]
    pub(crate) is_no_clobber: bool,
    /// Replace only what has another size
    #[arg(long = "if-size-differ", short = 's')]
    pub(crate) is_if_size_differ: bool,
    /// Replace only what is older than the source
    #[arg(long = "if-source-newer", short = 'u')]
    pub(crate) is_if_source_newer: bool,
    #[command(flatten)]
    pub(crate) transfer: TransferArgs,
}

impl CpArgs {
    pub(crate) fn is_to_stdout(&self) -> bool {
        self.target == "-"
    }
}

/// `onecopy sync`
#[derive(Debug, ClapArgs)]
#[command(after_help = SYNC)]
#[expect(clippy::struct_excessive_bools, reason = "flags as they are typed")]
pub(crate) struct SyncArgs {
    /// A prefix (s3://, gs://, az://) or a folder
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// A prefix (s3://) or a folder
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Delete at the target what is not at the source
    #[arg(long = "delete")]
    pub(crate) is_deleting: bool,
    /// Delete nothing at all if it would be more than this
    #[arg(long, value_name = "N", requires = "is_deleting")]
    pub(crate) max_delete: Option<u64>,
    /// Compare sizes only
    #[arg(long = "size-only", conflicts_with_all = ["is_exact", "is_by_checksum"])]
    pub(crate) is_size_only: bool,
    /// Copy also what is older at the source: for downloads, which give files the time of their
    /// object
    #[arg(
        long = "exact",
        alias = "exact-timestamps",
        conflicts_with = "is_by_checksum"
    )]
    pub(crate) is_exact: bool,
    /// Compare sizes and the checksums that the store keeps; what has none is copied
    #[arg(long = "checksum")]
    pub(crate) is_by_checksum: bool,
    #[command(flatten)]
    pub(crate) transfer: TransferArgs,
}

/// `onecopy run`
#[derive(Debug, ClapArgs)]
#[command(after_help = RUN)]
pub(crate) struct RunArgs {
    /// A file with commands, one a line; - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: String,
}

/// What `cp` and `sync` share.
#[derive(Debug, Clone, PartialEq, ClapArgs)]
pub(crate) struct TransferArgs {
    /// Tell what would be done, and do nothing
    #[arg(long = "dry-run", alias = "dryrun")]
    pub(crate) is_dry_run: bool,
    /// Pass over symbolic links in source folders
    #[arg(long = "no-follow-symlinks")]
    pub(crate) is_not_following_links: bool,
    /// Wait for the disk before a file gets its name
    #[arg(long = "fsync")]
    pub(crate) is_synced_to_disk: bool,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) attributes: AttributeArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// What to tell of objects that are written.
#[derive(Debug, Clone, PartialEq, ClapArgs)]
#[command(next_help_heading = "Writing objects")]
pub(crate) struct AttributeArgs {
    /// The media type [default: what the name of a file speaks of]
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Tell no media type that is not named
    #[arg(long = "no-guess-mime-type")]
    pub(crate) is_not_guessing_type: bool,
    /// The encoding, such as gzip
    #[arg(long, value_name = "NAME")]
    pub(crate) content_encoding: Option<String>,
    /// How browsers show it
    #[arg(long, value_name = "TEXT")]
    pub(crate) content_disposition: Option<String>,
    /// How long others may keep it
    #[arg(long, value_name = "TEXT")]
    pub(crate) cache_control: Option<String>,
    /// The storage class, such as STANDARD_IA
    #[arg(long, value_name = "CLASS")]
    pub(crate) storage_class: Option<String>,
    /// The canned access list, such as bucket-owner-full-control
    #[arg(long, value_name = "NAME")]
    pub(crate) acl: Option<String>,
    /// Encrypt at the store
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "AES256",
          value_parser = PossibleValuesParser::new(["AES256", "aws:kms", "aws:kms:dsse"]))]
    pub(crate) sse: Option<String>,
    /// The key to encrypt with
    #[arg(long, value_name = "ID", requires = "sse")]
    pub(crate) sse_kms_key_id: Option<String>,
    /// Metadata of your own; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) metadata: Vec<(String, String)>,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it like name=value".to_owned()),
    }
}

/// `--include` and `--exclude`, in the order in which they were typed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RuleArgs(pub(crate) Vec<(bool, String)>);

const RULES: [(&str, bool, &str); 2] = [
    (
        "exclude",
        false,
        "Leave out relative keys that match; of several rules that match the last one counts",
    ),
    (
        "include",
        true,
        "Take relative keys that match, after an --exclude",
    ),
];

impl ClapArgs for RuleArgs {
    fn augment_args(command: Command) -> Command {
        RULES.into_iter().fold(command, |command, (name, _, help)| {
            command.arg(
                Arg::new(name)
                    .long(name)
                    .value_name("PATTERN")
                    .help(help)
                    .action(ArgAction::Append),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RuleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut rules = Vec::new();
        for (name, is_included, _) in RULES {
            let places = matches.indices_of(name).into_iter().flatten();
            let patterns = matches.get_many::<String>(name).into_iter().flatten();
            rules.extend(
                places
                    .zip(patterns)
                    .map(|(at, text)| (at, is_included, text.clone())),
            );
        }
        rules.sort_unstable_by_key(|(at, ..)| *at);
        let rules = rules
            .into_iter()
            .map(|(_, is_included, text)| (is_included, text));
        Ok(Self(rules.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
