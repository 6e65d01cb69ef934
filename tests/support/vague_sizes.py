"""Functions around one operation with less static shapes: some dimensions dynamic, some of those bounded.

tensor<4x8xf32>     tensor<?x8xf32>     tensor<?x?xf32, #stablehlo.bounds<?, 9>>
"""

import re
from random import Random

_SIGNATURE = re.compile(r": \((.*)\) -> \((.*)\)(?=\n  return)")
_ARGUMENTS = re.compile(r"(?<=@NAME\()[^)]*(?=\))")
_TENSOR = re.compile(r"tensor<((?:[?\d]+x)*)(.*)>")


def with_vague_sizes(function: str, rng: Random) -> str:
    """Make some dimensions of operand and result types of `function` dynamic, except those of constants."""
    signature = _SIGNATURE.search(function)
    assert signature is not None
    operands = [
        type_ if f"%v{number} =" in function else _vague(type_, rng)
        for number, type_ in enumerate(_types(signature[1]))
    ]
    results = [_vague(type_, rng) for type_ in _types(signature[2])]
    arguments = ", ".join(f"%{number}: {type_}" for number, type_ in enumerate(operands))
    changed = f": ({', '.join(operands)}) -> ({', '.join(results)})"
    return _ARGUMENTS.sub(arguments, function[: signature.start()] + changed + function[signature.end() :], count=1)


def _types(text: str) -> list[str]:
    return text.split(", ") if text else []


def _vague(type_: str, rng: Random) -> str:
    match = _TENSOR.fullmatch(type_)
    assert match is not None
    sizes = match[1].split("x")[:-1]
    bounds = ["?"] * len(sizes)
    for dim, size in enumerate(sizes):
        if rng.random() < 0.3:
            sizes[dim] = "?"
            if size != "?" and rng.random() < 0.5:
                bounds[dim] = str(int(size) + rng.choice([-1, 0, 0, 1]))
    encoding = f", #stablehlo.bounds<{', '.join(bounds)}>" if set(bounds) - {"?"} else ""
    return f"tensor<{'x'.join([*sizes, match[2]])}{encoding}>"
