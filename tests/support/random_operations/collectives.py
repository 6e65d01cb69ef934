"""Collectives across replicas."""

from random import Random

from random_operations.text import body, family, function, random_shape, tensor

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
