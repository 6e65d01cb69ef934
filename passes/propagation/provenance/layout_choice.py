"""The candidate layouts of a module, and their predicted costs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CandidateLayout:
    """The layout from propagating one form of a module, with the predicted costs of the partitioned program."""

    form: str
    """The form that was propagated, for example "as written"."""
    bytes_received: float
    """The bytes that a device receives on average, in all collectives of a run."""
    peak_bytes: int
    """The peak memory of a device in bytes."""


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """The selected layout and the rejected ones."""

    best: CandidateLayout
    others: tuple[CandidateLayout, ...]

    def __str__(self) -> str:
        clauses = [f"{self.best.form}: a device receives {self.best.bytes_received:,.0f} bytes"]
        clauses += [f"{layout.form} it would receive {layout.bytes_received:,.0f}" for layout in self.others]
        return "; ".join(clauses)
