//! Runs of MPDATA on twelve nodes (4.5): whole time steps on the mappings of Tables 4.2 and 4.3, by
//! simulation.

use super::mapping::{TABLE_4_1, grid, one_cluster};
use super::ninety::flattened;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict};
use apportion::error::Result;
use apportion::kernels::mpdata::{Boundary, Exchange, Scheme};
use apportion::plan::Plan;
use apportion::plan::arrange::{Edges, GridDomain, SearchMethod, SearchOptions, arrange_grid};
use apportion::plan::shapes::Mesh;
use apportion::platform::Platform;
use apportion::simulate::{CostModel, Fluid, simulate_fluid};
use apportion_advect::{AdvectOrder, AdvectProblem, AdvectSchedule};

/// Cells a second of a node of eight Haswell cores; the thesis gives no speed.
const SPEED: f64 = 2.5e8;

/// Seconds of one time step of 64 levels, once steps follow each other: the halos of two passes with the
/// limiter, 3 wide, are exchanged between steps; then every node computes.
fn step(plan: &Plan, platform: &Platform) -> Result<f64> {
    let layout = plan.rectangles().expect("a grid has rectangles");
    let problem = AdvectProblem {
        sizes: vec![layout.shape().m as usize, layout.shape().n as usize, 64],
        boundary: vec![Boundary::Extrapolated; 3],
        scheme: Scheme { nonoscillatory: true, ..Scheme::new(2)? },
    };
    let order = AdvectOrder { exchange: Exchange::Wide, overlap: false };
    let schedule = AdvectSchedule::new(&problem, layout, order, 1)?;
    let costs = CostModel { rates: &vec![SPEED; platform.len()], network: &platform.network, element: 8 };
    let seconds = |steps| -> Result<f64> {
        let schedule = schedule.with_steps(steps);
        let outcome = simulate_fluid(&schedule, costs, &platform.names(), &Fluid::fair(), false)?;
        Ok(outcome.trace.seconds())
    };
    Ok((seconds(6)? - seconds(3)?) / 3.0)
}

/// Tables 4.2 and 4.3, the right half: execution times.
pub struct Runs;

impl Experiment for Runs {
    fn about(&self) -> About {
        About {
            ids: &["malik-4.5"],
            source: "Malik 2016, 4.5",
            shows: "time steps of MPDATA on twelve nodes by simulation, beside the run times of Tables 4.2 and 4.3",
            kind: Kind::Computed,
            seconds: 2,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let [own, shared] = [flattened(TABLE_4_1, false)?, flattened(TABLE_4_1, true)?];
        let domain = GridDomain { start: Some(Mesh::new(2, 6)), ..GridDomain::new(512, 512, Edges::Open) };
        let mut mappings = vec![("as given, 2 x 6", grid(&own, 2, 6)?, Some(994.02))];
        for (name, search, printed) in [
            ("published, 6 x 2", SearchMethod::Published, Some(154.20)),
            ("heuristic, 12 x 1", SearchMethod::Heuristic, None),
        ] {
            mappings.push((name, arrange_grid(domain, &own, SearchOptions::new(search, 1))?.plan, printed));
        }
        let mut report = Report::default();
        let header =
            ["mapping", "printed run", "ratio", "a step, shared", "ratio", "a step, own", "ratio", "steps"];
        let mut table = Table::new("Table 4.2: four clusters, 512 x 512 x 64", &header);
        let (mut first, mut ratios, mut implied) = (None, Vec::new(), Vec::new());
        for (name, plan, printed) in &mappings {
            let seconds = [step(plan, &shared)?, step(plan, &own)?];
            let base: [f64; 2] = *first.get_or_insert(seconds);
            let steps = printed.map(|printed| printed / seconds[0]);
            table.row([
                (*name).to_owned(),
                printed.map_or_else(String::new, |seconds| format!("{seconds} s")),
                printed.map_or_else(String::new, |seconds| format!("{:.2}", 994.02 / seconds)),
                format!("{:.3} s", seconds[0]),
                format!("{:.2}", base[0] / seconds[0]),
                format!("{:.3} s", seconds[1]),
                format!("{:.2}", base[1] / seconds[1]),
                steps.map_or_else(String::new, |steps| format!("{steps:.0}")),
            ]);
            ratios.push(base[0] / seconds[0]);
            implied.extend(steps);
        }
        report.tables.push(table);
        report.checks.push(Check::near("Table 4.2: ratio of run times (shared links)", 6.44, ratios[1], 0.1));
        report.checks.push(same_steps("Table 4.2", &implied));
        let grisou = one_cluster(0.03834, 0.48916)?;
        let mut table =
            Table::new("Table 4.3: one cluster, Grisou", &["grid", "printed run", "a step", "steps"]);
        let (mut steps, mut implied) = (Vec::new(), Vec::new());
        for (rows, cols, printed) in [(2, 6, Some(3.86)), (6, 2, Some(1.32)), (12, 1, None)] {
            let seconds = step(&grid(&grisou, rows, cols)?, &grisou)?;
            table.row([
                format!("{rows} x {cols}"),
                printed.map_or_else(String::new, |printed| format!("{printed} s")),
                format!("{:.2} ms", 1e3 * seconds),
                printed.map_or_else(String::new, |printed: f64| format!("{:.0}", printed / seconds)),
            ]);
            steps.push(seconds);
            implied.extend(printed.map(|printed| printed / seconds));
        }
        report.tables.push(table);
        report.checks.push(same_steps("Table 4.3", &implied));
        report.checks.push(Check::near("Table 4.3: ratio of run times", 3.0, steps[0] / steps[1], 0.2).if_only_the_relation(
            steps[0] > steps[1],
            "With its computation at the assumed speed a step differs less than its exchange (malik-table-4.3, \
             which meets the ratio). The printed ratio is that of messages alone: the real nodes were faster, \
             or sent to their neighbours one after another.",
        ));
        report.note(
            "The thesis prints neither the speed of a node nor the width of the halo nor the number of steps. \
             Here a node computes 250 million cells a second and the halo is 3 cells wide (two passes, \
             non-oscillatory). *Shared*: one link for each pair of clusters; *own*: one for each pair of nodes. \
             The last column is the printed run time over the simulated step.",
        );
        Ok(report)
    }
}

/// Both runs of a table have the same number of steps: the printed seconds over the simulated ones of a step.
fn same_steps(table: &str, implied: &[f64]) -> Check {
    Check::new(
        format!("{table}: both printed times are of the same number of steps"),
        "equal",
        format!("{:.0} and {:.0}", implied[0], implied[1]),
        (implied[0] / implied[1] - 1.0).abs() < 0.1,
    )
    .within("10 %")
    .unless(
        Verdict::DataNotGiven,
        "Neither the number of steps nor the speed of a node is printed: by the ratio of the printed times the \
         real nodes computed faster than is assumed here.",
    )
}
