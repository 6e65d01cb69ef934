"""Differences between the C++ of jaxlib versions, for the tests that compare with it.

We follow the newest version, except for "main's results", "edges that tell nothing", "returned ends of chains" and
"other plans", where Shardy's own tests expect the older behavior. A test calls `lacks` for a behavior that the
installed version may not have.
"""

import re
from importlib.metadata import version

Version = tuple[int, ...]

INSTALLED: Version = tuple(int(number) for number in version("jaxlib").split(".")[:3])

SINCE: dict[str, tuple[Version, str]] = {
    "reductions": (
        (0, 11, 0),
        "partial results may be combined by max and min; before, nothing else than sums is read, and what is made of a "
        "maximum is an all-reduce as of sums",
    ),
    "unreduced axes checked": (
        (0, 11, 0),
        "the pipelines refuse an operation that drops an unreduced axis; before, an all-reduce is inserted",
    ),
    "main's results": (
        (0, 11, 2),
        "sdy-propagate-to-func-results gives main's results without a sharding one as well",
    ),
    "meshes inlined": ((0, 11, 2), "sdy-export-pipeline writes meshes where they are used; before, it leaves sdy.mesh"),
    "rule of if": ((0, 12, 0), "shardings pass stablehlo.if, as through stablehlo.case; before, they stop there"),
    "edges that tell nothing": (
        (0, 12, 0),
        "debug information sunk from data-flow edges has an entry for each of them; before, for those that have any",
    ),
    "returned ends of chains": (
        (0, 12, 0),
        "sdy-apply-sharding-constraints lets a function return the end of a chain of constraints as well as other uses "
        "take it; before, it returns what the chain begins with",
    ),
    "shardings that tell nothing": (
        (0, 12, 0),
        "sdy-apply-sharding-constraints takes a value whose sharding is open in all dimensions and has no axes as one "
        "without a sharding; before, no constraint decides over it",
    ),
    "other plans": ((0, 12, 0), "a reshard over three axes and more may gather axes where others were permuted before"),
    "numbers rounded once": (
        (0, 12, 0),
        "a decimal is rounded to its type; before, it is rounded to 64 bits first, and from there to the type",
    ),
}
"""The first version with each behavior, and its description."""


def lacks(what: str) -> bool:
    """Return whether the installed version is older than the behavior."""
    since, _ = SINCE[what]
    return since > INSTALLED


OTHER_RULES: dict[str, tuple[Version, str]] = {
    "stablehlo.convolution": ((0, 12, 0), "dimensions of windows have factors of another kind"),
    "stablehlo.dynamic_update_slice": ((0, 11, 2), "a dimension that is updated in part need not be whole"),
    "stablehlo.reshape": ((0, 12, 0), "dimensions of size one that come or go must be whole"),
}
"""Operations whose sharding rule changed in some version, where ours follows Shardy's own tests."""


def has_another_rule(operation: str) -> bool:
    """Return whether the installed version has a different sharding rule for the operation."""
    return operation in OTHER_RULES and OTHER_RULES[operation][0] <= INSTALLED


def with_known_reductions(text: str) -> str:
    """Replace other reductions by sums if the installed C++ parses only sums."""
    return re.sub(r"sdy\.all_reduce (max|min) ", "sdy.all_reduce ", text) if lacks("reductions") else text
