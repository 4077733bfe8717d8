//! Jacobi sweeps over a plate, one edge of which is hot, on processors of unequal speed: measured, divided by the
//! speeds found, forecast, run, and compared with a serial run.
//!
//! `cargo run --release --example jacobi`, or on as many processes: `mpirun -n 4 target/release/examples/jacobi`

use apportion::job::{Halo, Job, Patch, Problem, Stencil, in_world};
use apportion::model::Machine;
use apportion::run::World;
use apportion::{Rect, Result};

struct Plate;

impl Stencil for Plate {
    type Element = f64;

    fn sizes(&self) -> [u64; 2] {
        [600, 400]
    }
    fn sweeps(&self) -> u64 {
        50
    }
    fn value(&self, row: i64, _col: i64) -> f64 {
        if row < 0 { 100.0 } else { 0.0 }
    }
    fn update(&self, around: &[&[f64]], out: &mut [f64]) {
        for (j, out) in out.iter_mut().enumerate() {
            *out = 0.25 * (around[0][j + 1] + around[2][j + 1] + around[1][j] + around[1][j + 2]);
        }
    }
}

impl Problem for Plate {
    type Decision = Vec<Rect>;
    type Data = ();
    type Executable<'a> = Halo<'a, Self>;
    type Output = ();

    fn name(&self) -> String {
        "jacobi".into()
    }
    fn samples(&self) -> Result<Vec<Vec<Rect>>> {
        Ok(Halo::samples(self))
    }
    fn candidates(&self, machine: &Machine) -> Result<Vec<Vec<Rect>>> {
        Halo::candidates(self, machine)
    }
    fn executable<'a>(&'a self, parts: &'a Vec<Rect>, (): &'a ()) -> Result<Halo<'a, Self>> {
        Ok(Halo::new(self, parts))
    }
    fn verify(&self, halo: &Halo<'_, Self>, held: Vec<Patch<f64>>, _: &World) -> Result<()> {
        halo.compare_with_serial(&held)
    }
}

fn main() -> Result<()> {
    in_world(|context| {
        Job::new(&Plate).run(context)?.report.print(context.world);
        Ok(())
    })
}
