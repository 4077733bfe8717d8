//! How fast MPDATA converges, and what its passes do to a cone: writes `advect-order.svg` and
//! `advect-cone.svg` to the directory given (default: docs/pictures).
//!
//! `cargo run --release -p targets --example advection_order`

use apportion::kernels::mpdata::{Boundary, Scheme};
use apportion::plan::{Layout, Part, Plan, Shape};
use apportion::platform::Platform;
use apportion::run::{Monitor, Session, World};
use apportion::{Error, Rank, Rect, Result, Span};
use apportion_advect::{AdvectJob, AdvectOrder, AdvectProblem, Courant, advect};
use apportion_report::{Plot, Series, plot_svg, plot_svg_on};
use std::f64::consts::TAU;
use std::path::PathBuf;

/// Flow along the diagonal, by axis.
const COURANT: [f64; 3] = [0.25, 0.125, 0.1875];

/// Advects a field on a periodic grid by one processor.
fn run(
    sizes: &[usize],
    courant: &[f64],
    scheme: Scheme,
    (field, steps): (Vec<f64>, u64),
) -> Result<Vec<f64>> {
    let problem =
        AdvectProblem { sizes: sizes.to_vec(), boundary: vec![Boundary::Periodic; sizes.len()], scheme };
    let [rows, cols] = [sizes[0], if sizes.len() > 1 { sizes[1] } else { 1 }];
    let levels = sizes.get(2).copied().unwrap_or(1);
    let all = |cols: usize| Rect::new(Span::new(0, rows as u64), Span::new(0, cols as u64));
    let shape = Shape::new(rows as u64, 1, cols as u64, "grid")?;
    let layout = Layout::new(shape, 1, [Part::new(Rank(0), all(cols))])?;
    let plan = Plan::of_grid("one", vec!["p0".into()], layout, 1.0);
    let (monitor, platform) = (Monitor::new(), Platform::from_speeds(&[1.0])?);
    let world = World::solo(&monitor);
    let session = Session::new(&world, &platform, &monitor, 0.0);
    let job = AdvectJob { problem: &problem, plan: &plan, order: AdvectOrder::ALL[0], signed: false };
    let courant: Vec<Courant<'_, f64>> = courant.iter().map(|c| Courant::Constant(*c)).collect();
    let blocks = vec![(all(cols * levels), field)];
    Ok(advect(&job, &blocks, &courant, steps, &session)?.0.remove(0).1)
}

/// The error (L2) of a wave that has moved along the diagonal on n cells per axis.
fn error(n: usize, dimensions: usize, scheme: Scheme) -> Result<f64> {
    let sizes = vec![n; dimensions];
    let field = |moved: f64| -> Vec<f64> {
        (0..n.pow(dimensions as u32))
            .map(|at| {
                let along = |axis: usize| {
                    let place = at / n.pow((dimensions - 1 - axis) as u32) % n;
                    (TAU * (place as f64 + 0.5 - moved * COURANT[axis]) / n as f64).sin()
                };
                2.0 + (0..dimensions).map(along).product::<f64>()
            })
            .collect()
    };
    let found = run(&sizes, &COURANT[..dimensions], scheme, (field(0.0), n as u64))?;
    let squares: f64 = found.iter().zip(field(n as f64)).map(|(x, y)| (x - y) * (x - y)).sum();
    Ok((squares / found.len() as f64).sqrt())
}

fn main() -> Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "docs/pictures".into()));
    let basic = |passes| Scheme::new(passes);
    let third = Scheme { third_order: true, ..basic(3)? };
    let mut series = Vec::new();
    println!("order between the two largest grids");
    for (colour, (name, dimensions, scheme, grids)) in [
        ("2-D, 1 pass", 2, basic(1)?, [16, 32, 64, 128]),
        ("2-D, 2 passes", 2, basic(2)?, [16, 32, 64, 128]),
        ("2-D, 3 passes, third order", 2, third, [16, 32, 64, 128]),
        ("3-D, 2 passes", 3, basic(2)?, [8, 16, 32, 64]),
        ("3-D, 3 passes, third order", 3, third, [8, 16, 32, 64]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut points = Vec::new();
        for n in grids {
            points.push([n as f64, error(n, dimensions, scheme)?]);
        }
        println!("  {name:28} {:.2}", (points[2][1] / points[3][1]).log2());
        series.push(Series {
            name: name.into(),
            points,
            dashed: dimensions == 3,
            colour,
            ..Series::default()
        });
    }
    let order = Plot {
        title: ["MPDATA on a flow along the diagonal".into(), "a wave moved by n steps".into()],
        axes: ["cells per axis".into(), "error (L2)".into()],
        series,
        ..Plot::default()
    };
    let n = 100;
    let cone = |x: usize| 1.0 + 3.0 * (1.0 - (x as f64 - 30.0).abs() / 15.0).max(0.0);
    let mut series = vec![];
    let start: Vec<f64> = (0..n).map(cone).collect();
    for (colour, (name, scheme)) in [
        ("before, and exact after a round", None),
        ("1 pass", Some(basic(1)?)),
        ("2 passes", Some(basic(2)?)),
        ("3 passes, non-oscillatory", Some(Scheme { nonoscillatory: true, ..basic(3)? })),
    ]
    .into_iter()
    .enumerate()
    {
        let row = match scheme {
            None => start.clone(),
            // One round in 200 steps.
            Some(scheme) => {
                let plane: Vec<f64> = (0..4).flat_map(|_| start.clone()).collect();
                run(&[4, n], &[0.0, 0.5], scheme, (plane, 200))?[..n].to_vec()
            }
        };
        let points = row.iter().enumerate().map(|(x, y)| [x as f64, *y]).collect();
        series.push(Series {
            name: name.into(),
            points,
            dashed: scheme.is_none(),
            colour,
            ..Series::default()
        });
    }
    let cone = Plot {
        title: ["A cone after a round of 200 steps".into(), "C = 0.5, periodic, 100 cells".into()],
        axes: ["cell".into(), "field".into()],
        series,
        ..Plot::default()
    };
    for (name, text) in
        [("advect-order.svg", plot_svg_on(&order, [true; 2])), ("advect-cone.svg", plot_svg(&cone))]
    {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|e| Error::file(&path, "write", e))?;
    }
    Ok(())
}
