"""Builds the wheel: maturin for the extension, after cargo has built the native command that goes with it.

`pip` calls the functions of PEP 517; the script `build-wheel` calls `main`.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}


def _command(profile, zig):
    """Build the command and put it where maturin takes the wheel's scripts from.

    `APPORTION_COMMAND` names one that is built already.
    """
    directory = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    build, triple = ["cargo", "build"], []
    if zig:
        target = TARGETS[os.uname().machine]
        # cargo-zigbuild reads the C library's version after the target's name.
        build, triple = ["cargo-zigbuild", "zigbuild", "--target", f"{target}.2.28"], [target]
    built = os.environ.get("APPORTION_COMMAND")
    if not built:
        package = ["-p", "apportion-cli", "--bin", "apportion"]
        subprocess.run([*build, "--profile", profile, *package], cwd=ROOT, check=True)
        built = directory.joinpath(*triple, "debug" if profile == "dev" else profile, "apportion")
    scripts = HERE / "wheel-data" / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    shutil.copy(built, scripts / "apportion")
    if shutil.which("strip"):
        subprocess.run(["strip", scripts / "apportion"], check=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Hook of PEP 517."""
    import maturin

    _command("release", zig=False)
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def get_requires_for_build_wheel(config_settings=None):
    """Hook of PEP 517."""
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Hook of PEP 517."""
    import maturin

    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_sdist(sdist_directory, config_settings=None):
    """Hook of PEP 517."""
    raise SystemExit(
        "apportion: a source archive would lack the command's crates (build a wheel in a checkout)"
    )


def main():
    """Build a wheel into a directory."""
    parser = argparse.ArgumentParser(
        prog="build-wheel", description="Build the wheel, native command included."
    )
    parser.add_argument("-o", "--out", default=HERE / "dist", type=Path, help="directory of the wheel")
    parser.add_argument("--profile", default="release", help="cargo profile (default: release)")
    parser.add_argument(
        "--zig", action="store_true", help="link for manylinux_2_28 (pip install maturin[zig] cargo-zigbuild)"
    )
    given = parser.parse_args()
    _command(given.profile, given.zig)
    platform = (
        ["--zig", "--compatibility", "manylinux_2_28", "--target", TARGETS[os.uname().machine]]
        if given.zig
        else []
    )
    if not given.zig:
        platform = [
            "--compatibility",
            "pypi" if shutil.which("patchelf") and given.profile == "release" else "linux",
        ]
    maturin = [
        "maturin",
        "build",
        "--profile",
        given.profile,
        "--strip",
        "--out",
        given.out.resolve(),
        *platform,
    ]
    return subprocess.run(maturin, cwd=HERE).returncode


if __name__ == "__main__":
    sys.exit(main())
