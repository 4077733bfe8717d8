//! METIS 5 (Karypis and Kumar 1998; manual 5.1, section 5.7).

use super::library::{Address, Answer, Integers, Partitioner, Status, again};
use crate::graph::{Graph, RawGraph};
use apportion::error::{Error, Result};
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock, PoisonError};

/// How far a part may exceed its target.
const TOLERANCE: f32 = 1.01;

/// `METIS_OK`
const OK: Status = 1;

/// Length of the array of options, and more than that.
const OPTIONS: usize = 40;

/// `METIS_PartGraphRecursive` and `METIS_PartGraphKway`: numbers of vertices and constraints, offsets, neighbours, weights
/// of vertices, sizes of vertices, weights of edges, number of parts, target weights, tolerances, options; then the cut and
/// the parts, which are written.
type Function = unsafe extern "C" fn(
    Address,
    Address,
    Address,
    Address,
    Address,
    Address,
    Address,
    Address,
    Address,
    Address,
    Address,
    *mut c_void,
    *mut c_void,
) -> Status;

/// The functions of METIS that are used.
pub(super) struct Metis {
    library: Partitioner,
    recursive: Function,
    kway: Function,
    /// Whether its whole numbers have 64 bits.
    wide: bool,
    /// Its random numbers are the process's.
    busy: Mutex<()>,
}

impl Metis {
    /// The library of this machine.
    ///
    /// # Errors
    /// There is none, or one that was built with real numbers of 64 bits.
    pub(super) fn get() -> Result<&'static Self> {
        static LOADED: OnceLock<Result<Metis>> = OnceLock::new();
        LOADED.get_or_init(Self::load).as_ref().map_err(again)
    }

    #[allow(unsafe_code)]
    fn load() -> Result<Self> {
        let files = ["libmetis.so.5", "libmetis.so", "libmetis.5.dylib", "libmetis.dylib"];
        let library = Partitioner::load("METIS", &files, "install METIS 5 (Debian: apt install libmetis5)")?;
        let defaults: unsafe extern "C" fn(*mut i32) -> Status =
            library.function("METIS_SetDefaultOptions")?;
        // It writes -1 to each of 40 options: their number of words is the width of its whole numbers.
        let mut options = [7i32; 2 * OPTIONS];
        // SAFETY: 40 options of at most 64 bits fit.
        unsafe { defaults(options.as_mut_ptr()) };
        let wide = match options.iter().take_while(|option| **option == -1).count() {
            OPTIONS => false,
            words if words == 2 * OPTIONS => true,
            _ => return Err(library.unusable("is no METIS 5")),
        };
        let recursive = library.function("METIS_PartGraphRecursive")?;
        let kway = library.function("METIS_PartGraphKway")?;
        let metis = Self { library, recursive, kway, wide, busy: Mutex::new(()) };
        // Target weights of another width would be other numbers.
        let targets_are_met = metis.partition(&path(64), &[0.75, 0.25], false)?;
        let first = targets_are_met.iter().filter(|part| **part == 0).count();
        match (44..=52).contains(&first) {
            true => Ok(metis),
            false => Err(metis.library.unusable("was built with real numbers of 64 bits")),
        }
    }

    /// Parts with these fractions of each weight.
    ///
    /// # Errors
    /// METIS fails.
    #[allow(unsafe_code)]
    pub(super) fn partition(&self, graph: &Graph, targets: &[f64], kway: bool) -> Result<Vec<u32>> {
        let _alone = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let [offsets, neighbours, vertex_weights, edge_weights] = graph.arrays();
        let (constraints, wide) = (graph.constraints(), self.wide);
        let numbers = [graph.vertices(), constraints, targets.len()].map(|number| [number as u32]);
        let [vertices, constraint_count, parts] =
            numbers.each_ref().map(|number| Integers::new(number, wide));
        let [offsets, neighbours] = [offsets, neighbours].map(|numbers| Integers::new(numbers, wide));
        let vertex_weights = Integers::weights(vertex_weights, constraints, wide);
        let edge_weights = Integers::weights(edge_weights, 1, wide);
        let sum: f64 = targets.iter().sum();
        let fractions = targets.iter().flat_map(|target| vec![(target / sum) as f32; constraints]);
        let fractions: Vec<f32> = fractions.collect();
        let tolerances = vec![TOLERANCE; constraints];
        let (mut cut, mut answer) = (Answer::new(1, wide), Answer::new(graph.vertices(), wide));
        let none: Address = std::ptr::null();
        let function = if kway { self.kway } else { self.recursive };
        // SAFETY: these are the arguments of the manual, in the width that was found; arrays that are read are not
        // written, and the two that are written have room.
        let status = unsafe {
            function(
                vertices.address(),
                constraint_count.address(),
                offsets.address(),
                // A graph without edges has an address all the same.
                if graph.edges() == 0 { offsets.address() } else { neighbours.address() },
                vertex_weights.address(),
                none,
                edge_weights.address(),
                parts.address(),
                fractions.as_ptr().cast(),
                tolerances.as_ptr().cast(),
                none,
                cut.address(),
                answer.address(),
            )
        };
        match (status, answer.below(targets.len())) {
            (OK, Some(parts)) => Ok(parts),
            (status, _) => {
                let what = format!("METIS ended with status {status}");
                Err(Error::infeasible(what, "use another method, or fewer processors"))
            }
        }
    }
}

/// A path, on which a cut is known.
fn path(vertices: u32) -> Graph {
    let mut raw = RawGraph { offsets: vec![0], ..RawGraph::default() };
    for vertex in 0..vertices {
        raw.neighbours.extend(vertex.checked_sub(1));
        raw.neighbours.extend(Some(vertex + 1).filter(|next| *next < vertices));
        raw.offsets.push(raw.neighbours.len() as u32);
    }
    Graph::new(raw, 0).expect("a path is a graph")
}
