use super::application::SpmvMethod;
use super::part::Whole;
use super::problem::Sparse;
use super::task::{SpmvMatrix, SpmvTask, VectorSource, spmv};
use crate::divide::GraphOptions;
use crate::generate::{Family, generate, laplacian};
use crate::partition::GraphMethod;
use crate::sparse::SparseMatrix;
use apportion::Rank;
use apportion::error::Error;
use apportion::job::{Context, Job, Problem, Sources, with_speeds};
use apportion::model::Machine;
use apportion::plan::Division;
use apportion::platform::{Speed, parse_platform};
use apportion::random::Random;
use apportion::run::{Monitor, Session, World};
use std::sync::OnceLock;

/// Rows of up to 12 entries, some empty, not symmetric.
fn skewed(n: usize, seed: u64) -> SparseMatrix {
    let mut random = Random::new(seed);
    let (mut offsets, mut columns, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for _ in 0..n {
        let mut row: Vec<u32> = (0..random.below(13)).map(|_| random.below(n) as u32).collect();
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|_| random.unit() - 0.5));
        columns.extend(row);
        offsets.push(columns.len() as u32);
    }
    SparseMatrix::new(n, offsets, columns, values, "a").unwrap()
}

fn serial(matrix: &SparseMatrix, x: &[f64], steps: usize) -> Vec<f64> {
    let mut x = x.to_vec();
    for _ in 0..steps {
        let row = |row: usize| {
            let (columns, values) = matrix.row(row);
            columns.iter().zip(values).fold(0.0, |sum, (column, value)| sum + value * x[*column as usize])
        };
        x = (0..matrix.rows()).map(row).collect();
    }
    x
}

fn sources(speeds: &[f64]) -> Sources {
    let speeds: Vec<Speed> = speeds.iter().map(|speed| Speed::Relative(*speed)).collect();
    Sources { platform: Some(with_speeds(None, &speeds).unwrap()), ..Sources::default() }
}

fn bits(vector: &[f64]) -> Vec<u64> {
    vector.iter().map(|x| x.to_bits()).collect()
}

/// On threads and on ranks with memory of their own, for every method that needs no library, more processors than rows,
/// and one that gets nothing.
#[test]
fn every_division_gives_the_serial_bits() {
    let monitor = Monitor::new();
    for (n, speeds) in
        [(211, &[3.0, 0.0, 1.0, 2.0][..]), (5, &[1.0; 7][..]), (64, &[1.0][..]), (1, &[1.0, 1.0][..])]
    {
        let matrix = skewed(n, 9);
        let x: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let expected = bits(&serial(&matrix, &x, 70));
        let mut task = SpmvTask::new(SpmvMatrix::Matrix(&matrix), VectorSource::Array(&x), 70);
        task.sources = sources(speeds);
        for methods in [vec![GraphMethod::Contiguous], Vec::new()] {
            task.options = GraphOptions { methods, ..GraphOptions::default() };
            let run = |world: &World| spmv(&task, Context::silent(world, &monitor));
            let alone = run(&World::solo(&monitor)).unwrap();
            assert_eq!(bits(&alone.result), expected, "{n}");
            assert_eq!(alone.choices[0].plan.shares.iter().sum::<u64>(), n as u64);
            for outcome in World::threads(speeds.len(), &monitor, run).unwrap() {
                assert_eq!(bits(&outcome.result), expected, "{n}");
            }
        }
    }
}

/// A pool of three threads beside another processor.
fn pool() -> Sources {
    let text =
        "[[processor]]\nname = \"p\"\ncores = [0, 0, 0]\nspeed = 3\n[[processor]]\nname = \"q\"\nspeed = 1\n";
    Sources { platform: Some(parse_platform(text, "p.toml").unwrap()), ..Sources::default() }
}

