"""The file that applies the recomputation and the offloading of a program with `jax.checkpoint`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from sdy.formatting import columns, format_bytes, format_seconds
from sdy.passes.python.expressions import Expression
from sdy.passes.python_layouts.checkpointed import CHECKPOINT_IMPORTS, CHECKPOINT_LINES, inner_jaxprs, line_of, sources
from sdy.passes.python_layouts.file import docstring, file_of, mapping, string
from sdy.passes.spmd.remat.recomputed import Recomputed, ValueGroup


def checkpoint_file(name: str, recomputed: Recomputed, jaxpr: Any) -> str:
    """Return a file with the function `checkpointed`, which saves what a program saves and recomputes the rest.

    The results of a source line and primitive are saved if the program recomputes and offloads none of them, and
    offloaded if it recomputes none.

    Args:
        name: The name of the program.
        recomputed: The values that it saves, offloads and recomputes.
        jaxpr: Its closed jaxpr, for the names that `checkpoint_name` gives; None if it is unknown.
    """
    again = {each.source for each in recomputed.values}
    offloaded = _sources(recomputed.offloaded, again)
    saved = _sources(recomputed.saved, again.union(offloaded))
    given = {} if jaxpr is None else dict(_names_in(jaxpr.jaxpr))
    names, on_host = ({source: given.get(source, source) for source in each} for each in (saved, offloaded))
    return file_of(
        (
            [
                *docstring(
                    f"The recomputation of {name}: {format_bytes(recomputed.saved_bytes)} less memory on a device.",
                    "     loss = checkpointed(loss)  # the function that jax.grad differentiates; of a scan, its body",
                    _HOW,
                    *_with_given_names(
                        [given[source] for source in saved if source in given],
                        [given[source] for source in offloaded if source in given],
                        len(saved) + len(offloaded),
                    ),
                    *_table("Recomputed, as predicted:", recomputed.values),
                    *_table(
                        "Offloaded to the host:", [each for each in recomputed.offloaded if each.source in on_host]
                    ),
                    *_table("Saved:", [each for each in recomputed.saved if each.source in names]),
                ),
                "",
                *CHECKPOINT_IMPORTS,
                "",
                *mapping("SAVED", ((source, Expression(string(each))) for source, each in names.items())),
                "",
                *mapping("OFFLOADED", ((source, Expression(string(each))) for source, each in on_host.items())),
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


def _sources(groups: Sequence[ValueGroup], others: Set[str]) -> list[str]:
    """Return the sources of `groups` without those of `others`, each once."""
    return list(dict.fromkeys(each.source for each in groups if each.source and each.source not in others))


def _with_given_names(saved: Sequence[str], offloaded: Sequence[str], count: int) -> Iterator[str]:
    """Yield the policy of the names that the program gives, if there are any."""
    if not saved and not offloaded:
        return
    yield f"With the names that checkpoint_name gives in the program{_part(len(saved) + len(offloaded), count)}:"
    names, on_host = (", ".join(map(string, dict.fromkeys(each))) for each in (saved, offloaded))
    policy = (
        f"save_and_offload_only_these_names(names_which_can_be_saved=[{names}], "
        f'names_which_can_be_offloaded=[{on_host}], offload_src="device", offload_dst="pinned_host")'
        if offloaded
        else f"save_only_these_names({names})"
    )
    yield f"     jax.checkpoint(loss, policy=jax.checkpoint_policies.{policy})"


def _part(number: int, count: int) -> str:
    return "" if number == count else ", which are a part of them"


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
    "SAVED and OFFLOADED have the names of results by the file, line, column and primitive that compute them. The "
    "backward pass reads these, from the memory of the device or of its host, and computes the others again. XLA for "
    "CPUs offloads nothing, and recomputes only with the options xla_disable_hlo_passes=cse_barrier_expander and "
    "xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED."
)

_CHECKPOINTED = '''\
def checkpointed(function):
    """Return `function` under `jax.checkpoint`, with the results of SAVED saved and those of OFFLOADED on the host."""
    return checkpoint(function, SAVED, OFFLOADED)
'''
