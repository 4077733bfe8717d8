//! `apportion partition --units`: shares of independent units.

use crate::inputs::Processors;
use apportion::{Error, Forecast, Metrics, Plan, Problem, Result, imbalance, shares};

pub fn units_plan(n: u64, method: Option<&str>, processors: &Processors) -> Result<Plan> {
    let models = &processors.models;
    if n > 1 << 53 {
        return Err(Error::input("--units", format!("{n} is more than 2^53"), "give a smaller number"));
    }
    let method = method.unwrap_or("fpm");
    let shares = match method {
        "even" => shares::even(n, models.len()),
        "proportional" => {
            // The single-number model: each processor's speed at an equal share.
            let size = (n as f64 / models.len() as f64).max(1.0);
            let speeds: Vec<f64> = models.iter().map(|m| m.speed(size)).collect();
            if speeds.iter().all(|s| *s == 0.0) {
                return Err(Error::infeasible("no processor can hold an equal share", "use --method fpm"));
            }
            shares::proportional(n, &speeds)
        }
        "fpm" => shares::fpm(models, n)?,
        other => {
            return Err(Error::input(
                "--method",
                format!("unknown method \"{other}\" for --units"),
                "use even, proportional or fpm",
            ));
        }
    };
    let compute: Vec<f64> = models.iter().zip(&shares).map(|(m, &s)| m.seconds(s as f64)).collect();
    let seconds = compute.iter().copied().fold(0.0, f64::max);
    if seconds.is_infinite() {
        return Err(Error::infeasible(
            format!("{method} gives a processor more than its max_size"),
            "use --method fpm, which respects the caps",
        ));
    }
    Ok(Plan {
        method: method.into(),
        problem: Problem::Units { n },
        processors: processors.platform.names(),
        metrics: Metrics::of_units(imbalance(models, &shares)?),
        forecast: Some(Forecast { seconds, communicate: vec![0.0; compute.len()], compute }),
        shares,
        layout: None,
    })
}
