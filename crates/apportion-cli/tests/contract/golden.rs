//! Transcripts of the command line: example, test and documentation at once. After an intended change,
//! `TRYCMD=overwrite cargo test -p apportion-cli --test contract golden` rewrites them.

use std::path::Path;

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("apportion", Path::new(env!("CARGO_BIN_EXE_apportion")))
        .case("tests/golden/*.md");
}
