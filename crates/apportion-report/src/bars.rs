//! Forecast beside measured times, as bars. The text can be read where the picture is 300 pixels wide.

use super::markup::{INK, escape};
use super::text::wrapped;
use apportion::units::show_seconds;
use std::fmt::Write;

/// Height of a bar, and of a group of two.
const BAR: f64 = 20.0;
const GROUP: f64 = 60.0;
/// Left end, and length of the longest bar.
const LEFT: f64 = 150.0;
const LENGTH: f64 = 200.0;
/// The colours of forecast and measurement.
const COLOURS: [&str; 2] = ["#8fc1dd", "#0072b2"];

/// Horizontal bars of forecast and measured seconds, from zero, each with its number, as a self-contained SVG
/// 1.1 document.
pub fn bars(title: &str, times: &[(String, [f64; 2])]) -> String {
    let longest = times.iter().flat_map(|t| t.1).filter(|s| s.is_finite()).fold(0.0, f64::max);
    let height = 84.0 + GROUP * times.len() as f64 + 16.0;
    let mut svg = head([LEFT + LENGTH + 80.0, height], title);
    for (i, (word, colour)) in ["forecast", "measured"].into_iter().zip(COLOURS).enumerate() {
        let x = 24.0 + 110.0 * i as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"48\" width=\"14\" height=\"14\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"60\" font-size=\"15\">{word}</text>",
            x + 20.0
        );
    }
    for (i, (name, seconds)) in times.iter().enumerate() {
        let top = 84.0 + GROUP * i as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" font-size=\"15\" text-anchor=\"end\">{}</text>",
            LEFT - 10.0,
            top + BAR + 5.0,
            escape(name)
        );
        for (k, (seconds, colour)) in
            seconds.iter().zip(COLOURS).enumerate().filter(|(_, (s, _))| s.is_finite())
        {
            let width = if longest > 0.0 { LENGTH * seconds / longest } else { 0.0 };
            let y = top + BAR * k as f64;
            let _ = writeln!(
                svg,
                "<rect class=\"bar\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" fill=\"{colour}\"/>\
                 <text x=\"{:.2}\" y=\"{}\" font-size=\"15\">{}</text>",
                BAR - 2.0,
                LEFT + width + 6.0,
                y + BAR - 6.0,
                show_seconds(*seconds)
            );
        }
    }
    let _ = writeln!(svg, "<path d=\"M{LEFT} 78V{}\" stroke=\"{INK}\"/>\n</svg>", height - 16.0);
    svg
}

fn head([width, height]: [f64; 2], title: &str) -> String {
    let line = wrapped(title, ((width - 48.0) / 10.4) as usize).into_iter().next().unwrap_or_default();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"{INK}\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"24\" y=\"32\" font-size=\"18\" font-weight=\"bold\">{}</text>\n",
        escape(title),
        escape(&line)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_from_zero() {
        let svg = bars("a & b", &[("even".into(), [4.0, 2.0]), ("corner".into(), [1.0, f64::NAN])]);
        let widths: Vec<&str> =
            svg.split("class=\"bar\"").skip(1).map(|r| r.split("width=\"").nth(1).unwrap()).collect();
        let widths: Vec<f64> = widths.iter().map(|w| w.split('"').next().unwrap().parse().unwrap()).collect();
        assert_eq!(widths, [200.0, 100.0, 50.0]);
        assert!(svg.contains("a &amp; b") && svg.contains("4.00 s") && !svg.contains("NaN"));
    }
}
