"""Random programs of one operation each, over all families of StableHLO, in shapes that are often odd.

Each family is a function that takes a random generator and returns the text of one function around the operation.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from random import Random

Shape = Sequence[int]
Family = Callable[[Random], str]

SIZES = (0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16)
FAMILIES: dict[str, Family] = {}


def programs(count: int, seed: int) -> str:
    """A module of `count` functions, taken from all families in turn."""
    rng = Random(seed)
    families = list(FAMILIES.items())
    functions: list[str] = []
    for index in range(count):
        name, family = families[index % len(families)]
        functions.append(family(rng).replace("@NAME", f"@{name}_{index}"))
    return "\n".join(functions)


def family(function: Family) -> Family:
    """Count `function` among the families."""
    FAMILIES[function.__name__] = function
    return function


def tensor(shape: Shape, element: str = "f32") -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def function(
    name: str, operands: Sequence[str], results: Sequence[str], properties: str = "", region: str = "", before: str = ""
) -> str:
    """A function around one operation in generic form, its operands `%0`, `%1`, ... being arguments.

    `before` is text in front of the operation, which may replace the operand `%N` by defining `%vN`.
    """
    arguments = ", ".join(f"%{index}: {type_}" for index, type_ in enumerate(operands))
    values = ", ".join(f"%v{index}" if f"%v{index} =" in before else f"%{index}" for index in range(len(operands)))
    properties = f" <{{{properties}}}>" if properties else ""
    region = f" ({region})" if region else ""
    return f"""
