"""Operations with one or two mistakes: a wrong size, element type, number, list or keyword.

The mistakes change the text of a function around one operation in generic form, from the families of
`random_operations`; the types of the function's arguments change with those of the operands.
"""

import re
from collections.abc import Callable
from random import Random

ELEMENTS = ("f32", "f16", "bf16", "f64", "i32", "i1", "ui8", "complex<f32>")
WORDS = (
    ("true", "false"),
    ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", "TRANSPOSE_INVALID"),
    ("FFT", "IFFT", "RFFT", "IRFFT"),
    ("DEFAULT", "HIGH", "HIGHEST"),
)
"""Keywords that are allowed in the same positions."""

_ARGUMENTS = re.compile(r"(?<=@NAME\()[^)]*(?=\))")
_SIGNATURE = re.compile(r": \((.*)\) -> \((.*)\)(?=\n  return)")
_TENSOR = re.compile(r"tensor<((?:[?\d]+x)*)(.*)>")
_PROPERTIES = re.compile(r"<\{.*?\}>", re.DOTALL)
_NUMBER = re.compile(r"(?<=[\[ ])-?\d+(?=[\],> ])")
_LIST = re.compile(r"i(?:64|1): [^<>:]+(?=>)|(?:= |conv<|x|->)\[[^\[\]]+(?=\])")
_START_OF_LIST = re.compile(r"i\d+: |[^\[]*\[")


def with_mistakes(function: str, rng: Random) -> str:
    """Return `function` with one or two mistakes."""
    for _ in range(rng.choice((1, 1, 2))):
        function = rng.choice((_with_other_type, _with_other_properties))(function, rng)
    return function


def _with_other_type(function: str, rng: Random) -> str:
    signature = _SIGNATURE.search(function)
    if signature is None:
        return function
    operands, results = (types.split(", ") if types else [] for types in signature.groups())
    types = operands + results
    changed = rng.randrange(len(types))
    types[changed] = rng.choice((_with_other_size, _with_other_size, _with_other_rank, _with_other_element))(
        types[changed], rng
    )
    operands, results = types[: len(operands)], types[len(operands) :]
    arguments = ", ".join(f"%{number}: {type_}" for number, type_ in enumerate(operands))
    function = (
        f"{function[: signature.start()]}: ({', '.join(operands)}) -> ({', '.join(results)})"
        + (function[signature.end() :])
    )
    return _ARGUMENTS.sub(arguments, function, count=1)


def _with_other_size(type_: str, rng: Random) -> str:
    return _with_other_entry(type_, rng, lambda size: [rng.choice(("?", "0", str(int(size) + 1), str(2 * int(size))))])


def _with_other_rank(type_: str, rng: Random) -> str:
    return _with_other_entry(type_, rng, lambda size: rng.choice(([], [size, size])))


def _with_other_entry(type_: str, rng: Random, change: Callable[[str], list[str]]) -> str:
    sizes, element = _parts(type_)
    static = [place for place, size in enumerate(sizes) if size != "?"]
    if not static:
        return type_
    place = rng.choice(static)
    return f"tensor<{'x'.join([*sizes[:place], *change(sizes[place]), *sizes[place + 1 :], element])}>"


def _with_other_element(type_: str, rng: Random) -> str:
    return f"tensor<{'x'.join([*_parts(type_)[0], rng.choice(ELEMENTS)])}>"


def _parts(type_: str) -> tuple[list[str], str]:
    match = _TENSOR.fullmatch(type_)
    assert match is not None
    return match[1].split("x")[:-1], match[2]


def _with_other_properties(function: str, rng: Random) -> str:
    properties = _PROPERTIES.search(function)
    if properties is None:
        return function
    changed = rng.choice((_with_other_number, _with_other_number, _with_other_list, _with_other_word))(
        properties[0], rng
    )
    return function[: properties.start()] + changed + function[properties.end() :]


def _with_other_number(text: str, rng: Random) -> str:
    def change(number: str) -> str:
        return str(rng.choice((-1, 0, 1, 2, int(number) + 1)))

    return _changed_somewhere(_NUMBER, text, change, rng)


def _with_other_list(text: str, rng: Random) -> str:
    def change(written: str) -> str:
        start = _START_OF_LIST.match(written)
        assert start is not None
        entries = written[start.end() :].split(", ")
        place = rng.randrange(len(entries))
        changed = [*entries[:place], *rng.choice(([], [entries[place]] * 2)), *entries[place + 1 :]]
        return start[0] + ", ".join(changed) if changed else start[0].removesuffix(": ")

    return _changed_somewhere(_LIST, text, change, rng)


def _with_other_word(text: str, rng: Random) -> str:
    words = [words for words in WORDS if re.search(rf"\b({'|'.join(words)})\b", text)]
    if not words:
        return text
    choice = rng.choice(words)
    return _changed_somewhere(re.compile(rf"\b(?:{'|'.join(choice)})\b"), text, lambda _: rng.choice(choice), rng)


def _changed_somewhere(pattern: re.Pattern[str], text: str, change: Callable[[str], str], rng: Random) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = rng.choice(found)
    return text[: match.start()] + change(match[0]) + text[match.end() :]
