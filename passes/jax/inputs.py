"""Arguments for a program: made up, or read from a file."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile

import numpy as np

from sdy.diagnostics import Location, error

if TYPE_CHECKING:
    from sdy.passes.jax.interface import ArrayPort

NumpyArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SCALE = 0.1
_INTEGER_END = 8


def random_inputs(ports: "Sequence[ArrayPort]", seed: int) -> list[NumpyArray]:
    """An array for each of `ports`, the same for the same seed.

    Numbers are normally distributed around 0 with a standard deviation of 0.1; integers are 0 to 7, small enough to be
    indices almost anywhere; booleans are either.
    """
    generator = np.random.default_rng(seed)
    return [_random_array(port, generator) for port in ports]


def rounded_otherwise(inputs: Sequence[NumpyArray], relative: float) -> list[NumpyArray]:
    """`inputs` with each number that is not whole a little larger or smaller, by `relative`; the same for the same."""
    generator = np.random.default_rng(0)

    def change(array: NumpyArray) -> NumpyArray:
        if array.dtype == np.bool_ or _is_integer(array.dtype):
            return array
        return (array * (1 + relative * generator.choice([-1, 1], array.shape))).astype(array.dtype)

    return list(map(change, inputs))


def _random_array(port: "ArrayPort", generator: np.random.Generator) -> NumpyArray:
    if port.dtype == np.bool_:
        return generator.integers(0, 2, port.shape).astype(np.bool_)
    if _is_integer(port.dtype):
        return generator.integers(0, _INTEGER_END, port.shape).astype(port.dtype)
    if port.dtype.kind == "c":
        real, imaginary = generator.normal(0, _SCALE, (2, *port.shape))
        return (real + 1j * imaginary).astype(port.dtype)
    return generator.normal(0, _SCALE, port.shape).astype(port.dtype)


def _is_integer(dtype: np.dtype[Any]) -> bool:
    # The narrow types of ml_dtypes are of a kind of their own.
    return dtype.kind in "iu" or "int" in dtype.name


def read_arrays(path: str) -> dict[str, NumpyArray]:
    """The arrays of an .npz file by their names. Raises DiagnosticError where it cannot be read."""
    where = Location(path, 1, 1)
    try:
        with np.load(path) as arrays:
            return {name: np.asarray(arrays[name]) for name in arrays.files}
    except (ValueError, TypeError, AttributeError, BadZipFile, EOFError) as problem:
        raise error(where, "not a file of arrays as numpy.savez writes it") from problem
    except OSError as problem:
        raise error(where, f"cannot read the file: {(problem.strerror or str(problem)).lower()}") from problem


def arrange_inputs(arrays: Mapping[str, NumpyArray], ports: "Sequence[ArrayPort]", path: str) -> list[NumpyArray]:
    """The arrays read from `path` in the order of `ports`: named `arg0`, `arg1` and so on, or saved without names.

    Raises DiagnosticError where an array is missing, is one too many, or does not fit its port.
    """
    where = Location(path, 1, 1)
    prefix = "arr_" if "arr_0" in arrays else "arg"
    names = [f"{prefix}{index}" for index in range(len(ports))]
    if unused := sorted(arrays.keys() - set(names)):
        raise error(where, f"there is an array '{unused[0]}', but the program takes {len(ports)} arguments: arg0, ...")
    inputs: list[NumpyArray] = []
    for name, port in zip(names, ports, strict=True):
        if name not in arrays:
            raise error(where, f"there is no array '{name}' for {port.name}")
        try:
            inputs.append(np.asarray(port.check(_with_type(arrays[name], port.dtype))))
        except (TypeError, ValueError) as problem:
            raise error(where, str(problem)) from problem
    return inputs


def _with_type(array: NumpyArray, dtype: np.dtype[Any]) -> NumpyArray:
    """Types that numpy has no name for, such as bfloat16, are saved as plain bytes."""
    is_bytes = array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize
    return array.view(dtype) if is_bytes else array
