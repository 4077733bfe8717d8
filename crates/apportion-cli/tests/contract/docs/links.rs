//! Every relative link of the documentation leads to a file that exists, and every anchor to a heading.

use super::root;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All Markdown files of the repository that are documentation: not those of dependencies or of builds.
fn pages(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                pages(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    })
}

/// The anchors of a page, as hosts of Markdown make them of headings: lower case, letters, digits, `-` and
/// `_` stay, spaces become `-`, a repeated one is numbered.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let times = seen.entry(slug.clone()).or_insert(0);
            *times += 1;
            if *times > 1 { format!("{slug}-{}", *times - 1) } else { slug }
        })
        .collect()
}

/// The targets of the links of a page, code in backquotes left out.
fn targets(text: &str) -> Vec<String> {
    let joined = prose(text).collect::<Vec<_>>().join("\n");
    let outside_code: String = joined.split('`').step_by(2).collect();
    let parts = outside_code.split("](").skip(1);
    parts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.trim().to_owned()).collect()
}

#[test]
fn every_relative_link_and_anchor_exists() {
    let root = root();
    let mut found = Vec::new();
    pages(&root, &mut found);
    assert!(found.len() > 100, "only {} pages", found.len());
    let mut dead = Vec::new();
    let mut followed = 0;
    for page in &found {
        let text = std::fs::read_to_string(page).unwrap();
        for target in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let reached = path.exists()
                && (anchor.is_empty()
                    || anchors(&std::fs::read_to_string(&path).unwrap()).iter().any(|a| a == anchor));
            if !reached {
                dead.push(format!("{}: {target}", page.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(followed > 300, "only {followed} links");
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn links_and_anchors_are_found() {
    let text = "# A b: `c`\n\n[x](y.md#a-b) `[no](no.md)`\n\n```\n[no](no.md)\n# no\n```\n\n## A b: c\n";
    assert_eq!(targets(text), ["y.md#a-b"]);
    assert_eq!(anchors(text), ["a-b-c", "a-b-c-1"]);
}
