"""Factors of calls of `@ApproxTopK`, whose searched dimension must be replicated, even if the result has its size."""

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr

from sdy.rule import OpShardingRule
from sdy.stablehlo.custom_call import CustomCallOp

_TARGETS = ("ApproxTopK", "PartialReduce")


def rule_of_top_k(op: CustomCallOp, rule: OpShardingRule) -> OpShardingRule:
    """Return `rule` with the searched dimension replicated if `op` is an approximate top-k."""
    if op.call_target_name.data not in _TARGETS:
        return rule
    config = op.attributes.get("mhlo.backend_config")
    dim = config.data.get("reduction_dim") if isinstance(config, DictionaryAttr) else None
    if not isinstance(dim, IntegerAttr):
        return rule
    return rule.with_replicated({*rule.operands[0][dim.value.data], *rule.results[0][dim.value.data]})
