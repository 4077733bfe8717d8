//! Every kernel on a real device, beside the kernel of the cores.

use super::race::{Compiled, load_binary, store_binary};
use super::variant::{Arithmetic, Variant};
use super::*;
use crate::kernels::{Kernel, PathElement, Real, Semiring, Tropical};
use crate::matrix::Element;
use crate::random::Random;
use apportion_testing::{Need, cases, skip};

/// The first device, or a visible skip.
fn device() -> Option<Arc<dyn Device>> {
    match open_device("opencl:0") {
        Ok(device) => Some(device),
        Err(error) => {
            skip(Need::Device, error);
            None
        }
    }
}

/// Rows, depth and columns of products: 1, primes, one beyond and one below the tiles, and more than one part of
/// the depth on cores.
const SHAPES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [1, 7, 129],
    [127, 1, 1],
    [2, 3, 5],
    [17, 13, 19],
    [64, 64, 64],
    [129, 17, 65],
    [7, 801, 23],
    [61, 67, 71],
    [8, 16, 48],
    [3, 1030, 2],
    [131, 300, 257],
];

/// A matrix with rows further apart than they are long.
struct Strided<T> {
    rows: usize,
    cols: usize,
    stride: usize,
    data: Vec<T>,
}

impl<T: Element> Strided<T> {
    fn new(rows: usize, cols: usize, slack: usize, draw: &mut impl FnMut() -> T) -> Self {
        let stride = cols + slack;
        Self { rows, cols, stride, data: (0..rows * stride).map(|_| draw()).collect() }
    }

    fn view(&self) -> View<'_, T> {
        View::new(&self.data, self.rows, self.cols, self.stride)
    }

    fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut::new(&mut self.data, self.rows, self.cols, self.stride)
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.data)
    }
}

/// Two updates of C by every variant and by the kernel of the cores; `agree` compares C, the elements between its
/// rows included.
fn check<T: Element>(
    kernel: &Kernel<T>,
    draw: &mut impl FnMut() -> T,
    agree: impl Fn(&Strided<T>, &Strided<T>) -> bool,
) {
    let Some(device) = device() else { return };
    let arithmetic = Arithmetic::of::<T>(kernel.semiring()).unwrap();
    assert!(DeviceTile::supports(kernel));
    // To compile a variant for the cores takes a second.
    let most = cases(1, usize::MAX);
    for variant in Variant::styles(arithmetic).into_iter().flat_map(|style| style.into_iter().take(most)) {
        let compiled = Arc::new(Compiled::new(device.as_ref(), arithmetic, variant).unwrap());
        // The memory of one tile serves all others.
        let most = [0, 2, 1].map(|place| SHAPES.iter().map(|shape| shape[place]).max().unwrap());
        let mut tile = DeviceTile::<T>::with(&device, arithmetic, compiled, most).unwrap();
        for (slack, [rows, depth, cols]) in SHAPES.into_iter().enumerate() {
            let slack = slack % 3;
            let mut wanted = Strided::new(rows, cols, slack, draw);
            let mut found = Strided { data: wanted.data.clone(), ..wanted };
            tile.reshape(rows, cols);
            tile.upload(found.view()).unwrap();
            for _ in 0..2 {
                let (a, b) =
                    (Strided::new(rows, depth, slack, draw), Strided::new(depth, cols, 2 * slack, draw));
                kernel.update(a.view(), b.view(), wanted.view_mut());
                tile.update(a.view(), b.view()).unwrap();
            }
            tile.download(found.view_mut()).unwrap();
            let name = variant.name();
            assert!(agree(&found, &wanted), "{} {rows} x {depth} x {cols} by {name}", kernel.name());
        }
    }
}

fn same_bytes<T: Element>(found: &Strided<T>, wanted: &Strided<T>) -> bool {
    found.bytes() == wanted.bytes()
}

