"""Target of a custom call -> its sharding rule: the one place that knows which rule the calls of a target have.

The targets that JAX and XLA use have theirs from `sdy.rules.custom_call`. Others get one by an annotation: in Python
with `annotate`, from a file, or from the package of a back end, which is asked when its target is first met. Otherwise
a custom call has the rule it is given, as `sdy.sharding_rule`, or none.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sdy.diagnostics import error
from sdy.ir.shapes import shape_of
from sdy.plugins import plugin_annotation
from sdy.rule import OpShardingRule
from sdy.rules.builder import RuleBuilder
from sdy.rules.registry import NoRule, RuleFunction, RuleFunctionT, RuleMaker, build, register_maker

if TYPE_CHECKING:
    from sdy.stablehlo.custom_call import CustomCallOp

_KERNELS = "tpu_custom_call mosaic_gpu mosaic_gpu_v2 __gpu$xla.gpu.triton triton_kernel_call"

_WITHOUT_RULE = """
    sdy_testonly xla_python_cpu_callback xla_python_gpu_callback xla_ffi_python_cpu_callback
    xla_ffi_python_gpu_callback xla.debug.Log CustomSPMDPartitioning
"""

KERNELS = frozenset(_KERNELS.split())
"""The targets of all kernels that are written in Python, such as those of Pallas."""

WITHOUT_RULE = KERNELS.union(_WITHOUT_RULE.split())
"""The targets whose calls do different things, so that no rule fits them all."""


class _Signature(NamedTuple):
    """What a target's operands and results are: "tensors" of the first operand's rank, "matrices", "vectors", "scalar".

    Matrices and vectors have the batch dimensions of the first operand before their own.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]

    def __str__(self) -> str:
        return f"({', '.join(self.operands)}) -> ({', '.join(self.results)})"

    def fits(self, op: "CustomCallOp") -> bool:
        """Whether the operands and results of `op` have the ranks that this asks for."""
        rank = len(shape_of(op.operands[0])) if op.operands else 0
        ranks = {"tensors": rank, "matrices": max(rank, 2), "vectors": max(rank, 2) - 1, "scalar": 0}
        return all(
            [len(shape_of(value)) for value in values] == [ranks[name] for name in names]
            for values, names in ((op.operands, self.operands), (op.results, self.results))
        )


_targets: dict[str, RuleMaker] = {}
_own: set[str] = set()
"""The targets whose rules are functions of this package."""


def has_own_rule(target: str) -> bool:
    """Whether what is done with calls of `target` is a matter of this package alone, and not of an annotation."""
    return target in _own or target in WITHOUT_RULE


def register_target(target: str, maker: RuleMaker) -> None:
    """Make a function that returns complete rules that of the custom calls of `target`.

    Raises:
        ValueError: they have a rule already, or do different things.
    """
    if target in WITHOUT_RULE:
        raise ValueError(
            f"no rule fits all custom calls of @{target}, which do different things: annotate the function that makes "
            "one with sdy.register_op"
        )
    _maker_of(target)  # by which the package that has a rule of it is asked first
    _add(target, maker)


def _add(target: str, maker: RuleMaker) -> None:
    if target in _targets:
        raise ValueError(f"custom calls of @{target} have a sharding rule already")
    _targets[target] = maker


def register_custom_call(*targets: str, signature: str = "") -> Callable[[RuleFunctionT], RuleFunctionT]:
    """A decorator that makes a function the rule of custom calls of `targets`.

    A call that doesn't have the `signature`, such as "matrices, scalar -> tensors, vectors", is an error.

    Raises:
        ValueError: calls of one of the targets have a rule already.
    """

    def add(function: RuleFunctionT) -> RuleFunctionT:
        checked = partial(_with_signature, _signature(signature), function) if signature else function
        maker = partial(build, checked)
        is_own = function.__module__.startswith(f"{__package__}.")
        for target in targets:
            # For those no other package is asked: to read what packages name takes longer than a small program does.
            (_add if is_own else register_target)(target, maker)
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
    """The rule of the call's target."""
    target: str = op.call_target_name.data
    if target in WITHOUT_RULE:
        return None
    return (_maker_of(target) or partial(build, _unknown))(op, conservative)


def _maker_of(target: str) -> RuleMaker | None:
    """How the rule of calls of `target` is made; the package that has it, if one does, is asked first."""
    if target not in _targets:
        with plugin_annotation(target) as annotation:
            if annotation is not None:
                from sdy.rules.annotation import rule_maker  # for which few programs ask

                register_target(target, rule_maker(f"@{target}", annotation))
    return _targets.get(target)


def _unknown(op: "CustomCallOp", rule: RuleBuilder) -> None:
    raise NoRule(f"custom call @{op.call_target_name.data} is unknown to SDY sharding rule registry")


register_maker(("stablehlo.custom_call",), _custom_call, looks_around=True)
