"""Arguments of programs, which are read region by region: arrays in memory, files, Zarr and Dask arrays."""

import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

from sdy.extras import explain_missing_extra

Array = npt.NDArray[Any]

_MAPPED_BYTES = 2**22
"""The bytes of a file that are mapped at once: pages that are read count as memory of the process."""


_ALIGNMENT, _LARGE = 64, 2**20
"""The alignment of arrays that XLA reads without a copy, and the bytes from which that saves memory."""


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return an array without initial values; XLA can read a large one in place."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the element type in the byte order of this machine, which XLA computes in."""
    return dtype.newbyteorder("=")


def is_shareable(value: Any) -> bool:
    """Return whether a value is an array that XLA can read in place, and large."""
    if not isinstance(value, np.ndarray):
        return False
    array = cast(Array, value)
    return array.nbytes >= _LARGE and array.flags.c_contiguous and array.ctypes.data % _ALIGNMENT == 0


class ArrayReader(Protocol):
    """An array that is read region by region."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the array."""
        ...

    def read(self, start: Sequence[int], end: Sequence[int]) -> Array:
        """Return the elements from `start` (inclusive) to `end` (exclusive)."""
        ...


@dataclass(frozen=True, eq=False)
class _TypedArray:
    """An array of a package that declares its shape and its element type as NumPy does."""

    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the array."""
        return self.array.dtype


class Whole(_TypedArray):
    """An array in memory; a region is a view."""

    array: Array

    def read(self, start: Sequence[int], end: Sequence[int]) -> Array:
        """Return a view of the elements."""
        return self.array[tuple(map(slice, start, end))]


class Mapped(Whole):
    """A memory-mapped file; a region is a copy, and its pages leave the memory of the process."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the regions."""
        return native(self.array.dtype)

    def read(self, start: Sequence[int], end: Sequence[int]) -> Array:
        """Return a copy of the elements."""
        region = self.array[tuple(map(slice, start, end))]
        result = empty(region.shape, self.dtype)
        self._copy(region, result)
        return result

    def _copy(self, region: Array, result: Array) -> None:
        dim = next((dim for dim, size in enumerate(region.shape) if size > 1), None)
        if dim is None or _span(region) <= _MAPPED_BYTES:
            result[...] = region
            _drop_pages(region)
            return
        step = max(1, _MAPPED_BYTES // abs(region.strides[dim]))
        for first in range(0, region.shape[dim], step):
            part = (*[slice(None)] * dim, slice(first, first + step))
            self._copy(region[part], result[part])


@dataclass(frozen=True, eq=False)
class NpyFile:
    """An `.npy` file, which every worker that reads it opens."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self, start: Sequence[int], end: Sequence[int]) -> Array:
        """Return a copy of the elements."""
        array = np.load(self.path, mmap_mode="r")
        return Mapped(array.view(self.dtype) if array.dtype.kind == "V" else array).read(start, end)


@dataclass(frozen=True, eq=False)
class ZarrArray:
    """A Zarr array, whose elements may be stored as unsigned integers of their size."""

    array: Any
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.array.shape

    def __getitem__(self, index: Any) -> Array:
        """Return the elements at an index of NumPy's kind."""
        return np.asarray(self.array[index]).view(self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all elements."""
        return np.asarray(self[...], dtype)

    def read(self, start: Sequence[int], end: Sequence[int]) -> Array:
        """Return a copy of the elements."""
        return np.asarray(self.array[tuple(map(slice, start, end))]).view(self.dtype)


class DaskArray(_TypedArray):
    """A `dask.array`; a region is computed in this process."""

    def read(self, start: Sequence[int], end: Sequence[int]) -> Array:
        """Compute the elements."""
        return np.asarray(self.array[tuple(map(slice, start, end))].compute(scheduler="synchronous"))


def reader(argument: Any, dtype: np.dtype[Any] | None = None) -> ArrayReader:
    """Return a reader of an argument.

    Args:
        argument: An array of NumPy, JAX, Zarr or Dask, or the path of an `.npy` file or of a Zarr array.
        dtype: The element type of the parameter, for arrays that are stored as raw bytes.
    """
    if isinstance(argument, str | Path):
        argument = _opened(str(argument), dtype)
    if isinstance(argument, NpyFile | ZarrArray):
        return argument
    if isinstance(argument, np.memmap):
        return Mapped(cast(Array, argument))
    package: str = type(argument).__module__.partition(".")[0]
    if package == "zarr":
        return ZarrArray(argument, _stored_dtype(argument))
    if package == "dask":
        return DaskArray(argument.astype(native(argument.dtype)))
    array = np.asarray(argument, dtype if isinstance(argument, bool | int | float | complex) else None)
    return Whole(array.astype(native(array.dtype), copy=False))


def zarr() -> Any:
    """Return the package `zarr`, which declares types in part.

    Raises:
        MissingPackageError: It is not installed.
    """
    with explain_missing_extra("a Zarr array"):
        return import_module("zarr")


def _stored_dtype(array: Any) -> np.dtype[Any]:
    """Return the element type of a Zarr array, which an attribute names if Zarr does not have it."""
    name = array.attrs.get("dtype", "")
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else array.dtype


def storage_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that Zarr stores elements as: unsigned integers for types that only ml_dtypes has."""
    return dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")


def _opened(path: str, dtype: np.dtype[Any] | None) -> Any:
    if not path.endswith(".npy"):
        package = zarr()
        try:
            return package.open_array(path, mode="r")
        except (ValueError, FileNotFoundError) as problem:
            if not Path(path).exists():
                raise FileNotFoundError(f"{path} does not exist") from problem
            raise ValueError(f"{path} is not an .npy file or a Zarr array: {problem}") from problem
    try:
        array = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as problem:
        raise ValueError(f"{path} is not an .npy file of numbers: {problem}") from problem
    is_bytes = dtype is not None and array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize
    return NpyFile(path, array.shape, dtype if dtype is not None and is_bytes else native(array.dtype))


def _span(array: Array) -> int:
    """Return the bytes from the first to the last element of an array in memory."""
    return (
        sum((size - 1) * abs(stride) for size, stride in zip(array.shape, array.strides, strict=True)) + array.itemsize
    )


def _drop_pages(array: Array) -> None:
    """Remove the pages of a file from the memory of the process; they can be read again."""
    base: Any = array
    while isinstance(base, np.ndarray):
        # A private mapping has changes that the file does not have.
        if getattr(cast(Any, base), "mode", "r") == "c":
            return
        base = base.base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)
