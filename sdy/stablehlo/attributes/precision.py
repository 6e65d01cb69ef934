"""The precision configuration of products, one entry per operand: `precision = [DEFAULT, HIGH]`."""

from functools import lru_cache
from typing import TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.enums import Precision, PrecisionAttr

PrecisionConfig: TypeAlias = ArrayAttr[PrecisionAttr]

MAX_ENTRIES = 2


def precision_text(config: Attribute) -> str:
    """Return the text `precision = [DEFAULT, HIGH]`."""
    return f"precision = [{', '.join(precision.data.value for precision in cast(PrecisionConfig, config))}]"


def parse_precision(parser: Parser) -> PrecisionConfig:
    """Parse `precision = [DEFAULT, HIGH]`."""
    parser.parse_keyword("precision")
    parser.parse_punctuation("=")
    return _config(
        *parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: PrecisionAttr.parse_parameter(parser))
    )


@lru_cache
def _config(*precisions: Precision) -> PrecisionConfig:
    return ArrayAttr(map(PrecisionAttr, precisions))


def verify_precision(config: ArrayAttr[Attribute] | None) -> None:
    """Raise VerifyException if there are more than two entries."""
    if config is not None and len(config) > MAX_ENTRIES:
        raise VerifyException(
            f"expects precision config to be empty or have <= {MAX_ENTRIES} elements, got {len(config)}"
        )


def is_default(config: PrecisionConfig | None) -> bool:
    """Return whether all operands have the default precision."""
    return config is None or all(precision.data is Precision.DEFAULT for precision in config)
