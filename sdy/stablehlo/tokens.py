"""Infeed, outfeed, send and recv, and the tokens that order them."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import quoted
from sdy.ir.constraints import I64_ELEMENTS
from sdy.stablehlo.attributes.operation_attributes import FALSE, ChannelHandleAttr
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import SameOperandsAndResultType
from sdy.stablehlo.types.special import TOKEN
from sdy.stablehlo.types.tensor_types import STATIC_TENSOR_OR_TOKEN, TENSOR_BY_AXIS, TOKEN_TYPE

EMPTY = StringAttr("")

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""Types of channels."""


def verify_channel_type(channel: ChannelHandleAttr, is_host_transfer: BoolAttr, host: int, host_name: str) -> None:
    """Raise VerifyException unless the channel's type is device to device, or `host` for a host transfer."""
    if is_host_transfer.value.data:
        if channel.data.type != host:
            raise VerifyException(f"channel_type should be {host_name} when is_host_transfer is true")
    elif channel.data.type != DEVICE_TO_DEVICE:
        raise VerifyException("channel_type should be DEVICE_TO_DEVICE when is_host_transfer is false")


def verify_tensors_and_token(types: Sequence[Attribute], tensors: str) -> None:
    """Raise VerifyException unless the types are tensors followed by a token; `tensors` names them in the message."""
    if not types:
        raise VerifyException("result is expected to be at least of size 1, but got 0")
    *values, last = types
    for type_ in values:
        if not isinstance(type_, TensorType):
            raise VerifyException(f"{tensors} expected to be of tensor type, but got {quoted([type_])}")
    if last != TOKEN:
        raise VerifyException(f"last element of result types is expected to be of token type, but got {quoted([last])}")


class TokenOp(InferredResults):
    """Base of operations that return a token."""

    def infer_types(self) -> Sequence[Attribute]:
        """Return the token type."""
        return [TOKEN]


@define
class CreateTokenOp(TokenOp):
    """A new token without dependencies."""

    name = "stablehlo.create_token"
    output = result_def(TOKEN_TYPE)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($output)"


@define
class AfterAllOp(TokenOp):
    """A token that depends on all its inputs."""

    name = "stablehlo.after_all"
    inputs = var_operand_def(TOKEN_TYPE)
    result = result_def(TOKEN_TYPE)
    traits = traits_def(Pure())
    assembly_format = "$inputs attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    custom_directives = (SameOperandsAndResultType,)


@define
class InfeedOp(IRDLOperation):
    """Read values from the infeed."""

    name = "stablehlo.infeed"
    token = operand_def(TOKEN_TYPE)
    infeed_config = prop_def(StringAttr, EMPTY)
    layout = opt_prop_def(ArrayAttr[Attribute])
    res = var_result_def(STATIC_TENSOR_OR_TOKEN)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        """Verify that the results are tensors and a token, and that there is one layout of integers per tensor."""
        with message_only(self):
            verify_tensors_and_token(
                self.result_types,
                "all elements of result types, except the last element, are",
            )
            if self.layout is not None:
                _verify_layouts(self.layout, len(self.results) - 1)


def _verify_layouts(layouts: ArrayAttr[Attribute], count: int) -> None:
    if len(layouts) != count:
        raise VerifyException(
            f"layout-attribute size must be {count} (which is the number of op-results - 1 (for token result)), "
            f"but got {len(layouts)}"
        )
    for layout in layouts:
        if not isinstance(layout, ArrayAttr):
            raise VerifyException(f"layout-attribute expected to have elements of type array, but got {layout}")
        for number in cast(ArrayAttr[Attribute], layout):
            if not isinstance(number, IntegerAttr):
                raise VerifyException(
                    f"layout-attribute's leaf elements are expected to be of type integer, but got {number}"
                )


@define
class OutfeedOp(TokenOp):
    """Write values to the outfeed."""

    name = "stablehlo.outfeed"
    inputs = var_operand_def(TENSOR_BY_AXIS)
    token = operand_def(TOKEN_TYPE)
    outfeed_config = prop_def(StringAttr, EMPTY)
    result = result_def(TOKEN_TYPE)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@define
class SendOp(TokenOp):
    """Send values through a channel."""

    name = "stablehlo.send"
    inputs = var_operand_def(TENSOR_BY_AXIS)
    token = operand_def(TOKEN_TYPE)
    channel_handle = prop_def(ChannelHandleAttr)
    is_host_transfer = opt_prop_def(BoolAttr, FALSE)
    source_target_pairs = opt_prop_def(I64_ELEMENTS)
    result = result_def(TOKEN_TYPE)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def infer_types(self) -> Sequence[Attribute]:
        """Return a token. Raises VerifyException if the channel has the wrong type."""
        verify_channel_type(self.channel_handle, self.is_host_transfer, DEVICE_TO_HOST, "DEVICE_TO_HOST")
        return super().infer_types()


@define
class RecvOp(IRDLOperation):
    """Receive values through a channel."""

    name = "stablehlo.recv"
    token = operand_def(TOKEN_TYPE)
    channel_handle = prop_def(ChannelHandleAttr)
    is_host_transfer = opt_prop_def(BoolAttr, FALSE)
    source_target_pairs = opt_prop_def(I64_ELEMENTS)
    res = var_result_def(STATIC_TENSOR_OR_TOKEN)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        """Verify the channel's type, and that the results are tensors and a token."""
        with message_only(self):
            verify_channel_type(self.channel_handle, self.is_host_transfer, HOST_TO_DEVICE, "HOST_TO_DEVICE")
            verify_tensors_and_token(
                self.result_types,
                "everything but the last element of result types is",
            )
