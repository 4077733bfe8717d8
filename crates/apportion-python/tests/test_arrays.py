"""Memory crosses the border without copies; what is no matrix is refused in one line."""

from __future__ import annotations

import array
import ctypes
import gc
import sys
import weakref
from typing import Any

import apportion
import pytest
from apportion import _arrays, _native


class Managed(ctypes.Structure):
    """DLPack's `DLManagedTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor:
    """A tensor of another package: no buffer, only DLPack."""

    def __init__(
        self,
        values: list[list[float]],
        device: int = 1,
        code: tuple[int, int] = (2, 64),
        counts: bool = False,
    ) -> None:
        rows, cols = len(values), len(values[0])
        self.memory = array.array("d", [0.0] + [x for row in values for x in row])
        self.shape = (ctypes.c_int64 * 2)(rows, cols)
        self.strides = (ctypes.c_int64 * 2)(cols, 1)
        self.device, self.code, self.ndim, self.freed = device, code, 2, 0
        # The first element is not the tensor's: the offset leads past it.
        self.first = 1
        # The capsule's destructor must outlive the capsule. One in Python must not run during an exception.
        self.destructor = DESTRUCTOR(self.free) if counts else DESTRUCTOR()

    def free(self, _: Any) -> None:
        self.freed += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **_: Any) -> Any:
        start, _length = self.memory.buffer_info()
        offset = 8 * self.first
        self.managed = Managed(
            start, (self.device, 0), self.ndim, *self.code, 1, self.shape, self.strides, offset, None, None
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR]
        return new(ctypes.addressof(self.managed), b"dltensor", self.destructor)


def doubles(rows: int, cols: int) -> memoryview:
    return memoryview(array.array("d", range(rows * cols))).cast("B").cast("d", [rows, cols])


def test_a_tensor_of_the_cpu_is_read_where_it_is_and_freed_once() -> None:
    tensor = Tensor([[1, 2], [3, 4]], counts=True)
    view = _arrays.borrowed(tensor, "A")
    tensor.memory[1] = 7.0
    assert view.tolist() == [[7, 2], [3, 4]] and tensor.freed == 0
    del view
    gc.collect()
    assert tensor.freed == 1
    assert apportion.matmul(tensor, tensor, speeds=[1]).tolist() == [[55, 22], [33, 22]]
    gc.collect()
    assert tensor.freed == 3


def test_other_tensors_are_refused_in_one_line() -> None:
    good = Tensor([[1, 2], [3, 4]])
    far = Tensor([[1, 2], [3, 4]], device=2)
    half = Tensor([[1, 2], [3, 4]], code=(2, 16))
    flat = Tensor([[1, 2], [3, 4]])
    flat.ndim = 1
    for tensor, words in (
        (far, r"B: the tensor is on device \(2, 0\), not in the memory of the CPU \(pass x.cpu\(\)\)"),
        (half, "B: elements of DLPack type code 2 with 16 bits cannot be multiplied"),
        (flat, "B: has 1 dimension, not 2"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            apportion.matmul(good, tensor, speeds=[1])
        assert "\n" not in str(caught.value)


class Traced:
    """What a function sees in place of an array while it is traced."""

    def __dlpack__(self) -> Any:
        raise AssertionError

    def __dlpack_device__(self) -> Any:
        raise AttributeError("a tracer has no device")


def test_what_stands_for_an_array_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"B: a Traced stands for an array .*\(call apportion outside .* jax.jit"
    ):
        apportion.matmul(Tensor([[1, 2], [3, 4]]), Traced(), speeds=[1])


@pytest.mark.parametrize("strides", [(1, 2), (4, 2), (8, -1), (-4, 1), (0, 1), (0, 0)])
def test_tensors_of_any_strides_are_copied_once(needs, monkeypatch, strides: tuple[int, int]) -> None:
    numpy = needs("numpy")
    tensor = Tensor([list(range(8 * row, 8 * row + 8)) for row in range(5)], counts=True)
    tensor.shape[0], tensor.shape[1] = 3, 2
    tensor.strides[0], tensor.strides[1] = strides
    base, first = numpy.array(tensor.memory), 9
    tensor.first = first
    wanted = numpy.array([[base[first + i * strides[0] + j * strides[1]] for j in (0, 1)] for i in (0, 1, 2)])
    found = apportion.matmul(tensor, numpy.eye(2), speeds=[1])
    assert memoryview(found).tolist() == wanted.tolist()
    assert memoryview(apportion.syrk(tensor, speeds=[1])).tolist() == (wanted @ wanted.T).tolist()
    del found
    gc.collect()
    assert tensor.freed == 2
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ValueError, match=r"A: the rows .* \(pass x.contiguous\(\), or install NumPy\)"):
        _arrays.borrowed(tensor, "A")


def test_operands_and_results_are_not_copied(needs) -> None:
    numpy = needs("numpy")
    a = numpy.arange(12.0).reshape(3, 4)
    b = numpy.arange(8.0).reshape(4, 2)
    c = apportion.matmul(a, b, speeds=[1, 1])
    assert isinstance(c, numpy.ndarray) and (c == a @ b).all() and c.flags.writeable
    assert isinstance(c.base, (memoryview, _native.Array)), "the memory is the result's own"
    c[0, 0] = -1.0
    assert memoryview(c.base)[0, 0] == -1.0


def test_a_result_keeps_its_memory_for_as_long_as_somebody_looks() -> None:
    view = apportion.matmul(doubles(2, 2), doubles(2, 2), speeds=[1])
    owner = weakref.ref(view)
    part = view[0:1]
    del view
    gc.collect()
    assert owner() is None and part.tolist() == [[2.0, 3.0]]


@pytest.mark.parametrize("order", ["F", "slice", "reversed", "transposed", "unaligned"])
def test_rows_that_are_not_consecutive_are_read_right(needs, order: str) -> None:
    numpy = needs("numpy")
    plain = numpy.arange(30.0).reshape(5, 6)
    if order == "unaligned":
        raw = numpy.zeros(plain.nbytes + 1, dtype=numpy.uint8)
        odd = raw[1:].view(plain.dtype).reshape(plain.shape)
        odd[:] = plain
    else:
        wide = numpy.zeros((10, 12))
        wide[::2, ::2] = plain
        odd = {
            "F": numpy.asfortranarray(plain),
            "slice": wide[::2, ::2],
            "reversed": numpy.ascontiguousarray(plain[::-1, ::-1])[::-1, ::-1],
            "transposed": numpy.ascontiguousarray(plain.T).T,
        }[order]
    assert (odd == plain).all()
    assert (apportion.matmul(odd, plain.T, speeds=[1]) == plain @ plain.T).all()


def test_kinds_of_numpy(needs) -> None:
    numpy = needs("numpy")
    for name in ("float64", "float32"):
        a = numpy.eye(3, dtype=name)
        assert apportion.matmul(a, a, speeds=[1]).dtype == name
    for name in ("int64", "int32", "float64"):
        a = numpy.ones((3, 3), dtype=name)
        assert apportion.matmul(a, a, semiring="max-plus", speeds=[1]).dtype == name
    for name in ("bool", "uint8"):
        a = numpy.ones((3, 3), dtype=name)
        assert apportion.matmul(a, a, semiring="or-and", speeds=[1]).dtype == name
    for odd in ("float16", "complex128", "int16", ">f8", "datetime64[s]"):
        with pytest.raises(ValueError, match="^A: ") as caught:
            apportion.matmul(numpy.zeros((2, 2), dtype=odd), numpy.eye(2), speeds=[1])
        assert "\n" not in str(caught.value)


def test_what_is_no_matrix_is_refused_in_one_line() -> None:
    good = doubles(2, 2)
    for bad, error, words in (
        (5, TypeError, "A: a 'int' is no array in memory"),
        (array.array("d", [1.0]), ValueError, "A: has 1 dimension, not 2"),
        (memoryview(bytes(8)).cast("d", [1, 1, 1]), ValueError, "A: has 3 dimensions, not 2"),
        (memoryview(b"ab").cast("c", [1, 2]), ValueError, "A: elements of format 'c', 1 bytes each"),
        (doubles(2, 3), ValueError, "B: is 2 x 2, but A is 2 x 3"),
    ):
        with pytest.raises(error, match=words) as caught:
            apportion.matmul(bad, good, speeds=[1])
        assert "\n" not in str(caught.value)


def test_the_array_itself_lends_its_memory_in_every_form() -> None:
    sources = apportion._sources(speeds=[1])
    order, task = (
        apportion._order(None, None, 8, False, 1),
        apportion._task("product", "plus-times", seed=1),
    )
    made, more, _ = _native.product(task, doubles(2, 3), doubles(3, 2), None, sources, order, None)
    assert more is None and (made.shape, made.dtype) == ((2, 2), "float64") and "2 x 2 float64" in repr(made)
    view = memoryview(made)
    assert (view.format, view.shape, view.strides, view.readonly) == ("d", (2, 2), (16, 8), False)
    assert view.tolist() == [[10, 13], [28, 40]] and bytes(made) == view.tobytes()
    assert array.array("d", bytes(made)).tolist() == [10, 13, 28, 40]


def test_torch_tensors(needs) -> None:
    torch = needs("torch")
    a = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    c = apportion.matmul(a, a.T.contiguous(), speeds=[1])
    assert isinstance(c, torch.Tensor) and torch.equal(c, a @ a.T)
    for b in (a.T, a.reshape(4, 3), torch.rand(4, 8, dtype=torch.float64)[:, ::2]):
        assert torch.allclose(apportion.matmul(a, b, speeds=[1]), a @ b)
    assert torch.equal(apportion.syrk(a.T, speeds=[1]), a.T @ a)
    x, b = a.T @ a + torch.eye(4, dtype=torch.float64), torch.rand(4, 3, dtype=torch.float64)[:, 0]
    assert torch.allclose(apportion.cholesky(x.T, speeds=[1]), torch.linalg.cholesky(x))
    assert torch.allclose(x @ apportion.solve(x, b, speeds=[1]), b)
    with pytest.raises(ValueError, match="gradient"):
        apportion.matmul(a.clone().requires_grad_(), a.T.contiguous(), speeds=[1])


def test_jax_arrays(needs) -> None:
    jax = needs("jax")
    a = jax.numpy.arange(12.0, dtype="float32").reshape(3, 4)
    c = apportion.matmul(a, jax.numpy.array(a.T), speeds=[1])
    assert isinstance(c, jax.Array) and (c == a @ a.T).all()
    with pytest.raises(TypeError, match="A: a .*Tracer stands for an array"):
        jax.jit(lambda x: apportion.matmul(x, x, speeds=[1]))(jax.numpy.eye(2))


def test_a_copy_larger_than_memory_is_refused(needs) -> None:
    numpy = needs("numpy")
    huge = numpy.broadcast_to(numpy.zeros((1, 1)), (1 << 24, 1 << 24))
    with pytest.raises(MemoryError, match="A: its rows are not consecutive"):
        apportion.matmul(huge, huge, speeds=[1])
