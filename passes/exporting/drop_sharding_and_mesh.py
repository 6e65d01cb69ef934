"""`sdy-drop-sharding-and-mesh`: remove all shardings and meshes."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sdy.dialect.attributes import SHARDING
from sdy.dialect.ops import MeshOp
from sdy.ir.walking import operations
from sdy.passes.common.argument_names import remove_from_arguments_and_results


class DropShardingAndMeshPass(ModulePass):
    """Remove every `sdy.sharding` attribute and every `sdy.mesh`.

    Before::

        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {

    After::

        func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    """

    name = "sdy-drop-sharding-and-mesh"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for operation in operations(op):
            operation.attributes.pop(SHARDING, None)
            if isinstance(operation, FuncOp):
                remove_from_arguments_and_results(operation, {SHARDING})
            if isinstance(operation, MeshOp):
                Rewriter.erase_op(operation)
