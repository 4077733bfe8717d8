//! Max-plus algebra (7.3), the Matrix Discrete Event Model on a workcell (7.4.1), and powers (7.5.1).

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::Result;
use apportion::kernels::{BitMatrix, Kernel, View, ViewMut};
use apportion::matrix::Matrix;
use apportion::model::Model;
use apportion::plan::shapes::{LayoutMethod, SquareCorner, StraightLine};
use apportion::plan::{Layout, Metrics, Plan, Shape};
use apportion::platform::{Network, Platform, Processor};
use apportion::product::{MatmulJob, Operands, multiply, whole_block, whole_matrix};
use apportion::random::Random;
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions};
use apportion_events::{
    End, EventMatrices, EventOptions, LocalLogic, LogicStep, parse_workcell, simulate_workcell,
};

/// The workcell of the kind that Figure 7.1 draws.
const WORKCELL: &str = include_str!("../../../../examples/mdem/tacconi-lewis.toml");

pub struct Algebra;

impl Experiment for Algebra {
    fn about(&self) -> About {
        About {
            ids: &["becker-7.1", "becker-7.3.1", "becker-7.5.1"],
            source: "Becker 2010, 7.3-7.5",
            shows: "max-plus algebra, the equations of the MDEM on a workcell, and powers",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        max_plus(&mut report);
        events(&mut report, context.monitor)?;
        powers(&mut report, context.monitor)?;
        Ok(report)
    }
}

/// Order of the matrices of the laws and of powers.
const N: usize = 60;

/// Products that make a fourth power.
const PRODUCTS: u64 = 3;

/// Whole numbers from -50 to 50, and some epsilons.
fn matrix(seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let element = |x: f64| if x < 0.1 { f64::NEG_INFINITY } else { (100.0 * x).round() - 50.0 };
    (0..N * N).map(|_| element(random.unit())).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a.max(*b)).collect()
}

/// The product by the library's kernel.
fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    let kernel = Kernel::<f64>::max_plus();
    let mut c = vec![kernel.zero(); N * N];
    kernel.update(View::dense(a, N, N), View::dense(b, N, N), ViewMut::dense(&mut c, N, N));
    c
}

/// (7.1), (7.2) and the laws of 7.3.
fn max_plus(report: &mut Report) {
    let kernel = Kernel::<f64>::max_plus();
    let of = |row: &[f64], column: &[f64]| kernel.entry(row, column);
    let by_hand = of(&[1.0, 5.0], &[3.0, -2.0]);
    report.checks.push(Check::new(
        "(7.1): (1 x 3) + (5 x -2) over max-plus",
        4,
        short(by_hand),
        by_hand == 4.0,
    ));
    let (zero, one) = (kernel.zero(), kernel.one());
    report.checks.push(Check::new(
        "(7.2): the neutral elements epsilon and e",
        "-inf and 0",
        format!("{zero} and {one}"),
        zero == f64::NEG_INFINITY && one == 0.0,
    ));
    let neutral = of(&[7.0, 1.0], &[one, zero]) == 7.0 && of(&[7.0], &[zero]) == zero;
    report.checks.push(Check::new(
        "Section 7.3: a + epsilon = a, and a x epsilon = epsilon",
        "yes",
        if neutral { "yes" } else { "no" },
        neutral,
    ));
    let [a, b, c] = [1, 2, 3].map(matrix);
    let laws = [
        ("(A + B) + C = A + (B + C)", sum(&sum(&a, &b), &c) == sum(&a, &sum(&b, &c))),
        ("(A x B) x C = A x (B x C)", product(&product(&a, &b), &c) == product(&a, &product(&b, &c))),
        ("A + B = B + A", sum(&a, &b) == sum(&b, &a)),
        ("(A + B) x C = A x C + B x C", product(&sum(&a, &b), &c) == sum(&product(&a, &c), &product(&b, &c))),
    ];
    for (law, holds) in laws {
        let what = format!("Section 7.3, laws, on matrices of {N} x {N}: {law}");
        report.checks.push(Check::new(what, "equal", if holds { "equal" } else { "different" }, holds));
    }
}