fn plus_times<T: Real>(tolerance: f64) {
    let mut random = Random::new(5);
    let mut draw = || T::from_f64(random.below(2_000_001) as f64 / 1e6 - 1.0);
    check(&Kernel::<T>::plus_times(), &mut draw, |found, wanted| {
        let largest = wanted.data.iter().fold(0.0f64, |most, x| most.max(x.to_f64().abs()));
        let near = |(x, y): (&T, &T)| (x.to_f64() - y.to_f64()).abs() <= tolerance * largest;
        found.data.iter().zip(&wanted.data).all(near)
    });
}

#[test]
fn plus_times_is_near() {
    plus_times::<f64>(1e-12);
    plus_times::<f32>(1e-5);
}

/// Both tropical semirings: small numbers, so that sums are often equal, zeros of the semiring, and one of `odd` in
/// `rarity`.
fn tropical<T: Tropical + Element>(odd: &[T], rarity: usize) {
    for semiring in [Semiring::MaxPlus, Semiring::MinPlus] {
        let kernel = Kernel::<T>::tropical(semiring).unwrap();
        let mut random = Random::new(7);
        let mut draw = || {
            if random.below(10) == 0 {
                kernel.zero()
            } else if random.below(rarity) == 0 {
                odd[random.below(odd.len())]
            } else {
                T::from_f64(random.below(41) as f64 - 20.0)
            }
        };
        check(&kernel, &mut draw, same_bytes);
    }
}

#[test]
fn tropical_floats_are_the_same_bytes() {
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    tropical::<f64>(&[-0.0, low, high, f64::MAX, f64::MIN, 1e-310, -1e-310, 0.1, f64::NAN], 20);
    tropical::<f64>(&[0.0, -0.0], 1);
    tropical::<f64>(&[0.5], 20);
    let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
    tropical::<f32>(&[-0.0, low, high, f32::MAX, f32::MIN, 1e-40, -1e-40, 0.1, f32::NAN], 20);
    tropical::<f32>(&[0.0, -0.0], 1);
    // Without -0 other instructions compare.
    tropical::<f32>(&[0.5], 20);
}

#[test]
fn tropical_integers_are_the_same_bytes() {
    let tame = i32::MAX / 6 - 1;
    tropical::<i32>(&[i32::MIN, i32::MAX, i32::MIN + 1, i32::MAX - 1, tame, -tame, tame + 1, -tame - 1], 20);
    // The largest that plain sums compute with.
    tropical::<i32>(&[tame, -tame], 20);
    let tame = i64::MAX / 6 - 1;
    tropical::<i64>(&[i64::MIN, i64::MAX, i64::MIN + 1, i64::MAX - 1, tame, -tame, tame + 1, -tame - 1], 20);
    tropical::<i64>(&[tame, -tame], 20);
}

#[test]
fn bits_are_the_same_bytes() {
    for rarity in [2, 40] {
        let mut random = Random::new(rarity as u64);
        let mut draw = || match random.below(rarity) {
            // Any byte but 0 is true.
            0 => 1 << random.below(8),
            _ => 0,
        };
        check(&Kernel::or_and(), &mut draw, same_bytes);
    }
}

/// The text of an error, which is one line with this exit code.
fn refusal<R>(result: Result<R>, code: u8) -> String {
    let error = result.err().expect("an error");
    let text = error.to_string();
    assert_eq!((error.exit_code(), text.lines().count()), (code, 1), "{text}");
    text
}

#[test]
fn devices_are_numbered_and_others_refused() {
    for id in ["tpu:0", "cuda", "cuda0", "cuda:x", "opencl", "opencl:x", "opencl:-1"] {
        let text = refusal(open_device(id), 2);
        assert!(text.starts_with(&format!("`device = {id}`: ")) && text.contains("`opencl:0`"), "{text}");
    }
    let all = devices();
    let text = refusal(open_device("opencl:1000"), 2);
    match all.as_deref() {
        None => assert!(text.contains("`apt install ocl-icd-libopencl1`"), "{text}"),
        Some([]) => assert!(text.contains("`apt install pocl-opencl-icd`"), "{text}"),
        Some(all) => all
            .iter()
            .filter(|info| info.id.starts_with("opencl:"))
            .for_each(|info| assert!(text.contains(&info.to_string()), "{text}")),
    }
    let all = all.unwrap_or_default();
    let opencl: Vec<&DeviceInfo> = all.iter().filter(|info| info.id.starts_with("opencl:")).collect();
    for (i, info) in opencl.iter().enumerate() {
        assert_eq!(info.id, format!("opencl:{i}"));
    }
    for info in &all {
        assert!(!info.name.is_empty() && info.allocation_bytes > 0, "{info:?}");
        assert!(info.memory_bytes >= info.allocation_bytes, "{info:?}");
    }
}

