//! Forecast beside measured times, as bars. The text can be read where the picture is 300 pixels wide.

use super::markup::{INK, escape};
use super::text::wrapped;
use apportion::units::show_seconds;
use std::fmt::Write;

/// Height of a bar, and of a group of two.
const BAR: f64 = 20.0;
const GROUP: f64 = 60.0;
/// Height of a line of the title.
const LINE: f64 = 22.0;
/// Left end, and length of the longest bar.
const LEFT: f64 = 150.0;
const LENGTH: f64 = 200.0;
/// The colours of forecast and measurement.
const COLOURS: [&str; 2] = ["#8fc1dd", "#0072b2"];

/// Horizontal bars of forecast and measured seconds, from zero, each with its number, as a self-contained SVG
/// 1.1 document.
pub fn bars(title: &str, times: &[(String, [f64; 2])]) -> String {
    let longest = times.iter().flat_map(|t| t.1).filter(|s| s.is_finite()).fold(0.0, f64::max);
    let width = LEFT + LENGTH + 80.0;
    let lines = wrapped(title, ((width - 48.0) / 10.4) as usize);
    // Beneath the title.
    let below = 26.0 + LINE * lines.len().max(1) as f64;
    let first = below + 36.0;
    let height = first + GROUP * times.len() as f64 + 16.0;
    let mut svg = head([width, height], title, &lines);
    for (i, (word, colour)) in ["forecast", "measured"].into_iter().zip(COLOURS).enumerate() {
        let x = 24.0 + 110.0 * i as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{below}\" width=\"14\" height=\"14\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\" font-size=\"15\">{word}</text>",
            x + 20.0,
            below + 12.0
        );
    }
    for (i, (name, seconds)) in times.iter().enumerate() {
        let top = first + GROUP * i as f64;
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
    let _ = writeln!(svg, "<path d=\"M{LEFT} {}V{}\" stroke=\"{INK}\"/>\n</svg>", first - 6.0, height - 16.0);
    svg
}

fn head([width, height]: [f64; 2], title: &str, lines: &[String]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"{INK}\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        escape(title)
    );
    for (i, line) in lines.iter().enumerate() {
        let (y, line) = (32.0 + LINE * i as f64, escape(line));
        let _ = writeln!(svg, "<text x=\"24\" y=\"{y}\" font-size=\"18\" font-weight=\"bold\">{line}</text>");
    }
    svg
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

    #[test]
    fn a_long_title_takes_more_lines() {
        let heights = ["Seconds", "Forecast and measured seconds of the five plans of the demonstration"]
            .map(|title| {
                let svg = bars(title, &[("even".into(), [4.0, 2.0])]);
                let bold: Vec<&str> = svg.split("font-weight=\"bold\">").skip(1).collect();
                let shown: Vec<&str> = bold.iter().map(|rest| rest.split('<').next().unwrap()).collect();
                assert_eq!(shown.join(" "), title);
                svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
            });
        assert!(heights[1] >= heights[0] + LINE);
    }
}
