//! Holds every `use crate::` of the engine against the table of rooms in docs/ARCHITECTURE.md.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const OPEN_TO_ALL: [&str; 9] = [
    "error", "config", "setting", "size", "sync", "route", "fuzzing", "Error", "Result",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Room -> rooms that it may import.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let lines = text
        .lines()
        .skip_while(|line| *line != "| room | may import |")
        .skip(2);
    lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let rooms = cells[1].split(',').map(|room| room.trim().to_owned());
            (
                cells[0].to_owned(),
                rooms.filter(|room| room != "-").collect(),
            )
        })
        .collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().unwrap() != "target" {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The room that a file of the engine belongs to.
fn room_of(path: &Path, src: &Path) -> String {
    let first = path.strip_prefix(src).unwrap().components().next().unwrap();
    first
        .as_os_str()
        .to_str()
        .unwrap()
        .trim_end_matches(".rs")
        .to_owned()
}

/// Every room named after `crate::`, in `use` lines, grouped ones included, and in paths; comments left out.
fn imports(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            for symbol in group.chars() {
                match symbol {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    _ => {}
                }
                match symbol {
                    ',' if depth == 0 => {
                        found.insert(std::mem::take(&mut name));
                    }
                    _ => name.push(symbol),
                }
            }
            found.insert(name);
        } else {
            found.insert(rest.to_owned());
        }
    }
    found
        .into_iter()
        .map(|path| {
            let path = path.trim().to_owned();
            path.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap()
                .to_owned()
        })
        .filter(|room| !room.is_empty())
        .collect()
}

#[test]
fn every_room_imports_only_what_the_table_allows() {
    let table = table();
    assert!(
        table.len() >= 9,
        "the table in docs/ARCHITECTURE.md was not found"
    );
    let src = root().join("crates/onecopy/src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut broken = Vec::new();
    for file in files {
        let room = room_of(&file, &src);
        let Some(allowed) = table.get(&room) else {
            assert!(
                OPEN_TO_ALL.contains(&room.as_str()) || room == "lib",
                "room {room} is not in the table"
            );
            continue;
        };
        for import in imports(&fs::read_to_string(&file).unwrap()) {
            let is_fine = import == room
                || allowed.contains(&import)
                || OPEN_TO_ALL.contains(&import.as_str());
            if !is_fine {
                broken.push(format!("{}: imports {import}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_reader_of_imports_sees_them_all() {
    let text = "use crate::buffer::{Pool, Slab};\nuse crate::{ledger::Ledger, sample::{a, b}, Error};\n\
                // crate::pipeline in a comment\nfn f() -> crate::store::Key { crate::batch::x() }";
    let found: Vec<String> = imports(text).into_iter().collect();
    assert_eq!(
        found,
        ["Error", "batch", "buffer", "ledger", "sample", "store"]
    );
}

#[test]
fn no_source_file_is_longer_than_400_lines() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let long: Vec<String> = files
        .iter()
        .map(|file| (file, fs::read_to_string(file).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > 400)
        .map(|(file, lines)| format!("{}: {lines} lines", file.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn payload_is_moved_only_with_an_open_hop_in_hand() {
    let src = root().join("crates/onecopy/src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let holders = files
        .iter()
        .filter(|file| !file.components().any(|part| part.as_os_str() == "tests"))
        .filter(|file| {
            fs::read_to_string(file)
                .unwrap()
                .contains("expect(clippy::disallowed_methods")
        })
        .map(|file| file.strip_prefix(&src).unwrap().display().to_string())
        .collect::<Vec<_>>();
    for file in holders {
        let text = fs::read_to_string(src.join(&file)).unwrap();
        assert!(
            file == "buffer/copy.rs" || text.contains("not payload"),
            "{file} copies by hand and does not say why that is no payload"
        );
    }
}
