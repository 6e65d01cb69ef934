from jaxlib.mlir.ir import Attribute, OpView, Value

class ShardingConstraintOp(OpView):
    def __init__(self, input: Value, sharding: Attribute) -> None: ...
