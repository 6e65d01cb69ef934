"""Mutated program texts, as typos, broken files or an attacker may produce them."""

import functools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import virtual_devices

ROOT = Path(__file__).parents[2]

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[%#@!^]?[\w.$]+|->|\S')
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])|(?<=[x<])\d+(?=x)")
_AXIS = re.compile(r'"\w"')
_TYPE = re.compile(r"(?<![\w.])(?:[fiu]\d+|bf16|index|f8\w+|complex<\w+>)|(?<=x)(?:[fiu]\d+|bf16|index|complex<\w+>)")
_ATTRIBUTE = re.compile(r"#sdy\.\w+<[^>]*>+|<@[^>]*>|\{\"[^}]*\}|\[[^\[\]]*\]")
_KEYWORDS = re.compile(r"true|false|dense|@mesh\w*|\?|array|LT|sum")

_HUGE = (
    *(2**16, 10**6, 2**31 - 1, 2**31, 2**32, 9_999_999_999, 10**12, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30),
    *(10**5000, -(2**63), -(2**63) - 1),
)
_TYPES = (
    *("f32", "f64", "bf16", "f16", "i1", "i8", "i32", "ui4", "si64", "i65536", "index", "complex<f32>", "f8E4M3FN"),
    *("none", "!stablehlo.token", "tensor<4xf32>"),
)
_WORDS = ("true", "false", "?", "*", "@mesh", "@main", "@nowhere", "dense<>", "[]", "{}", "unit", "()")

Mutation = Callable[[str, random.Random], str]
"""A change at a random position of a text."""


def _one_of(pattern: re.Pattern[str], text: str, choices: random.Random) -> tuple[int, int]:
    found = [match.span() for match in pattern.finditer(text)]
    return choices.choice(found) if found else (len(text), len(text))


def _delete_a_token(text: str, choices: random.Random) -> str:
    start, end = _one_of(TOKEN, text, choices)
    return text[:start] + text[end:]


def _duplicate_a_token(text: str, choices: random.Random) -> str:
    start, end = _one_of(TOKEN, text, choices)
    return f"{text[:end]} {text[start:]}"


def _swap_two_tokens(text: str, choices: random.Random) -> str:
    first, second = sorted(_one_of(TOKEN, text, choices) for _ in range(2))
    if first == second:
        return text
    (a, b), (c, d) = first, second
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def _change_a_number(text: str, choices: random.Random) -> str:
    start, end = _one_of(_NUMBER, text, choices)
    return f"{text[:start]}{choices.choice((0, 1, 2, 3, 4, 5, 7, 8, -1))}{text[end:]}"


def _change_an_axis_name(text: str, choices: random.Random) -> str:
    start, end = _one_of(_AXIS, text, choices)
    return f'{text[:start]}"{choices.choice("abcxyz")}"{text[end:]}'


