"""Custom calls, and the targets and arguments of those of LAPACK routines that JAX emits on CPU."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import (
    I32,
    ArrayAttr,
    BoolAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    TupleType,
    i32,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import op_error
from sdy.stablehlo.attributes.operation_attributes import FALSE, OutputOperandAliasAttr
from sdy.stablehlo.checks.custom_call_checks import verify_aliases, verify_buffers, verify_layouts
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.tensor_types import CUSTOM_CALL_VALUE

API_VERSIONS = (
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)
"""The names of the API versions, by number."""

APPROXIMATE_TOP_K = "ApproxTopK"
"""The target of the calls of `jax.lax.approx_max_k` and `approx_min_k`."""

ORIGINAL_API = IntegerAttr(1, i32)
TYPED_FFI = 4


class CustomCallEffects(MemoryEffect):
    """Memory effects of custom calls: reads and writes if `has_side_effect` is true."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """Return the effects of a custom call."""
        assert isinstance(op, CustomCallOp)
        if op.has_side_effect.value.data:
            return {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}
        return set()


@irdl_custom_directive
class SymbolName(CustomDirective):
    """`@target`, kept as a string."""

    target: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the symbol name."""
        self.target.set(state, parser.parse_symbol_name())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the symbol name."""
        target = self.target.get(op)
        assert isinstance(target, StringAttr)
        state.print_whitespace(printer)
        printer.print_symbol_name(target.data)


@define
class CustomCallOp(IRDLOperation):
    """A call of a target that is registered with the backend."""

    name = "stablehlo.custom_call"
    inputs = var_operand_def(CUSTOM_CALL_VALUE)
    call_target_name = prop_def(StringAttr)
    has_side_effect = opt_prop_def(BoolAttr, FALSE)
    backend_config = opt_prop_def(StringAttr | BytesAttr | DictionaryAttr)
    api_version = opt_prop_def(IntegerAttr[I32], ORIGINAL_API)
    called_computations = opt_prop_def(ArrayAttr, ArrayAttr(()))
    operand_layouts = opt_prop_def(ArrayAttr[DenseIntOrFPElementsAttr])
    result_layouts = opt_prop_def(ArrayAttr[DenseIntOrFPElementsAttr])
    output_operand_aliases = opt_prop_def(ArrayAttr[OutputOperandAliasAttr], ArrayAttr(()))
    result_tilings = opt_prop_def(ArrayAttr)
    res = var_result_def(CUSTOM_CALL_VALUE)
    traits = traits_def(CustomCallEffects())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "custom<SymbolName>($call_target_name) `(` $inputs `)` attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (SymbolName,)

    def verify_(self) -> None:
        """Verify the layouts, aliases, backend configuration and buffers."""
        if not 0 <= self.api_version.value.data < len(API_VERSIONS):
            raise VerifyException("attribute 'api_version' failed to satisfy constraint: Custom call API version")
        self._verify_layouts()
        aliases = [alias.data for alias in self.output_operand_aliases]
        verify_aliases(aliases, self.operand_types, self.result_types)
        self._verify_backend_config()
        verify_buffers(self.call_target_name.data, aliases, self.operand_types, self.result_types)

    def _verify_layouts(self) -> None:
        if self.operand_layouts is None and self.result_layouts is None:
            return
        if self.operand_layouts is None or self.result_layouts is None:
            raise VerifyException("Layout attributes should be specified for either both operands and results or none.")
        verify_layouts("operand", self.operand_types, self.operand_layouts)
        results: Sequence[Attribute] = self.result_types
        if len(results) == 1 and isinstance(results[0], TupleType):
            results = results[0].types.data
        verify_layouts("result", results, self.result_layouts)

    def _verify_backend_config(self) -> None:
        if self.backend_config is None:
            return
        version = self.api_version.value.data
        if isinstance(self.backend_config, DictionaryAttr) != (version == TYPED_FFI):
            kind = "dictionary" if version == TYPED_FFI else "string"
            raise VerifyException(f"backend_config for api_version {API_VERSIONS[version]} must be a {kind} attribute.")


TRIANGULAR_SOLVES = tuple(f"lapack_{kind}trsm_ffi" for kind in "sdcz")
"""The targets equivalent to `stablehlo.triangular_solve`; the letter after `lapack_` is that of the element type."""


def letter(op: CustomCallOp, name: str) -> str:
    """Return a character argument of the routine, which the backend_config holds as its code.

    Raises:
        DiagnosticError: If the call has no such argument.
    """
    config = op.attributes.get("mhlo.backend_config", op.backend_config)
    value = config.data.get(name) if isinstance(config, DictionaryAttr) else None
    if not isinstance(value, IntegerAttr):
        raise op_error(op, f"has no '{name}' in its backend_config")
    return chr(value.value.data)


def is_on_left(op: CustomCallOp) -> bool:
    """Return whether the matrix of a triangular solve is on the left-hand side."""
    return letter(op, "side") == "L"