/// (7.3) to (7.6) on a workcell: the matrices by hand, the state equation in all states, and a run.
fn events(report: &mut Report, monitor: &Monitor) -> Result<()> {
    let workcell = parse_workcell(WORKCELL, "tacconi-lewis.toml")?;
    let matrices = EventMatrices::of(&workcell);
    let named = matrices.by_name(&workcell);
    // Rules: enter, loaded, leave M1, buffered, leave buffer, at M2, leave M2, exit. Each matrix as rows of
    // ones.
    let by_hand: [(&str, &[&[usize]]); 6] = [
        ("F_v", &[&[], &[0], &[1], &[2], &[3], &[4], &[5], &[6]]),
        ("F_r", &[&[0, 1, 2], &[], &[1, 3], &[], &[1, 4], &[], &[1], &[]]),
        ("F_u", &[&[0], &[], &[], &[], &[], &[], &[], &[]]),
        ("S_v", &[&[0], &[1], &[2], &[3], &[4], &[5], &[6]]),
        ("S_r", &[&[7], &[1, 3, 5, 7], &[2], &[4], &[6]]),
        ("S_y", &[&[7]]),
    ];
    for (name, rows) in by_hand {
        let found = named.iter().find(|(n, ..)| *n == name).map(|(_, bytes, [_, cols])| {
            let ones = |row: &[u8]| (0..row.len()).filter(|&i| row[i] == 1).collect::<Vec<usize>>();
            bytes.chunks((*cols).max(1)).map(ones).collect::<Vec<_>>()
        });
        let same = found.is_some_and(|found| found.iter().map(Vec::as_slice).eq(rows.iter().copied()));
        let equation = match name {
            "S_v" => "(7.4)",
            "S_r" => "(7.5)",
            "S_y" => "(7.6)",
            _ => "(7.3)",
        };
        report.checks.push(Check::new(
            format!("{equation}: {name} of the workcell"),
            "as written by hand",
            if same { "equal" } else { "different" },
            same,
        ));
    }
    report.checks.push(state_equation(&workcell_conditions(&named), &matrices)?);
    let mut logic = LocalLogic::new(&matrices);
    let runs = simulate_workcell(&workcell, &EventOptions::default(), &mut logic, monitor)?;
    let first = runs.first().map(|run| (run.products.iter().sum::<u64>(), run.end.clone()));
    let through = matches!(first, Some((6, End::Finished)));
    report.checks.push(Check::new(
        "Section 7.4.1: firing vectors carry the workcell through: products of 6 castings",
        6,
        runs.first().map_or(0, |run| run.products.iter().sum::<u64>()),
        through,
    ));
    let mut table = Table::new(
        "The workcell and its scenarios, by (7.3) to (7.6)",
        &["scenario", "products", "makespan, s"],
    );
    for run in &runs {
        let name = match run.variant {
            0 => "as given".to_owned(),
            variant => workcell.scenarios[variant - 1].name.clone(),
        };
        let products: u64 = run.products.iter().sum();
        table.row([name, products.to_string(), short(run.makespan as f64 / 1e9)]);
    }
    report.tables.push(table);
    report.note(
        "Figure 7.1, from Tacconi and Lewis, is not in the text. The workcell here has what theirs has: \
         machines, a buffer, a robot, pallets, and a shared resource (examples/mdem/tacconi-lewis.toml).",
    );
    Ok(())
}

