"""Malformed input: mutated text is either parsed or refused with a diagnostic, in agreement with MLIR."""

import functools
import os
import random
import re
import signal
import sys
import time
import zlib
from collections.abc import Callable, Generator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sdy
from mutated_texts import ROOT, TOKEN, TOKEN_MUTATIONS, Mutation, lit_texts
from mutation_campaign import Campaign
from oracle import OracleError, oracle
from samples import is_thorough, sample
from sdy.diagnostics import DiagnosticError, capture
from sdy.passes.driver import run_passes
from sdy.passes.spec import parse_pipeline
from sdy.text import context, verify
from sdy.text.large_stack import has_large_stack, on_large_stack
from sdy.text.reading.parser import parse_module

DEPTH = 10_000 if is_thorough() else 1_200
SECONDS = 60
"""Timeout of a text, many times the expected time: only a text that hangs reaches it."""

MODULES = [*lit_texts(), "".join((ROOT / "examples" / "transformer.mlir").read_text().splitlines(keepends=True)[:40])]


def refusal(text: str) -> str | None:
    """Return the message with which `text` is refused, or None. Other exceptions fail the test."""
    start = time.monotonic()
    try:
        with capture():
            sdy.parse(text)
    except DiagnosticError as problem:
        assert time.monotonic() - start < SECONDS
        return str(problem)
    assert time.monotonic() - start < SECONDS
    return None


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    text=st.sampled_from(MODULES),
    mutations=st.lists(st.sampled_from(TOKEN_MUTATIONS), min_size=1, max_size=4),
    choices=st.randoms(use_true_random=False),
)
def test_a_changed_text_is_read_or_refused(text: str, mutations: list[Mutation], choices: random.Random):
    for mutation in mutations:
        text = mutation(text, choices) if text.strip() else text
    refusal(text)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    text=st.sampled_from(MODULES),
    mutations=st.lists(st.sampled_from(TOKEN_MUTATIONS), max_size=2),
    choices=st.randoms(use_true_random=False),
)
def test_reading_refuses_what_verifying_refuses(text: str, mutations: list[Mutation], choices: random.Random):
    for mutation in mutations:
        text = mutation(text, choices) if text.strip() else text
    try:
        module = parse_module(text, "-", context())
    except DiagnosticError:
        return
    assert refusal_of(lambda: sdy.parse(text, "-")) == refusal_of(lambda: verify(module))


def refusal_of(function: Callable[[], object]) -> list[str] | None:
    try:
        function()
    except DiagnosticError as problem:
        return [str(diagnostic) for diagnostic in problem.diagnostics]
    return None


@given(text=st.sampled_from(MODULES), place=st.integers(0, 10_000), inserted=st.text(min_size=1, max_size=8))
def test_a_text_with_anything_inserted_is_read_or_refused(text: str, place: int, inserted: str):
    place %= len(text)
    refusal(text[:place] + inserted + text[place:])


@pytest.mark.parametrize("name", ["dialect/computations", "dialect/sharding_rules", "dialect/collectives"])
def test_a_text_cut_off_at_any_token_is_read_or_refused(name: str):
    text = (ROOT / "lit_tests" / f"{name}.mlir").read_text()[:2500]
    for match in sample(TOKEN.finditer(text), one_in=4):
        refusal(text[: match.start()])


def test_sample_of_the_campaign_has_no_failures():
    """`python tests/support/mutation_campaign.py` tries more."""
    campaign = Campaign(seed=1, one_in=1 if is_thorough() else 10)
    numbers = sample(range(400), one_in=10)
    campaign.run(numbers)
    assert campaign.counts["read"] > len(numbers) // 40
    assert not campaign.first, campaign.details


@dataclass(frozen=True, slots=True)
class Nest:
    """A text with a given nesting depth of some construct."""

    before: str
    opening: str
    middle: str
    closing: str
    after: str

    def text(self, depth: int) -> str:
        return self.before + self.opening * depth + self.middle + self.closing * depth + self.after


NESTS = {
    "arrays": Nest("module attributes {mhlo.a = ", "[", "1", "]", "} {}"),
    "dictionaries": Nest("module attributes {mhlo.a = ", "{a = ", "1", "}", "} {}"),
    "tuples": Nest("func.func private @f(", "tuple<", "", ">", ")"),
    "function types": Nest("func.func private @f(", "(", "", ") -> ()", ")"),
    "fused locations": Nest("module {} loc(", "fused[", "unknown", "]", ")"),
    "named locations": Nest("module {} loc(", '"a"(', "unknown", ")", ")"),
    "affine parentheses": Nest("module attributes {mhlo.a = affine_map<(d0) -> (", "(", "d0", ")", ")>} {}"),
}
REGIONS = {
    "modules": Nest("", "module {", "", "}", ""),
    "modules in the generic form": Nest(
        "", '"builtin.module"() ({', '"builtin.module"() ({^bb0:}) : () -> ()', "}) : () -> ()", ""
    ),
    "branches": Nest(
        "func.func @f(%i: tensor<i32>) {",
        '"stablehlo.case"(%i) ({',
        "",
        '"stablehlo.return"() : () -> () }) : (tensor<i32>) -> ()',
        "return }",
    ),
}


HASHED = {"tuples", "function types"}
"""Types that Python 3.12 and later hash by C recursion, whose limit refuses deeper nesting.

The limit is 1,500 calls in 3.12.1 and 10,000 in 3.13; each nesting level takes six.
"""


