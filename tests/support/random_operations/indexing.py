"""Gather and scatter."""

from random import Random

from random_operations.text import SIZES, array, body, family, function, random_shape, shrunk, some, tensor


class _Gathering:
    """Consistent shapes and dimension numbers of a gather or scatter."""

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
def dynamic_gather(rng: Random) -> str:
    it = _Gathering(rng)
    numbers = (
        f"offset_dims = {it.window_dims}, collapsed_slice_dims = {it.collapsed}, "
        f"operand_batching_dims = {it.input_batching}, start_indices_batching_dims = {it.indices_batching}, "
        f"start_index_map = {it.index_map}, index_vector_dim = {it.index_vector_dim}"
    )
    sizes = tensor([len(it.input)], "i64")
    return function(
        "stablehlo.dynamic_gather",
        [tensor(it.input), tensor(it.indices, "i32"), sizes],
        [tensor(it.slices)],
        f"dimension_numbers = #stablehlo.gather<{numbers}>",
        before=f"%v2 = stablehlo.constant dense<{it.slice_sizes}> : {sizes}" if rng.random() < 0.8 else "",
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
