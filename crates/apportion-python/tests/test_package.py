"""The package as it is installed: what it imports, how fast, its types, and the native command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import apportion
import pytest
from conftest import ROOT


def test_the_import_is_light(capfd) -> None:
    script = (
        "import sys, time\nbefore = set(sys.modules)\nbegin = time.perf_counter(), time.process_time()\n"
        "import apportion\nprint(time.perf_counter() - begin[0], time.process_time() - begin[1])\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    command = [sys.executable, "-c", script]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(5)
    ]
    clock, processor = (min(float(lines[0].split()[i]) for lines in runs) for i in (0, 1))
    with capfd.disabled():
        print(f"\nimport apportion: {1e3 * clock:.1f} ms, {1e3 * processor:.1f} ms of the processor")
    new = {name.split(".")[0] for name in runs[0][1].split()}
    assert not new & {"numpy", "torch", "jax", "mpi4py", "multiprocessing", "ctypes", "json", "typing"}, new


def test_the_command_is_the_native_one() -> None:
    command = Path(sysconfig.get_path("scripts")) / "apportion"
    assert command.read_bytes()[:4] == b"\x7fELF" and os.access(command, os.X_OK)
    # It needs no Python: an environment without any finds it.
    done = subprocess.run([str(command), "--version"], capture_output=True, text=True, env={}, check=True)
    assert done.stdout.split() == ["apportion", apportion.__version__]
    done = subprocess.run(
        [str(command), "partition", "--units", "10", "--speeds", "9,1", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r'"shares":\s*\[\s*9,\s*1\s*\]', done.stdout)


def test_one_wheel_for_every_python() -> None:
    library = Path(apportion._native.__file__)
    assert library.name == "_native.abi3.so"
    assert (library.parent / "py.typed").exists() and (library.parent / "_native.pyi").exists()


def test_types_agree_with_the_package(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "apportion"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    use = tmp_path / "use.py"
    use.write_text(
        "import array\nimport apportion\n"
        "counts: list[int] = apportion.shares(10, speeds=[1, 2]).counts\n"
        "a = memoryview(array.array('d', [1.0])).cast('B').cast('d', [1, 1])\n"
        "c, report = apportion.matmul(a, a, report=True)\n"
        "seconds: float = report.seconds\n"
        "lengths, before = apportion.closure(a, predecessors=True)\n"
        "table = apportion.layout((4, 4), [1, 1]).owner_table().owners\n"
        "import numpy\n"
        "some: int = apportion.shares(numpy.int64(10), speeds={'a': 1, 'b': 2}, min={'a': 1})[0]\n"
        "part: list[int] = apportion.shares(10, speeds=numpy.ones(2))[0:1]\n"
        "from numpy.typing import NDArray\n"
        "a_square: NDArray[numpy.float64] = numpy.ones((2, 2))\n"
        "product: NDArray[numpy.float64] = apportion.matmul(a_square, [[1.0, 2.0], [3.0, 4.0]])\n"
        "other = apportion.matmul([[1.0]], [[1.0]])\n"
        "gram: NDArray[numpy.float64] = apportion.syrk(a_square.T, alpha=2.0)\n"
        "lower: NDArray[numpy.float64] = apportion.cholesky(a_square)\n"
        "factors, pivots, told = apportion.lu(a_square, report=True)\n"
        "x: NDArray[numpy.float64] = apportion.solve(a_square, numpy.ones(2), kind='lu')\n"
        "seconds = told.seconds\n"
        "parts: apportion.GraphParts = apportion.graph(([0, 1, 2], [1, 0]), [1, 1])\n"
        "y: NDArray[numpy.float64] = apportion.spmv(([0, 1], [0], [2.0]), numpy.ones(1), method='cg')\n"
        "@apportion.measured([1, 2])\n"
        "def work(size: int) -> str:\n"
        "    return 'x' * size\n"
        "text: str = work(3)\n"
        "texts: list[str] = apportion.map(work, range(3), workers=numpy.int64(2))\n"
        "gain: float = apportion.map(work, [3], {'p0': [0]}).gain\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "with ProcessPoolExecutor(1) as pool:\n"
        "    apportion.map(len, ['a'], pool)\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict"]
    done = subprocess.run([*mypy, str(use)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for wrong in (
        "apportion.shares('ten', speeds=[1])",
        "apportion.shares(10, speed=[1])",
        "apportion.layout((4, 4), [1], method='nonsense')",
        "apportion.closure(numpy.ones((2, 2)), algorithm='nonsense')",
        "apportion.matmul(5, numpy.ones((2, 2)))",
        "apportion.solve(numpy.ones((2, 2)), numpy.ones(2), kind='nonsense')",
        "apportion.lu(numpy.ones((2, 2)), method='columns')",
        "apportion.graph(([0, 1, 2], [1, 0]), method='nonsense')",
        "apportion.spmv(([0, 1], [0], [2.0]), numpy.ones(1), parts_method='coordinates')",
        "apportion.measured([1])(len)(5)",
        "apportion.map(len, [5])",
        "apportion.map(abs, [5], 'four')",
    ):
        use.write_text(f"import apportion, numpy\n{wrong}\n")
        done = subprocess.run([*mypy, str(use)], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 1, wrong + done.stdout


def test_the_types_name_every_choice(tmp_path: Path) -> None:
    stubs = Path(apportion.__file__).parent
    words = (stubs / "__init__.pyi").read_text() + (stubs / "_native.pyi").read_text()

    def literals(alias: str) -> set[str]:
        [found] = re.findall(rf"^{alias} = Literal\[(.*?)\]$", words, re.S | re.M)
        return set(re.findall(r'"([^"]+)"', found))

    with pytest.raises(ValueError) as caught:
        apportion.shares(10, speeds=[1]).export("none")
    [formats] = re.findall(r"\(one of (.*)\)", str(caught.value))
    assert literals("_Format") == set(formats.split(", "))
    with pytest.raises(ValueError) as caught:
        apportion.layout((4, 4), [1], "none")
    [methods] = re.findall(r"\(use (.*)\)", str(caught.value))
    assert literals("_LayoutMethod") | {"inner", "boxes"} == set(re.split(", | or ", methods)), methods
    a = memoryview(bytes(4)).cast("B", [2, 2])
    for alias, arguments in (("_Factors", {"kind": "none"}), ("_FactorMethod", {"method": "none"})):
        with pytest.raises(ValueError) as caught:
            apportion.solve(a, bytes(2), **arguments)
        [names] = re.findall(r"\(choose (.*)\)", str(caught.value))
        assert literals(alias) == set(names.split(", ")), names


def test_maturin_finds_what_it_needs_in_a_fresh_checkout() -> None:
    crate = ROOT / "crates" / "apportion-python"
    data = tomllib.loads((crate / "pyproject.toml").read_text())["tool"]["maturin"]["data"]
    # It refuses a folder that is not there; the command beside this file comes from build-wheel.
    assert (crate / data / "data/share/doc/apportion/README.md").exists()
    assert f"{data}/\n" not in (crate / ".gitignore").read_text()