def _drop_a_line(text: str, choices: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    del lines[choices.randrange(len(lines))]
    return "".join(lines)


TOKEN_MUTATIONS: tuple[Mutation, ...] = (
    _delete_a_token,
    _duplicate_a_token,
    _swap_two_tokens,
    _change_a_number,
    _change_an_axis_name,
    _drop_a_line,
)


def _make_a_number_huge(text: str, choices: random.Random) -> str:
    start, end = _one_of(_NUMBER, text, choices)
    return f"{text[:start]}{_decimal(choices.choice(_HUGE))}{text[end:]}"


def _decimal(number: int) -> str:
    # Python refuses to print an integer with this many digits.
    return f"1{'0' * 5000}" if number == 10**5000 else str(number)


def _change_a_type(text: str, choices: random.Random) -> str:
    start, end = _one_of(_TYPE, text, choices)
    return text[:start] + choices.choice(_TYPES) + text[end:]


def _change_a_word(text: str, choices: random.Random) -> str:
    start, end = _one_of(choices.choice((_KEYWORDS, TOKEN)), text, choices)
    return text[:start] + choices.choice(_WORDS) + text[end:]


def _repeat_a_token_elsewhere(text: str, choices: random.Random) -> str:
    (start, end), (a, b) = _one_of(TOKEN, text, choices), _one_of(TOKEN, text, choices)
    return text[:start] + text[a:b] + text[end:]


def _swap_two_lines(text: str, choices: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    a, b = choices.randrange(len(lines)), choices.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def _duplicate_a_line(text: str, choices: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    line = choices.randrange(len(lines))
    return "".join([*lines[: line + 1], *lines[line:]])


def _change_a_number_everywhere(text: str, choices: random.Random) -> str:
    start, end = _one_of(_NUMBER, text, choices)
    other = _decimal(choices.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 64, *_HUGE)))
    return re.sub(rf"(?<![\w.%#]){text[start:end]}(?![\w.])|(?<=[x<]){text[start:end]}(?=x)", other, text)


def _change_a_type_everywhere(text: str, choices: random.Random) -> str:
    start, end = _one_of(_TYPE, text, choices)
    return re.sub(
        rf"(?<![\w.]|x){re.escape(text[start:end])}(?![\w.])|(?<=x){re.escape(text[start:end])}(?![\w.])",
        choices.choice(_TYPES),
        text,
    )


def _move_an_attribute(text: str, choices: random.Random) -> str:
    (start, end), (a, b) = _one_of(_ATTRIBUTE, text, choices), _one_of(_ATTRIBUTE, text, choices)
    return text[:start] + text[a:b] + text[end:]


def _change_a_byte(text: str, choices: random.Random) -> str:
    place = choices.randrange(len(text))
    return text[:place] + chr(choices.choice((choices.randrange(128), choices.randrange(256)))) + text[place + 1 :]


def _insert_a_byte(text: str, choices: random.Random) -> str:
    place = choices.randrange(len(text) + 1)
    return text[:place] + chr(choices.randrange(128)) + text[place:]


def _delete_some_bytes(text: str, choices: random.Random) -> str:
    place = choices.randrange(len(text))
    return text[:place] + text[place + choices.randint(1, 20) :]


MUTATIONS: tuple[Mutation, ...] = (
    *TOKEN_MUTATIONS,
    _make_a_number_huge,
    _change_a_type,
    _change_a_word,
    _repeat_a_token_elsewhere,
    _swap_two_lines,
    _duplicate_a_line,
    _change_a_byte,
    _insert_a_byte,
    _delete_some_bytes,
    *5 * (_change_a_number_everywhere, _change_a_type_everywhere, _move_an_attribute),
)
"""Mutations by weight: those that often keep the program parseable, and so test more than the parser, are repeated."""


def lit_texts(folders: str = "*") -> Iterator[str]:
    """Return the programs of the lit tests in matching folders, without comments."""
    for path in sorted((ROOT / "lit_tests").glob(f"{folders}/*.mlir")):
        for part in path.read_text().split("// -----\n"):
            lines = (line for line in part.splitlines(keepends=True) if not line.lstrip().startswith("//"))
            if (text := "".join(lines)).strip():
                yield text


def _corpus_texts(one_in: int) -> Iterator[str]:
    virtual_devices.set_up()

    import sdy
    from corpus import PROGRAMS

    for program in [*PROGRAMS.values()][::one_in]:
        yield sdy.format(program.module())


@functools.cache
def _originals(one_in: int) -> tuple[list[str], list[float]]:
    """Return the texts to mutate and their weights, which decrease with size."""
    texts = [*lit_texts(), *_corpus_texts(one_in), (ROOT / "examples" / "transformer.mlir").read_text()]
    return texts, [1 / max(len(text), 1000) for text in texts]


def mutated_text(seed: int, number: int, one_in: int = 1) -> str:
    """Return the text with this number and seed: a program of a lit test or of the corpus, changed in a few places.

    The corpus is every `one_in`-th of its programs, since lowering all of them takes a while.
    """
    choices = random.Random(f"{seed} {number}")
    texts, weights = _originals(one_in)
    (text,) = choices.choices(texts, weights)
    for _ in range(choices.choice((1, 1, 1, 2, 2, 3, 5))):
        if text.strip():
            text = choices.choice(MUTATIONS)(text, choices)
    return text
