//! Products of bits against M4RI and a plain product by rows, both compiled here and now where gcc and M4RI
//! are installed.

use crate::clock::{median, seconds, verdict};
use apportion::kernels::BitMatrix;
use apportion::random::Random;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

/// One line for each size and density.
pub fn report(turns: usize) {
    let directory = tempfile::tempdir().expect("a directory for the rival");
    let program = directory.path().join("rival");
    let rival = compiled(&program);
    println!("or-and, ms, medians; columns of B are left empty, so that no row of C fills up early");
    if !rival {
        println!("(no M4RI: gcc and libm4ri-dev are needed for the comparison)");
    }
    println!(
        "{:>6} {:>7} {:>8} {:>9} {:>8} {:>8} {:>11}",
        "n", "ones", "by rows", "by tables", "chosen", "M4RI", "plain rows"
    );
    for n in [2048, 4096] {
        for rarity in [2, 10, 100, 1000] {
            let [rows, tables, chosen] = ours(n, rarity, turns);
            let ones = format!("1 in {rarity}");
            print!("{n:>6} {ones:>9} {rows:>8.2} {tables:>9.2} {chosen:>8.2}");
            let theirs = if rival { theirs(&program, n, rarity) } else { None };
            match theirs {
                Some([m4ri, plain]) => {
                    let ahead = m4ri.min(plain) / chosen;
                    println!(" {m4ri:>8.2} {plain:>11.2} {ahead:>7.2} x {}", verdict(ahead, 1.0));
                }
                None => println!(),
            }
        }
    }
}

/// The ways of one product in turn.
fn ours(n: usize, rarity: usize, turns: usize) -> [f64; 3] {
    let mut random = Random::new(1);
    let mut sample = |open: bool| {
        let bytes: Vec<u8> =
            (0..n * n).map(|i| u8::from(random.below(rarity) == 0 && !(open && i % 64 == 5))).collect();
        BitMatrix::from_bytes(&bytes, n, n)
    };
    let (a, b) = (sample(false), sample(true));
    let ways = [BitMatrix::or_product_by_rows, BitMatrix::or_product_by_tables, BitMatrix::or_product];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..turns {
        for (way, times) in ways.iter().zip(&mut times) {
            times.push(
                1e3 * seconds(|| {
                    let mut c = BitMatrix::zeros(n, n);
                    way(&mut c, &a, &b);
                    black_box(c);
                }),
            );
        }
    }
    times.map(median)
}

/// Compiles the competitor; false if that fails.
fn compiled(program: &Path) -> bool {
    let source = program.with_extension("c");
    std::fs::write(&source, include_str!("rival.c")).is_ok()
        && Command::new("gcc")
            .args(["-O3", "-march=native", "-o"])
            .args([program, &source])
            .arg("-lm4ri")
            .output()
            .is_ok_and(|output| output.status.success())
}

/// Milliseconds of M4RI and of the plain product by rows.
fn theirs(program: &Path, n: usize, rarity: usize) -> Option<[f64; 2]> {
    let output = Command::new(program).args([n.to_string(), rarity.to_string()]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?])
}
