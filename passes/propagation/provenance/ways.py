"""The ways in which a module was propagated, and what a device would receive in each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Way:
    """One way: what the module looked like when it was propagated, and what is predicted of the partitioned program."""

    form: str
    """As in "as written"."""
    bytes_received: float
    """In all collectives of a run, by a device on average."""
    peak_bytes: int
    """The memory that a device needs in all."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The way that was taken, and those that were not."""

    taken: Way
    others: tuple[Way, ...]

    def __str__(self) -> str:
        told = [f"{self.taken.form}: a device receives {self.taken.bytes_received:,.0f} bytes"]
        told += [f"{way.form} it would receive {way.bytes_received:,.0f}" for way in self.others]
        return "; ".join(told)
