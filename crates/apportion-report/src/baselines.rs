//! What a plan gains over no plan, in words.

use apportion::plan::{Baselines, FastestAlone, Plan};
use apportion::units::show_seconds;

/// Below this fraction a difference between two forecasts is none.
const SAME: f64 = 0.005;

/// Which of a plan's baselines are estimates where others are measured, and are called so.
#[derive(Debug, Clone, Copy, Default)]
pub struct About {
    /// The time of the fastest processor alone.
    pub alone: bool,
    /// That of the even split.
    pub even: bool,
}

/// `fast alone 343 ms, even split 1.2 s`.
pub(crate) fn baselines_text(baselines: &Baselines) -> String {
    about_text(baselines, About::default())
}

fn about_text(baselines: &Baselines, about: About) -> String {
    let show = |about, seconds| format!("{}{}", if about { "about " } else { "" }, show_seconds(seconds));
    let alone = baselines.fastest_alone.as_ref();
    let alone = alone.map(|alone| format!("{} alone {}", alone.processor, show(about.alone, alone.seconds)));
    let even = baselines.even_split.map(|seconds| format!("even split {}", show(about.even, seconds)));
    alone.into_iter().chain(even).collect::<Vec<_>>().join(", ")
}

/// The plan's gain over the better of its baselines, by forecast, or the advice to do without a division.
pub fn gain_text(plan: &Plan) -> Option<String> {
    Some(in_words(plan.gain()?, plan.baselines.as_ref()?))
}

/// The same within a sentence.
pub fn gain_clause(plan: &Plan) -> Option<String> {
    Some(clause(plan.gain()?, plan.baselines.as_ref()?))
}

/// The gain of a run of `seconds` over the better of the baselines, or why it is not known; `forecast` is that of the run,
/// made like theirs.
pub(crate) fn run_gain_text(baselines: &Baselines, seconds: f64, forecast: f64) -> Option<String> {
    baselines.best()?;
    Some(match baselines.gain_of_run(seconds, forecast) {
        Some(gain) => in_words(gain, baselines),
        None => {
            let [seconds, forecast] = [seconds, forecast].map(show_seconds);
            format!("not known, since the run took {seconds} where {forecast} were forecast")
        }
    })
}

/// The fastest processor alone, if that is the better of the baselines.
fn better_alone(baselines: &Baselines) -> Option<&FastestAlone> {
    baselines.fastest_alone.as_ref().filter(|alone| Some(alone.seconds) == baselines.best())
}

fn in_words(gain: f64, baselines: &Baselines) -> String {
    let none = if gain > 1.0 + SAME { "" } else { "none: " };
    format!("{none}{}", clause(gain, baselines))
}

fn clause(gain: f64, baselines: &Baselines) -> String {
    let alone = better_alone(baselines);
    let better = match alone {
        Some(alone) => format!("{} alone", alone.processor),
        None => "the even split".to_owned(),
    };
    match gain {
        gain if gain > 1.0 + SAME => format!("{gain:.2} times as fast as {better}"),
        gain if gain >= 1.0 - SAME => format!("{better} is as fast"),
        gain => format!("{better} is {:.2} times as fast, use that", 1.0 / gain),
    }
}

/// The two lines of a plan about its baselines, as names and values.
pub fn gain_lines(plan: &Plan, about: About) -> Vec<(&'static str, String)> {
    let Some(baselines) = plan.baselines.as_ref().filter(|both| both.best().is_some()) else {
        return Vec::new();
    };
    // The gain is as sure as the time that it is over.
    let is_about = if better_alone(baselines).is_some() { about.alone } else { about.even };
    let gain = gain_text(plan).map(|gain| match is_about && plan.gain() > Some(1.0 + SAME) {
        true => format!("about {gain}"),
        false => gain,
    });
    let without = ("without a plan", about_text(baselines, about));
    std::iter::once(without).chain(gain.map(|text| ("gain", text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::plan::Forecast;

    fn plan(seconds: f64, alone: f64, even: f64) -> Plan {
        let plan = Plan::of_units("fpm", vec!["a".into(), "b".into()], vec![3, 1], 1.0);
        let fastest_alone = Some(FastestAlone { processor: "a".into(), seconds: alone });
        Plan {
            forecast: Some(Forecast { seconds, compute: vec![seconds; 2], communicate: vec![0.0; 2] }),
            baselines: Some(Baselines { fastest_alone, even_split: Some(even) }),
            ..plan
        }
    }

    /// Alone 42 ms and 38 ms by the forecast, of a run of 2.43 s; the same with links that explain these.
    #[test]
    fn a_run_gains_what_its_time_says() {
        let gain = |alone, forecast, seconds| {
            run_gain_text(plan(forecast, alone, 9.0).baselines.as_ref().unwrap(), seconds, forecast).unwrap()
        };
        assert_eq!(
            gain(0.042, 0.038, 2.43),
            "not known, since the run took 2.43 s where 38.0 ms were forecast"
        );
        assert_eq!(gain(0.042, 2.43, 2.43), "none: a alone is 57.86 times as fast, use that");
        assert_eq!(gain(2.0, 1.0, 1.1), "1.82 times as fast as a alone");
        assert_eq!(gain(1.2, 1.0, 1.15), "not known, since the run took 1.15 s where 1.00 s were forecast");
        assert_eq!(gain(1.0, 1.0, 1.002), "none: a alone is as fast");
    }

    #[test]
    fn a_plan_that_loses_to_doing_nothing_is_not_praised() {
        let gain = |seconds, alone, even| gain_text(&plan(seconds, alone, even)).unwrap();
        assert_eq!(gain(1.0, 1.5, 2.0), "1.50 times as fast as a alone");
        assert_eq!(gain(1.0, 1.5, 1.25), "1.25 times as fast as the even split");
        assert_eq!(gain(1.0, 1.001, 2.0), "none: a alone is as fast");
        assert_eq!(gain(2.0, 1.0, 4.0), "none: a alone is 2.00 times as fast, use that");
        let lines = gain_lines(&plan(1.0, 1.5, 2.0), About::default());
        assert_eq!(lines[0], ("without a plan", "a alone 1.50 s, even split 2.00 s".into()));
        let alone = Plan::of_units("fpm", vec!["a".into()], vec![4], 1.0);
        assert_eq!(gain_lines(&alone, About::default()), []);
        let about = About { alone: true, even: false };
        let [without, gain] = &gain_lines(&plan(1.0, 1.5, 2.0), about)[..] else { panic!() };
        assert_eq!(without.1, "a alone about 1.50 s, even split 2.00 s");
        assert_eq!(gain.1, "about 1.50 times as fast as a alone");
        assert_eq!(gain_lines(&plan(1.0, 1.5, 1.25), about)[1].1, "1.25 times as fast as the even split");
    }
}
