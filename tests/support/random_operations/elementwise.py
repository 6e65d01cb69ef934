"""Elementwise operations, and some without a sharding rule."""

from random import Random

from random_operations.text import family, function, random_shape, tensor


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
def batch_norm_training(rng: Random) -> str:
    shape = random_shape(rng, 1)
    feature = rng.randrange(len(shape))
    features = tensor([shape[feature]])
    return function(
        "stablehlo.batch_norm_training",
        [tensor(shape), features, features],
        [tensor(shape), features, features],
        f"epsilon = 0.001 : f32, feature_index = {feature} : i64",
    )


@family
def batch_norm_grad(rng: Random) -> str:
    shape = random_shape(rng, 1)
    feature = rng.randrange(len(shape))
    features = tensor([shape[feature]])
    return function(
        "stablehlo.batch_norm_grad",
        [tensor(shape), *[features] * 3, tensor(shape)],
        [tensor(shape), features, features],
        f"epsilon = 0.001 : f32, feature_index = {feature} : i64",
    )


@family
def without_rule(rng: Random) -> str:
    shape = [rng.choice([1, 2, 3]) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        return function("stablehlo.iota", [], [tensor(shape)], "iota_dimension = 0 : i64")
    return function("stablehlo.optimization_barrier", [tensor(shape)], [tensor(shape)])
