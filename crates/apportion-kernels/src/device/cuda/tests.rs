//! All but the computation: without a card, the kernels are compiled and looked at.

use super::*;
use crate::device::variant::SOURCE;
use crate::device::{Argument, open_device};
use crate::kernels::Semiring;
use apportion_testing::{Need, cases, program, skip};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// All that the kernels compute.
fn arithmetics() -> Vec<Arithmetic> {
    let tropical = [Semiring::MaxPlus, Semiring::MinPlus].into_iter().flat_map(|semiring| {
        [
            Arithmetic::of::<f32>(semiring),
            Arithmetic::of::<f64>(semiring),
            Arithmetic::of::<i32>(semiring),
            Arithmetic::of::<i64>(semiring),
        ]
    });
    let others = [
        Arithmetic::of::<f32>(Semiring::PlusTimes),
        Arithmetic::of::<f64>(Semiring::PlusTimes),
        Arithmetic::of::<u8>(Semiring::OrAnd),
    ];
    others.into_iter().chain(tropical).map(Option::unwrap).collect()
}

fn modules() -> impl Iterator<Item = (Arithmetic, Variant)> {
    arithmetics().into_iter().flat_map(|arithmetic| {
        ptx::variants(arithmetic).into_iter().map(move |variant| (arithmetic, variant))
    })
}

