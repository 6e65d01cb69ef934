"""Dot products, reductions and windows."""

from dataclasses import dataclass
from random import Random

from random_operations.text import SIZES, Shape, array, body, family, function, pairs, random_shape, some, tensor


def precision(rng: Random) -> list[str]:
    """Return a random precision of both operands as a property, or ""."""
    if rng.random() < 0.7:
        return []
    words = (rng.choice(["DEFAULT", "HIGH", "HIGHEST"]) for _ in range(2))
    return [f"precision_config = [{', '.join(f'#stablehlo<precision {word}>' for word in words)}]"]


@family
def dot_general(rng: Random) -> str:
    batch, contracted = random_shape(rng, 0, 2), random_shape(rng, 0, 2)
    sides: list[tuple[list[int], list[int], list[int], list[int]]] = []
    for _ in range(2):
        sizes = [*batch, *contracted, *random_shape(rng, 0, 2)]
        order = rng.sample(range(len(sizes)), len(sizes))
        batching = [order.index(item) for item in range(len(batch))]
        contracting = [order.index(len(batch) + item) for item in range(len(contracted))]
        free = [dim for dim in range(len(sizes)) if dim not in batching + contracting]
        shape = [sizes[item] for item in order]
        sides.append((shape, batching, contracting, [shape[dim] for dim in free]))
    (lhs, lhs_batch, lhs_contract, lhs_free), (rhs, rhs_batch, rhs_contract, rhs_free) = sides
    numbers = (
        f"lhs_batching_dimensions = {lhs_batch}, rhs_batching_dimensions = {rhs_batch}, "
        f"lhs_contracting_dimensions = {lhs_contract}, rhs_contracting_dimensions = {rhs_contract}"
    )
    return function(
        "stablehlo.dot_general",
        [tensor(lhs), tensor(rhs)],
        [tensor([*batch, *lhs_free, *rhs_free])],
        ", ".join([f"dot_dimension_numbers = #stablehlo.dot<{numbers}>", *precision(rng)]),
    )


@family
def dot(rng: Random) -> str:
    lhs, rhs, contracted = random_shape(rng, 0, 1), random_shape(rng, 0, 1), rng.choice(SIZES)
    operands = [tensor([*lhs, contracted]), tensor([contracted, *rhs])]
    return function("stablehlo.dot", operands, [tensor([*lhs, *rhs])], ", ".join(precision(rng)))


@family
def dot_by_algorithm(rng: Random) -> str:
    operand, total, steps = rng.choice(
        [
            ("f16", "f32", 1),
            ("bf16", "bf16", 1),
            ("bf16", "f32", rng.choice([1, 3, 6, 9])),
            ("tf32", "f32", rng.choice([1, 3])),
            ("f64", "f64", 1),
            ("f8E5M2", "f32", 1),
        ]
    )
    algorithm = (
        f"lhs_precision_type = {operand}, rhs_precision_type = {operand}, accumulation_type = {total}, "
        f"lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {steps}, "
        "allow_imprecise_accumulation = false"
    )
    numbers = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"
    return function(
        "stablehlo.dot_general",
        [tensor([4, 8]), tensor([8, 3])],
        [tensor([4, 3])],
        f"algorithm = #stablehlo.dot_algorithm<{algorithm}>, dot_dimension_numbers = #stablehlo.dot<{numbers}>",
    )


@family
def reduce(rng: Random) -> str:
    shape, count = random_shape(rng), rng.randint(1, 2)
    dims = some(rng, range(len(shape)))
    result = [size for dim, size in enumerate(shape) if dim not in dims]
    element, wider = rng.choice([("f32", "f32"), ("f32", "f32"), ("bf16", "f32"), ("i8", "i32")])
    return function(
        "stablehlo.reduce",
        [tensor(shape, element)] * count + [tensor([], element)] * count,
        [tensor(result, wider)] * count,
        f"dimensions = {array(dims)}",
        body("maximum", wider, pairs_of_arguments=count),
    )


@family
def map_(rng: Random) -> str:
    shape = random_shape(rng)
    properties = f"dimensions = {array(range(len(shape)))}"
    return function("stablehlo.map", [tensor(shape)] * 2, [tensor(shape)], properties, body("multiply"))


@family
def sort(rng: Random) -> str:
    shape, count = random_shape(rng, 1), rng.randint(1, 2)
    arguments = ", ".join(f"%a{index}: tensor<f32>" for index in range(2 * count))
    region = f"""{{
^bb0({arguments}):
  %b = stablehlo.compare LT, %a0, %a1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  "stablehlo.return"(%b) : (tensor<i1>) -> ()
}}"""
    properties = f"dimension = {rng.randrange(len(shape))} : i64, is_stable = true"
    return function("stablehlo.sort", [tensor(shape)] * count, [tensor(shape)] * count, properties, region)


