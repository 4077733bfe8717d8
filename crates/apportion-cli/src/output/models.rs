//! Measured speed functions as a table.

use apportion::measure::{UNDISTURBED, is_exhausted};
use apportion::model::Models;
use apportion::platform::Host;
use apportion_report::table;

/// A table of all points; for a product, with its pivot block, in Gflop/s.
pub fn text(models: &Models, block: Option<u64>) -> String {
    let rows = models.models.iter().flat_map(|m| {
        m.points().iter().map(move |p| {
            vec![
                m.processor().to_owned(),
                format!("{:.0}", p.size),
                format!("{:.3e}", p.seconds),
                p.ci.map_or("-".into(), |ci| format!("{:.1} %", 100.0 * ci / p.seconds)),
                if p.repetitions > 0 { p.repetitions.to_string() } else { "-".into() },
                match block {
                    Some(block) => format!("{:.2}", 2e-9 * p.speed() * block as f64),
                    None => format!("{:.4e}", p.speed()),
                },
            ]
        })
    });
    let speed = if block.is_some() { "Gflop/s" } else { "size/s" };
    table(&["processor", "size", "seconds", "+-", "times", speed], rows)
}

/// One line on the caps that failing programs have shown.
pub fn caps(models: &Models) -> Option<String> {
    let told = models.models.iter().filter_map(|m| {
        let (failure, cap) = (m.failure()?, m.max_size()?);
        Some(format!("{} fails at size {} ({}): max_size {cap}", m.processor(), failure.size, failure.reason))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// One line on the sizes whose time is not known as precisely as was asked.
pub fn imprecise(models: &Models, tolerance: f64) -> Option<String> {
    let points = || models.models.iter().flat_map(|m| m.points().iter().map(move |p| (m.processor(), p)));
    let missed = || points().filter(|(_, p)| p.precision_met == Some(false));
    let known = || missed().filter_map(|(name, p)| Some((name, p.size, p.ci? / p.seconds)));
    let once = missed().filter(|(_, p)| p.ci.is_none()).count();
    let (all, wanted) = (points().count(), 100.0 * tolerance);
    let worst = known().max_by(|a, b| a.2.total_cmp(&b.2)).map(|(name, size, ci)| {
        let count = known().count();
        let ci = 100.0 * ci;
        format!(
            "{count} of {all} points did not reach +- {wanted:.1} %, the worst is +- {ci:.1} % \
             ({name}, size {size})"
        )
    });
    let once = (once > 0)
        .then(|| format!("{once} of {all} points were timed once, so that their precision is unknown"));
    let told: Vec<String> = worst.into_iter().chain(once).collect();
    let remedy = "raise --max-seconds or --max-repetitions, or leave the machine idle";
    (!told.is_empty()).then(|| format!("{} ({remedy})", told.join("; ")))
}

/// One line on the points during which other programs or a CPU quota took a part of the processor's time.
pub fn disturbed(models: &Models, machine: &Host) -> Option<String> {
    let points = || models.models.iter().flat_map(|m| m.points().iter().map(move |p| (m.processor(), p)));
    let busy =
        || points().filter_map(|(name, p)| Some((name, p.size, p.cpu_share.filter(|s| *s < UNDISTURBED)?)));
    let (name, size, least) = busy().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let shares = models.models.iter().map(|model| {
        let shares: Vec<f64> = model.points().iter().filter_map(|point| point.cpu_share).collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    });
    if let Some(quota) = machine.scarce_cores().filter(|quota| is_exhausted(*quota, shares)) {
        return Some(format!(
            "{}: processors had as little as {:.0} % of their time ({name}, size {size}); the speeds are \
             those within the quota",
            machine.quota_text(quota),
            100.0 * least
        ));
    }
    Some(format!(
        "other programs took more than {:.0} % of the time of {} of {} points, at worst {:.0} % \
         ({name}, size {size}; measure on an idle machine)",
        100.0 * (1.0 - UNDISTURBED),
        busy().count(),
        points().count(),
        100.0 * (1.0 - least)
    ))
}
