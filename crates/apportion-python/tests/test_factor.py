"""Factors and solutions of linear systems, against their definitions and NumPy's."""

from __future__ import annotations

import array
import signal
import threading
import time
from typing import Any

import apportion
import pytest
from test_arrays import Tensor


def system(numpy, n: int, seed: int = 1):
    draw = numpy.random.default_rng(seed)
    a = draw.standard_normal((n, n))
    return a, a @ a.T + n * numpy.eye(n)


def product(numpy, factors, pivots):
    """The rows of L U, exchanged back."""
    n = len(factors)
    rows = (numpy.tril(factors, -1) + numpy.eye(n)) @ numpy.triu(factors)
    for i in reversed(range(n)):
        rows[[i, pivots[i]]] = rows[[pivots[i], i]]
    return rows


@pytest.mark.parametrize("n", [1, 2, 37, 150])
def test_factors_multiply_to_the_matrix(n: int, needs) -> None:
    numpy = needs("numpy")
    a, spd = system(numpy, n)
    for element, within in ((numpy.float64, 1e-13), (numpy.float32, 1e-4)):
        lower = apportion.cholesky(spd.astype(element), speeds=[3, 1], block=16)
        assert isinstance(lower, numpy.ndarray) and lower.flags.c_contiguous and lower.dtype == element
        assert numpy.allclose(lower, numpy.linalg.cholesky(spd), rtol=0, atol=within * n * abs(spd).max())
        assert (numpy.triu(lower, 1) == 0).all()
        factors, pivots = apportion.lu(a.astype(element), speeds=[3, 1], block=16)
        assert factors.dtype == element and pivots.dtype == numpy.int64 and pivots.shape == (n,)
        assert (pivots >= numpy.arange(n)).all()
        assert numpy.allclose(product(numpy, factors, pivots), a, rtol=0, atol=within * n * 10)


@pytest.mark.parametrize("kind", ["lu", "cholesky"])
def test_solutions_have_the_shape_of_b(kind: str, needs) -> None:
    numpy = needs("numpy")
    a, spd = system(numpy, 60)
    a = spd if kind == "cholesky" else a
    for shape in ((60,), (60, 1), (60, 7)):
        b = numpy.random.default_rng(2).standard_normal(shape)
        x, report = apportion.solve(a, b, kind=kind, speeds=[2, 1], report=True)
        assert x.shape == shape and numpy.allclose(x, numpy.linalg.solve(a, b))
        found = report.to_dict()
        assert found["solution"]["right_hand_sides"] == (shape[1] if len(shape) == 2 else 1)
        assert found["residual"] == found["solution"]["residual"] < 30 and report.verified
        assert found["solution"]["condition"] <= 1.01 * numpy.linalg.cond(a, 1)
        assert "condition" in str(report) and sum(report.counts) == 3600


def test_any_strides_are_read_and_nothing_is_written(needs) -> None:
    numpy = needs("numpy")
    a, _ = system(numpy, 40)
    b = numpy.arange(40.0)
    wanted = apportion.solve(a, b, speeds=[1])
    wide = numpy.zeros((80, 120))
    wide[::2, ::3] = a
    fixed = a.copy()
    fixed.flags.writeable = False
    for same in (numpy.asfortranarray(a), wide[::2, ::3], a[::-1][::-1], fixed, a.T.copy().T):
        assert (apportion.solve(same, b, speeds=[1]) == wanted).all()
    for same in (numpy.repeat(b, 3)[::3], b[::-1][::-1], memoryview(array.array("d", b)), b.astype(int)):
        assert (apportion.solve(a, same, speeds=[1]) == wanted).all()
    before = a.copy()
    apportion.lu(a, speeds=[1])
    apportion.cholesky(numpy.eye(40) * 2, speeds=[1])
    assert (a == before).all()


def test_elements_become_those_of_the_result(needs) -> None:
    numpy = needs("numpy")
    whole = numpy.array([[2, 1], [1, 3]])
    for element in (numpy.int32, numpy.int64, numpy.uint8):
        assert apportion.cholesky(whole.astype(element), speeds=[1]).dtype == numpy.float64
    assert (apportion.lu(numpy.eye(2, dtype=bool), speeds=[1])[0] == numpy.eye(2)).all()
    assert apportion.solve(whole.astype(numpy.float32), [1, 2], speeds=[1]).dtype == numpy.float64
    single = apportion.solve(whole.astype(numpy.float32), numpy.ones(2, numpy.float32), speeds=[1])
    assert single.dtype == numpy.float32
    assert numpy.allclose(apportion.solve([[2, 1], [1, 3]], [1, 2]), [0.2, 0.6])
    with pytest.raises(ValueError, match="A: elements of format"):
        apportion.lu(whole.astype(complex))


