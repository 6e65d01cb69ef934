"""`cse`: common subexpression elimination."""

from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination


class CsePass(CommonSubexpressionElimination):
    """Merge equal pure operations on equal operands, and remove unused ones.

    Before::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
        %1 = stablehlo.negate %arg0 : tensor<8xf32>
        %2 = stablehlo.add %0, %1 : tensor<8xf32>

    After::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
        %1 = stablehlo.add %0, %0 : tensor<8xf32>
    """
