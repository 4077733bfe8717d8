//! Damage of bytes and of words.

use apportion::random::Random;

/// Words that parsers may take amiss.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1e999",
    "-0.0",
    "NaN",
    "inf",
    "1e-320",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "4294967296",
    "1e308",
    "\"\"",
    "null",
    "true",
    "[]",
    "{}",
    "\u{202e}",
    "\u{1b}[2J",
    "\0",
    "\n",
    ",",
    ":",
    "../../etc",
];

/// Damages an input once, in place. Inputs stay below a mebibyte.
pub fn damage(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let length = input.len();
    let at = random.below(length + 1);
    let span = |random: &mut Random| {
        let from = random.below(length + 1);
        from..(from + 1 + random.below(16)).min(length).max(from)
    };
    match random.below(9) {
        0 if length > 0 => input[at.min(length - 1)] ^= 1 << random.below(8),
        1 if length > 0 => input[at.min(length - 1)] = random.word() as u8,
        2 => input.truncate(at),
        3 => {
            input.drain(span(random));
        }
        4 => {
            let piece = input[span(random)].to_vec();
            input.splice(at..at, piece);
        }
        5 => {
            let word = WORDS[random.below(WORDS.len())];
            input.splice(at..at, word.bytes());
        }
        6 => replace_number(input, random),
        7 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => replace_line(input, random),
    }
    input.truncate(1 << 20);
}

/// Replaces one run of digits by a word.
fn replace_number(input: &mut Vec<u8>, random: &mut Random) {
    let starts: Vec<usize> = (0..input.len())
        .filter(|&i| input[i].is_ascii_digit() && (i == 0 || !input[i - 1].is_ascii_digit()))
        .collect();
    if starts.is_empty() {
        return;
    }
    let from = starts[random.below(starts.len())];
    let length = input[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let word = WORDS[random.below(WORDS.len())];
    input.splice(from..from + length, word.bytes());
}

/// Drops a line, repeats it, or moves it to the end.
fn replace_line(input: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = random.below(lines.len());
    let line = lines[at].clone();
    match random.below(3) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, line),
        _ => {
            lines.remove(at);
            lines.push(line);
        }
    }
    *input = lines.join(&b'\n');
}
