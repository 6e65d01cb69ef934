"""Encodings of tensor types that say which tensors they are for, as `#stablehlo.bounds<3, ?>` is for `tensor<?x4xf32>`.

MLIR asks an encoding when a tensor type with it is made. Here it is asked where the text of one is read.
"""

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute


class TensorEncoding(ABC):
    """An attribute that is not the encoding of any tensor."""

    @abstractmethod
    def verify_encoding(self, tensor: TensorType[Attribute]) -> None:
        """Raise VerifyException if it is not for tensors like `tensor`, which has no encoding."""
