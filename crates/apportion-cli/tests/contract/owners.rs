//! Who owns which block of the matrices: tables for COSTA, SLATE and ScaLAPACK, compiled and compared.

use super::bench::Bench;
use super::exports::installed;
use apportion_testing::Need;
use serde_json::Value;
use std::process::Command;

/// A C program that prints the owner of every element of C, and checks the functions for tiles, by `owners`.
const OWNERS_C: &str = r#"#include <stdio.h>
#include "owners.h"
int main(void)
{
    for (int64_t row = 0; row < APPORTION_C_ROWS; row++)
        for (int64_t col = 0; col < APPORTION_C_COLS; col++) printf("%d\n", apportion_C_owner(row, col));
    int64_t rows = 0, cols = 0, area[APPORTION_PROCESSORS] = {0};
    for (int i = 0; i < APPORTION_C_ROWBLOCKS; i++) {
        rows += apportion_C_tileMb(i);
        for (int j = 0; j < APPORTION_C_COLBLOCKS; j++)
            area[apportion_C_tileRank(i, j)] += apportion_C_tileMb(i) * apportion_C_tileNb(j);
    }
    for (int j = 0; j < APPORTION_C_COLBLOCKS; j++) cols += apportion_C_tileNb(j);
    printf("tiles %d %d\n", (int)rows, (int)cols);
    for (int i = 0; i < APPORTION_PROCESSORS; i++) printf("%s %d\n", apportion_processors[i], (int)area[i]);
    return apportion_A_rowsplit[0] + apportion_B_colsplit[0];
}
"#;

/// The same for `scalapack`, with the local rows of each process row.
const SCALAPACK_C: &str = r#"#include <stdio.h>
#include "scalapack.h"
int main(void)
{
    int desc[9];
    apportion_C_desc(desc, 7, 0);
    for (int64_t row = 0; row < desc[2]; row++)
        for (int64_t col = 0; col < desc[3]; col++) printf("%d\n", apportion_C_owner(row, col));
    printf("desc");
    for (int i = 0; i < 9; i++) printf(" %d", desc[i]);
    printf("\nlld");
    for (int i = 0; i < APPORTION_PROCESS_ROWS; i++) { apportion_C_desc(desc, 7, i); printf(" %d", desc[8]); }
    printf("\n");
    return 0;
}
"#;

/// Compiles a program with warnings as errors, and returns what it prints; `None` without a compiler.
fn compiled(here: &Bench, text: &str) -> Option<Vec<String>> {
    let cc = installed(Need::Compiler, &["cc", "gcc"], "gcc")?;
    here.write("main.c", text);
    let built = Command::new(cc)
        .args("-std=c99 -Wall -Wextra -pedantic -Werror -o main main.c".split(' '))
        .current_dir(here.path("."))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(here.path("main")).output().unwrap();
    assert!(ran.status.success());
    Some(String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// The owner of every element of C, row by row, painted from the layout of a plan.
fn painted(plan: &Value) -> Vec<String> {
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let [m, n] = ["m", "n"].map(|side| number(&plan["problem"][side]));
    let repeat = plan.get("repeat").map_or([m, n], |r| [number(&r[0]), number(&r[1])]);
    let mut block = vec![String::new(); repeat[0] * repeat[1]];
    for part in plan["layout"].as_array().unwrap() {
        for row in number(&part["rows"][0])..number(&part["rows"][1]) {
            for col in number(&part["cols"][0])..number(&part["cols"][1]) {
                block[row * repeat[1] + col] = part["owner"].to_string();
            }
        }
    }
    let at = |row: usize, col: usize| block[row % repeat[0] * repeat[1] + col % repeat[1]].clone();
    (0..m).flat_map(|row| (0..n).map(move |col| (row, col))).map(|(row, col)| at(row, col)).collect()
}

#[test]
pub fn a_c_program_looks_owners_up() {
    let here = Bench::new();
    for flags in [
        "--shape 23x17x31 --speeds 9,1 --method square-corner",
        "--shape 23x17x31 --speeds 5,3,2,1 --method columns --repeat 9x7",
        "--shape 1x1x1 --speeds 1",
        "--shape 2x9x3 --speeds 4,4,4,4,4,4,4,4 --method recursive",
    ] {
        here.done(&format!("partition {flags} -o plan.json"));
        here.done("partition --plan plan.json --export owners-h --export-to owners.h");
        let Some(lines) = compiled(&here, OWNERS_C) else { return };
        let plan = here.value("plan.json");
        let owners = painted(&plan);
        assert_eq!(lines[..owners.len()], owners, "{flags}");
        let problem = &plan["problem"];
        assert_eq!(lines[owners.len()], format!("tiles {} {}", problem["m"], problem["n"]));
        for (rank, share) in plan["shares"].as_array().unwrap().iter().enumerate() {
            assert_eq!(lines[owners.len() + 1 + rank], format!("p{rank} {share}"));
        }
    }
}

/// 2 x 2 processes, blocks of 4 x 3: by hand and by ScaLAPACK's formula in C.
#[test]
pub fn scalapacks_descriptors_agree_with_the_layout() {
    let here = Bench::new();
    here.done("partition --shape 27x27 --speeds 1,1,1,1 --method grid --repeat 8x6 -o plan.json");
    let cyclic: Value =
        serde_json::from_str(&here.done("partition --plan plan.json --export scalapack")).unwrap();
    let c = &cyclic["descriptors"]["C"];
    assert_eq!((&c["mb"], &c["nb"], &c["lld"]), (&4.into(), &3.into(), &serde_json::json!([15, 12])));
    here.done("partition --plan plan.json --export scalapack-h --export-to scalapack.h");
    let Some(lines) = compiled(&here, SCALAPACK_C) else { return };
    let owners = painted(&here.value("plan.json"));
    assert_eq!(lines[..owners.len()], owners);
    assert_eq!(lines[owners.len()], "desc 1 7 27 27 4 3 0 0 15");
    assert_eq!(lines[owners.len() + 1], "lld 15 12");
}

#[test]
fn plans_that_are_not_block_cyclic_have_owners() {
    let here = Bench::new();
    let owners: Value =
        serde_json::from_str(&here.done("partition --shape 8x8 --speeds 3,1 --method rows --export owners"))
            .unwrap();
    assert_eq!(owners["matrices"]["C"]["row_splits"], serde_json::json!([0, 6, 8]));
    assert_eq!(owners["matrices"]["C"]["owners"], serde_json::json!([[0], [1]]));
}
