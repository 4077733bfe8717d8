//! What the text of 5.6 to 5.8 says beside its figures, by forecast: 50 Mbit/s, the straight line against one
//! processor, two clusters against two processors, constant power.

use super::two_parties::{BORDEAUX, HCL, LOOP, RATIOS, cluster_trials, pair_trials};
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, percent, short};
use crate::laboratory::{Algebra, Join, Original, Times};
use apportion::error::Result;
use apportion::platform::Topology;

/// Straight line and square corner at a ratio, seconds of the original.
struct Pair {
    ratio: u64,
    line: Times,
    corner: Times,
}

fn paired(ratios: &[u64], forecasts: &[Times]) -> Vec<Pair> {
    let both = ratios.iter().zip(forecasts.chunks(2));
    both.map(|(&ratio, times)| Pair { ratio, line: times[0], corner: times[1] }).collect()
}

/// Forecasts of two processors, each a machine of the ratio.
fn processors(
    ratios: &[u64],
    mbit: f64,
    duplex: bool,
    original: impl Fn(u64) -> Original,
) -> Result<Vec<Pair>> {
    let join = Join::Links { mbit, duplex, topology: Topology::Full };
    let trials = pair_trials(ratios, Algebra::PlusTimes, |ratio| (original(ratio), join), 250..=400)?;
    let forecasts: Vec<Times> = trials.iter().map(|trial| trial.forecast_there()).collect();
    Ok(paired(ratios, &forecasts))
}

/// Forecasts of two clusters of three.
fn clusters(ratios: &[u64], mbit: f64) -> Result<Vec<Pair>> {
    let forecasts: Vec<Times> =
        cluster_trials(ratios, mbit)?.iter().map(|trial| trial.forecast_there()).collect();
    Ok(paired(ratios, &forecasts))
}

pub struct Forecasts;

