"""Regions with a mistake: wrong types, an extra argument, or a wrong number of results.

The mistakes change the text of a function around one operation in generic form, from the families of
`random_operations`.
"""

import re
from random import Random

_REGIONS = re.compile(r"(?<=\()\{.*\}(?=\) : )", re.DOTALL)
_TENSOR = re.compile(r"tensor<\w+(?:<\w+>)?>")
_RETURN = re.compile(r'(?<="stablehlo.return")\((.*?)\) : \((.*?)\)')
_ARGUMENTS = re.compile(r"\^bb0\((?=%)")
_TYPES = ("f32", "bf16", "f64", "i1", "i8", "i32", "complex<f32>", "1xf32", "?xf32")


def has_region(function: str) -> bool:
    """Return whether the operation has a region."""
    return _REGIONS.search(function) is not None


def with_wrong_region(function: str, rng: Random) -> str:
    """Return `function` with one change in the regions of its operation, which may happen to be valid."""
    change = rng.choice((_with_other_type, _with_other_type, _with_another_argument, _with_other_results))
    return _REGIONS.sub(lambda regions: change(regions[0], rng), function, count=1)


def _with_other_type(regions: str, rng: Random) -> str:
    type_ = rng.choice(sorted(set(_TENSOR.findall(regions))))
    return regions.replace(type_, f"tensor<{rng.choice(_TYPES)}>")


def _with_another_argument(regions: str, rng: Random) -> str:
    return _ARGUMENTS.sub(f"^bb0(%another: tensor<{rng.choice(_TYPES)}>, ", regions, count=1)


def _with_other_results(regions: str, rng: Random) -> str:
    values, types = (part.split(", ") for part in rng.choice(_RETURN.findall(regions)))
    count = rng.choice((0, len(values) - 1, len(values) + 1))
    written = f"({', '.join([*values, values[0]][:count])}) : ({', '.join([*types, types[0]][:count])})"
    return _RETURN.sub(written, regions, count=1)
