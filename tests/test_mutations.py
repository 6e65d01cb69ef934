"""Bad input: whatever is done to the text of a module, it is read or refused with a diagnostic, and as MLIR decides."""

import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sdy
from oracle import OracleError, oracle
from sdy.diagnostics import DiagnosticError, capture

ROOT = Path(__file__).parent.parent
DEPTH = 10_000
SECONDS = 5
"""The longest that any text here may take, many times what it needs."""

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[%#@!^]?[\w.$]+|->|\S')
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])|(?<=[x<])\d+(?=x)")
_AXIS = re.compile(r'"\w"')


def _modules() -> Iterator[str]:
    for path in sorted((ROOT / "lit_tests").glob("*/*.mlir")):
        for part in path.read_text().split("// -----\n"):
            lines = (line for line in part.splitlines(keepends=True) if not line.lstrip().startswith("//"))
            yield "".join(lines)
    yield "".join((ROOT / "examples" / "transformer.mlir").read_text().splitlines(keepends=True)[:40])


MODULES = [text for text in _modules() if text.strip()]


def refusal(text: str) -> str | None:
    """Why `text` is refused, None where it is read. Any other exception is a failure of the test."""
    start = time.monotonic()
    try:
        with capture():
            sdy.parse(text)
    except DiagnosticError as problem:
        assert time.monotonic() - start < SECONDS
        return str(problem)
    assert time.monotonic() - start < SECONDS
    return None


Mutation = Callable[[str, random.Random], str]
"""A change to a text, somewhere in it."""


def _one_of(pattern: re.Pattern[str], text: str, choices: random.Random) -> tuple[int, int]:
    found = [match.span() for match in pattern.finditer(text)]
    return choices.choice(found) if found else (len(text), len(text))


def _delete_a_token(text: str, choices: random.Random) -> str:
    start, end = _one_of(_TOKEN, text, choices)
    return text[:start] + text[end:]


def _duplicate_a_token(text: str, choices: random.Random) -> str:
    start, end = _one_of(_TOKEN, text, choices)
    return f"{text[:end]} {text[start:]}"


def _swap_two_tokens(text: str, choices: random.Random) -> str:
    first, second = sorted(_one_of(_TOKEN, text, choices) for _ in range(2))
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


MUTATIONS: tuple[Mutation, ...] = (
    _delete_a_token,
    _duplicate_a_token,
    _swap_two_tokens,
    _change_a_number,
    _change_an_axis_name,
    _drop_a_line,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    text=st.sampled_from(MODULES),
    mutations=st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=4),
    choices=st.randoms(use_true_random=False),
)
def test_a_changed_text_is_read_or_refused(text: str, mutations: list[Mutation], choices: random.Random):
    for mutation in mutations:
        text = mutation(text, choices) if text.strip() else text
    refusal(text)


@settings(max_examples=60, deadline=None)
@given(text=st.sampled_from(MODULES), place=st.integers(0, 10_000), inserted=st.text(min_size=1, max_size=8))
def test_a_text_with_anything_inserted_is_read_or_refused(text: str, place: int, inserted: str):
    place %= len(text)
    refusal(text[:place] + inserted + text[place:])


@pytest.mark.parametrize("name", ["dialect/computations", "dialect/sharding_rules", "dialect/collectives"])
def test_a_text_cut_off_at_any_token_is_read_or_refused(name: str):
    text = (ROOT / "lit_tests" / f"{name}.mlir").read_text()[:2500]
    for match in _TOKEN.finditer(text):
        refusal(text[: match.start()])


@pytest.mark.parametrize(
    ("before", "opening", "closing"),
    [
        ("module attributes {mhlo.a = ", "[", "]"),
        ("module attributes {mhlo.a = ", "{a = ", "}"),
        ("module attributes {mhlo.a = dense<", "[", "]"),
        ("module attributes {mhlo.a = #sdy.sharding", "<", ">"),
        ("func.func private @f", "(", ")"),
        ("func.func private @f(", "tuple<", ">"),
        ("func.func private @f(", "(", ") -> ()"),
        ("", "module {", "}"),
        ("", '"builtin.module"() ({', "}) : () -> ()"),
        ("module {} loc(", "fused[", "]"),
        ("module {} loc(", '"a"(', ")"),
    ],
)
def test_deep_nesting_is_refused_in_good_time(before: str, opening: str, closing: str):
    assert refusal(before + opening * DEPTH + closing * DEPTH)
    assert refusal(before + opening * DEPTH)


def test_a_constant_of_100_megabytes_in_hexadecimal_is_read_and_printed():
    pairs = 6_250_000
    value = f'dense<"0x{"0000803F00000040" * pairs}"> : tensor<{2 * pairs}xf32>'
    text = f"module attributes {{mhlo.a = {value}}} {{\n}}\n"
    # Not compared by `==` inside the assertion, whose failure would print both.
    is_the_same = sdy.format(sdy.parse(text)).strip() == text.strip()
    assert is_the_same


_NOT_COMPARED = re.compile(
    r"unreduced|reduction=|sharded_to_unreduced|replicated_to_unreduced|func_data_flow_edge"  # newer than jaxlib's C++
    # C++ checks more of these than we do yet:
    r"|replica_group_mesh_axes|stablehlo\.(broadcast|map|gather|batch_norm)|algorithm|chlo\.broadcast"
)


def _is_accepted_by_mlir(text: str) -> bool:
    try:
        oracle(text)
    except OracleError:
        return False
    return True


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__.strip("_"))
def test_what_mlir_refuses_is_refused_and_nothing_else(mutation: Mutation):
    choices = random.Random(0)
    comparable = [text for text in MODULES if len(text) < 4000 and not _NOT_COMPARED.search(text)]
    texts = [text for text in choices.sample(comparable, 30) if _is_accepted_by_mlir(text)]
    changed = [mutation(text, choices) for text in texts for _ in range(2)]
    # An empty file is a module without operations for MLIR; here it is refused, as it is hardly what was meant.
    disagreements = [
        (text, refused)
        for text in changed
        if text.strip()
        if _is_accepted_by_mlir(text) != ((refused := refusal(text)) is None)
    ]
    assert disagreements == []