/// A pool of three threads on rows that are cut between them.
#[test]
fn threads_of_a_pool_give_the_same_bits() {
    let (matrix, monitor) = (skewed(4000, 3), Monitor::new());
    let x = vec![1.0; 4000];
    let mut task = SpmvTask::new(SpmvMatrix::Matrix(&matrix), VectorSource::Array(&x), 5);
    task.sources = pool();
    let world = World::solo(&monitor);
    let outcome = spmv(&task, Context::silent(&world, &monitor)).unwrap();
    assert_eq!(bits(&outcome.result), bits(&serial(&matrix, &x, 5)));
}

#[test]
fn solutions_have_the_same_bits_and_solve() {
    let mesh = generate(Family::DenseRegion, 900, 2).unwrap();
    let matrix = laplacian(&mesh.graph).unwrap();
    let right: Vec<f64> = (0..900).map(|i| f64::from(i % 7)).collect();
    let b = serial(&matrix, &right, 1);
    let monitor = Monitor::new();
    for method in [SpmvMethod::Cg, SpmvMethod::Jacobi] {
        let mut task = SpmvTask::new(SpmvMatrix::Matrix(&matrix), VectorSource::Array(&b), 2000);
        (task.method, task.tolerance) = (method, 1e-10);
        let mut found: Vec<Vec<u64>> = Vec::new();
        for speeds in [&[1.0][..], &[4.0, 2.0, 0.0, 1.0, 1.0]] {
            task.sources = sources(speeds);
            let run = |world: &World| spmv(&task, Context::silent(world, &monitor));
            let outcome = run(&World::solo(&monitor)).unwrap();
            let solution = outcome.solution.unwrap();
            assert!(solution.converged && solution.residual <= 1.1e-10, "{solution:?}");
            let error = outcome.result.iter().zip(&right).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
            assert!(error < 1e-7, "{method:?} {error}");
            found.push(bits(&outcome.result));
            found.extend(
                World::threads(speeds.len(), &monitor, run).unwrap().iter().map(|one| bits(&one.result)),
            );
        }
        task.sources = pool();
        let world = World::solo(&monitor);
        found.push(bits(&spmv(&task, Context::silent(&world, &monitor)).unwrap().result));
        found.dedup();
        assert_eq!(found.len(), 1, "{method:?}");
    }
}

#[test]
fn what_is_no_solution_is_no_result() {
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let refused = |matrix: &SparseMatrix, method, steps| {
        let b = vec![1.0; matrix.rows()];
        let mut task = SpmvTask::new(SpmvMatrix::Matrix(matrix), VectorSource::Array(&b), steps);
        (task.method, task.sources) = (method, sources(&[2.0, 1.0]));
        spmv(&task, Context::silent(&world, &monitor)).unwrap_err().to_string()
    };
    let matrix = |values: [f64; 4]| {
        SparseMatrix::new(2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec(), "a").unwrap()
    };
    let indefinite = matrix([1.0, 2.0, 2.0, 1.0]);
    assert!(refused(&matrix([-1.0, 0.5, 0.5, -1.0]), SpmvMethod::Cg, 9).contains("not positive definite"));
    assert!(refused(&indefinite, SpmvMethod::Jacobi, 9).contains("after 9 steps of jacobi"));
    assert!(refused(&indefinite, SpmvMethod::Jacobi, 5000).contains("is no number"));
    assert!(refused(&matrix([0.0, 1.0, 1.0, 1.0]), SpmvMethod::Jacobi, 9).contains("row 1 has no element"));
    assert!(refused(&matrix([1.0, 2.0, 0.0, 1.0]), SpmvMethod::Cg, 9).contains("not symmetric"));
    assert!(refused(&matrix([1e200; 4]), SpmvMethod::Product, 9).contains("exceeds the largest double"));
    let wide = SparseMatrix::new(3, vec![0, 1], vec![2], vec![1.0], "a").unwrap();
    assert!(refused(&wide, SpmvMethod::Product, 1).contains("1 x 3"));
    assert!(refused(&indefinite, SpmvMethod::Product, 0).contains("0 steps"));
}