/// CUDA has the cards that no OpenCL driver lists.
#[test]
fn a_card_is_listed_once() {
    let info = |id: &str, name: &str| DeviceInfo {
        id: id.into(),
        name: name.into(),
        driver: "a driver".into(),
        kind: DeviceKind::Gpu,
        memory_bytes: 1 << 30,
        allocation_bytes: 1 << 30,
        f64: true,
        subnormal_f32: true,
    };
    let cards = || vec![info("cuda:0", "NVIDIA A"), info("cuda:1", "NVIDIA B")];
    let ids =
        |devices| with_other_cards(devices, cards()).into_iter().map(|info| info.id).collect::<Vec<_>>();
    assert_eq!(ids(vec![]), ["cuda:0", "cuda:1"]);
    assert_eq!(ids(vec![info("opencl:0", "NVIDIA B")]), ["opencl:0", "cuda:0"]);
    assert_eq!(
        ids(vec![info("opencl:0", "cpu"), info("opencl:1", "pocl NVIDIA A")]),
        ["opencl:0", "opencl:1", "cuda:1"]
    );
}

/// Every element, and not the loops of others.
#[test]
fn kernels_that_devices_compute_over() {
    assert!(DeviceTile::supports(&Kernel::<f64>::plus_times()));
    assert!(DeviceTile::supports(&Kernel::<i64>::max_plus()) && DeviceTile::supports(&Kernel::or_and()));
    assert!(!DeviceTile::supports(&Kernel::<f64>::plus_times().with_update(crate::kernels::gemm)));
    assert!(!DeviceTile::supports(&Kernel::<PathElement<f64>>::paths(Semiring::MinPlus).unwrap()));
    fn sends<T: Send>() {}
    sends::<DeviceTile<f32>>();
}

/// The race chooses a variant, a tile of it takes the memory that the formula says, and what it moves and how long
/// it computes is counted.
#[test]
fn a_tile_counts_its_memory_its_bytes_and_its_seconds() {
    let Some(device) = device() else { return };
    let own = open_own();
    let kernel = Kernel::<f32>::plus_times();
    let arithmetic = Arithmetic::of::<f32>(Semiring::PlusTimes).unwrap();
    let [rows, cols, depth] = [37, 53, 19];
    let variant = Variant::styles(arithmetic)[1][0];
    let compiled = Arc::new(Compiled::new(own.as_ref(), arithmetic, variant).unwrap());
    let before = own.free_bytes();
    let mut tile = DeviceTile::<f32>::with(&own, arithmetic, compiled, [rows, cols, depth]).unwrap();
    let bytes = DeviceTile::<f32>::bytes(Semiring::PlusTimes, rows as u64, cols as u64, depth as u64);
    assert_eq!(before - own.free_bytes(), bytes);
    let (a, b) = (vec![1.0; rows * depth], vec![2.0; depth * cols]);
    let (a, b) = (View::dense(&a, rows, depth), View::dense(&b, depth, cols));
    tile.clear().unwrap();
    let mut seconds = tile.update(a, b).unwrap();
    // Without columns there is nothing to add.
    seconds += tile.update(View::dense(&[], rows, 0), View::dense(&[], 0, cols)).unwrap();
    seconds += tile.update(a, b).unwrap() + tile.wait().unwrap();
    assert!(seconds > 0.0 && tile.wait().unwrap() == 0.0, "{seconds}");
    let mut c = vec![0.0; rows * cols];
    tile.download(ViewMut::dense(&mut c, rows, cols)).unwrap();
    assert!(c.iter().all(|&x| x == 2.0 * 2.0 * depth as f32), "{c:?}");
    assert_eq!(tile.bytes_up(), 2 * 4 * (rows * depth + depth * cols) as u64);
    assert_eq!(tile.bytes_down(), 4 * (rows * cols) as u64);
    drop(tile);
    assert_eq!(own.free_bytes(), before);

    // Of a semiring's zeros, after the race.
    let mut tile = DeviceTile::new(&device, &Kernel::<f32>::min_plus(), 3, 2, 1).unwrap();
    tile.clear().unwrap();
    let mut c = [0.0; 6];
    tile.download(ViewMut::dense(&mut c, 3, 2)).unwrap();
    assert_eq!(c, [f32::INFINITY; 6]);
    // No rows.
    let mut tile = DeviceTile::new(&device, &kernel, 0, 2, 1).unwrap();
    tile.clear().unwrap();
    tile.update(View::dense(&[], 0, 1), View::dense(&[1.0; 2], 1, 2)).unwrap();
    tile.download(ViewMut::dense(&mut [], 0, 2)).unwrap();
}

