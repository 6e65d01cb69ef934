"""Operations of CHLO."""

from random import Random

from random_operations.text import Shape, array, family, function, random_shape, tensor

FLOATS = ("f32", "f64", "bf16", "f8E5M2")
INTEGERS = ("i32", "ui8")
COMPLEX = ("complex<f32>", "complex<f64>")


@family
def special_function(rng: Random) -> str:
    real = "digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma"
    inexact = "acos acosh asin asinh atan atanh bessel_i1e conj cosh sinh square tan"
    name = rng.choice((real + " " + inexact).split())
    element = rng.choice(FLOATS if name in real.split() else FLOATS + COMPLEX)
    shape = random_shape(rng)
    return function(f"chlo.{name}", [tensor(shape, element)], [tensor(shape, "i1" if name[:3] == "is_" else element)])


@family
def special_function_of_two(rng: Random) -> str:
    name = rng.choice(["next_after", "polygamma", "zeta", "mulhi"])
    type_ = tensor(random_shape(rng), rng.choice(INTEGERS if name == "mulhi" else FLOATS))
    return function(f"chlo.{name}", [type_, type_], [type_])


@family
def broadcast_binary(rng: Random) -> str:
    numeric = "add atan2 divide maximum minimum multiply next_after polygamma power remainder shift_left subtract"
    name = rng.choice((numeric + " and or xor complex compare zeta").split())
    kinds = {"and": ("i1", "i32"), "or": ("i1", "i32"), "xor": ("i1", "i32"), "complex": ("f32", "f64"), "zeta": FLOATS}
    element = rng.choice(kinds.get(name, FLOATS + INTEGERS))
    result = {"complex": f"complex<{element}>", "compare": "i1"}.get(name, element)
    shape = random_shape(rng)
    properties = ["comparison_direction = #chlo<comparison_direction LT>"] if name == "compare" else []
    operands = [_broadcastable(rng, shape), shape]
    if rng.random() < 0.3:
        dims = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
        properties.append(f"broadcast_dimensions = {array(dims)}")
        operands[0] = [rng.choice([shape[dim], 1]) for dim in dims]
    rng.shuffle(operands)
    types = [tensor(operand, element) for operand in operands]
    return function(f"chlo.broadcast_{name}", types, [tensor(shape, result)], ", ".join(properties))


@family
def broadcast_select(rng: Random) -> str:
    shape, element = random_shape(rng), rng.choice(FLOATS + INTEGERS)
    shapes = [shape, _broadcastable(rng, shape), _broadcastable(rng, shape)]
    rng.shuffle(shapes)
    types = [tensor(operand, kind) for operand, kind in zip(shapes, ("i1", element, element), strict=True)]
    return function("chlo.broadcast_select", types, [tensor(shape, element)])


@family
def constant_like(rng: Random) -> str:
    shape, (value, element) = random_shape(rng), rng.choice([("1.0", "f32"), ("1", "i32")])
    return function("chlo.constant_like", [tensor(shape)], [tensor(shape, element)], f"value = {value} : {element}")


@family
def top_k(rng: Random) -> str:
    shape = random_shape(rng, 1)
    k = rng.randint(0, shape[-1])
    result = [*shape[:-1], k]
    return function("chlo.top_k", [tensor(shape)], [tensor(result), tensor(result, "i32")], f"k = {k} : i64")


@family
def ragged_dot(rng: Random) -> str:
    """Draw one of the three ragged modes, with or without a batching dimension."""
    m, k, n, groups = (rng.choice([1, 2, 3, 4]) for _ in range(4))
    batch = [2] * rng.randint(0, 1)
    count = len(batch)
    group_sizes = rng.choice([[groups], [*batch, groups]])
    match rng.choice(["own", "contracting", "batching"] if batch else ["own", "contracting"]):
        case "own":
            rhs, result, ragged, group = [groups, *batch, k, n], [*batch, m, n], count, [0]
        case "contracting":
            rhs, result, ragged, group = [*batch, k, n], [groups, *batch, m, n], count + 1, []
        case _:
            rhs, result, ragged, group, group_sizes = [*batch, k, n], [*batch, m, n], 0, [], [groups]
    numbers = {
        "lhs_batching_dimensions": list(range(count)),
        "rhs_batching_dimensions": [dim + len(group) for dim in range(count)],
        "lhs_contracting_dimensions": [count + 1],
        "rhs_contracting_dimensions": [count + len(group)],
        "lhs_ragged_dimensions": [ragged],
        "rhs_group_dimensions": group,
    }
    written = ", ".join(f"{name} = {dims}" for name, dims in numbers.items())
    return function(
        "chlo.ragged_dot",
        [tensor([*batch, m, k]), tensor(rhs), tensor(group_sizes, "i32")],
        [tensor(result)],
        f"ragged_dot_dimension_numbers = #chlo.ragged_dot<{written}>",
    )


def _broadcastable(rng: Random, shape: Shape) -> list[int]:
    """Return a shape that broadcasts with this one by numpy's rules."""
    sizes = [rng.choice([size, size, 1]) for size in shape]
    return sizes[rng.randint(0, len(sizes)) :] if rng.random() < 0.4 else sizes
