//! The commands that are killed.

/// A command that is killed, and then run again with the same words until it succeeds.
pub struct Job {
    pub name: &'static str,
    pub line: &'static str,
    pub output: &'static str,
    /// Several processes under mpirun.
    pub processes: Option<usize>,
    pub check: Check,
}

/// What must hold of an output.
pub enum Check {
    /// It is that of an undisturbed run.
    SameBytes,
    /// Measured times differ: another command must be able to use it.
    UsedBy(&'static str),
}

const fn job(name: &'static str, line: &'static str, output: &'static str) -> Job {
    Job { name, line, output, processes: None, check: Check::SameBytes }
}

pub const JOBS: [Job; 9] = [
    job("matmul, panels", "matmul a.npy b.npy -o c.npy --platform slow.toml --panels 12 --resume k", "c.npy"),
    job(
        "matmul, min-plus in panels",
        "matmul a.npy b.npy -o c.npy --semiring min-plus --platform slow.toml --panels 9 --resume k",
        "c.npy",
    ),
    Job {
        processes: Some(2),
        ..job(
            "matmul, panels, MPI",
            "matmul a.npy b.npy -o c.npy --platform slow.toml --panels 6 --resume k --engine mpi",
            "c.npy",
        )
    },
    job(
        "advect",
        "advect --field f.npy --courant 0.2,0.1 --steps 60 -o out.npy --platform slow.toml --resume k",
        "out.npy",
    ),
    job("power", "power f.npy -k 5 -o p.npy --semiring max-plus --platform slow.toml", "p.npy"),
    job("closure", "closure f.npy -o p.npy --platform slow.toml", "p.npy"),
    job("random", "random 1500 1500 -o big.npy --seed 3", "big.npy"),
    Job {
        check: Check::UsedBy("partition --units 1000 --models m.json -o divided.json"),
        ..job(
            "measure, resumed",
            "measure --processors 2 --sizes 60,90,120,150,180,210,240 -o m.json --resume",
            "m.json",
        )
    },
    Job {
        check: Check::UsedBy("partition --plan b.json --export csv"),
        ..job(
            "balance",
            "balance --units 100 --processors 2 --max-rounds 4 -o b.json -- sleep 0.0{share}",
            "b.json",
        )
    },
];