impl Experiment for Forecasts {
    fn about(&self) -> About {
        About {
            ids: &["becker-5.6.2", "becker-5.6.3", "becker-5.6.5", "becker-5.7.1", "becker-5.8.1"],
            source: "Becker 2010, 5.6-5.8 and 7.5.2, the text",
            shows: "50 Mbit/s, the straight line alone, clusters beside processors, constant power, one byte \
                 an element, by forecast",
            kind: Kind::Computed,
            seconds: 2,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        slow_network(&mut report)?;
        line_alone(&mut report)?;
        beside_processors(&mut report)?;
        constant_power(&mut report)?;
        bytes(&mut report)?;
        Ok(report)
    }
}

/// 5.6.2 and 5.6.5 at the lowest of their bandwidths.
fn slow_network(report: &mut Report) -> Result<()> {
    for (section, duplex, kind, crossover) in [("5.6.2", false, "serial", 3), ("5.6.5", true, "parallel", 2)]
    {
        let pairs = processors(&RATIOS, 50.0, duplex, |_| HCL)?;
        let mut table = Table::new(
            format!("Section {section}: communication at 50 Mbit/s, {kind}, seconds of the original"),
            &["ratio", "straight line", "square corner"],
        );
        for pair in &pairs {
            let seconds = [pair.line, pair.corner].map(|times| format!("{:.2}", times.communication));
            table.row([format!("{}:1", pair.ratio)].into_iter().chain(seconds));
        }
        report.tables.push(table);
        let less = |pair: &Pair| pair.corner.communication < pair.line.communication;
        let met = pairs.iter().all(|pair| pair.ratio == crossover || less(pair) == (pair.ratio > crossover));
        let first = pairs.iter().find(|pair| less(pair)).map_or(0, |pair| pair.ratio);
        report.checks.push(
            Check::new(
                format!("Section {section}: at 50 Mbit/s, {kind}, the corner communicates less"),
                format!("above {crossover}:1"),
                format!("from {first}:1 on"),
                met,
            )
            .within("a step of the ratios, at the crossover itself"),
        );
    }
    Ok(())
}

/// 5.6.3 and 5.6.6: the ratio up to which the straight line beats the fast processor alone.
fn line_alone(report: &mut Report) -> Result<()> {
    let mut table = Table::new(
        "Straight line faster than the fast processor alone up to, of ratios up to 25:1",
        &["Mbit/s", "serial", "model", "parallel", "model"],
    );
    for (section, duplex) in [("5.6.3", false), ("5.6.6", true)] {
        let mut limits = Vec::new();
        let mut found = Vec::new();
        for mbit in [100.0, 500.0, 1000.0] {
            let pairs = processors(&RATIOS, mbit, duplex, |_| HCL)?;
            let better = pairs.iter().filter(|pair| pair.line.execution < HCL.alone());
            found.push(better.map(|pair| pair.ratio).max().unwrap_or(0));
            // Alone T; T r / (1 + r) and t, serial, or t r / (1 + r), parallel.
            let quotient = HCL.alone() / HCL.transfer(mbit);
            limits.push(if duplex { quotient } else { quotient - 1.0 });
        }
        let here: Vec<String> =
            limits.iter().map(|&limit| format!("{}:1", short((10.0 * limit).round() / 10.0))).collect();
        let rises = limits.windows(2).all(|pair| pair[0] < pair[1])
            && found.windows(2).all(|pair| pair[0] <= pair[1]);
        report.checks.push(Check::new(
            format!(
                "Section {section}: the ratio up to which the line beats the fast processor alone, by \
                 bandwidth"
            ),
            "increases",
            format!("{} at 100, 500 and 1,000 Mbit/s", here.join(", ")),
            rises,
        ));
        let column =
            found.iter().zip(&limits).map(|(found, limit)| [format!("{found}:1"), format!("{limit:.1}:1")]);
        for (i, cells) in column.enumerate() {
            match table.rows.get_mut(i) {
                Some(row) => row.extend(cells),
                None => table.row([["100", "500", "1000"][i].to_owned()].into_iter().chain(cells)),
            }
        }
    }
    report.tables.push(table);
    Ok(())
}

/// 5.7.1 and 5.7.2: two clusters of three beside two processors.
fn beside_processors(report: &mut Report) -> Result<()> {
    let ratios: Vec<u64> = (1..=6).chain([8, 10, 12, 15]).collect();
    let mut table = Table::new(
        "Two clusters of three over two processors: communication of line and corner, execution of line and \
         corner",
        &["Mbit/s", "line", "corner", "line, execution", "corner, execution"],
    );
    let (mut higher, mut power, mut bandwidth) = (Vec::new(), Vec::new(), true);
    let mut all: Vec<Vec<f64>> = Vec::new();
    let mut saved_by_power = 0.0_f64;
    for mbit in [100.0, 500.0, 1000.0] {
        let (one, two) = (clusters(&ratios, mbit)?, processors(&ratios, mbit, true, |_| HCL)?);
        let mean = |of: &dyn Fn(&Pair) -> f64| {
            one.iter().zip(&two).map(|(a, b)| of(a) / of(b)).sum::<f64>() / ratios.len() as f64
        };
        let cells = [
            mean(&|pair| pair.line.communication),
            mean(&|pair| pair.corner.communication),
            mean(&|pair| pair.line.execution),
            mean(&|pair| pair.corner.execution),
        ];
        table.row([mbit.to_string()].into_iter().chain(cells.map(|x| format!("{x:.3}"))));
        higher.push((mbit, cells[0].max(cells[1])));
        let computing = |pair: &Pair| pair.line.execution - pair.line.communication;
        power.push(two.iter().map(computing).sum::<f64>() / one.iter().map(computing).sum::<f64>());
        let executions: Vec<f64> =
            one.iter().flat_map(|pair| [pair.line.execution, pair.corner.execution]).collect();
        bandwidth &=
            all.last().is_none_or(|before| before.iter().zip(&executions).all(|(slow, fast)| fast < slow));
        all.push(executions);
        if mbit == 100.0 {
            saved_by_power = 1.0 - 0.5 * (cells[2] + cells[3]);
        }
    }
    let remaining = all[0].iter().zip(&all[2]).map(|(slow, fast)| fast / slow).sum::<f64>();
    let saved_by_bandwidth = 1.0 - remaining / all[0].len() as f64;
    report.tables.push(table);
    let here: Vec<String> = higher
        .iter()
        .map(|(mbit, ratio)| format!("{:.0} % at {mbit} Mbit/s", 100.0 * (ratio - 1.0)))
        .collect();
    let [least, most] = [f64::min as fn(f64, f64) -> f64, f64::max]
        .map(|pick| higher.iter().map(|(_, ratio)| *ratio).reduce(pick).unwrap_or(f64::NAN));
    report.checks.push(
        Check::new(
            "Section 5.7.1: communication times of two clusters over those of two machines",
            "slightly higher",
            format!("higher by {}", here.join(", ")),
            least > 1.0 && most < 1.2,
        )
        .within("up to 20 %")
        .if_only_the_relation(
            least > 1.0,
            "The thesis gives no numbers. Here each element crosses the cable once and is passed on within \
             the cluster over ports of 1 Gbit/s: a fixed time, small beside a cable of 100 Mbit/s and as \
             long as the crossing itself where the cable is as fast as the ports.",
        ),
    );
    let mean = power.iter().sum::<f64>() / power.len() as f64;
    report.checks.push(
        Check::near("Section 5.7.2: times as much computational power as two machines", 3.0, mean, 0.05)
            .within("5 %, Table 3.1's speeds"),
    );
    report.checks.push(Check::new(
        "Section 5.7.2: execution times fall with the bandwidth of the cable",
        "at every ratio",
        if bandwidth { "at every ratio" } else { "not at every ratio" },
        bandwidth,
    ));
    report.checks.push(
        Check::new(
            "Section 5.7.2: the bandwidth is the largest factor in reducing the execution times",
            "larger than the power",
            format!(
                "{} less from 100 to 1,000 Mbit/s, {} less from two machines to two clusters at 100 Mbit/s",
                percent(saved_by_bandwidth),
                percent(saved_by_power)
            ),
            saved_by_bandwidth > saved_by_power,
        )
        .unless(
            Verdict::DataNotGiven,
            "The figures are not in the text. By Table 3.1's speeds computing is the larger part of a run at \
             every bandwidth, and the three-fold power reduces it more.",
        ),
    );
    Ok(())
}

/// 5.8.1: what constant power does to the communication of the straight line.
fn constant_power(report: &mut Report) -> Result<()> {
    let ratios: Vec<u64> = (1..=8).collect();
    let total = BORDEAUX.speed * 9.0 / 8.0;
    let constant = processors(&ratios, 1000.0, true, |ratio| {
        let original = Original { speed: total * ratio as f64 / (1.0 + ratio as f64), ..BORDEAUX };
        Original { here: BORDEAUX.here * original.alone() / BORDEAUX.alone(), ..original }
    })?;
    let growing = processors(&ratios, 1000.0, true, |_| BORDEAUX)?;
    let rise = |pairs: &[Pair]| {
        let of = |pair: &Pair| pair.line.communication;
        pairs.last().map_or(f64::NAN, of) / pairs.first().map_or(f64::NAN, of)
    };
    let [here, without] = [rise(&constant), rise(&growing)];
    report.checks.push(
        Check::new(
            "Section 5.8.1: constant power flattens the line's communication times; 8:1 over 1:1",
            "about 1",
            format!("{here:.2}, and {without:.2} with growing power"),
            (here - 1.0).abs() < 0.1,
        )
        .within("10 %")
        .unless(
            Verdict::DataNotGiven,
            "Figure 5.32 is not in the text. By (5.8) the busiest direction grows from 1/2 to 8/9 of N^2, by \
             1.78, and the power of the processors does not enter; what is constant is the volume of both \
             directions.",
        ),
    );
    Ok(())
}

/// 7.5.2: the core of the MDEM, one byte an element, beside the max-plus product of eight (7.5.1).
fn bytes(report: &mut Report) -> Result<()> {
    let gain = |element: u64| {
        let pairs = processors(&[6], 1000.0, false, |_| Original { element, ..LOOP })?;
        Ok::<f64, apportion::Error>(1.0 - pairs[0].corner.execution / pairs[0].line.execution)
    };
    let [one, eight] = [gain(1)?, gain(8)?];
    report.checks.push(Check::new(
        "Section 7.5.2: what the corner saves of the execution time with one byte an element, against eight",
        "less",
        format!("{:.2} % and {:.2} % at 6:1", 100.0 * one, 100.0 * eight),
        0.0 < one && one < eight,
    ));
    Ok(())
}