@pytest.mark.parametrize("name", NESTS)
def test_attributes_and_types_nest_as_deeply_as_they_like(name: str):
    nest = NESTS[name]
    if name in HASHED and sys.version_info >= (3, 12):
        assert refusal(nest.text(DEPTH)) is None or "nested too deeply" in str(refusal(nest.text(DEPTH)))
        text = nest.text(DEPTH // 50)
    else:
        text = nest.text(DEPTH)
    assert refusal(text) is None
    printed = sdy.format(sdy.parse(text))
    is_the_same = sdy.format(sdy.parse(printed)) == printed
    assert is_the_same
    assert refusal(text[: len(text) // 2]) is not None


@pytest.mark.parametrize("nest", REGIONS.values(), ids=REGIONS.keys())
def test_regions_nest_as_deeply_as_they_like(nest: Nest):
    text = nest.text(DEPTH)
    assert refusal(text) is None
    lines = sdy.format(sdy.parse(text)).count("\n")
    assert lines >= DEPTH
    assert refusal(nest.before + nest.opening * DEPTH) is not None


def test_passes_handle_deep_nesting():
    module = sdy.parse(REGIONS["modules"].text(DEPTH // 10))
    run_passes(module, parse_pipeline("builtin.module(canonicalize)"))
    assert sdy.format(module).count("module {") == DEPTH // 10


def test_excessive_nesting_is_refused():
    assert "nested too deeply" in str(refusal(NESTS["arrays"].text(200_000)))


@pytest.fixture
def interruptible() -> Generator[None]:
    """Let SIGINT interrupt Python; background processes start with SIGINT ignored."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_reaches_a_large_stack():
    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

    for _ in range(100):  # the signal arrives during the thread's start, just before the wait for it, or in the wait
        with pytest.raises(KeyboardInterrupt):
            on_large_stack(interrupted)
    assert on_large_stack(has_large_stack)
    assert not has_large_stack()


def test_a_constant_of_20_megabytes_in_hexadecimal_is_read_and_printed():
    pairs = 1_250_000
    value = f'dense<"0x{"0000803F00000040" * pairs}"> : tensor<{2 * pairs}xf32>'
    text = f"module attributes {{mhlo.a = {value}}} {{\n}}\n"
    # A failing `==` inside the assertion would print both texts.
    is_the_same = sdy.format(sdy.parse(text)).strip() == text.strip()
    assert is_the_same


_NOT_COMPARED = re.compile(
    r"unreduced|reduction=|sharded_to_unreduced|replicated_to_unreduced|func_data_flow_edge"  # newer than jaxlib's C++
    r"|!quant|sparse_tensor"  # jaxlib does not load these dialects
    # checked by C++, not yet by us:
    r"|replica_group_mesh_axes|stablehlo\.(broadcast|map|gather|batch_norm)|algorithm|chlo\.broadcast"
)

FirstError = tuple[int, int, str]
"""Line, column and message of the first error."""

_TOLD_BY_MLIR = re.compile(r'error: "-":(\d+):(\d+): (.*)')

DIFFERENT_MESSAGES = re.compile(
    r"expected '->' in function type|invalid kind of type specified"  # the types after a form of StableHLO's
    r"|number of operands and types do not match"  # located at the operands by MLIR, after the types by xDSL
    r"|invalid properties"  # reported before the text after it is parsed
)
"""Messages of MLIR for which we may report another message or location."""


def mlir_error(text: str) -> FirstError | None:
    """Return the first error of MLIR's parser and verifiers, or None."""
    try:
        oracle(text)
    except OracleError as problem:
        found = _TOLD_BY_MLIR.search(str(problem))
        return (int(found[1]), int(found[2]), found[3].replace("\0", "")) if found else (0, 0, str(problem))
    return None


def parser_error(text: str) -> FirstError | None:
    """Return the first error of our parser, without the verifiers, or None."""
    try:
        parse_module(text, "-", context(allow_unregistered=True))
    except DiagnosticError as problem:
        where = problem.where
        assert where is not None
        return where.line, where.column, problem.message
    return None


def _changed(mutation: Mutation, texts: list[str], count: int) -> list[str]:
    choices = random.Random(0)
    changed = [mutation(choices.choice(texts), choices) for _ in range(count)]
    # MLIR parses an empty file as an empty module; we refuse it, because it is probably a mistake.
    return [text for text in changed if text.strip()]


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


@functools.cache
def _compared() -> list[str]:
    """Return texts that MLIR accepts, and their generic forms."""
    comparable = [text for text in MODULES if len(text) < 4000 and not _NOT_COMPARED.search(text)]
    # Sorted by checksum, so that the choice stays when a module is added.
    chosen = [text for text in sorted(comparable, key=_checksum)[:40] if mlir_error(text) is None]
    return chosen + [oracle(text, generic=True) for text in chosen]


by_mutation = pytest.mark.parametrize("mutation", TOKEN_MUTATIONS, ids=lambda mutation: mutation.__name__.strip("_"))
in_one_worker = pytest.mark.xdist_group("compared texts")
"""One worker runs these tests, so that MLIR reads the compared texts once."""


@in_one_worker
@by_mutation
def test_what_mlir_refuses_is_refused_and_nothing_else(mutation: Mutation):
    disagreements = [
        (text, refused)
        for text in sample(_changed(mutation, _compared(), 60), one_in=12)
        if (mlir_error(text) is None) != ((refused := refusal(text)) is None)
    ]
    assert disagreements == []


@in_one_worker
@by_mutation
def test_what_does_not_parse_is_told_as_mlir_tells_it(mutation: Mutation):
    disagreements = [
        (text, ours, theirs)
        for text in sample(_changed(mutation, _compared(), 60), one_in=12)
        if (ours := parser_error(text)) is not None
        if ours != (theirs := mlir_error(text))
        if theirs is None or not DIFFERENT_MESSAGES.search(theirs[2])
    ]
    assert disagreements == []
