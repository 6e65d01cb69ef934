"""The arithmetic operations and the memory traffic of a computation."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a computation, for predicted times.

    Example:
        `@sdy.register_op("h s d^ -> h s d^", cost=lambda shapes: sdy.Work(4 * math.prod(shapes[0]), "vector"))`

    Attributes:
        operations: The arithmetic operations; a multiply-add counts as two.
        element_type: The element type of the factors of products in MLIR's spelling, such as `bf16`; "vector" for
            operations on vector units.
        precision: The precision of products: "default", "high" or "highest".
        bytes: The bytes read and written; None for each operand and result once.
    """

    operations: float = 0.0
    element_type: str = ""
    precision: str = "default"
    bytes: float | None = None

    def times(self, factor: float) -> "Work":
        """Return the work of `factor` such computations."""
        return replace(
            self, operations=factor * self.operations, bytes=None if self.bytes is None else factor * self.bytes
        )