/// What `nvrtc.py` prints, given this input; `None`, and a visible skip, without its wheels.
fn nvrtc(arguments: &[&str], input: String) -> Option<String> {
    let Some(python) = program(&["python3"]) else {
        skip(Need::Nvrtc, "there is no python3");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/device/cuda/nvrtc.py");
    let mut child = Command::new(python)
        .arg(script)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It reads all before it prints anything, and nothing where a wheel is missing.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(3) {
        skip(Need::Nvrtc, said);
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Written instead with `APPORTION_BLESS=1`. Another release of the compiler makes another text.
#[test]
fn ptx_is_what_nvrtc_makes_of_the_source() {
    let options: String = modules().map(|(arithmetic, variant)| variant.options(arithmetic) + "\n").collect();
    let Some(made) = nvrtc(&["compile"], options) else { return };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/device/cuda/kernels.ptx.gz");
    if std::env::var_os("APPORTION_BLESS").is_some() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(made.as_bytes()).unwrap();
        std::fs::write(path, packed.finish().unwrap()).unwrap();
        return;
    }
    let [found, wanted] = [made.as_str(), &ptx::KERNELS].map(|text| text.lines().next().unwrap());
    if found != wanted {
        skip(Need::Nvrtc, format!("kernels.ptx: {wanted}; here: {found}"));
        return;
    }
    let lines = made.lines().zip(ptx::KERNELS.lines());
    let differs = lines.enumerate().find(|(_, (made, kept))| made != kept);
    assert!(made == *ptx::KERNELS, "kernels.ptx is not what kernels.cl gives, from line {differs:?} on");
}

/// The driver's compiler is that of the wheel: it takes every module, and all fits into registers.
#[test]
fn ptx_assembles_without_spills() {
    // A module takes up to a second, and early and late cards differ.
    let modules: Vec<&str> = ptx::KERNELS.split(ptx::MARK).skip(1).collect();
    let some = modules.chunks(cases(6, 1)).map(|modules| modules[0]);
    let text: String = some.map(|module| format!("{}{module}", ptx::MARK)).collect();
    for arch in ["sm_52", "sm_80", "sm_90"] {
        let Some(said) = nvrtc(&["inspect", arch], text.clone()) else { return };
        assert!(said.lines().count() >= 4 * text.matches(ptx::MARK).count());
        for line in said.lines() {
            let [_, _, registers, spilled] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            assert!(spilled == "0" && registers.parse::<u32>().unwrap() <= 255, "{arch}: {line}");
        }
    }
}

/// The kernels in CUDA's dialect, compiled for the cores, give the bytes of three loops.
#[cfg(target_os = "linux")]
#[test]
fn the_dialect_computes_what_the_semirings_say() {
    let Some(compiler) = program(&["g++", "c++"]) else {
        skip(Need::Compiler, "there is no g++");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/device/cuda/emulate.cpp");
    // A module takes some seconds.
    for (arithmetic, variant) in modules().step_by(cases(8, 1)) {
        let (options, binary) = (variant.options(arithmetic), directory.path().join("emulate"));
        let built = Command::new(&compiler)
            .args(["-std=c++20", "-O1", "-w", "-o"])
            .arg(&binary)
            .args(options.split(' '))
            .arg(source)
            .output()
            .unwrap();
        assert!(built.status.success(), "{options}: {}", String::from_utf8_lossy(&built.stderr));
        let output = Command::new(&binary).output().unwrap();
        let shape = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{options}: {shape} {}", output.status);
    }
}

/// Bytes of the parameters of each kernel, by a text's declarations.
fn parameters(text: &str, start: &str, bytes: impl Fn(&str) -> u32) -> BTreeMap<String, BTreeSet<Vec<u32>>> {
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    for declaration in text.split(start).skip(1) {
        let (name, rest) = declaration.split_once("(").unwrap();
        let (list, _) = rest.split_once([')', '{']).unwrap();
        let name = name.split_whitespace().last().unwrap().to_owned();
        all.entry(name).or_default().insert(list.split(',').map(&bytes).collect());
    }
    all
}

/// Each module has the kernels of its source, with their parameters; the arguments that a tile gives are those of
/// the source, as OpenCL devices show.
#[test]
fn every_module_has_its_kernels_and_their_parameters() {
    // The macro of a kernel's group has parentheses of its own.
    let source = SOURCE.replace("GROUP_SIZE(16, 16) ", "");
    let declared = parameters(&source, "\n__kernel ", |parameter| match parameter {
        pointer if pointer.contains('*') => 8,
        long if long.contains("ulong ") => 8,
        word => {
            assert!(word.contains("uint "), "{word}");
            4
        }
    });
    assert_eq!(declared.len(), 6, "{declared:?}");
    assert!(declared.values().all(|lists| lists.len() == 1), "{declared:?}");
    for (arithmetic, variant) in modules() {
        let options = variant.options(arithmetic);
        let text = ptx::text(arithmetic, variant).expect("a module of these options");
        assert!(text.starts_with(".version 5.0\n.target sm_50\n.address_size 64\n"), "{options}");
        let mut wanted = declared.clone();
        wanted.retain(|name, _| {
            arithmetic.scans(variant) || !["scan", "update_exact"].contains(&name.as_str())
        });
        let found = parameters(text, ".entry ", |parameter| {
            let kind = parameter.split_whitespace().nth(1).unwrap();
            kind.strip_prefix(".u").expect("an integer").parse::<u32>().unwrap() / 8
        });
        assert_eq!(found, wanted, "{options}");
        let update = text.split(".entry update(").nth(1).unwrap();
        let [down, across] = variant.group;
        let bounds = format!(".maxntid {}, 1, 1", down * across);
        assert!(update.split_once('{').unwrap().0.contains(&bounds), "{options}: {bounds}");
    }
    assert_eq!(ptx::KERNELS.matches(ptx::MARK).count(), modules().count());
}

#[test]
fn arguments_begin_at_their_places() {
    let buffer = Buffer { bytes: 3, inner: Box::new(()) };
    let arguments = [Argument::U32(0x0102_0304), Argument::Buffer(&buffer), Argument::U64(u64::MAX - 1)];
    let values = values(&arguments, |buffer| 0x7000_0000_0000 + buffer.bytes);
    assert_eq!(values[1..], [0x7000_0000_0003, u64::MAX - 1]);
    let first = values[0].to_ne_bytes();
    assert_eq!(u32::from_ne_bytes([first[0], first[1], first[2], first[3]]), 0x0102_0304);
}

/// All groups are there, in an order that `dialect.h` turns back, and few beyond.
#[test]
fn a_grid_has_all_groups() {
    assert_eq!(grid([512, 64, 1], [16, 16, 1]), ([32, 4, 1], [16, 16]));
    assert_eq!(grid([65_536, 1, 1], [256, 1, 1]), ([256, 1, 1], [256, 1]));
    for rows in [1, 2, 65_535, 65_536, 65_537, 131_070, 131_071, 1 << 20, (1 << 28) - 1] {
        let ([x, y, z], _) = grid([3 * 16, rows * 16, 1], [16, 16, 1]);
        let [y, z] = [y as usize, z as usize];
        assert!(x == 3 && y <= MOST_GROUPS && z <= MOST_GROUPS, "{rows}");
        assert!(y * z >= rows && (z - 1) * y < rows, "{rows}");
    }
    // Every kernel of every variant divides into whole groups.
    for (arithmetic, variant) in modules() {
        let strips = crate::device::variant::Strips::new(variant, arithmetic, [37, 1001, 129]);
        let sweep = crate::device::variant::Strips::sweep(variant);
        for items in [sweep, strips.pack_a(), strips.pack_b(), strips.update(strips.depth)] {
            let ([x, y, z], [across, down]) = grid(items.global, items.local);
            assert!(x * y * z > 0 && across * down <= 256, "{items:?}");
        }
    }
}

/// The driver's description of a copy of rows: the places of its fields are those of the C structure.
#[test]
fn a_copy_of_rows_is_laid_out_as_the_driver_reads_it() {
    use std::mem::offset_of;
    assert_eq!(size_of::<CopyRows>(), 128);
    assert_eq!(
        [offset_of!(CopyRows, to), offset_of!(CopyRows, bytes), offset_of!(CopyRows, rows)],
        [56, 112, 120]
    );
    let fields =
        [offset_of!(End, kind), offset_of!(End, host), offset_of!(End, device), offset_of!(End, pitch)];
    assert_eq!(fields, [16, 24, 32, 48]);
}

#[test]
fn a_driver_that_is_missing_or_old_is_an_error_with_a_remedy() {
    let said = |library: &str| list::refusal(&[library]);
    let [none, old] = [said("libnothing-of-this-name.so.1"), said("libc.so.6")];
    assert!(none.contains("no CUDA driver") && none.contains("`opencl:0`"), "{none}");
    if cfg!(target_os = "linux") {
        assert!(old.contains("has no cuInit") && old.contains("update"), "{old}");
    }
    // On this machine.
    if devices().is_empty() {
        let error = open_device("cuda:0").expect_err("no card");
        let text = error.to_string();
        assert!(error.exit_code() == 2 && text.starts_with("`device = cuda:0`: "), "{text}");
    }
}
