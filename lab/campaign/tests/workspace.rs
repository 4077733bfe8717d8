//! The workspace: every dependency has a licence that `deny.toml` allows, and comes from a registry; the
//! first command of the README finds its program.

#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// True if an expression such as `MIT OR Apache-2.0` leaves a choice that is allowed.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let known = |licence: &str| allowed.iter().any(|name| name == licence.trim_matches(['(', ')', ' ']));
    // Older crates write a slash for OR. A conjunction must be allowed in full.
    let expression = expression.replace('/', " OR ");
    let conjunctions: Vec<&str> = expression.split(" AND ").collect();
    conjunctions.iter().all(|part| part.split(" OR ").any(known))
}

/// The platform that the tests are compiled on, such as `x86_64-unknown-linux-gnu`.
fn host() -> String {
    let output = Command::new(env!("CARGO")).arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// What Cargo knows of the workspace and its dependencies.
fn metadata(root: &Path) -> Value {
    // Of this platform only: a build has not fetched what other platforms and settings would need.
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
        .arg(host())
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `cargo run` at the root, as in the README, has one program to choose.
#[test]
fn the_first_command_finds_its_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let metadata = metadata(&root);
    let members = metadata["workspace_default_members"].as_array().unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let mut programs = Vec::new();
    for package in packages.filter(|package| members.contains(&package["id"])) {
        let targets = package["targets"].as_array().unwrap().iter();
        programs.extend(targets.filter(|target| target["kind"][0] == "bin").map(|target| &target["name"]));
    }
    assert_eq!(programs, ["apportion"]);
}

#[test]
fn every_dependency_may_be_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rules: toml::Value =
        toml::from_str(&std::fs::read_to_string(root.join("deny.toml")).unwrap()).unwrap();
    let allowed: Vec<String> = rules["licenses"]["allow"].clone().try_into().unwrap();
    let [product, lab] = [root.clone(), root.join("lab")].map(|workspace| metadata(&workspace));
    let packages = [product, lab].map(|metadata| metadata["packages"].as_array().unwrap().clone()).concat();
    assert!(packages.len() > 20);
    for package in &packages {
        let (name, licence) = (&package["name"], package["license"].as_str());
        let licence = licence.unwrap_or_default();
        assert!(is_allowed(licence, &allowed), "{name}: licence {licence:?} is not in deny.toml");
        let source = package["source"].as_str();
        assert!(source.is_none_or(|source| source.starts_with("registry+")), "{name} comes from {source:?}");
    }
}

#[test]
fn expressions_are_understood() {
    let allowed = ["MIT".to_owned(), "Unicode-3.0".to_owned()];
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0 OR MIT", true),
        ("Apache-2.0/MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("GPL-3.0", false),
        ("MIT AND GPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