def test_tensors_are_read_by_dlpack() -> None:
    b = Tensor([[3], [4]])
    b.ndim = 1
    x = apportion.solve(Tensor([[1, 0], [0, 2]]), b, speeds=[1])
    assert isinstance(x, memoryview) and x.tolist() == [3, 2]


def test_matrices_without_elements_have_factors_without_elements(needs) -> None:
    numpy = needs("numpy")
    none = numpy.empty((0, 0), numpy.float32)
    assert apportion.cholesky(none).shape == (0, 0)
    factors, pivots = apportion.lu(none)
    assert factors.dtype == numpy.float32 and factors.shape == (0, 0) and pivots.shape == (0,)
    assert apportion.solve(none, numpy.empty(0)).shape == (0,)
    assert apportion.solve(numpy.eye(3), numpy.empty((3, 0))).shape == (3, 0)
    with pytest.raises(ValueError, match="report: the result has no elements"):
        apportion.lu(none, report=True)


def test_what_cannot_be_factored_is_an_exception_with_its_place(needs) -> None:
    numpy = needs("numpy")
    singular = numpy.array([[1.0, 2.0], [2.0, 4.0]])
    bad = numpy.eye(3)
    bad[2, 1] = numpy.nan
    eye = numpy.eye(3)
    cases: list[tuple[type[Exception], str, Any]] = [
        (RuntimeError, r"singular: U\(1, 1\)", lambda: apportion.lu(singular, speeds=[1])),
        (RuntimeError, "not positive definite.*order 2", lambda: apportion.cholesky(singular, speeds=[1])),
        (ValueError, r"A: element \(2, 1\), counted from 0, is NaN", lambda: apportion.lu(bad, speeds=[1])),
        (ValueError, r"B: element \(1, 0\).*not finite", lambda: apportion.solve(eye, [1, numpy.inf, 0], speeds=[1])),
        (ValueError, "A: is 2 x 3, not square", lambda: apportion.lu(eye[:2])),
        (ValueError, "A: is 0 x 3, without elements", lambda: apportion.lu(eye[:0])),
        (ValueError, "B: is 2 x 1, but the matrix has 3 rows", lambda: apportion.solve(eye, [1, 2], speeds=[1])),
        (ValueError, "B: has 3 dimensions, not 2", lambda: apportion.solve(eye, numpy.ones((3, 1, 1)))),
        (ValueError, "A: has 1 dimension, not 2", lambda: apportion.cholesky(numpy.ones(3))),
        (ValueError, 'kind: "qr" names no factors', lambda: apportion.solve(eye, eye, kind="qr")),
        (ValueError, 'method: "columns" divides no', lambda: apportion.lu(eye, method="columns")),
        (ValueError, "block: 0 is out of range", lambda: apportion.lu(eye, block=0)),
        (TypeError, "A: a 'int' is no array", lambda: apportion.lu(5)),
    ]
    for kind, words, call in cases:
        with pytest.raises(kind, match=words) as caught:
            call()
        line = str(caught.value)
        assert "\n" not in line and "--" not in line and "`" not in line, line


def test_platforms_blocks_and_layouts_are_those_of_the_command(needs) -> None:
    numpy = needs("numpy")
    a, _ = system(numpy, 96)
    platform = "[[processor]]\nname='new'\nspeed='2 Gflop/s'\n[[processor]]\nname='old'\nspeed='1 Gflop/s'\n"
    whole = None
    for method in ("greedy", "cyclic", "alone", "auto"):
        factors, pivots, report = apportion.lu(a, platform=platform, method=method, block=8, report=True)
        plan = report.to_dict()["plan"]
        assert report.processors == ["new", "old"] and (method == "auto" or plan["method"] == method)
        assert report.to_dict()["block"] == 8 and report.forecast_seconds > 0
        whole = factors if whole is None else whole
        assert (factors == whole).all(), "the same bytes by every layout"
    assert report.products == 0 and "<svg" in report._repr_svg_()
    wanted = apportion.cholesky(a @ a.T + numpy.eye(96), platform=platform, method="greedy", block=8)
    found = apportion.cholesky(a @ a.T + numpy.eye(96), platform=platform, method="grid", block=8)
    assert (found == wanted).all(), "the same bytes by tiles"


def test_other_threads_run_and_ctrl_c_stops(needs) -> None:
    numpy = needs("numpy")
    a = numpy.random.default_rng(1).standard_normal((2000, 2000))
    main = threading.main_thread().ident
    calls = 0

    def interrupt() -> None:
        for _ in range(10):
            time.sleep(0.005)
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        for calls in range(1000):
            apportion.lu(a, speeds=["1 Gflop/s", "1 Gflop/s"])
    helper.join()
    assert calls < 8, "with the lock held, the other thread has one turn a call"