/// A tile comes down while the panels of the next go up, which is computed in its place.
#[test]
fn a_tile_is_replaced_by_the_next() {
    let Some(device) = device() else { return };
    let mut random = Random::new(11);
    let mut draw = || random.below(1000) as f64;
    let kernel = Kernel::<f64>::min_plus();
    let arithmetic = Arithmetic::of::<f64>(Semiring::MinPlus).unwrap();
    let variant = Variant::styles(arithmetic)[1][0];
    let compiled = Arc::new(Compiled::new(device.as_ref(), arithmetic, variant).unwrap());
    let mut tile = DeviceTile::with(&device, arithmetic, compiled, [40, 50, 30]).unwrap();
    let shapes = [[40, 30, 50], [25, 20, 49], [40, 1, 50]];
    let operands = shapes.map(|[rows, depth, cols]| {
        [Strided::new(rows, depth, 2, &mut draw), Strided::new(depth, cols, 0, &mut draw)]
    });
    let panels = |i: usize| operands[i].each_ref().map(Strided::view);
    let wanted = |i: usize| {
        let [rows, _, cols] = shapes[i];
        let mut c = Strided::new(rows, cols, 3, &mut || f64::INFINITY);
        let [a, b] = panels(i);
        kernel.update(a, b, c.view_mut());
        c
    };
    let blank = |i: usize| Strided::new(shapes[i][0], shapes[i][2], 3, &mut || f64::INFINITY);
    let [a, b] = panels(0);
    tile.send(a, b).unwrap();
    for i in 0..shapes.len() {
        tile.reshape(shapes[i][0], shapes[i][2]);
        tile.clear().unwrap();
        tile.compute().unwrap();
        let mut found = blank(i);
        if i + 1 < shapes.len() {
            let [a, b] = panels(i + 1);
            tile.replace(found.view_mut(), a, b).unwrap();
        } else {
            tile.download(found.view_mut()).unwrap();
        }
        assert!(same_bytes(&found, &wanted(i)), "tile {i}");
    }
    let up: usize = shapes.iter().map(|[rows, depth, cols]| depth * (rows + cols)).sum();
    let down: usize = shapes.iter().map(|[rows, _, cols]| rows * cols).sum();
    assert_eq!([tile.bytes_up(), tile.bytes_down()], [8 * up as u64, 8 * down as u64]);
}

