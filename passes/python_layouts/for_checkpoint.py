"""The file that applies the recomputation of a program with `jax.checkpoint`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sdy.formatting import columns, format_bytes, format_seconds
from sdy.passes.python.expressions import Expression
from sdy.passes.python_layouts.checkpointed import CHECKPOINT_IMPORTS, CHECKPOINT_LINES, inner_jaxprs, line_of, sources
from sdy.passes.python_layouts.file import docstring, file_of, mapping, string
from sdy.passes.spmd.remat.recomputed import Recomputed, ValueGroup


def checkpoint_file(name: str, recomputed: Recomputed, jaxpr: Any) -> str:
    """Return a file with the function `checkpointed`, which saves what a program saves and recomputes the rest.

    The results of a source line and primitive are saved if the program recomputes none of them.

    Args:
        name: The name of the program.
        recomputed: The values that it saves and recomputes.
        jaxpr: Its closed jaxpr, for the names that `checkpoint_name` gives; None if it is unknown.
    """
    again = {each.source for each in recomputed.values}
    saved = list(dict.fromkeys(each.source for each in recomputed.saved if each.source and each.source not in again))
    given = {} if jaxpr is None else dict(_names_in(jaxpr.jaxpr))
    names = {source: given.get(source, source) for source in saved}
    return file_of(
        (
            [
                *docstring(
                    f"The recomputation of {name}: {format_bytes(recomputed.saved_bytes)} less memory on a device.",
                    "     loss = checkpointed(loss)  # the function that jax.grad differentiates; of a scan, its body",
                    _HOW,
                    *_with_given_names([given[source] for source in saved if source in given], len(saved)),
                    *_table("Recomputed, as predicted:", recomputed.values),
                    *_table("Saved:", [each for each in recomputed.saved if each.source in names]),
                ),
                "",
                *CHECKPOINT_IMPORTS,
                "",
                *mapping("SAVED", ((source, Expression(string(each))) for source, each in names.items())),
            ],
            _CHECKPOINTED.splitlines(),
            *CHECKPOINT_LINES,
        )
    )


def _names_in(part: Any, line: str = "") -> Iterator[tuple[str, str]]:
    """Yield the sources of the results that `checkpoint_name` names in a jaxpr, with their names."""
    producers = {result: each for each in part.eqns for result in each.outvars}
    for equation in part.eqns:
        if equation.primitive.name == "name" and (producer := producers.get(equation.invars[0])) is not None:
            yield next(sources(producer, line)), equation.params["name"]
        for inner in inner_jaxprs(equation):
            yield from _names_in(inner, line_of(equation) or line)


def _with_given_names(names: Sequence[str], num_saved: int) -> Iterator[str]:
    """Yield the policy of the names that the program gives, if there are any."""
    if names:
        part = "" if len(names) == num_saved else ", which are a part of them"
        shown = ", ".join(map(string, dict.fromkeys(names)))
        yield f"With the names that checkpoint_name gives in the program{part}:"
        yield f"     jax.checkpoint(loss, policy=jax.checkpoint_policies.save_only_these_names({shown}))"


def _table(title: str, groups: Sequence[ValueGroup]) -> Iterator[str]:
    """Yield the values, bytes and time of each source."""
    by_source: Mapping[str, list[ValueGroup]] = defaultdict(list)
    for each in groups:
        by_source[each.source or each.description].append(each)
    rows: list[list[str]] = []
    for source, each in by_source.items():
        seconds = sum(group.seconds for group in each)
        size = format_bytes(sum(group.bytes for group in each))
        rows.append(
            [f"{sum(group.times for group in each)} x", size, format_seconds(seconds) if seconds else "", source]
        )
    if rows:
        yield title
        yield "\n".join(f"     {line.strip()}" for line in columns(rows, numbers=range(3)))


_HOW = (
    "SAVED has the names of results by the file, line, column and primitive that compute them. The backward pass reads "
    "these, and computes the others again. XLA for CPUs does so only with the options "
    "xla_disable_hlo_passes=cse_barrier_expander and xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED."
)

_CHECKPOINTED = '''\
def checkpointed(function):
    """Return `function` under `jax.checkpoint`, with the results of SAVED saved."""
    return checkpoint(function, SAVED)
'''
