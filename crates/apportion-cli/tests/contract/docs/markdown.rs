//! Fenced blocks of Markdown.

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub language: String,
    pub lines: Vec<String>,
    /// The line of the file at which its contents begin, from 0.
    pub first: usize,
    /// The name of the file that the text before it tells the reader to save it as.
    pub file: Option<String>,
}

/// The blocks of a document.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = String::new();
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.lines.push(line.to_owned()),
            (None, Some(language)) => {
                let file = saved_as(&before);
                open = Some(Block { language: language.into(), lines: Vec::new(), first: number + 1, file });
                before.clear();
            }
            (None, None) => {
                before.push_str(line);
                before.push(' ');
            }
        }
    }
    blocks
}

/// The file of "Save this as `desk.toml`:" at the end of a text.
fn saved_as(text: &str) -> Option<String> {
    let (before, name) = text.trim_end().strip_suffix("`:")?.rsplit_once('`')?;
    before.to_lowercase().ends_with("save this as ").then(|| name.to_owned())
}

/// The commands of a shell block, one a line, without remarks.
pub fn commands(lines: &[String]) -> Vec<String> {
    let joined = lines.join("\n").replace("\\\n", " ");
    let bare = |line: &str| line.split(" #").next().unwrap_or("").trim().to_owned();
    joined.lines().map(bare).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn blocks_and_their_files_are_found() {
    let text = "Save this as `a.toml`:\n\n```toml\nx = 1\n```\n\n```sh\nP=1\napportion plot \\\n  --svg a # b\n```\n";
    let found = blocks(text);
    assert_eq!((found[0].file.as_deref(), found[0].first), (Some("a.toml"), 3));
    assert_eq!((found[1].language.as_str(), found[1].file.as_deref()), ("sh", None));
    assert_eq!(commands(&found[1].lines), ["P=1", "apportion plot    --svg a"]);
}
