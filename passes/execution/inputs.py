"""Arguments for a program: made up, or read from a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sdy.diagnostics import error
from sdy.passes.execution.interface import Port

_SCALE = 0.1
_INTEGER_END = 8


def random_inputs(ports: Sequence[Port], seed: int) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """An array for each of `ports`, the same for the same seed.

    Numbers are normally distributed around 0 with a standard deviation of 0.1; integers are 0 to 7, small enough to be
    indices almost anywhere; booleans are either.
    """
    generator = np.random.default_rng(seed)
    return [_random_array(port, generator) for port in ports]


def _random_array(port: Port, generator: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
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


def read_inputs(path: str, ports: Sequence[Port]) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """The arrays of an .npz file, in the order of `ports`: named `arg0`, `arg1` and so on, or saved without names.

    Raises DiagnosticError where the file cannot be read, lacks an array, has one that is not used, or has one that does
    not fit its port.
    """
    if not Path(path).is_file():
        raise error(None, f"cannot open '{path}': {'not a file' if Path(path).exists() else 'no such file'}")
    try:
        with np.load(path) as arrays:
            given = {name: np.asarray(arrays[name]) for name in arrays.files}
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        raise error(None, f"'{path}' is not a file of arrays as numpy.savez writes it") from problem
    prefix = "arr_" if "arr_0" in given else "arg"
    names = [f"{prefix}{index}" for index in range(len(ports))]
    if unused := sorted(given.keys() - set(names)):
        raise error(
            None, f"'{path}' has an array '{unused[0]}', but the program takes {len(ports)} arguments: arg0, ..."
        )
    inputs: list[np.ndarray[Any, np.dtype[Any]]] = []
    for name, port in zip(names, ports, strict=True):
        if name not in given:
            raise error(None, f"'{path}' has no array '{name}' for {port.name}")
        try:
            inputs.append(np.asarray(port.check(_with_type(given[name], port.dtype))))
        except (TypeError, ValueError) as problem:
            raise error(None, f"'{path}': {problem}") from problem
    return inputs


def _with_type(array: np.ndarray[Any, np.dtype[Any]], dtype: np.dtype[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """Types that numpy has no name for, such as bfloat16, are saved as plain bytes."""
    is_bytes = array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize
    return array.view(dtype) if is_bytes else array