/// Rows of a tile in any order go up and come down, at any columns, and nothing beside them; an update between them is
/// in what comes down.
#[test]
fn some_rows_of_a_tile_are_written_and_read() {
    let Some(device) = device() else { return };
    let mut random = Random::new(17);
    let mut draw = || random.below(1000) as f64;
    let (rows, cols) = (29, 37);
    let kernel = Kernel::<f64>::plus_times();
    let arithmetic = Arithmetic::of::<f64>(Semiring::PlusTimes).unwrap();
    let variant = Variant::styles(arithmetic)[1][3];
    let compiled = Arc::new(Compiled::new(device.as_ref(), arithmetic, variant).unwrap());
    let mut tile = DeviceTile::<f64>::with(&device, arithmetic, compiled, [rows, cols, 4]).unwrap();
    let mut wanted = Strided::new(rows, cols, 0, &mut draw);
    tile.upload(wanted.view()).unwrap();
    let all: Vec<usize> = (0..rows).collect();
    let mut moved = 0;
    for (chosen, col, width) in [
        (&[4, 5, 6, 2, 28, 0, 1][..], 3, 11),
        (&[7], 0, 37),
        (&[], 5, 5),
        (&[3, 9], 37, 0),
        (&all, 36, 1),
        (&all, 8, 16),
    ] {
        let new = Strided::new(chosen.len(), width, 2, &mut draw);
        tile.upload_rows(chosen, col, new.view()).unwrap();
        for (place, row) in chosen.iter().enumerate() {
            wanted.data[row * cols + col..][..width].copy_from_slice(new.view().row(place));
        }
        let (a, b) = (Strided::new(20, 3, 1, &mut draw), Strided::new(3, 10, 0, &mut draw));
        tile.update_part([8, 9], a.view(), b.view()).unwrap();
        kernel.update(a.view(), b.view(), wanted.view_mut().tile(8, 9, 20, 10));
        let mut found = Strided::new(chosen.len(), width, 3, &mut || f64::NAN);
        tile.download_rows(chosen, col, found.view_mut()).unwrap();
        for (place, row) in chosen.iter().enumerate() {
            assert_eq!(found.view().row(place), &wanted.view().row(*row)[col..col + width], "{chosen:?}");
            assert!(found.data[place * (width + 3) + width..][..3].iter().all(|x| x.is_nan()), "{chosen:?}");
        }
        moved += 8 * (chosen.len() * width) as u64;
    }
    let mut found = Strided::new(rows, cols, 1, &mut || 0.0);
    assert_eq!([tile.bytes_up(), tile.bytes_down()], [moved + 8 * (29 * 37 + 6 * 90), moved]);
    tile.download(found.view_mut()).unwrap();
    assert!((0..rows).all(|row| found.view().row(row) == wanted.view().row(row)));
}

/// What the compiler has made is used again; what is damaged or foreign is not.
#[test]
fn a_program_is_made_again_of_its_binary() {
    let Some(device) = device() else { return };
    let opencl = opencl::open(0).unwrap();
    let arithmetic = Arithmetic::of::<f64>(Semiring::PlusTimes).unwrap();
    let variant = Variant::styles(arithmetic)[1][3];
    let compiled = Compiled::new(device.as_ref(), arithmetic, variant).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kernel.json");
    assert!(load_binary(&path).is_none());
    store_binary(device.as_ref(), &compiled.program, &path);
    let binary = load_binary(&path).unwrap();
    assert_eq!(device.binary(&compiled.program), Some(binary.clone()));

    let program = device.build(arithmetic, variant, Some(&binary)).unwrap();
    let again = Arc::new(Compiled { variant, program });
    let mut tile = DeviceTile::<f64>::with(&device, arithmetic, again, [5, 7, 3]).unwrap();
    tile.clear().unwrap();
    tile.update(View::dense(&[2.0; 15], 5, 3), View::dense(&[1.0; 21], 3, 7)).unwrap();
    let mut c = [0.0; 35];
    tile.download(ViewMut::dense(&mut c, 5, 7)).unwrap();
    assert_eq!(c, [6.0; 35]);

    refusal(opencl.build_binary(b"no program"), 1);
    opencl.build_binary(&binary).unwrap();
    device.build(arithmetic, variant, Some(b"no program")).unwrap();
    let file = path.with_extension("bin");
    let mut contents = std::fs::read(&file).unwrap();
    *contents.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &contents).unwrap();
    assert!(load_binary(&path).is_none());
    std::fs::write(&file, b"short").unwrap();
    assert!(load_binary(&path).is_none());
}