@family
def reduce_window(rng: Random) -> str:
    shape, count = random_shape(rng, 1), rng.randint(1, 2)
    window = [rng.choice([1, 1, 2, 3]) for _ in shape]
    padding = [(rng.choice([0, 0, 1]), rng.choice([0, 0, 2])) for _ in shape]
    strides, base_dilations, window_dilations = ([rng.choice([1, 1, 2]) for _ in shape] for _ in range(3))
    sizes = [max(0, (size - 1) * dilation + 1) for size, dilation in zip(shape, base_dilations, strict=True)]
    extents = [(extent - 1) * dilation + 1 for extent, dilation in zip(window, window_dilations, strict=True)]
    result = [
        max(0, (size + sum(pad) - extent) // stride + 1)
        for size, extent, stride, pad in zip(sizes, extents, strides, padding, strict=True)
    ]
    factors = {"window_strides": strides, "base_dilations": base_dilations, "window_dilations": window_dilations}
    optional = [f"{name} = {array(values)}" for name, values in factors.items() if set(values) != {1}]
    optional.append(f"padding = {pairs(padding)}")
    return function(
        "stablehlo.reduce_window",
        [tensor(shape)] * count + [tensor([])] * count,
        [tensor(result)] * count,
        ", ".join([f"window_dimensions = {array(window)}", *optional]),
        body("add", pairs_of_arguments=count),
    )


@family
def select_and_scatter(rng: Random) -> str:
    shape = [rng.choice([1, 2, 3, 4, 5, 8]) for _ in range(rng.randint(1, 4))]
    window = [rng.choice([1, 1, min(2, size)]) for size in shape]
    strides = [rng.choice([1, 1, 2]) for _ in shape]
    padding = [(0, rng.choice([0, 0, 1])) for _ in shape]
    source = [
        (size + sum(pad) - extent) // stride + 1
        for size, extent, stride, pad in zip(shape, window, strides, padding, strict=True)
    ]
    select_region = """{
^bb0(%s0: tensor<f32>, %s1: tensor<f32>):
  %s2 = stablehlo.compare GE, %s0, %s1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  "stablehlo.return"(%s2) : (tensor<i1>) -> ()
}"""
    return function(
        "stablehlo.select_and_scatter",
        [tensor(shape), tensor(source), tensor([])],
        [tensor(shape)],
        f"window_dimensions = {array(window)}, window_strides = {array(strides)}, padding = {pairs(padding)}",
        f"{select_region}, {body('add')}",
    )


@dataclass
class Convolved:
    """A random convolution of `lhs` and `rhs`; `properties` excludes its padding."""

    lhs: str
    rhs: str
    result: str
    properties: list[str]
    padding: list[tuple[int, int]]


def convolved(rng: Random) -> Convolved:
    spatial = rng.randint(0, 3)
    batch_groups, feature_groups = rng.choice([(1, 1), (1, 1), (rng.choice([2, 3]), 1), (1, rng.choice([2, 4]))])
    batch, in_features, out_features = (rng.choice([1, 2, 3, 5, 8]) for _ in range(3))
    inputs = [rng.choice([1, 2, 3, 7, 8, 16]) for _ in range(spatial)]
    kernels = [rng.choice([1, 2, 3, size]) for size in inputs]
    strides = [rng.choice([1, 2]) for _ in range(spatial)]
    dilations = [[rng.choice([1, 1, 2, 3]) for _ in range(spatial)] for _ in range(2)]
    extents = [
        [0 if size == 0 else (size - 1) * dilation + 1 for size, dilation in zip(sizes, by, strict=True)]
        for sizes, by in zip((inputs, kernels), dilations, strict=True)
    ]
    padding = [(max(0, kernel - size), rng.choice([0, 1])) for size, kernel in zip(*extents, strict=True)]
    outputs = [
        (size + sum(pad) - kernel) // stride + 1
        for size, kernel, stride, pad in zip(*extents, strides, padding, strict=True)
    ]

    def laid_out(sizes: dict[str, int]) -> tuple[str, str]:
        names = rng.sample(list(sizes), len(sizes))
        return tensor([sizes[name] for name in names]), f"[{', '.join(names)}]"

    def numbered(sizes: Shape) -> dict[str, int]:
        return {str(index): size for index, size in enumerate(sizes)}

    groups = batch_groups * feature_groups
    lhs, lhs_names = laid_out({"b": batch * batch_groups, "f": in_features * feature_groups} | numbered(inputs))
    rhs, rhs_names = laid_out({"i": in_features, "o": out_features * groups} | numbered(kernels))
    result, result_names = laid_out({"b": batch, "f": out_features * groups} | numbered(outputs))
    properties = [
        f"dimension_numbers = #stablehlo.conv<{lhs_names}x{rhs_names}->{result_names}>",
        f"batch_group_count = {batch_groups} : i64, feature_group_count = {feature_groups} : i64",
        f"window_strides = {array(strides)}",
        *precision(rng),
    ]
    for name, factors in zip(("lhs_dilation", "rhs_dilation"), dilations, strict=True):
        if any(factor != 1 for factor in factors):
            properties.append(f"{name} = {array(factors)}")
    if rng.random() < 0.2:
        properties.append(f"window_reversal = {array([rng.choice(['true', 'false']) for _ in inputs], 'i1')}")
    return Convolved(lhs, rhs, result, properties, padding)


@family
def convolution(rng: Random) -> str:
    made = convolved(rng)
    properties = [*made.properties, f"padding = {pairs(made.padding)}"]
    return function("stablehlo.convolution", [made.lhs, made.rhs], [made.result], ", ".join(properties))


@family
def dynamic_conv(rng: Random) -> str:
    made = convolved(rng)
    padding = f"tensor<{len(made.padding)}x2xi64>"
    constant = f"%v2 = stablehlo.constant {pairs(made.padding)}" if rng.random() < 0.5 else ""
    return function(
        "stablehlo.dynamic_conv", [made.lhs, made.rhs, padding], [made.result], ", ".join(made.properties), "", constant
    )
