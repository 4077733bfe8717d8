"""Visible skips, as in the Rust tests: `APPORTION_SKIPS` collects them, `APPORTION_REQUIRE` forbids them."""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def skip(request: pytest.FixtureRequest, need: str, why: str) -> None:
    line = f"SKIPPED: {request.node.name} needs {need} ({why})"
    required = [name.strip() for name in os.environ.get("APPORTION_REQUIRE", "").split(",")]
    if need in required or "all" in required:
        pytest.fail(f"APPORTION_REQUIRE forbids to skip. {line}")
    if path := os.environ.get("APPORTION_SKIPS"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
    pytest.skip(line)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is remembered between runs, which is nothing when a test begins."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


@pytest.fixture
def needs(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Imports a package that a test needs, or skips the test visibly."""

    def package(name: str) -> Any:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            # NumPy and mpi4py come with the tests; the others are large.
            skip(request, "python" if name in ("numpy", "mpi4py") else name, str(error))

    return package


@pytest.fixture
def c_library(request: pytest.FixtureRequest) -> ctypes.CDLL:
    """The C library that `cargo test` has built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    built = [target / profile / "deps" / "libapportion_c.so" for profile in ("debug", "release")]
    there = [path for path in built if path.exists()]
    if not there:
        skip(request, "c", f"there is no {built[0]}: run cargo test -p apportion-c first")
    library = ctypes.CDLL(str(max(there, key=lambda path: path.stat().st_mtime)))
    library.apportion_last_error.restype = ctypes.c_char_p
    return library


@pytest.fixture
def mpirun(request: pytest.FixtureRequest, needs: Callable[[str], Any]) -> Callable[..., Any]:
    """Runs a script on several processes of Open MPI."""
    needs("mpi4py")
    command = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if command is None:
        skip(request, "mpi", "there is no mpirun")

    def run(count: int, *script: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        flags = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(count)]
        # The tests' own launcher variables would confuse a second mpirun.
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "PMI_"))}
        done = subprocess.run(
            [str(command), *flags, sys.executable, *script],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    return run
