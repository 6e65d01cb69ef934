"""Operations that talk to the host or other programs, in the order that tokens give them."""

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseIntOrFPElementsAttr, StringAttr
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

from sdy.stablehlo.attributes import FALSE, ChannelHandleAttr
from sdy.stablehlo.definition import define
from sdy.stablehlo.syntax import SameOperandsAndResultType
from sdy.stablehlo.types import TokenType

EMPTY = StringAttr("")


@define
class CreateTokenOp(IRDLOperation):
    """A token that waits for nothing."""

    name = "stablehlo.create_token"
    output = result_def(TokenType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($output)"


@define
class AfterAllOp(IRDLOperation):
    """A token that waits for all the given ones."""

    name = "stablehlo.after_all"
    inputs = var_operand_def(TokenType)
    result = result_def(TokenType)
    traits = traits_def(Pure())
    assembly_format = "$inputs attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    custom_directives = (SameOperandsAndResultType,)


@define
class InfeedOp(IRDLOperation):
    """Values from the host's queue, and a token."""

    name = "stablehlo.infeed"
    token = operand_def(TokenType)
    infeed_config = opt_prop_def(StringAttr, EMPTY)
    layout = opt_prop_def(ArrayAttr)
    res = var_result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@define
class OutfeedOp(IRDLOperation):
    """Puts values into the host's queue."""

    name = "stablehlo.outfeed"
    inputs = var_operand_def()
    token = operand_def(TokenType)
    outfeed_config = opt_prop_def(StringAttr, EMPTY)
    result = result_def(TokenType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@define
class SendOp(IRDLOperation):
    """Sends values through a channel."""

    name = "stablehlo.send"
    inputs = var_operand_def()
    token = operand_def(TokenType)
    channel_handle = prop_def(ChannelHandleAttr)
    is_host_transfer = opt_prop_def(BoolAttr, FALSE)
    source_target_pairs = opt_prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TokenType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@define
class RecvOp(IRDLOperation):
    """Values received through a channel, and a token."""

    name = "stablehlo.recv"
    token = operand_def(TokenType)
    channel_handle = prop_def(ChannelHandleAttr)
    is_host_transfer = opt_prop_def(BoolAttr, FALSE)
    source_target_pairs = opt_prop_def(DenseIntOrFPElementsAttr)
    res = var_result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
