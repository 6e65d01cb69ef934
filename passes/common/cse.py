"""`cse`: compute once what is computed twice."""

from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination


class CsePass(CommonSubexpressionElimination):
    """Keep one of operations that compute the same from the same, and remove those that nobody uses.

    Before::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
        %1 = stablehlo.negate %arg0 : tensor<8xf32>
        %2 = stablehlo.add %0, %1 : tensor<8xf32>

    After::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
        %1 = stablehlo.add %0, %0 : tensor<8xf32>
    """
