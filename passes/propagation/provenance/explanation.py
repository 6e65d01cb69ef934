"""Why a value has the sharding it has, as a value that reads well."""

from dataclasses import dataclass

from sdy.axes import AxisRef
from sdy.diagnostics import Location
from sdy.dialect.sharding_syntax import sharding_text
from sdy.passes.propagation.provenance.ways import Choice
from sdy.sharding import TensorSharding
from sdy.shown_text import shown


@dataclass(frozen=True, slots=True)
class Hop:
    """A step that brought an axis from one tensor to another."""

    target: str
    """The tensor that got the axis, by its name in the module, or in words where it has none."""
    source: str
    """The tensor that it came from."""
    operation: str
    """The name of the operation between the two."""
    factor: str
    """The letter that the operation's sharding rule has for the factor that both share."""
    factor_size: int
    where: Location | None
    """The place of the operation in the source."""

    @property
    def way(self) -> str:
        """The two tensors."""
        return f"{self.target} <- {self.source}"

    @property
    def through(self) -> str:
        """The operation and the factor."""
        return f"{self.operation}, factor {self.factor}={self.factor_size}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an axis was to begin with."""

    text: str
    where: Location | None


@dataclass(frozen=True, slots=True)
class Chain:
    """The way of one axis, or of a part of one, to a dimension of a value; the last step first."""

    dimension: int
    axis: AxisRef
    hops: tuple[Hop, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Missed:
    """An axis that a dimension of a value could have, but has not, and the first thing that kept it from there."""

    dimension: int
    axis: AxisRef
    hop: Hop
    """The step that would have brought it."""
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The sharding of a value and the way of each axis to it; where there are none, the axes that did not come."""

    value: str
    sharding: TensorSharding | None
    chains: tuple[Chain, ...]
    missed: tuple[Missed, ...] = ()
    choice: Choice | None = None
    """The way in which the module was propagated, where there were several."""

    def __str__(self) -> str:
        sharding = "no sharding" if self.sharding is None else f"the sharding {sharding_text(self.sharding)}"
        parts = [f"{shown(self.value)} has {sharding}"]
        if not self.chains:
            parts.append(
                "  no axis splits it" + ("" if self.missed else ", and none splits a neighbour along a factor of it")
            )
        for missed in self.missed:
            parts.append(f"\n  dimension {missed.dimension}, why not axis {missed.axis}")
            parts.append(_line(f"{missed.hop.way}  {missed.hop.through}", missed.hop.where))
            parts.append(f"    {shown(missed.reason)}")
        ways = max((len(shown(hop.way)) for chain in self.chains for hop in chain.hops), default=0)
        for chain in self.chains:
            parts.append(f"\n  dimension {chain.dimension}, axis {chain.axis}")
            parts += [_line(f"{shown(hop.way):{ways}}  {hop.through}", hop.where) for hop in chain.hops]
            parts.append(_line(chain.origin.text, chain.origin.where))
        if self.choice:
            parts.append(f"\n  propagated {self.choice}")
        return "\n".join(parts)


def _line(text: str, where: Location | None) -> str:
    return "    " + shown(text if where is None else f"{text}  ({where})")
