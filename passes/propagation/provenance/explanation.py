"""Explanations of a value's sharding, as printable values."""

from dataclasses import dataclass, replace

from sdy.axes import AxisRef
from sdy.diagnostics import Location
from sdy.dialect.sharding_syntax import sharding_text
from sdy.formatting import escape_line
from sdy.passes.propagation.provenance.history import LayoutChoice
from sdy.sharding import TensorSharding


@dataclass(frozen=True, slots=True)
class Hop:
    """A step that moved an axis from one tensor to another."""

    target: str
    """The tensor that got the axis: its name in the module, or a description if it has none."""
    source: str
    """The tensor that the axis came from."""
    operation: str
    """The name of the operation between the two."""
    factor: str
    """The letter of the factor that both tensors share in the operation's sharding rule."""
    factor_size: int
    where: Location | None
    """The source location of the operation."""

    @property
    def edge(self) -> str:
        """The tensors between which the axis was propagated, as `target <- source`."""
        return f"{self.target} <- {self.source}"

    @property
    def through(self) -> str:
        """The operation and the factor through which the axis was propagated, as text."""
        return f"{self.operation}, factor {self.factor}={self.factor_size}"


@dataclass(frozen=True, slots=True)
class Origin:
    """The user's sharding from which an axis comes, and its source location."""

    text: str
    where: Location | None


@dataclass(frozen=True, slots=True)
class Chain:
    """The trace of one axis or sub-axis to a dimension of a value, the last step first."""

    dimension: int
    axis: AxisRef
    hops: tuple[Hop, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Missed:
    """An axis that propagation could have moved to a dimension of a value, and the first conflict that stopped it."""

    dimension: int
    axis: AxisRef
    hop: Hop
    """The step that would have moved the axis."""
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The sharding of a value and the trace of each of its axes; if it has no axes, the axes that did not arrive."""

    value: str
    sharding: TensorSharding | None
    chains: tuple[Chain, ...]
    missed: tuple[Missed, ...] = ()
    choice: LayoutChoice | None = None
    """The layout that was selected for the module, if there were several candidates."""
    description: str = ""
    """JAX's name of an argument, or the operation that computes a tensor of a source line; empty otherwise."""
    others: tuple["Explanation", ...] = ()
    """The explanations of the other tensors of a source line."""

    def __str__(self) -> str:
        sharding = "no sharding" if self.sharding is None else f"the sharding {sharding_text(self.sharding)}"
        description = f" ({escape_line(self.description)})" if self.description else ""
        parts = [f"{escape_line(self.value)}{description} has {sharding}"]
        if not self.chains:
            parts.append(
                "  no axis shards it" + ("" if self.missed else ", and none shards a neighbor along a factor of it")
            )
        for missed in self.missed:
            parts.append(f"\n  dimension {missed.dimension}, missing axis {missed.axis}")
            parts.append(_line(f"{missed.hop.edge}  {missed.hop.through}", missed.hop.where))
            parts.append(f"    {escape_line(missed.reason)}")
        width = max((len(escape_line(hop.edge)) for chain in self.chains for hop in chain.hops), default=0)
        for chain in self.chains:
            parts.append(f"\n  dimension {chain.dimension}, axis {chain.axis}")
            parts += [_line(f"{escape_line(hop.edge):{width}}  {hop.through}", hop.where) for hop in chain.hops]
            parts.append(_line(chain.origin.text, chain.origin.where))
        parts += [f"\n{replace(other, choice=None)}" for other in self.others]
        if self.choice:
            parts.append(f"\n  propagated {self.choice}")
        return "\n".join(parts)

    __repr__ = __str__


def _line(text: str, where: Location | None) -> str:
    return "    " + escape_line(text if where is None else f"{text}  ({where})")
