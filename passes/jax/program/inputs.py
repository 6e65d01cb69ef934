"""Arguments for a program: random, or loaded from a file."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile

import numpy as np

from sdy.diagnostics import Location, error

if TYPE_CHECKING:
    from sdy.passes.jax.program.interface import ArrayPort

NumpyArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SCALE = 0.1
_INTEGER_END = 8
_PART = 2**18
"""The number of elements that `random_files` draws at once."""


def random_inputs(ports: "Sequence[ArrayPort]", seed: int) -> list[NumpyArray]:
    """Return a random array for each of `ports`, deterministic in `seed`.

    Floats are normally distributed with mean 0 and standard deviation 0.1; integers are uniform in 0 to 7, so that they
    are valid indices in most programs; booleans are uniform.
    """
    generator = np.random.default_rng(seed)
    return [_random_array(port, generator) for port in ports]


def random_files(ports: "Sequence[ArrayPort]", seed: int, folder: Path) -> list[str]:
    """Write the arrays of `random_inputs` to `.npy` files, part by part, and return their paths.

    Arrays of complex numbers and of several parts have other elements than `random_inputs` returns.
    """
    generator = np.random.default_rng(seed)
    paths: list[str] = []
    for number, port in enumerate(ports):
        path = folder / f"arg{number}.npy"
        with open(path, "wb") as file:
            header = {"descr": port.dtype.str, "fortran_order": False, "shape": port.shape}
            np.lib.format.write_array_header_1_0(file, header)
            for count in _parts(prod(port.shape)):
                file.write(_random_elements((count,), port.dtype, generator).tobytes())
        paths.append(str(path))
    return paths


def _parts(count: int) -> Iterator[int]:
    for first in range(0, count, _PART):
        yield min(_PART, count - first)


def rounded_otherwise(inputs: Sequence[NumpyArray], relative: float) -> list[NumpyArray]:
    """Return `inputs` with each inexact number scaled by 1 ± `relative`, in a deterministic random direction."""
    generator = np.random.default_rng(0)

    def perturb(array: NumpyArray) -> NumpyArray:
        if array.dtype == np.bool_ or _is_integer(array.dtype):
            return array
        return (array * (1 + relative * generator.choice([-1, 1], array.shape))).astype(array.dtype)

    return list(map(perturb, inputs))


def _random_array(port: "ArrayPort", generator: np.random.Generator) -> NumpyArray:
    return _random_elements(port.shape, port.dtype, generator)


def _random_elements(shape: tuple[int, ...], dtype: np.dtype[Any], generator: np.random.Generator) -> NumpyArray:
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if _is_integer(dtype):
        return generator.integers(0, _INTEGER_END, shape).astype(dtype)
    if dtype.kind == "c":
        real, imaginary = generator.normal(0, _SCALE, (2, *shape))
        return (real + 1j * imaginary).astype(dtype)
    return generator.normal(0, _SCALE, shape).astype(dtype)


def _is_integer(dtype: np.dtype[Any]) -> bool:
    # The narrow integers of ml_dtypes have kind "V".
    return dtype.kind in "iu" or "int" in dtype.name


def read_arrays(path: str) -> dict[str, NumpyArray]:
    """Load the arrays of an .npz file by name. Raises DiagnosticError if it cannot be read."""
    where = Location(path, 1, 1)
    try:
        with np.load(path) as arrays:
            return {name: np.asarray(arrays[name]) for name in arrays.files}
    except (ValueError, TypeError, AttributeError, BadZipFile, EOFError) as problem:
        raise error(where, "not an .npz file as numpy.savez writes it") from problem
    except OSError as problem:
        raise error(where, f"cannot read the file: {(problem.strerror or str(problem)).lower()}") from problem


def arrange_inputs(arrays: Mapping[str, NumpyArray], ports: "Sequence[ArrayPort]", path: str) -> list[NumpyArray]:
    """Return the arrays loaded from `path` in the order of `ports`.

    The arrays are named `arg0`, `arg1` and so on, or `arr_0`, `arr_1` and so on as numpy names them by default. Raises
    DiagnosticError if an array is missing, superfluous, or does not match its port.
    """
    where = Location(path, 1, 1)
    prefix = "arr_" if "arr_0" in arrays else "arg"
    names = [f"{prefix}{index}" for index in range(len(ports))]
    if unused := sorted(arrays.keys() - set(names)):
        raise error(where, f"unexpected array '{unused[0]}': the program takes {len(ports)} arguments, arg0, ...")
    inputs: list[NumpyArray] = []
    for name, port in zip(names, ports, strict=True):
        if name not in arrays:
            raise error(where, f"missing array '{name}' for {port.name}")
        try:
            inputs.append(np.asarray(port.check(_with_type(arrays[name], port.dtype))))
        except (TypeError, ValueError) as problem:
            raise error(where, str(problem)) from problem
    return inputs


def _with_type(array: NumpyArray, dtype: np.dtype[Any]) -> NumpyArray:
    """View `array` as `dtype` if it has raw bytes, as numpy saves bfloat16 and other extension types."""
    is_bytes = array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize
    return array.view(dtype) if is_bytes else array