/// Where a rank has no rows, it knows no residual: what is no number on the others is no small one.
#[test]
fn idle_ranks_do_not_hide_what_is_no_number() {
    let large =
        SparseMatrix::new(2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 1e70, 1e70, 1.0], "a").unwrap();
    let (b, monitor) = ([1.0, 2.0], Monitor::new());
    let mut task = SpmvTask::new(SpmvMatrix::Matrix(&large), VectorSource::Array(&b), 50);
    (task.method, task.sources) = (SpmvMethod::Jacobi, sources(&[1.0, 1.0, 0.0]));
    let refused = |world: &World| Ok(spmv(&task, Context::silent(world, &monitor)).unwrap_err().to_string());
    for said in World::threads(3, &monitor, refused).unwrap() {
        assert!(said.contains("after ") && said.contains("no number"), "{said}");
    }
}

/// Elements below the smallest normal double are rounded as a whole, and are right all the same.
#[test]
fn what_underflows_is_not_wrong() {
    let half = SparseMatrix::new(1, vec![0, 1], vec![0], vec![0.1], "a").unwrap();
    let (x, monitor) = ([1.0], Monitor::new());
    let mut task = SpmvTask::new(SpmvMatrix::Matrix(&half), VectorSource::Array(&x), 400);
    task.sources = sources(&[1.0]);
    let world = World::solo(&monitor);
    assert_eq!(spmv(&task, Context::silent(&world, &monitor)).unwrap().result, [0.0]);
    let tiny = [1e-170];
    task.vector = VectorSource::Array(&tiny);
    task.method = SpmvMethod::Cg;
    let refused = spmv(&task, Context::silent(&world, &monitor)).unwrap_err().to_string();
    assert!(refused.contains("range of doubles"), "{refused}");
    let nothing = [0.0];
    task.vector = VectorSource::Array(&nothing);
    assert_eq!(spmv(&task, Context::silent(&world, &monitor)).unwrap().result, [0.0]);
}

/// What the plan counts, what parts send, and what travelled are one number.
#[test]
fn volume_by_plan_by_parts_and_by_run_agree() {
    let (matrix, monitor) = (skewed(300, 4), Monitor::new());
    let x = vec![1.0; 300];
    let mut task = SpmvTask::new(SpmvMatrix::Matrix(&matrix), VectorSource::Array(&x), 10);
    task.sources = sources(&[3.0, 2.0, 1.0]);
    let world = World::solo(&monitor);
    let outcome = spmv(&task, Context::silent(&world, &monitor)).unwrap();
    let best = &outcome.choices[0];
    let whole = Whole::new(&matrix, &best.parts);
    let Division::Graph { borders, .. } = &best.plan.division else { panic!("it is of a graph") };
    let mut sent = 0;
    for rank in (0..3).map(Rank) {
        for (to, elements) in whole.part(rank).receivers() {
            let border = borders.iter().find(|border| (border.from, border.to) == (rank, to)).unwrap();
            assert_eq!(border.vertices, elements as u64);
            sent += elements as u64;
        }
    }
    assert_eq!(best.plan.metrics.volume, Some(sent));
    assert_eq!(outcome.record().volume, Some(10 * sent));
}

#[test]
fn a_wrong_element_is_found() {
    let matrix = skewed(2000, 8);
    let x: Vec<f64> = (0..2000).map(|i| (i as f64).cos()).collect();
    let options = GraphOptions { methods: vec![GraphMethod::Contiguous], ..GraphOptions::default() };
    let sparse = Sparse {
        matrix: &matrix,
        method: SpmvMethod::Product,
        options,
        parts: None,
        vector: &x,
        graph: OnceLock::new(),
    };
    let machine = Machine::from_speeds(&[2.0, 1.0]).unwrap();
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let job = Job::new(&sparse);
    let best = job.rank(&machine, &world).unwrap().remove(0).decision;
    let mut data = sparse.read(&best, &world).unwrap();
    let session = Session::new(&world, &machine.platform, &monitor, 1.0);
    data.steps = 3;
    job.solve(&best, &data, &session).unwrap();
    data.held[1].as_mut().unwrap().part.damage();
    let error = job.solve(&best, &data, &session).unwrap_err();
    assert!(matches!(&error, Error::WrongResult { what } if what.contains("step 1")), "{error}");
}