func.func @NAME({arguments}) {{
  {before}
  %r:{len(results)} = "{name}"({values}){properties}{region} : ({", ".join(operands)}) -> ({", ".join(results)})
  return
}}"""


def array(values: Iterable[int], kind: str = "i64") -> str:
    text = ", ".join(map(str, values))
    return f"array<{kind}: {text}>" if text else f"array<{kind}>"


def pairs(values: Sequence[tuple[int, int]]) -> str:
    if not values:
        return "dense<> : tensor<0x2xi64>"
    return f"dense<{[list(pair) for pair in values]}> : tensor<{len(values)}x2xi64>"


def random_shape(rng: Random, low: int = 0, high: int = 4) -> list[int]:
    return [rng.choice(SIZES) for _ in range(rng.randint(low, high))]


def some(rng: Random, items: Iterable[int]) -> list[int]:
    """A random subset in random order."""
    items = list(items)
    return rng.sample(items, rng.randint(0, len(items)))


def body(operation: str, element: str = "f32", pairs_of_arguments: int = 1) -> str:
    """A region that combines argument `i` with argument `i + pairs_of_arguments`."""
    type_ = tensor([], element)
    arguments = ", ".join(f"%a{index}: {type_}" for index in range(2 * pairs_of_arguments))
    lines = "".join(
        f'%b{i} = "stablehlo.{operation}"(%a{i}, %a{i + pairs_of_arguments}) : ({type_}, {type_}) -> {type_}\n'
        for i in range(pairs_of_arguments)
    )
    values = ", ".join(f"%b{i}" for i in range(pairs_of_arguments))
    types = ", ".join([type_] * pairs_of_arguments)
    return f'{{\n^bb0({arguments}):\n{lines}"stablehlo.return"({values}) : ({types}) -> ()\n}}'


@family
def unary(rng: Random) -> str:
    names = "abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate rsqrt sign"
    names += " round_nearest_afz round_nearest_even sine sqrt tan tanh"
    type_ = tensor(random_shape(rng))
    return function(f"stablehlo.{rng.choice(names.split())}", [type_], [type_])


@family
def binary(rng: Random) -> str:
    names = "add atan2 divide maximum minimum multiply power remainder subtract"
    type_ = tensor(random_shape(rng))
    return function(f"stablehlo.{rng.choice(names.split())}", [type_, type_], [type_])


@family
def integer(rng: Random) -> str:
    names = "and or xor shift_left shift_right_arithmetic shift_right_logical not popcnt count_leading_zeros"
    name = rng.choice(names.split())
    type_ = tensor(random_shape(rng), "i32")
    return function(f"stablehlo.{name}", [type_] * (1 if name[0] in "npc" else 2), [type_])


@family
def conversion(rng: Random) -> str:
    shape = random_shape(rng)
    name, properties, operands, result = rng.choice(
        [
            ("convert", "", ["f32"], "bf16"),
            ("is_finite", "", ["f32"], "i1"),
            ("real", "", ["complex<f32>"], "f32"),
            ("imag", "", ["complex<f32>"], "f32"),
            ("complex", "", ["f32", "f32"], "complex<f32>"),
            ("reduce_precision", "exponent_bits = 5 : i32, mantissa_bits = 10 : i32", ["f32"], "f32"),
            ("compare", "comparison_direction = #stablehlo<comparison_direction LT>", ["f32", "f32"], "i1"),
        ]
    )
    return function(
        f"stablehlo.{name}", [tensor(shape, element) for element in operands], [tensor(shape, result)], properties
    )


@family
def select(rng: Random) -> str:
    shape = random_shape(rng)
    predicate = rng.choice([shape, []])
    return function("stablehlo.select", [tensor(predicate, "i1"), tensor(shape), tensor(shape)], [tensor(shape)])


@family
def clamp(rng: Random) -> str:
    shape = random_shape(rng)
    low, high = (rng.choice([shape, []]) for _ in range(2))
    return function("stablehlo.clamp", [tensor(low), tensor(shape), tensor(high)], [tensor(shape)])


@family
def bitcast_convert(rng: Random) -> str:
    shape = random_shape(rng)
    types = rng.choice(
        [
            [tensor([*shape, 2], "ui32"), tensor(shape, "ui64")],
            [tensor([*shape, 4], "ui8"), tensor(shape, "f32")],
            [tensor(shape, "i32"), tensor(shape, "f32")],
        ]
    )
    rng.shuffle(types)
    return function("stablehlo.bitcast_convert", types[:1], types[1:])


@family
def batch_norm_inference(rng: Random) -> str:
    shape = random_shape(rng, 1)
    feature = rng.randrange(len(shape))
    return function(
        "stablehlo.batch_norm_inference",
        [tensor(shape)] + [tensor([shape[feature]])] * 4,
        [tensor(shape)],
        f"epsilon = 0.001 : f32, feature_index = {feature} : i64",
    )


@family
def broadcast_in_dim(rng: Random) -> str:
    result = random_shape(rng, 0, 5)
    dims = some(rng, range(len(result)))
    operand = [rng.choice([1, result[dim], result[dim]]) for dim in dims]
    return function(
        "stablehlo.broadcast_in_dim", [tensor(operand)], [tensor(result)], f"broadcast_dimensions = {array(dims)}"
    )


@family
def transpose(rng: Random) -> str:
    shape = random_shape(rng, 0, 5)
    permutation = rng.sample(range(len(shape)), len(shape))
    result = [shape[dim] for dim in permutation]
    return function("stablehlo.transpose", [tensor(shape)], [tensor(result)], f"permutation = {array(permutation)}")


@family
def reverse(rng: Random) -> str:
    shape = random_shape(rng)
    dims = some(rng, range(len(shape)))
    return function("stablehlo.reverse", [tensor(shape)], [tensor(shape)], f"dimensions = {array(dims)}")


@family
def reshape(rng: Random) -> str:
    """Two groupings of the same prime factors: often in the same order, and with ones between."""
    primes = [rng.choice([2, 2, 2, 3, 3, 5, 7]) for _ in range(rng.randint(0, 7))]
    if rng.random() < 0.05:
        primes.append(0)

    def group() -> list[int]:
        order = rng.sample(primes, len(primes)) if rng.random() < 0.4 else primes
        shape: list[int] = []
        while order:
            count = rng.randint(1, 3)
            shape.append(prod(order[:count]))
            order = order[count:]
        for _ in range(rng.randint(0, 2)):
            shape.insert(rng.randint(0, len(shape)), 1)
        return shape

    return function("stablehlo.reshape", [tensor(group())], [tensor(group())])


def shrunk(rng: Random, shape: Shape) -> list[int]:
    return [rng.choice([size, size, rng.randint(0, size), min(size, 1)]) for size in shape]


@family
def slice_(rng: Random) -> str:
    shape = random_shape(rng)
    result = shrunk(rng, shape)
    properties = f"start_indices = {array([0] * len(shape))}, limit_indices = {array(result)}"
    return function(
        "stablehlo.slice", [tensor(shape)], [tensor(result)], f"{properties}, strides = {array([1] * len(shape))}"
    )


@family
def pad(rng: Random) -> str:
    shape = random_shape(rng)
    low, high = ([rng.choice([0, 0, 1, 3]) for _ in shape] for _ in range(2))
    result = [sum(sizes) for sizes in zip(shape, low, high, strict=True)]
    properties = f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}"
    return function(
        "stablehlo.pad",
        [tensor(shape), tensor([])],
        [tensor(result)],
        f"{properties}, interior_padding = {array([0] * len(shape))}",
    )


@family
def dynamic_slice(rng: Random) -> str:
    shape = random_shape(rng)
    sizes = shrunk(rng, shape)
    operands = [tensor(shape)] + [tensor([], "i32")] * len(shape)
    return function("stablehlo.dynamic_slice", operands, [tensor(sizes)], f"slice_sizes = {array(sizes)}")


@family
def dynamic_update_slice(rng: Random) -> str:
    shape = random_shape(rng, 1)
    indices = [tensor([], "i32")] * len(shape)
    constants = "\n  ".join(
        f"%v{index + 2} = stablehlo.constant dense<0> : tensor<i32>"
        for index in range(len(shape) if rng.random() < 0.5 else rng.randrange(len(shape)))
    )
    return function(
        "stablehlo.dynamic_update_slice",
        [tensor(shape), tensor(shrunk(rng, shape)), *indices],
        [tensor(shape)],
        before=constants,
    )


@family
def concatenate(rng: Random) -> str:
    """Arguments and slices of them, of one tensor or of several."""
    shape = random_shape(rng, 1, 3)
    dim, count, same = rng.randrange(len(shape)), rng.randint(1, 3), rng.random() < 0.5
    ratio = rng.choice([0.0, 0.5, 1.0])
    sizes: list[list[int]] = []
    lines: list[str] = []
    for index in range(count):
        source = f"%{0 if same else index}"
        size = list(shape)
        if rng.random() < ratio:
            size[dim] = rng.randint(0, shape[dim])
            ranges = ", ".join(f"0:{limit}" for limit in size)
            lines.append(f"%v{index} = stablehlo.slice {source} [{ranges}] : ({tensor(shape)}) -> {tensor(size)}")
        sizes.append(size)
    result = list(shape)
    result[dim] = sum(size[dim] for size in sizes)
    values = ", ".join(
        f"%v{index}" if any(line.startswith(f"%v{index} ") for line in lines) else f"%{0 if same else index}"
        for index in range(count)
    )
    arguments = ", ".join(f"%{index}: {tensor(shape)}" for index in range(count))
    types = ", ".join(map(tensor, sizes))
    newline = "\n  "
    return f"""
