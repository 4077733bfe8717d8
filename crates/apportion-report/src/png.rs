//! Pictures of fields as `.png`, without compression.

/// The colours of the smallest, the middle and the largest value.
const COLOURS: [[f64; 3]; 5] = [
    [13.0, 27.0, 74.0],
    [38.0, 102.0, 163.0],
    [88.0, 180.0, 172.0],
    [232.0, 219.0, 122.0],
    [178.0, 34.0, 52.0],
];

/// The most pixels along a side.
const MOST: usize = 2048;

/// The distance of the values that [`field_png`] shows of a field of `rows` x `cols`, along either side. A
/// picture of every value at multiples of it is the picture of the whole field.
pub fn field_png_spacing(rows: usize, cols: usize) -> usize {
    rows.max(cols).div_ceil(MOST).max(1)
}

/// A picture of a field of `rows` x `cols` values, row 0 above, coloured from `least` to `most`. Small fields
/// are magnified; of large ones, evenly spaced values are shown.
pub fn field_png(values: &[f64], rows: usize, cols: usize, least: f64, most: f64) -> Vec<u8> {
    assert_eq!(values.len(), rows * cols, "a value per pixel");
    let zoom = (512 / rows.max(cols).max(1)).clamp(1, 16);
    let step = field_png_spacing(rows, cols);
    let (height, width) = (rows.div_ceil(step) * zoom, cols.div_ceil(step) * zoom);
    let mut raw = Vec::with_capacity(height * (1 + 3 * width));
    for y in 0..height {
        raw.push(0);
        let row = &values[(y / zoom * step) * cols..][..cols];
        (0..width).for_each(|x| raw.extend(colour(row[x / zoom * step], least, most)));
    }
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::new();
    header.extend((width as u32).to_be_bytes());
    header.extend((height as u32).to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    chunk(&mut png, b"IHDR", &header);
    chunk(&mut png, b"IDAT", &stored(&raw));
    chunk(&mut png, b"IEND", &[]);
    png
}

/// The colour of a value.
fn colour(value: f64, least: f64, most: f64) -> [u8; 3] {
    let span = most - least;
    let at = if span > 0.0 { ((value - least) / span).clamp(0.0, 1.0) } else { 0.0 };
    let at = at * (COLOURS.len() - 1) as f64;
    let below = (at as usize).min(COLOURS.len() - 2);
    let part = at - below as f64;
    std::array::from_fn(|i| {
        (COLOURS[below][i] + part * (COLOURS[below + 1][i] - COLOURS[below][i])).round() as u8
    })
}

/// Bytes in zlib's format, stored.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut chunks = bytes.chunks(0xffff).peekable();
    while let Some(some) = chunks.next() {
        out.push(u8::from(chunks.peek().is_none()));
        out.extend((some.len() as u16).to_le_bytes());
        out.extend((!(some.len() as u16)).to_le_bytes());
        out.extend(some);
    }
    let (mut a, mut b) = (1u32, 0u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend((b << 16 | a).to_be_bytes());
    out
}

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], body: &[u8]) {
    png.extend((body.len() as u32).to_be_bytes());
    let start = png.len();
    png.extend(kind);
    png.extend(body);
    let mut crc = !0u32;
    for byte in &png[start..] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    png.extend((!crc).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_those_of_the_format() {
        let mut out = Vec::new();
        chunk(&mut out, b"IEND", &[]);
        assert_eq!(out[8..], [0xae, 0x42, 0x60, 0x82]);
        assert_eq!(stored(b"Wikipedia")[16..], [0x11, 0xe6, 0x03, 0x98]);
    }

    #[test]
    fn a_field_is_a_picture_of_its_size() {
        let png = field_png(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 2, 3, 0.0, 5.0);
        assert_eq!(png[16..24], [0, 0, 0, 48, 0, 0, 0, 32]);
        assert_eq!(colour(5.0, 0.0, 5.0), [178, 34, 52]);
        assert_eq!(colour(1.0, 1.0, 1.0), [13, 27, 74]);
    }
}
