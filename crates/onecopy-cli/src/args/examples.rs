//! What stands below the options in each command's help. A test parses every line of it.

pub(super) const ALL: &str = "\
Examples:
  onecopy demo
  onecopy ls s3://bucket/train/
  onecopy sync s3://bucket/train/ data/ --delete --dry-run
  onecopy bench 's3://bucket/train-{000..099}.tar' --stages

More stands in the help of each command: onecopy sync --help";

pub(super) const DEMO: &str = "\
Examples:
  onecopy demo
  onecopy demo --samples 300 --json
  onecopy demo --keep shards

Ends with 0 if every sample came back byte for byte, 1 if not, 2 if it could not run.";

pub(super) const LS: &str = "\
Examples:
  onecopy ls
  onecopy ls s3://bucket/train/
  onecopy ls gs://bucket/train/
  onecopy ls -r -H --summarize 's3://bucket/*/shard-*.tar'
  onecopy ls s3://bucket/ --no-sign-request --endpoint-url http://127.0.0.1:9000
  onecopy ls --json s3://bucket/train/ | jq .

Ends with 0 if all was listed, 1 if a part of it could not be, 2 if it could not run.";

pub(super) const CAT: &str = "\
Examples:
  onecopy cat s3://bucket/train-000.tar | tar t
  onecopy cat 's3://bucket/log-{00..23}.txt' https://host/last.txt > all.txt
  onecopy cat az://container/notes.txt
  onecopy cat 's3://bucket/key?versionId=3HL4kqt' > old

Ends with 0 if every byte was written, 2 if not.";

pub(super) const INDEX: &str = "\
Examples:
  onecopy index s3://bucket/train/
  onecopy index 's3://bucket/train-{000..099}.tar' --json
  onecopy index 'gs://bucket/train-{000..099}.tar' --out s3://bucket/indexes/
  onecopy index shards/ --key-rule last-dot --force

Writes index.json beside the shards, in the form of wids, and for each shard NAME.idx, in the form of
DALI. Reads headers only where members are long. Started again, it goes on where it ended, and takes
over what is known of shards that are the same.
Ends with 0 if all was indexed, 1 if some shards failed or parts of them were left out, 2 if it could
not run.";

pub(super) const BENCH: &str = "\
Examples:
  onecopy bench 's3://bucket/train-{000..099}.tar'
  onecopy bench s3://bucket/train/ --stages
  onecopy bench 'gs://bucket/train-{000..099}.tar'
  onecopy bench s3://bucket/train/ --to buffer --connections 64 --repeat 5
  onecopy bench shards/ --fields jpg,cls --size 224 --limit-samples 10000 --json

Ends with 0 if it ran, 2 if it could not.";

pub(super) const CP: &str = "\
Examples:
  onecopy cp s3://bucket/train-000.tar data/
  onecopy cp 's3://bucket/train-{000..099}.tar' 's3://bucket/val/*.tar' data/
  onecopy cp -r s3://bucket/train/ data/ --exclude '*' --include '*.tar'
  onecopy cp -r gs://bucket/train/ data/
  onecopy cp -r results s3://bucket/results/ --storage-class STANDARD_IA
  onecopy cp -r s3://bucket/train/ s3://other/train/
  tar c photos | onecopy cp - s3://bucket/photos.tar
  onecopy cp s3://bucket/photos.tar - | tar x

Ends with 0 if all was copied, 1 if some items failed, 2 if it could not run.";

pub(super) const SYNC: &str = "\
Examples:
  onecopy sync s3://bucket/train/ data/
  onecopy sync az://container/train/ data/
  onecopy sync data s3://bucket/train/ --exclude '*.tmp'
  onecopy sync s3://bucket/train/ data/ --delete --dry-run
  onecopy sync s3://bucket/train/ data/ --delete --max-delete 100
  onecopy sync s3://bucket/train/ s3://other/train/ --size-only

Copies what is missing at the target, has another size there, or is newer at the source.
Ends with 0 if the target is like the source, 1 if some items failed, 2 if it could not run.";

pub(super) const RUN: &str = "\
Examples:
  onecopy run commands.txt
  sed 's|.*|cp s3://bucket/& data/|' names.txt | onecopy run

A line is a command as it would stand behind onecopy, quoted as for a shell; nothing in it is
expanded by a shell. Empty lines and lines that begin with # are passed over. Lines of cp with the
same flags that follow each other are carried out side by side, everything else in order.
Ends with 0 if all was done, 1 if some items failed, 2 if it could not run.";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use crate::args::Args;

    /// The words of each `onecopy` in an example; what other programs do with it is theirs.
    fn calls(help: &str) -> Vec<Vec<String>> {
        let commands = help.lines().filter(|line| line.starts_with("  "));
        let parts = commands.flat_map(|line| line.split(" | "));
        let words = parts.map(|part| shlex::split(part.trim()).unwrap());
        let ours = words.filter(|words| words[0] == "onecopy");
        ours.map(|words| words.into_iter().take_while(|word| word != ">").collect())
            .collect()
    }

    #[test]
    fn every_command_has_examples_and_each_of_them_parses() {
        let all = Args::command();
        for command in all.get_subcommands().chain([&all]) {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let calls = calls(&help);
            assert!(!calls.is_empty(), "{} has no examples", command.get_name());
            for call in calls {
                if let Err(error) = Args::try_parse_from(&call) {
                    panic!("{call:?}: {error}");
                }
            }
        }
    }
}
