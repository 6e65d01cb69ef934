"""The registry of the sharding rules of custom calls, by target.

`sdy.rules.custom_call` registers the targets of JAX and XLA. Annotations register others: in Python with `annotate`,
from a file, or from a plugin, which is loaded when its target is first looked up. Without a registered rule, a custom
call has the rule of its `sdy.sharding_rule` attribute, or none.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sdy.diagnostics import error
from sdy.ir.shapes import shape_of
from sdy.plugins import plugin_annotation
from sdy.rule import OpShardingRule
from sdy.rules.builder import RuleBuilder
from sdy.rules.registry import (
    CompleteRuleFunction,
    NoRule,
    RuleFunction,
    RuleFunctionT,
    build,
    register_complete_rule,
)

if TYPE_CHECKING:
    from sdy.stablehlo.custom_call import CustomCallOp

_KERNELS = "tpu_custom_call mosaic_gpu mosaic_gpu_v2 __gpu$xla.gpu.triton triton_kernel_call"

_WITHOUT_RULE = """
    sdy_testonly xla_python_cpu_callback xla_python_gpu_callback xla_ffi_python_cpu_callback
    xla_ffi_python_gpu_callback xla.debug.Log CustomSPMDPartitioning
"""

KERNELS = frozenset(_KERNELS.split())
"""The targets of kernels written in Python, such as Pallas kernels."""

WITHOUT_RULE = KERNELS.union(_WITHOUT_RULE.split())
"""The targets whose calls run arbitrary computations, so that no rule fits all of them."""


class _Signature(NamedTuple):
    """The ranks of a target's operands and results: "tensors", "matrices", "vectors" or "scalar".

    "tensors" have the rank of the first operand. "matrices" and "vectors" have the batch dimensions of the first
    operand before their own.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]

    def __str__(self) -> str:
        return f"({', '.join(self.operands)}) -> ({', '.join(self.results)})"

    def fits(self, op: "CustomCallOp") -> bool:
        """Return whether the operands and results of `op` have the ranks of this signature."""
        rank = len(shape_of(op.operands[0])) if op.operands else 0
        ranks = {"tensors": rank, "matrices": max(rank, 2), "vectors": max(rank, 2) - 1, "scalar": 0}
        return all(
            [len(shape_of(value)) for value in values] == [ranks[name] for name in names]
            for values, names in ((op.operands, self.operands), (op.results, self.results))
        )


_targets: dict[str, CompleteRuleFunction] = {}
_own: set[str] = set()
"""The targets whose rules are functions of this package."""


def has_own_rule(target: str) -> bool:
    """Return whether this package defines the rule of `target`, or its absence, so that annotations cannot."""
    return target in _own or target in WITHOUT_RULE


def register_target(target: str, function: CompleteRuleFunction) -> None:
    """Register a function that returns the complete rules of the custom calls of `target`.

    Raises:
        ValueError: The target has a rule already, or its calls run arbitrary computations.
    """
    if target in WITHOUT_RULE:
        raise ValueError(
            f"no rule fits all custom calls of @{target}, which run arbitrary computations: annotate the function that "
            "makes the call with sdy.register_op"
        )
    _function_of(target)  # loads the rule of a plugin
    _add(target, function)


def _add(target: str, function: CompleteRuleFunction) -> None:
    if target in _targets:
        raise ValueError(f"custom calls of @{target} have a sharding rule already")
    _targets[target] = function


def register_custom_call(*targets: str, signature: str = "") -> Callable[[RuleFunctionT], RuleFunctionT]:
    """Decorate a function that adds the factors of the custom calls of `targets`.

    Args:
        *targets: The targets.
        signature: The ranks of operands and results, such as "matrices, scalar -> tensors, vectors"; a call with other
            ranks is an error.

    Raises:
        ValueError: A target has a rule already.
    """

    def add(function: RuleFunctionT) -> RuleFunctionT:
        checked = partial(_with_signature, _signature(signature), function) if signature else function
        complete_rule = partial(build, checked)
        is_own = function.__module__.startswith(f"{__package__}.")
        for target in targets:
            # Do not look for plugins here: to read entry points takes longer than to compile a small program.
            (_add if is_own else register_target)(target, complete_rule)
        if is_own:
            _own.update(targets)
        return function

    return add


def _signature(text: str) -> _Signature:
    operands, results = (tuple(side.split(", ")) for side in text.split(" -> "))
    return _Signature(operands, results)


def _with_signature(signature: _Signature, function: RuleFunction, op: "CustomCallOp", rule: RuleBuilder) -> None:
    if not signature.fits(op):
        raise error(op, f"expected custom call @{op.call_target_name.data} to have the signature {signature}")
    function(op, rule)


def _custom_call(op: Any, conservative: bool) -> OpShardingRule | None:
    """Return the rule of the call's target."""
    target: str = op.call_target_name.data
    if target in WITHOUT_RULE:
        return None
    return (_function_of(target) or partial(build, _unknown))(op, conservative)


def _function_of(target: str) -> CompleteRuleFunction | None:
    """Return the function that builds the rules of `target`; loads the plugin that defines it."""
    if target not in _targets:
        with plugin_annotation(target) as annotation:
            if annotation is not None:
                from sdy.rules.annotation import rule_from_annotation  # few programs need it

                register_target(target, rule_from_annotation(f"@{target}", annotation))
    return _targets.get(target)


def _unknown(op: "CustomCallOp", rule: RuleBuilder) -> None:
    raise NoRule(f"custom call @{op.call_target_name.data} is unknown to SDY sharding rule registry")


register_complete_rule(("stablehlo.custom_call",), _custom_call, looks_around=True)
