//! Scotch 6 and 7 (Pellegrini and Roman 1996; user's guide 7.0, sections 7.5 to 7.8).

use super::library::{Address, Answer, Integers, Partitioner, Status, again};
use crate::graph::Graph;
use apportion::error::{Error, Result};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, OnceLock};

/// How far a part may exceed its target, as a fraction.
const TOLERANCE: f64 = 0.01;

/// Targets are whole numbers: this many for all parts together.
const PARTS: f64 = 1e6;

/// `SCOTCH_STRATBALANCE`
const BALANCE: u32 = 4;

type Init = unsafe extern "C" fn(*mut c_void) -> Status;
type Exit = unsafe extern "C" fn(*mut c_void);

/// Functions whose whole numbers have this width.
macro_rules! functions {
    ($name:ident, $number:ty) => {
        #[derive(Clone, Copy)]
        struct $name {
            build: unsafe extern "C" fn(
                *mut c_void,
                $number,
                $number,
                Address,
                Address,
                Address,
                Address,
                $number,
                Address,
                Address,
            ) -> Status,
            weighted: unsafe extern "C" fn(*mut c_void, $number, Address) -> Status,
            strategy: unsafe extern "C" fn(*mut c_void, $number, $number, f64) -> Status,
            /// Of a context; since Scotch 7.
            option: Option<unsafe extern "C" fn(*mut c_void, c_int, $number) -> Status>,
        }

        impl $name {
            fn load(library: &Partitioner) -> Result<Self> {
                Ok(Self {
                    build: library.function("SCOTCH_graphBuild")?,
                    weighted: library.function("SCOTCH_archCmpltw")?,
                    strategy: library.function("SCOTCH_stratGraphMapBuild")?,
                    option: library.function("SCOTCH_contextOptionSetNum").ok(),
                })
            }
        }
    };
}
functions!(Narrow, i32);
functions!(Wide, i64);

enum Functions {
    Narrow(Narrow),
    Wide(Wide),
}

/// An object of Scotch, which knows its own size.
struct Kind {
    words: usize,
    init: Init,
    exit: Exit,
}

/// What says that results may not depend on threads; since Scotch 7, whose threads may otherwise decide.
struct Contexts {
    alloc: unsafe extern "C" fn() -> *mut c_void,
    init: Init,
    bind: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> Status,
    exit: Exit,
    free: Exit,
}

/// `SCOTCH_OPTIONNUMDETERMINISTIC`
const DETERMINISTIC: c_int = 0;

/// The functions of Scotch that are used.
pub(super) struct Scotch {
    contexts: Option<Contexts>,
    graph: Kind,
    target: Kind,
    strategy: Kind,
    functions: Functions,
    map: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> Status,
    reset: unsafe extern "C" fn(),
    /// Its random numbers are the process's.
    busy: Mutex<()>,
}

/// An object, until it is dropped.
struct Object<'a> {
    kind: &'a Kind,
    memory: Vec<u64>,
}

impl<'a> Object<'a> {
    #[allow(unsafe_code)]
    fn new(kind: &'a Kind) -> Self {
        let mut memory = vec![0u64; kind.words];
        // SAFETY: the memory is as large as Scotch says, and aligned for its largest field.
        unsafe { (kind.init)(memory.as_mut_ptr().cast()) };
        Self { kind, memory }
    }

    fn address(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }
}

impl Drop for Object<'_> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it was initialised, and nobody uses it any more.
        unsafe { (self.kind.exit)(self.memory.as_mut_ptr().cast()) };
    }
}