/// F_v, F_r and F_u beside each other, rule by rule: the places that a rule needs.
fn workcell_conditions(named: &[(&'static str, Vec<u8>, [usize; 2])]) -> Vec<Vec<usize>> {
    let mut conditions: Vec<Vec<usize>> = Vec::new();
    let mut before = 0;
    for (_, bytes, [rules, cols]) in named.iter().filter(|(name, ..)| ["F_v", "F_r", "F_u"].contains(name)) {
        conditions.resize(*rules, Vec::new());
        for (rule, row) in bytes.chunks(*cols).enumerate() {
            conditions[rule].extend((0..*cols).filter(|&i| row[i] == 1).map(|i| before + i));
        }
        before += cols;
    }
    conditions
}

/// (7.3) in every state of the places: a rule is violated where something that it needs is missing.
fn state_equation(conditions: &[Vec<usize>], matrices: &EventMatrices) -> Result<Check> {
    let places = 1 + conditions.iter().flatten().copied().max().unwrap_or(0);
    let states = 1_usize << places;
    let mut missing = BitMatrix::zeros(states, places);
    for (state, place) in (0..states).flat_map(|state| (0..places).map(move |place| (state, place))) {
        if state >> place & 1 == 0 {
            missing.set(state, place);
        }
    }
    let violated = LocalLogic::new(matrices).violated(&missing)?;
    let wrong = (0..states)
        .flat_map(|state| (0..conditions.len()).map(move |rule| (state, rule)))
        .filter(|&(state, rule)| {
            let by_definition = conditions[rule].iter().any(|&place| state >> place & 1 == 0);
            violated.get(state, rule) != by_definition
        })
        .count();
    Ok(Check::new(
        format!("(7.3): rules that may fire, in all {states} states of {places} places"),
        "by definition",
        format!("{wrong} differ"),
        wrong == 0,
    ))
}

/// 7.5.1: powers by repeated products.
fn powers(report: &mut Report, monitor: &Monitor) -> Result<()> {
    let n = N as u64;
    let shape = Shape::new(n, n, n, "7.5.1")?;
    let weights = [8.0, 1.0];
    let mut moved = Vec::new();
    let a = matrix(4);
    let mut serial = a.clone();
    for _ in 0..PRODUCTS {
        serial = product(&serial, &a);
    }
    for layout in [StraightLine.layout(shape, &weights)?, SquareCorner.layout(shape, &weights)?] {
        let (power, elements) = fourth_power(&a, &layout, monitor)?;
        let same = power == serial;
        let name = if moved.is_empty() { "straight line" } else { "square corner" };
        report.checks.push(Check::new(
            format!("Section 7.5.1: the fourth power over max-plus on the {name}"),
            "the serial product's",
            if same { "equal" } else { "different" },
            same,
        ));
        let by_layout = PRODUCTS * Metrics::of_layout(&layout, 1.0).volume.unwrap_or(0);
        report.checks.push(Check::new(
            format!("Section 7.5.1: elements that the fourth power moves on the {name}"),
            by_layout,
            elements,
            elements == by_layout,
        ));
        moved.push(elements as f64);
    }
    report.checks.push(Check::near(
        "Section 7.5.1: powers benefit as products do; corner over line at 8:1",
        2.0 / 3.0,
        moved[1] / moved[0],
        1e-9,
    ));
    report.checks.push(
        Check::new("Section 7.5.1: products that A^n takes, n = 4", 4, PRODUCTS, PRODUCTS == 4).unless(
            Verdict::PublishedWrong,
            "The n-th power takes n - 1 products in turn, and fewer by squaring (two for n = 4).",
        ),
    );
    Ok(())
}

/// A^4 by three products on two processors, and the elements that these moved.
fn fourth_power(a: &[f64], layout: &Layout, monitor: &Monitor) -> Result<(Vec<f64>, u64)> {
    let processors = ["p0", "p1"].map(Processor::named).to_vec();
    let platform = Platform { name: "two".into(), processors, network: Network::free() };
    let plan = Plan::of_layout("power", platform.names(), layout.clone(), 1.0);
    let models = [Model::constant("p0", 8e9)?, Model::constant("p1", 1e9)?];
    let kernel = Kernel::max_plus();
    let job = MatmulJob::new(kernel, &plan, ScheduleOptions::new(Flow::Bulk, N as u64), &models, 1);
    let whole = |elements: &[f64]| whole_block(Matrix::new(N, N, elements.to_vec()));
    let base = whole(a);
    let (mut power, mut moved) = (a.to_vec(), 0);
    for _ in 0..PRODUCTS {
        let world = World::solo(monitor);
        let session = Session::new(&world, &platform, monitor, job.work());
        let (product, report) = multiply(Operands::new(&whole(&power), &base), &job, &session)?;
        power = whole_matrix(product).into_elements();
        moved += report.trace.volume_matrix().iter().flatten().sum::<u64>();
    }
    Ok((power, moved))
}
