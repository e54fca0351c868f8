//! Holds every text of the engine against `onecopy::setting`: the engine speaks neither the command's flags nor Python,
//! and what it puts between backquotes is a setting, or a program to run.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::fs;
use std::path::{Path, PathBuf};

use onecopy::setting::Setting;

/// Programs that a text may name with their options; none of them is ours.
const PROGRAMS: [&str; 4] = ["tar tf", "tar --sort=name", "{name} -t", "onecopy index"];

/// Options of programs that are not ours.
const FOREIGN: [&str; 3] = ["--sort=name", "--sparse", "--multi-volume"];

/// Python that has got into texts before: calls of the chain, keyword arguments, constants.
const PYTHON: [&str; 9] = [
    "=\"",
    "='",
    "=True",
    "=False",
    "batch(",
    "decode(",
    "to_tuple(",
    "map(",
    "open(",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.file_stem().unwrap() != "fuzz" {
            into.push(path);
        }
    }
}

/// The text literals of Rust code, as a reader of the message sees them; comments and unit tests left out.
fn texts(code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut texts = Vec::new();
    let mut rest = code.chars().peekable();
    let mut before = ' ';
    // Why a lint is off, `reason = ".."`, is no text that the engine says.
    let mut word = String::new();
    while let Some(symbol) = rest.next() {
        match symbol {
            '/' if rest.peek() == Some(&'/') => {
                rest.by_ref().find(|symbol| *symbol == '\n');
            }
            // A quote as a character: '"' and b'"'.
            '"' if before == '\'' && rest.peek() == Some(&'\'') => {}
            // r"..", where a backslash is itself.
            '"' if before == 'r' => {
                texts.push(rest.by_ref().take_while(|symbol| *symbol != '"').collect())
            }
            '"' => {
                let mut text = String::new();
                while let Some(symbol) = rest.next() {
                    match symbol {
                        '"' => break,
                        '\\' => match rest.next() {
                            Some('\n') => while rest.next_if(|c| c.is_whitespace()).is_some() {},
                            Some(escaped) => text.push(escaped),
                            None => {}
                        },
                        symbol => text.push(symbol),
                    }
                }
                if !word.ends_with("reason=") {
                    texts.push(text);
                }
            }
            _ => {}
        }
        before = symbol;
        if !symbol.is_whitespace() {
            word.push(symbol);
        }
    }
    texts
}

/// What is wrong with a text, if anything.
fn complaint(text: &str) -> Option<String> {
    let mut left = text.to_owned();
    for foreign in FOREIGN {
        left = left.replace(foreign, "");
    }
    let has_flag = left
        .match_indices("--")
        .any(|(at, _)| left[at + 2..].starts_with(|c: char| c.is_ascii_lowercase()));
    if has_flag {
        return Some("a flag of the command".to_owned());
    }
    // A quote of a field's own (`name="x"` in a message about headers, say) would come up here, too: none does.
    if let Some(word) = PYTHON.iter().find(|word| text.contains(**word)) {
        return Some(format!("Python: {word}"));
    }
    for quoted in text.split('`').skip(1).step_by(2) {
        if Setting::read(quoted).is_none() && !PROGRAMS.contains(&quoted) {
            return Some(format!("no setting: `{quoted}`"));
        }
    }
    let is_closed = text.matches('`').count().is_multiple_of(2);
    (!is_closed).then(|| "an open backquote".to_owned())
}

#[test]
fn texts_name_settings_and_speak_neither_flags_nor_python() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut settings = 0;
    let mut wrong = Vec::new();
    for file in files {
        for text in texts(&fs::read_to_string(&file).unwrap()) {
            // What has no blank is a name or a format, not something to read.
            if !text.contains(' ') {
                continue;
            }
            settings += text.matches('`').count() / 2;
            if let Some(complaint) = complaint(&text) {
                wrong.push(format!("{}: {complaint}: {text:?}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        settings > 20,
        "the reader of texts sees {settings} settings only"
    );
}

#[test]
fn the_reader_of_texts_sees_them_all_and_knows_what_is_wrong() {
    let code = "// \"no text\"\n#[expect(x, reason = \"no `text`\")]\nfn f() { a(\"one \\\n    text\", '\"', b'\"', r\"\\\", \"two \\\"x\\\"\") } // \"none\"\n\
                #[cfg(test)]\nmod tests { \"three\" }";
    assert_eq!(texts(code), ["one text", "\\", "two \"x\""]);
    for (text, is_wrong) in [
        ("raise `memory`, or pack with `tar --sort=name`", false),
        ("say `region={right}`", false),
        ("name it with --profile", true),
        ("write it with on_error=\"skip\"", true),
        ("use batch(64)", true),
        ("raise `memry`", true),
        ("raise `memory", true),
        ("bytes 0--1 - and -- so on", false),
    ] {
        assert_eq!(complaint(text).is_some(), is_wrong, "{text}");
    }
}