/// The first device, opened once more, so that nobody else takes its memory.
fn open_own() -> Arc<dyn Device> {
    Arc::new(opencl::open(0).unwrap())
}

#[test]
fn memory_that_is_too_small_is_an_error() {
    let Some(device) = device() else { return };
    let text = refusal(DeviceTile::new(&device, &Kernel::<f64>::min_plus(), 1 << 30, 1 << 20, 8), 1);
    assert!(text.contains("opencl:0") && text.contains("1073741824 x 1048576"), "{text}");
    assert!(text.contains("`memory`"), "{text}");
    let text = refusal(device.allocate(device.info().allocation_bytes + 1), 1);
    assert!(text.contains("at once") && text.contains("`memory`"), "{text}");
}

#[test]
fn a_kernel_that_does_not_build_is_an_error_with_the_compilers_line() {
    let Some(_) = device() else { return };
    let opencl = opencl::open(0).unwrap();
    let text =
        refusal(opencl.build_source("kernel void broken(global int *x) { x[0] = unknown_name; }", ""), 1);
    assert!(text.contains("does not build") && text.contains("unknown_name"), "{text}");
}

#[test]
#[should_panic(expected = "fit")]
fn panels_that_do_not_fit_are_refused() {
    let Some(device) = device() else { panic!("nothing to fit") };
    let mut tile = DeviceTile::new(&device, &Kernel::<f32>::min_plus(), 3, 2, 1).unwrap();
    let _ = tile.update(View::dense(&[0.0; 300], 3, 100), View::dense(&[0.0; 200], 100, 2));
}

#[test]
#[should_panic(expected = "fits the memory of the first")]
fn a_larger_tile_is_refused() {
    let Some(device) = device() else { panic!("fits the memory of the first") };
    DeviceTile::new(&device, &Kernel::<f32>::min_plus(), 3, 2, 1).unwrap().reshape(4, 2);
}

/// Two tiles of one device, and one of the same device opened again, from three threads.
#[test]
fn threads_share_a_device() {
    let Some(device) = device() else { return };
    let work = |device: Arc<dyn Device>, seed: u64| {
        let mut random = Random::new(seed);
        let mut draw = || random.below(1000) as f64;
        let kernel = Kernel::<f64>::min_plus();
        // Not by the race, whose winner is of the device that is open already.
        let arithmetic = Arithmetic::of::<f64>(Semiring::MinPlus).unwrap();
        let variant = Variant::styles(arithmetic)[1][0];
        let compiled = Arc::new(Compiled::new(device.as_ref(), arithmetic, variant).unwrap());
        let mut tile = DeviceTile::with(&device, arithmetic, compiled, [90, 70, 40]).unwrap();
        for _ in 0..5 {
            let mut wanted = Strided::new(90, 70, 1, &mut draw);
            let mut found = Strided { data: wanted.data.clone(), ..wanted };
            tile.upload(wanted.view()).unwrap();
            for _ in 0..3 {
                let (a, b) = (Strided::new(90, 40, 0, &mut draw), Strided::new(40, 70, 3, &mut draw));
                tile.update(a.view(), b.view()).unwrap();
                kernel.update(a.view(), b.view(), wanted.view_mut());
            }
            tile.download(found.view_mut()).unwrap();
            assert!(same_bytes(&found, &wanted));
        }
    };
    std::thread::scope(|scope| {
        for (seed, device) in [device.clone(), device, open_own()].into_iter().enumerate() {
            scope.spawn(move || work(device, seed as u64));
        }
    });
}

#[test]
fn a_link_takes_time_in_both_directions() {
    let Some(device) = device() else { return };
    let LinkSeconds { up, down, both } = link_seconds(&device, 1 << 20).unwrap();
    assert!(up > 0.0 && down > 0.0 && both > 0.0);
}
