"""Matrices of other packages: buffers where they have them, DLPack where they do not."""

from __future__ import annotations

import sys
from typing import Any

CPU = 1
"""DLPack's number of memory that the CPU reads (`kDLCPU`)."""

FORMATS = {(2, 32): "f", (2, 64): "d", (0, 32): "i", (0, 64): "q", (1, 8): "B", (6, 8): "?"}
"""Formats of the `struct` module, by DLPack's type code and number of bits."""


def matrix(operand: Any, name: str, semiring: str) -> Any:
    """The operand as an array: a list of rows or a data frame becomes one of NumPy's."""
    if _is(operand, "numpy.ma", "MaskedArray"):
        raise TypeError(f"{name}: is a masked array, whose mask would be lost (pass x.filled(value))")
    rows = isinstance(operand, (list, tuple))
    if not rows and (
        _has_buffer(operand) or hasattr(operand, "__dlpack__") or not hasattr(operand, "__array__")
    ):
        return operand
    try:
        import numpy
    except ImportError:
        raise TypeError(
            f"{name}: a {type(operand).__name__} needs NumPy (install it, or pass a 2-D memoryview)"
        ) from None
    try:
        array = numpy.asarray(operand)
    except ValueError as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{name}: {why} (pass rows of equal length)") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: has elements of {array.dtype} (pass numbers)")
    if rows and semiring == "plus-times" and array.dtype.kind in "iu":
        array = array.astype(float)
    if (
        rows
        and semiring == "or-and"
        and array.dtype.kind in "iu"
        and array.size
        and 0 <= array.min() <= array.max() <= 1
    ):
        array = array.astype(bool)
    return array


def grid(operand: Any, name: str) -> tuple[Any, tuple[Any, list[int]]]:
    """The operand as an array, and its memory as a matrix with its sizes: all axes but the first are a row."""
    like = matrix(operand, name, "plus-times")
    lent = like
    if _has_buffer(like):
        lent = memoryview(like)
    elif hasattr(like, "__dlpack__"):
        lent = borrowed(like.reshape(1, -1) if hasattr(like, "reshape") else like, name)
        if hasattr(like, "reshape"):
            lent = lent.cast("B").cast(lent.format, list(like.shape))  # type: ignore[call-overload]
    else:
        kind = type(like).__name__
        raise TypeError(f"{name}: a '{kind}' is no array in memory (pass a NumPy array or a memoryview)")
    sizes = list(lent.shape)
    if not 1 <= len(sizes) <= 3 or 0 in sizes:
        shape = " x ".join(map(str, sizes)) or "a number"
        raise ValueError(f"{name}: is {shape} (pass an array of one to three dimensions with elements)")
    rows = sizes[0] if len(sizes) > 1 else 1
    kind, columns = lent.format, lent.nbytes // lent.itemsize // rows
    flat = lent if lent.c_contiguous else memoryview(lent.tobytes())
    try:
        return like, (flat.cast("B").cast(kind, [rows, columns]), sizes)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: elements of format '{kind}', {lent.itemsize} bytes each, cannot be advected "
            "(convert them to float64 or float32, in this machine's byte order)"
        ) from None


def _has_buffer(operand: Any) -> bool:
    try:
        memoryview(operand)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def view(operand: Any, name: str, vector: bool = False) -> Any:
    """An object that exports the operand's memory as a buffer, if there is one. A vector may have one dimension."""
    if not _has_buffer(operand) and hasattr(operand, "__dlpack__"):
        return borrowed(operand, name, vector)
    return operand


