"""The report's table of the collectives of a program as XLA partitions it under `jax.jit`, beside those of sdy."""

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from sdy.formatting import escape_line, format_bytes
from sdy.passes.account.cost_tables import UNDER
from sdy.passes.account.report.numbering import Json, Numbers
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.passes.spmd.costs.footprint import peak_bytes

if TYPE_CHECKING:
    from sdy.passes.account.account import Compiled


def under_as_json(under: "Compiled", local: ModuleOp, numbers: Numbers) -> Json:
    """Serialize the costs of a program as XLA partitions it; `local` is its program of one device by sdy."""
    by_sdy = f"{format_bytes(bytes_received(local))} and {format_bytes(peak_bytes(local))} by sdy"
    memory = "unknown" if under.memory is None else format_bytes(under.memory)
    received = format_bytes(under.bytes_received)
    return {
        "summary": f"Under {UNDER}, each device receives {received} and needs {memory} of memory ({by_sdy}).",
        "collectives": [
            (each.collective, each.times, each.bytes, numbers.place(each.where), escape_line(str(each.where or "")))
            for each in under.received
        ],
    }
