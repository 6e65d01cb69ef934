"""Verifiable encodings of tensor types, such as `#stablehlo.bounds<3, ?>`, which is valid for `tensor<?x4xf32>`.

MLIR verifies an encoding when the tensor type is built; here the parser does.
"""

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute


class TensorEncoding(ABC):
    """An attribute that is a valid encoding of some tensors only."""

    @abstractmethod
    def verify_encoding(self, tensor: TensorType[Attribute]) -> None:
        """Raise VerifyException if this encoding is invalid for `tensor`, which is passed without an encoding."""