impl Scotch {
    /// The library of this machine.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn get() -> Result<&'static Self> {
        static LOADED: OnceLock<Result<Scotch>> = OnceLock::new();
        LOADED.get_or_init(Self::load).as_ref().map_err(again)
    }

    #[allow(unsafe_code)]
    fn load() -> Result<Self> {
        let files = [
            "libscotch.so",
            "libscotch-7.0.so",
            "libscotch.so.7.0",
            "libscotch-6.1.so",
            "libscotch.so.7",
            "libscotch.dylib",
        ];
        let library =
            Partitioner::load("Scotch", &files, "install Scotch (Debian: apt install libscotch-7.0)")?;
        let kind = |name: &str| -> Result<Kind> {
            let size: unsafe extern "C" fn() -> c_int = library.function(&format!("SCOTCH_{name}Sizeof"))?;
            // SAFETY: it takes nothing and returns a number of bytes.
            let bytes = usize::try_from(unsafe { size() }).unwrap_or(0);
            Ok(Kind {
                words: bytes.div_ceil(8) + 1,
                init: library.function(&format!("SCOTCH_{name}Init"))?,
                exit: library.function(&format!("SCOTCH_{name}Exit"))?,
            })
        };
        let width: unsafe extern "C" fn() -> c_int = library.function("SCOTCH_numSizeof")?;
        // SAFETY: as above.
        let functions = match unsafe { width() } {
            8 => Functions::Wide(Wide::load(&library)?),
            _ => Functions::Narrow(Narrow::load(&library)?),
        };
        let contexts = || -> Result<Contexts> {
            Ok(Contexts {
                alloc: library.function("SCOTCH_contextAlloc")?,
                init: library.function("SCOTCH_contextInit")?,
                bind: library.function("SCOTCH_contextBindGraph")?,
                exit: library.function("SCOTCH_contextExit")?,
                free: library.function("SCOTCH_memFree")?,
            })
        };
        Ok(Self {
            contexts: contexts().ok(),
            graph: kind("graph")?,
            target: kind("arch")?,
            strategy: kind("strat")?,
            functions,
            map: library.function("SCOTCH_graphMap")?,
            reset: library.function("SCOTCH_randomReset")?,
            busy: Mutex::new(()),
        })
    }

    /// Parts with these fractions of the weight.
    ///
    /// # Errors
    /// Scotch fails.
    #[allow(unsafe_code)]
    pub(super) fn partition(&self, graph: &Graph, targets: &[f64]) -> Result<Vec<u32>> {
        let _alone = self.busy.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let wide = matches!(self.functions, Functions::Wide(_));
        let [offsets, neighbours, vertex_weights, edge_weights] = graph.arrays();
        let (vertices, entries) = (graph.vertices(), neighbours.len());
        let [offsets, neighbours] = [offsets, neighbours].map(|numbers| Integers::new(numbers, wide));
        let vertex_weights = Integers::weights(vertex_weights, 1, wide);
        let edge_weights = Integers::weights(edge_weights, 1, wide);
        let sum: f64 = targets.iter().sum();
        let shares: Vec<u32> =
            targets.iter().map(|target| (PARTS * target / sum).round().max(1.0) as u32).collect();
        let shares = Integers::new(&shares, wide);
        let mut answer = Answer::new(vertices, wide);
        let (mut source, mut target) = (Object::new(&self.graph), Object::new(&self.target));
        let mut strategy = Object::new(&self.strategy);
        let none: Address = std::ptr::null();
        let parts = targets.len();
        // SAFETY: these are the arguments of the manual, in the width that Scotch says; it reads the graph's arrays until
        // `source` is dropped, and writes `answer`.
        let failed = unsafe {
            (self.reset)();
            let starts = offsets.address();
            let arrays = [starts, none, vertex_weights.address(), none];
            let lists = [neighbours.address(), edge_weights.address()];
            let built = match &self.functions {
                Functions::Narrow(f) => {
                    let [v, e, p] = [vertices, entries, parts].map(|number| number as i32);
                    let [a, b, c, d] = arrays;
                    (f.build)(source.address(), 0, v, a, b, c, d, e, lists[0], lists[1])
                        + (f.weighted)(target.address(), p, shares.address())
                        + (f.strategy)(strategy.address(), BALANCE as i32, p, TOLERANCE)
                }
                Functions::Wide(f) => {
                    let [v, e, p] = [vertices, entries, parts].map(|number| number as i64);
                    let [a, b, c, d] = arrays;
                    (f.build)(source.address(), 0, v, a, b, c, d, e, lists[0], lists[1])
                        + (f.weighted)(target.address(), p, shares.address())
                        + (f.strategy)(strategy.address(), i64::from(BALANCE), p, TOLERANCE)
                }
            };
            let (target, strategy) = (target.address(), strategy.address());
            let option = |context: *mut c_void| match &self.functions {
                Functions::Narrow(f) => f.option.map_or(0, |set| set(context, DETERMINISTIC, 1)),
                Functions::Wide(f) => f.option.map_or(0, |set| set(context, DETERMINISTIC, 1)),
            };
            let context = self.contexts.as_ref().map(|contexts| (contexts, (contexts.alloc)()));
            let mapped = match context.filter(|(_, context)| !context.is_null()) {
                _ if built != 0 => 1,
                None => (self.map)(source.address(), target, strategy, answer.address()),
                Some((contexts, context)) => {
                    let mut bound = Object::new(&self.graph);
                    let failed = (contexts.init)(context)
                        + option(context)
                        + (contexts.bind)(context, source.address(), bound.address())
                        + (self.map)(bound.address(), target, strategy, answer.address());
                    drop(bound);
                    (contexts.exit)(context);
                    (contexts.free)(context);
                    failed
                }
            };
            built + mapped
        };
        // The objects look at the arrays until here.
        drop((source, target, strategy));
        match (failed, answer.below(parts)) {
            (0, Some(parts)) => Ok(parts),
            _ => Err(Error::infeasible("Scotch failed", "use another method, or fewer processors")),
        }
    }
}
