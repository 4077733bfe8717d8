//! Pictures of fields as `.png`.

use png::{BitDepth, ColorType, Encoder};

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
    let mut raw = Vec::with_capacity(height * 3 * width);
    for y in 0..height {
        let row = &values[(y / zoom * step) * cols..][..cols];
        (0..width).for_each(|x| raw.extend(colour(row[x / zoom * step], least, most)));
    }
    let mut picture = Vec::new();
    let mut encoder = Encoder::new(&mut picture, width as u32, height as u32);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header().expect("a picture of some pixels, in memory");
    writer.write_image_data(&raw).expect("as many bytes as pixels say");
    writer.finish().expect("memory");
    picture
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_picture_of_its_size() {
        let png = field_png(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 2, 3, 0.0, 5.0);
        assert_eq!(png[16..24], [0, 0, 0, 48, 0, 0, 0, 32]);
        assert_eq!(colour(5.0, 0.0, 5.0), [178, 34, 52]);
        assert_eq!(colour(1.0, 1.0, 1.0), [13, 27, 74]);
    }
}
