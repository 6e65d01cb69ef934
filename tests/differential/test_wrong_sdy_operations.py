"""Mistakes in SDY operations and attributes are refused if and only if MLIR refuses them, with its messages.

The messages that differ are those of the section "Messages about damaged text" in docs/differences.md.
"""

import re

from oracle import OracleError, oracle
from samples import sample
from sdy.diagnostics import DiagnosticError, capture
from sdy.text import format as print_module
from sdy.text import parse
from wrong_sdy_operations import cases

_SAMPLE = 601
"""Stride of the sample of cases: a prime, so that it is no period of any list of mistakes."""

_NOT_COMPARED = re.compile(
    r"reduction_op"  # newer than the C++ of some jaxlibs
    r"|dim_mapping"  # MLIR prints text for it that it cannot parse
    r"|cf\.br"  # a dialect that we do not support
)
"""Texts that we parse differently, for the reasons above."""

_DIFFERENT_MESSAGES = re.compile(
    r"inferred type|same encoding|collective on operand without sharding|only ranked tensors"  # mixed kinds of types
    r"|block with no terminator, has"  # we name the operation instead
    r"|expected operation name in quotes"  # for keywords that are types, as `i32 = sdy.mesh`
    r"|to start operand list"  # after an unknown operation name, which we refuse by its dialect
    r"|number of operands and types do not match"  # located at the operands by MLIR, after the types by xDSL
    r"|dense elements|shaped type|string token"  # in `dense<...>`, not an attribute of this dialect
    r"|using value defined outside"  # found by MLIR while parsing, by us after parsing
    r"|result number not allowed|expected attribute name"  # in the arguments of a region
)
"""Messages of MLIR in whose place another message, or another location, is accepted."""

_EARLIER_MESSAGE = re.compile(r"expected '<'$")
"""Our message for an attribute in place of another's brackets; MLIR names the expected token."""


def _mlir_error(text: str) -> tuple[str, str]:
    """Return MLIR's first error with its location and "", or "" and the program."""
    try:
        return "", oracle(text)
    except OracleError as problem:
        found = re.search(r'^error: "-":(.*)$', str(problem), re.MULTILINE)
        return (found[1] if found else str(problem)).replace("\0", ""), ""


def _our_error(text: str) -> tuple[str, str]:
    try:
        with capture():
            return "", print_module(parse(text))
    except DiagnosticError as problem:
        place = problem.where
        return f"{place.line}:{place.column}: {problem.message}" if place is not None else problem.message, ""


def test_mistakes_are_refused_as_mlir_refuses_them():
    chosen = [case for case in sample(cases(), one_in=_SAMPLE) if not _NOT_COMPARED.search(case[1])]
    assert len(chosen) > 60
    different: list[str] = []
    for name, text in chosen:
        (ours, printed), (theirs, expected) = _our_error(text), _mlir_error(text)
        if bool(ours) != bool(theirs):
            different.append(f"{name}: {ours or 'read'} instead of {theirs or 'read'}\n{text}")
        elif _DIFFERENT_MESSAGES.search(theirs) or _EARLIER_MESSAGE.search(ours):
            continue
        elif (ours, printed.strip()) != (theirs, expected.strip()):
            different.append(f"{name}: {ours or printed} instead of {theirs or expected}\n{text}")
    assert "\n".join(different) == ""
