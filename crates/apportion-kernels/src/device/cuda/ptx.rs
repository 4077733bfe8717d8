//! The kernels as the CUDA driver compiles them: PTX, which NVRTC has made of `kernels.cl`.

use crate::device::variant::{Arithmetic, Variant};
use flate2::read::GzDecoder;
use std::io::Read;
use std::sync::LazyLock;

/// One text for each arithmetic and variant, each after a line of [`MARK`] and its options. `nvrtc.py` makes it; a
/// test writes and compares it (`APPORTION_BLESS=1 cargo test -p apportion-kernels ptx`).
pub(super) static KERNELS: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    let mut packed = GzDecoder::new(&include_bytes!("kernels.ptx.gz")[..]);
    packed.read_to_string(&mut text).expect("a test has written it");
    text
});
pub(super) const MARK: &str = "//@ ";
/// The first of the variants through local memory that are not there.
const VARIANTS: usize = 2;

/// The variants that are there. The first over bits is not: it does not fit into the registers of sm_70 and sm_80.
pub(super) fn variants(arithmetic: Arithmetic) -> Vec<Variant> {
    let [tiled, _] = Variant::styles(arithmetic);
    let first = usize::from(arithmetic.per_packed() > 1);
    tiled[first..VARIANTS].to_vec()
}

/// The text of a variant's kernels.
pub(super) fn text(arithmetic: Arithmetic, variant: Variant) -> Option<&'static str> {
    let options = variant.options(arithmetic);
    KERNELS.split(MARK).find_map(|module| module.strip_prefix(&options)?.strip_prefix('\n'))
}