def borrowed(tensor: Any, name: str, vector: bool = False) -> memoryview:
    """The memory of a DLPack tensor of the CPU. It keeps the tensor's capsule, whose destructor frees it."""
    import ctypes

    try:
        device = tuple(map(int, tensor.__dlpack_device__()))
    except Exception:
        # jax traces a function with stand-ins for its arrays.
        raise TypeError(
            f"{name}: a {type(tensor).__name__} stands for an array that has no elements yet (call apportion outside "
            "of functions that jax.jit and the like trace, or from jax.pure_callback)"
        ) from None
    if device[0] != CPU:
        raise ValueError(
            f"{name}: the tensor is on device {device}, not in the memory of the CPU (pass x.cpu())"
        )
    try:
        capsule = tensor.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"{name}: {why} (pass a dense tensor without a gradient, of a type that DLPack has)"
        ) from None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    told = _tensor_type().from_address(pointer(capsule, b"dltensor"))
    shape = [int(told.shape[i]) for i in range(told.ndim)]
    kind = FORMATS.get((told.code, told.bits)) if told.lanes == 1 else None
    if kind is None:
        raise ValueError(
            f"{name}: elements of DLPack type code {told.code} with {told.bits} bits cannot be multiplied "
            "(convert them to float64, float32, int64, int32 or bool)"
        )
    if len(shape) != 2 and not (vector and len(shape) == 1):
        remedy = (
            "x.reshape(1, -1) is a row, x.reshape(-1, 1) a column" if len(shape) == 1 else "x.reshape(m, n)"
        )
        raise ValueError(
            f"{name}: has {len(shape)} dimension{'s' * (len(shape) != 1)}, not 2 (pass a matrix: {remedy})"
        )
    rows, columns = shape[0], shape[1] if len(shape) == 2 else 1
    if rows == 0 or columns == 0:
        raise ValueError(
            f"{name}: is {rows} x {columns}: it has no elements (pass at least one row and column)"
        )
    strides = [int(told.strides[i]) for i in range(told.ndim)] if told.strides else [columns, 1]
    step, size = [*strides, 1][:2], told.bits // 8
    if (columns == 1 or step[1] == 1) and (rows == 1 or step[0] == columns):
        memory = (ctypes.c_char * (rows * columns * size)).from_address(told.data + told.byte_offset)
        memory.capsule = capsule
        return memoryview(memory).cast("B").cast(kind, shape)  # type: ignore[call-overload, no-any-return]
    try:
        import numpy
    except ImportError:
        raise ValueError(
            f"{name}: the rows of the tensor are not consecutive in memory (pass x.contiguous(), or install NumPy)"
        ) from None
    # The native half copies what has other strides.
    ends = [(count - 1) * stride for count, stride in zip(shape, strides)]
    before, after = (-sum(end for end in ends if end < 0), sum(end for end in ends if end > 0))
    start = told.data + told.byte_offset - before * size
    memory = (ctypes.c_char * ((before + after + 1) * size)).from_address(start)
    memory.capsule = capsule
    lent = numpy.ndarray(shape, kind, memory, before * size, [stride * size for stride in strides])
    return lent.data


def _tensor_type() -> Any:
    """The C structure `DLTensor`, with which `DLManagedTensor` begins."""
    import ctypes

    fields = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]
    return type("Tensor", (ctypes.Structure,), {"_fields_": fields})


def _is(operand: Any, package: str, kind: str) -> bool:
    """True if the operand is an instance of this class of a package; the package is not imported."""
    found = getattr(sys.modules.get(package), kind, None)
    return isinstance(found, type) and isinstance(operand, found)


def lent(array: Any) -> Any:
    """A result to read: one of NumPy's arrays where NumPy is imported, otherwise a memoryview; it shares the memory."""
    memory = memoryview(array).toreadonly()
    numpy = sys.modules.get("numpy")
    return memory if numpy is None else numpy.asarray(memory)


def result(array: Any, like: Any, sizes: list[int] | None = None) -> Any:
    """A result as the kind of array that the first operand is, of other sizes if these are given; it shares the result's
    memory."""
    if sizes is not None:
        found = result(array, like)
        return found.reshape(sizes) if hasattr(found, "reshape") else found.cast("B").cast(found.format, sizes)
    if _is(like, "numpy", "ndarray"):
        return sys.modules["numpy"].asarray(array)
    if _is(like, "torch", "Tensor"):
        torch = sys.modules["torch"]
        kind = getattr(torch, array.dtype)
        return torch.frombuffer(memoryview(array).cast("B"), dtype=kind).reshape(array.shape)
    if _is(like, "jax", "Array"):
        # jax keeps memory that is aligned to 64 bytes, and copies other memory.
        return sys.modules["jax"].numpy.asarray(sys.modules["numpy"].asarray(array))
    return memoryview(array)
