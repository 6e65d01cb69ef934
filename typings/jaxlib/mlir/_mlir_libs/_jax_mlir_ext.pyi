from collections.abc import Sequence

from jaxlib.mlir.ir import Operation, Value

def inlined_func_call(callee: Operation, args: Sequence[Value]) -> list[Value]: ...
