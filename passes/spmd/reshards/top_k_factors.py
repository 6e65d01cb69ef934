"""The factors of a call of `@ApproxTopK`: the searched dimension is needed whole, even where all of it is kept."""

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr

from sdy.rule import OpShardingRule
from sdy.stablehlo.custom_call import CustomCallOp

_TARGETS = ("ApproxTopK", "PartialReduce")


def rule_of_top_k(op: CustomCallOp, rule: OpShardingRule) -> OpShardingRule:
    """Return `rule` with the searched dimension whole, if `op` is an approximate search."""
    if op.call_target_name.data not in _TARGETS:
        return rule
    config = op.attributes.get("mhlo.backend_config")
    dim = config.data.get("reduction_dim") if isinstance(config, DictionaryAttr) else None
    if not isinstance(dim, IntegerAttr):
        return rule
    return rule.with_replicated({*rule.operands[0][dim.value.data], *rule.results[0][dim.value.data]})
