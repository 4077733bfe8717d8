"""Advection of arrays, against steps by hand, the command, and itself on other processors."""

from __future__ import annotations

import array
import subprocess
import sysconfig
from pathlib import Path

import apportion
import pytest
from test_arrays import Tensor

COMMAND = Path(sysconfig.get_path("scripts")) / "apportion"


def test_a_step_by_hand() -> None:
    """Upwind, a quarter of a cell: each keeps three quarters, and gets a quarter of the one before."""
    line = array.array("d", [0, 8, 0, 0])
    for courant in (0.25, [0.25], memoryview(array.array("d", [0.25] * 5)), [array.array("d", [0.25] * 5)]):
        found = apportion.advect(line, courant, 1, iterations=1, speeds=[2, 1])
        assert found.tolist() == [0, 6, 2, 0] and found.format == "d"
    plane = memoryview(array.array("d", [0, 0, 0, 0, 8, 0, 0, 0, 0])).cast("B").cast("d", [3, 3])
    found, report = apportion.advect(plane, [0.5, 0.25], 1, iterations=1, speeds=[2, 1], report=True)
    # The upwind fluxes are of the field before the step.
    assert found.tolist() == [[0, 0, 0], [0, 2, 2], [0, 4, 0]]
    assert sum(report.counts) == 9 and report.to_dict()["mass"]["after"] == 8
    assert "steps" in str(report)


@pytest.mark.parametrize("shape", [(19,), (9, 14), (5, 7, 6)])
def test_the_command_makes_the_same_bytes(shape: tuple[int, ...], needs, tmp_path) -> None:
    numpy = needs("numpy")
    draw = numpy.random.default_rng(1)
    for element in (numpy.float64, numpy.float32):
        psi = draw.random(shape).astype(element)
        faces = [
            (0.4 * (draw.random([n + (i == axis) for i, n in enumerate(shape)]) - 0.5)).astype(element)
            for axis in range(len(shape))
        ]
        numpy.save(tmp_path / "psi.npy", psi)
        for axis, face in enumerate(faces):
            numpy.save(tmp_path / f"c{axis}.npy", face)
        files = ",".join(str(tmp_path / f"c{axis}.npy") for axis in range(len(shape)))
        command = [str(COMMAND), "advect", "--field", str(tmp_path / "psi.npy")]
        command += ["--courant", files, "--steps", "3", "--speeds", "1", "--boundary", "zero"]
        subprocess.run([*command, "-o", str(tmp_path / "out.npy")], check=True, capture_output=True)
        for speeds in ([1], [3, 1]):
            found = apportion.advect(psi, faces, 3, boundary="zero", speeds=speeds)
            assert isinstance(found, numpy.ndarray) and found.dtype == element and found.shape == shape
            assert (found == numpy.load(tmp_path / "out.npy")).all()
        # Any strides, and lists.
        again = apportion.advect(numpy.asfortranarray(psi), faces, 3, boundary=["zero"] * len(shape), speeds=[1])
        assert (again == found).all()
    if len(shape) == 2:
        ones = apportion.advect([[1, 2], [3, 4]], [0, 0], 1, speeds=[1])
        assert ones.tolist() == [[1, 2], [3, 4]]


def test_tensors_stay_tensors(needs) -> None:
    torch = needs("torch")
    field = torch.tensor([[0.0, 8.0], [0.0, 0.0]], dtype=torch.float64)
    found = apportion.advect(field, [0, 0.5], 1, iterations=1, speeds=[1])
    assert isinstance(found, torch.Tensor) and found.tolist() == [[4, 4], [0, 0]]


def test_other_arrays() -> None:
    found = apportion.advect(Tensor([[0, 8], [0, 0]]), [0, 0.5], 1, iterations=1, speeds=[1])
    assert found.tolist() == [[4, 4], [0, 0]]


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((b"ab", 0.5, 0), {}, "steps: 0 steps change nothing"),
        ((b"ab", [0.5, 0.5], 1), {}, "courant: is 2, but Courant numbers along axis 0"),
        (([[1, 2]], [0.5], 1), {}, "courant: 1 entries for a field of 2 dimensions"),
        ((b"ab", 0.5, 1), {"iterations": 9}, "iterations"),
        ((b"ab", 0.5, 1), {"boundary": "open"}, "boundary: \"open\" is not a boundary"),
        ((b"ab", float("nan"), 1), {}, "courant: NaN"),
        ((b"ab", 1.5, 1), {}, "stable"),
        ((b"", 0.5, 1), {}, "psi: is 0 (pass an array of one to three dimensions"),
        ((array.array("d", [1, float("inf")]), 0.5, 1), {}, "psi: element (1)"),
        ((array.array("d", [1, 2]), array.array("d", [0, 0]), 1), {}, "courant: is 2, but Courant numbers along axis 0"),
        ((b"ab", 0.5, 1), {"method": "spiral"}, "method"),
    ],
)
def test_what_is_wrong_is_said(arguments, options, says: str) -> None:
    with pytest.raises(ValueError) as error:
        apportion.advect(*arguments, speeds=[1], **options)
    assert says in str(error.value) and "`" not in str(error.value) and "--" not in str(error.value)


def test_what_is_no_array_is_a_type_error() -> None:
    for field, courant in (("text", 0.5), (b"ab", "text")):
        with pytest.raises(TypeError):
            apportion.advect(field, courant, 1, speeds=[1])


def test_foreign_bytes_are_refused(needs) -> None:
    numpy = needs("numpy")
    for order in ("C", "F"):
        with pytest.raises(ValueError, match="psi: elements of format '>d'"):
            apportion.advect(numpy.ones((2, 3), ">f8", order=order), [0, 0], 1, speeds=[1])