func.func @NAME({arguments}) {{
  {newline.join(lines)}
  %r = "stablehlo.concatenate"({values}) <{{dimension = {dim} : i64}}> : ({types}) -> {tensor(result)}
  return
}}"""


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
        f"dot_dimension_numbers = #stablehlo.dot<{numbers}>",
    )


@family
def dot(rng: Random) -> str:
    lhs, rhs, contracted = random_shape(rng, 0, 1), random_shape(rng, 0, 1), rng.choice(SIZES)
    return function("stablehlo.dot", [tensor([*lhs, contracted]), tensor([contracted, *rhs])], [tensor([*lhs, *rhs])])


@family
def reduce(rng: Random) -> str:
    shape, count = random_shape(rng), rng.randint(1, 2)
    dims = sorted(some(rng, range(len(shape))))
    result = [size for dim, size in enumerate(shape) if dim not in dims]
    return function(
        "stablehlo.reduce",
        [tensor(shape)] * count + [tensor([])] * count,
        [tensor(result)] * count,
        f"dimensions = {array(dims)}",
        body("maximum", pairs_of_arguments=count),
    )


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
    strides = [rng.choice([1, 1, 2]) for _ in shape]
    padding = [(rng.choice([0, 0, 1]), rng.choice([0, 0, 2])) for _ in shape]
    result = [
        max(0, (size + sum(pad) - extent) // stride + 1)
        for size, extent, stride, pad in zip(shape, window, strides, padding, strict=True)
    ]
    optional = [f"window_strides = {array(strides)}", f"padding = {pairs(padding)}"]
    if all(stride == 1 for stride in strides):
        optional.pop(0)
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


@family
def convolution(rng: Random) -> str:
    spatial = rng.randint(0, 3)
    batch_groups, feature_groups = rng.choice([(1, 1), (1, 1), (rng.choice([2, 3]), 1), (1, rng.choice([2, 4]))])
    batch, in_features, out_features = (rng.choice([1, 2, 3, 5, 8]) for _ in range(3))
    inputs = [rng.choice([1, 2, 3, 7, 8, 16]) for _ in range(spatial)]
    kernels = [rng.choice([1, 2, 3, size]) for size in inputs]
    strides = [rng.choice([1, 2]) for _ in range(spatial)]
    padding = [(max(0, kernel - size), rng.choice([0, 1])) for size, kernel in zip(inputs, kernels, strict=True)]
    outputs = [
        (size + sum(pad) - kernel) // stride + 1
        for size, kernel, stride, pad in zip(inputs, kernels, strides, padding, strict=True)
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
        f"window_strides = {array(strides)}, padding = {pairs(padding)}",
    ]
    return function("stablehlo.convolution", [lhs, rhs], [result], ", ".join(properties))


@family
def cholesky(rng: Random) -> str:
    size = rng.choice(SIZES)
    type_ = tensor([*random_shape(rng, 0, 2), size, size])
    return function("stablehlo.cholesky", [type_], [type_], "lower = true")


@family
def triangular_solve(rng: Random) -> str:
    batch, size, other = random_shape(rng, 0, 2), rng.choice([1, 2, 5, 8]), rng.choice([1, 3, 8])
    left = rng.random() < 0.5
    b = [*batch, size, other] if left else [*batch, other, size]
    transpose = rng.choice(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
    return function(
        "stablehlo.triangular_solve",
        [tensor([*batch, size, size]), tensor(b)],
        [tensor(b)],
        f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {transpose}>",
    )


@family
def fft(rng: Random) -> str:
    batch, lengths = random_shape(rng, 0, 2), [rng.choice([1, 2, 3, 8]) for _ in range(rng.randint(1, 3))]
    real, half = [*batch, *lengths], [*batch, *lengths[:-1], lengths[-1] // 2 + 1]
    kind, operand, result = rng.choice(
        [
            ("FFT", tensor(real, "complex<f32>"), tensor(real, "complex<f32>")),
            ("IFFT", tensor(real, "complex<f32>"), tensor(real, "complex<f32>")),
            ("RFFT", tensor(real), tensor(half, "complex<f32>")),
            ("IRFFT", tensor(half, "complex<f32>"), tensor(real)),
        ]
    )
    return function(
        "stablehlo.fft", [operand], [result], f"fft_length = {array(lengths)}, fft_type = #stablehlo<fft_type {kind}>"
    )


@family
def rng_bit_generator(rng: Random) -> str:
    return function(
        "stablehlo.rng_bit_generator",
        [tensor([2], "ui64")],
        [tensor([2], "ui64"), tensor(random_shape(rng), "ui32")],
        "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>",
    )


class _Gathering:
    """Shapes and dimension numbers that fit each other, for gather and scatter."""

    def __init__(self, rng: Random) -> None:
        self.input = [rng.choice(SIZES[1:]) for _ in range(rng.randint(1, 4))]
        rank = len(self.input)
        self.input_batching = sorted(rng.sample(range(rank), rng.randint(0, min(2, rank - 1))))
        others = [dim for dim in range(rank) if dim not in self.input_batching]
        self.collapsed = sorted(some(rng, others))
        window = [dim for dim in others if dim not in self.collapsed]
        self.index_map = some(rng, others) or others[:1]
        batch = [self.input[dim] for dim in self.input_batching] + random_shape(rng, 0, 2)
        order = rng.sample(range(len(batch)), len(batch))
        batch = [batch[item] for item in order]
        self.indices_batching = [order.index(item) for item in range(len(self.input_batching))]
        self.indices = list(batch)
        self.index_vector_dim = len(batch)
        if len(self.index_map) > 1 or rng.random() < 0.5:
            self.index_vector_dim = rng.randint(0, len(batch))
            self.indices.insert(self.index_vector_dim, len(self.index_map))
        self.indices_batching = [dim + (dim >= self.index_vector_dim) for dim in self.indices_batching]
        self.window_sizes = {dim: shrunk(rng, [self.input[dim]])[0] for dim in window}
        slices_rank = len(batch) + len(window)
        self.window_dims = sorted(rng.sample(range(slices_rank), len(window)))
        batch_sizes, window_sizes = iter(batch), iter(self.window_sizes.values())
        self.slices = [
            next(window_sizes) if dim in self.window_dims else next(batch_sizes) for dim in range(slices_rank)
        ]
        self.slice_sizes = [self.window_sizes.get(dim, 1) for dim in range(rank)]


@family
def gather(rng: Random) -> str:
    it = _Gathering(rng)
    numbers = (
        f"offset_dims = {it.window_dims}, collapsed_slice_dims = {it.collapsed}, "
        f"operand_batching_dims = {it.input_batching}, start_indices_batching_dims = {it.indices_batching}, "
        f"start_index_map = {it.index_map}, index_vector_dim = {it.index_vector_dim}"
    )
    return function(
        "stablehlo.gather",
        [tensor(it.input), tensor(it.indices, "i32")],
        [tensor(it.slices)],
        f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {array(it.slice_sizes)}",
    )


@family
def scatter(rng: Random) -> str:
    it, count = _Gathering(rng), rng.randint(1, 2)
    numbers = (
        f"update_window_dims = {it.window_dims}, inserted_window_dims = {it.collapsed}, "
        f"input_batching_dims = {it.input_batching}, scatter_indices_batching_dims = {it.indices_batching}, "
        f"scatter_dims_to_operand_dims = {it.index_map}, index_vector_dim = {it.index_vector_dim}"
    )
    operation, element = rng.choice(
        [("add", "f32"), ("maximum", "f32"), ("subtract", "f32"), ("and", "i32"), ("or", "i1"), ("minimum", "i32")]
    )
    input_, update = tensor(it.input, element), tensor(it.slices, element)
    return function(
        "stablehlo.scatter",
        [input_] * count + [tensor(it.indices, "i32")] + [update] * count,
        [input_] * count,
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>",
        body(operation, element, count),
    )


GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"


@family
def all_reduce(rng: Random) -> str:
    types = [tensor(random_shape(rng))] * rng.randint(1, 2)
    return function("stablehlo.all_reduce", types, types, GROUPS, body("add"))


@family
def all_gather(rng: Random) -> str:
    shape = random_shape(rng, 1)
    dim, count = rng.randrange(len(shape)), rng.randint(1, 2)
    shape[dim] = shape[dim] or 3
    result = [2 * size if index == dim else size for index, size in enumerate(shape)]
    properties = f"all_gather_dim = {dim} : i64, {GROUPS}"
    return function("stablehlo.all_gather", [tensor(shape)] * count, [tensor(result)] * count, properties)


@family
def reduce_scatter(rng: Random) -> str:
    result = random_shape(rng, 1)
    dim = rng.randrange(len(result))
    result[dim] = result[dim] or 3
    shape = [2 * size if index == dim else size for index, size in enumerate(result)]
    properties = f"scatter_dimension = {dim} : i64, {GROUPS}"
    return function("stablehlo.reduce_scatter", [tensor(shape)], [tensor(result)], properties, body("add"))


@family
def all_to_all(rng: Random) -> str:
    shape = random_shape(rng, 1)
    split, concatenated = (rng.randrange(len(shape)) for _ in range(2))
    shape[split] = 2 * (shape[split] or 3)
    result = list(shape)
    result[split] //= 2
    result[concatenated] *= 2
    properties = f"split_dimension = {split} : i64, concat_dimension = {concatenated} : i64, split_count = 2 : i64"
    count = rng.randint(1, 2)
    types = [tensor(shape)] * count, [tensor(result)] * count
    return function("stablehlo.all_to_all", *types, f"{properties}, {GROUPS}")


@family
def collective(rng: Random) -> str:
    type_ = tensor(random_shape(rng))
    name, properties = rng.choice(
        [
            ("collective_broadcast", GROUPS),
            ("collective_permute", "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"),
        ]
    )
    return function(f"stablehlo.{name}", [type_], [type_], properties)


@family
def without_rule(rng: Random) -> str:
    shape = [rng.choice([1, 2, 3]) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        return function("stablehlo.iota", [], [tensor(shape)], "iota_dimension = 0 : i64")
    return function("stablehlo.optimization_barrier", [tensor(shape)], [tensor(shape)])


@family
def custom_call(rng: Random) -> str:
    batch, rows, columns = random_shape(rng, 0, 2), rng.choice([1, 4, 7]), rng.choice([1, 4, 8])
    matrices, square = tensor([*batch, rows, columns]), tensor([*batch, rows, rows])
    smaller = tensor([*batch, rows, min(columns, 3)])
    vectors = tensor([*batch, min(rows, columns)])
    target, operands, results = rng.choice(
        [
            ("MoveToHost", [matrices], [matrices]),
            ("LayoutConstraint", [matrices], [matrices]),
            ("_SPMDInternalOp_RotateRight", [matrices], [matrices]),
            ("_SPMDInternalOp_MultiSlice", [matrices], [matrices, matrices]),
            ("mhlo.erf", [matrices], [matrices]),
            ("X64Combine", [matrices, matrices], [matrices]),
            ("tpu_custom_call", [matrices], [matrices]),
            ("nobody_knows_this", [matrices], [matrices]),
            ("Eigh", [square], [square, tensor([*batch, rows])]),
            ("Qr", [matrices], [matrices, vectors]),
            ("QrDecompositionBlock", [matrices], [matrices, vectors]),
            ("ProductOfElementaryHouseholderReflectors", [matrices, vectors], [matrices]),
            ("mhlo.topk", [matrices], [smaller, smaller]),
            ("ApproxTopK", [matrices, matrices, tensor([]), tensor([])], [smaller, smaller]),
            ("PartialReduce", [matrices, matrices, tensor([]), tensor([])], [smaller, smaller]),
        ]
    )
    return function("stablehlo.custom_call", operands, results, f'call_target_name = "{target}"')


@family
def random_state_of_halves(rng: Random) -> str:
    return f"""
func.func @NAME(%0: tensor<2xui32>, %1: tensor<2xui32>) {{
  %2 = stablehlo.custom_call @X64Combine(%0, %1) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui64>
  %3, %4 = stablehlo.rng_bit_generator %2, algorithm = DEFAULT
    : (tensor<2xui64>) -> (tensor<2xui64>, {tensor(random_shape(rng), "ui32")})
  return
}}"""
