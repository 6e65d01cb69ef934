"""A step of gradient descent as text, and its shardings after `sdy.auto`."""

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.shardings import func_arg_sharding
from sdy.passes.common.call_graph import main_function

UNEVEN_PRODUCT = """
func.func @main(%x: tensor<1x8191xf32>, %w: tensor<8191x50257xf32>) -> tensor<1xf32> {
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<1x8191xf32>, tensor<8191x50257xf32>) -> tensor<1x50257xf32>
  %e = stablehlo.exponential %logits : tensor<1x50257xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<1x50257xf32>, tensor<f32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}
"""
"""A batch of 1, and a vocabulary that no axis divides."""


def train_step(layers: int, batch: int, width: int, hidden: int) -> str:
    """Return a step of gradient descent of residual layers with two products each."""
    types = {
        "x": f"tensor<{batch}x{width}xf32>",
        "h": f"tensor<{batch}x{hidden}xf32>",
        "w": f"tensor<{width}x{hidden}xf32>",
        "u": f"tensor<{hidden}x{width}xf32>",
    }
    body: list[str] = []

    def dot(result: str, kind: str, left: str, right: str, summed: str, kinds: str) -> None:
        operands = ", ".join(types[each] for each in kinds)
        body.append(
            f"%{result} = stablehlo.dot_general %{left}, %{right}, contracting_dims = {summed} : "
            f"({operands}) -> {types[kind]}"
        )

    def each(result: str, kind: str, operation: str, *operands: str) -> None:
        body.append(f"%{result} = stablehlo.{operation} {', '.join(f'%{each}' for each in operands)} : {types[kind]}")

    for n in range(layers):
        dot(f"h{n}", "h", f"z{n}", f"w{n}", "[1] x [0]", "xw")
        each(f"t{n}", "h", "tanh", f"h{n}")
        dot(f"y{n}", "x", f"t{n}", f"u{n}", "[1] x [0]", "hu")
        each(f"z{n + 1}", "x", "add", f"z{n}", f"y{n}")
    each(f"g{layers}", "x", "subtract", f"z{layers}", "target")
    for n in reversed(range(layers)):
        dot(f"du{n}", "u", f"t{n}", f"g{n + 1}", "[0] x [0]", "hx")
        dot(f"dt{n}", "h", f"g{n + 1}", f"u{n}", "[1] x [1]", "xu")
        each(f"dh{n}", "h", "multiply", f"dt{n}", f"t{n}")
        dot(f"dw{n}", "w", f"z{n}", f"dh{n}", "[0] x [0]", "xh")
        dot(f"dx{n}", "x", f"dh{n}", f"w{n}", "[1] x [1]", "hw")
        each(f"g{n}", "x", "add", f"g{n + 1}", f"dx{n}")
        for kind in "wu":
            each(f"next_{kind}{n}", kind, "subtract", f"{kind}{n}", f"d{kind}{n}")
    state = [(f"{kind}{n}", types[kind]) for n in range(layers) for kind in "wu"]
    arguments = [*state, ("z0", types["x"]), ("target", types["x"])]
    results = ", ".join(type_ for _, type_ in state)
    return (
        f"func.func @main({', '.join(f'%{name}: {type_}' for name, type_ in arguments)}) -> ({results}) {{\n"
        + "\n".join(body)
        + f"\nreturn {', '.join(f'%next_{name}' for name, _ in state)} : {results}\n}}"
    )


def argument_dims(module: ModuleOp) -> list[list[str]]:
    """Return the axes of each dimension of each argument as text."""
    main = main_function(module)
    shardings = [func_arg_sharding(main, index) for index in range(len(main.args))]
    return [[",".join(map(str, dim.axes)) for dim in sharding.dims] if sharding else [] for sharding in shardings]
