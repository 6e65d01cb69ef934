"""Specs of `jax.shard_map` that gather, and small collectives."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import DATA, EIGHT, Mistake, constrained, descend
from lint_programs.planted import Written, tensor


def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v)


def mapped(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.shard_map(attend, in_specs=P("data"), out_specs=P("data"))(q, k, v)  # mistake


def gathered_rows(w: jax.Array) -> jax.Array:
    return lax.all_gather(w, "data", axis=0, tiled=True)


def cast_of_gathered_rows(w: jax.Array, x: jax.Array) -> jax.Array:
    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        w = gathered_rows(w)  # mistake
        return x @ w.astype(jnp.bfloat16)

    return jax.shard_map(local, in_specs=P("data"), out_specs=P("data"))(w, x)


def mean_of_sums(w: jax.Array, x: jax.Array) -> jax.Array:
    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        h = lax.psum(jnp.tanh(x @ w), "data") / 8  # mistake
        return jnp.mean(h, 0)

    return jax.shard_map(local, in_specs=(P(), P("data")), out_specs=P())(w, x)


def mapped_in_scan(ws: jax.Array, x: jax.Array) -> jax.Array:
    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        y = jax.shard_map(lambda x: jnp.flip(x, 0), in_specs=P("data"), out_specs=P("data"))(x * w)  # mistake
        return y, None

    return lax.scan(layer, x, ws)[0]


def mapped_whole(ws: jax.Array, x: jax.Array) -> jax.Array:
    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        y = jax.shard_map(jnp.dot, in_specs=(P(), P()), out_specs=P())(x, w)  # mistake
        return jnp.tanh(y), None

    return lax.scan(layer, x, ws)[0]


def mapped_with_gather(x: jax.Array, w: jax.Array) -> jax.Array:
    def local(x: jax.Array) -> jax.Array:
        return lax.all_gather(jnp.tanh(x), "data", tiled=True)

    y = jax.shard_map(local, in_specs=P("data"), out_specs=P(), check_vma=False)(x)  # mistake
    return constrained(y, P("data")) @ w + y[0]


def mapped_with_gather_and_norm(x: jax.Array, w: jax.Array) -> jax.Array:
    def local(x: jax.Array) -> jax.Array:
        y = lax.all_gather(jnp.tanh(x), "data", tiled=True)  # mistake
        return y / jnp.linalg.norm(y, axis=1, keepdims=True)

    return jax.shard_map(local, in_specs=P("data"), out_specs=P(), check_vma=False)(x) @ w


def searched(queries: jax.Array, rows: jax.Array) -> jax.Array:
    """Return the largest products of each query with sharded rows, a few queries after the other."""

    def local(queries: jax.Array, rows: jax.Array) -> jax.Array:
        offset = lax.axis_index("model") * rows.shape[0]

        def part(queries: jax.Array) -> tuple[jax.Array, jax.Array]:
            score, index = lax.top_k(queries @ rows.T, 8)
            return score, index + offset

        score, _ = lax.map(part, queries.reshape(8, -1, queries.shape[1]))
        return lax.top_k(lax.all_gather(score.reshape(-1, 8), "model", axis=1, tiled=True), 8)[0]

    specs = (P(), P("model"))
    found = jax.shard_map(local, in_specs=specs, out_specs=P(), check_vma=False)(jnp.tanh(queries), rows)  # mistake
    return constrained(found, P("data"))


def summed_twice(w: jax.Array, x: jax.Array) -> jax.Array:
    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        def microbatch(total: jax.Array, part: jax.Array) -> tuple[jax.Array, None]:
            gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(part @ w) ** 2))(w)
            return total + lax.psum(gradient, "data"), None  # mistake

        total, _ = lax.scan(microbatch, jnp.zeros_like(w), x.reshape(4, -1, x.shape[1]))
        return lax.psum(total, "data")

    return jax.shard_map(local, in_specs=(P(), P("data")), out_specs=P(), check_vma=False)(w, x)


def many_gathers(scales: list[jax.Array], x: jax.Array) -> jax.Array:
    for scale in scales:
        x = jnp.tanh(x * scale)  # mistake
    return x


def attend_in_parts(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.softmax(q @ k.swapaxes(-1, -2)) @ v

    split = P("data", "model")
    return jax.shard_map(local, in_specs=(split, P("data"), P("data")), out_specs=split)(q, k, v)  # mistake


def gathered_loss(w: jax.Array, x: jax.Array) -> jax.Array:
    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ lax.all_gather(w, "data", tiled=True).astype("bfloat16"))  # mistake

    y = jax.shard_map(local, in_specs=P("data"), out_specs=P("data"))(w, x)
    return jnp.mean(y.astype("float32") ** 2)


def gathered_pair_loss(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Gather weights of two shapes in one line, and cast both afterwards."""

    def gathered(w: jax.Array) -> jax.Array:
        return lax.all_gather(w, "data", tiled=True).astype("bfloat16")  # mistake

    def local(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        whole = jax.tree.map(gathered, params)
        return jnp.tanh(x @ whole["up"]) @ whole["down"]

    y = jax.shard_map(local, in_specs=P("data"), out_specs=P("data"))(params, x)
    return jnp.mean(y.astype("float32") ** 2)


def exchanged_loss(w: jax.Array, x: jax.Array) -> jax.Array:
    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        x = lax.all_to_all(jnp.tanh(x.astype("float32")), "data", 0, 1, tiled=True).astype("bfloat16")  # mistake
        return jnp.einsum("ecd,edf->ecf", x, w)

    y = jax.shard_map(local, in_specs=(P("data"), P(None, "data")), out_specs=P("data"))(w, x)
    return jnp.mean(y.astype("float32") ** 2)


def halo_by_level(x: jax.Array) -> jax.Array:
    """Return the differences of rows, with a row of each neighbor that is exchanged level by level."""

    def local(x: jax.Array) -> jax.Array:
        north, south = ([(index, (index + step) % 8) for index in range(8)] for step in (1, -1))
        first = [lax.ppermute(level[-1:], "data", north) for level in x]  # mistake
        last = [lax.ppermute(level[:1], "data", south) for level in x]
        padded = jnp.concatenate([jnp.stack(first), x, jnp.stack(last)], 1)
        return padded[:, 2:] - padded[:, :-2]

    return jax.shard_map(local, in_specs=P(None, "data"), out_specs=P(None, "data"))(x)


def halo_of_species(x: jax.Array) -> jax.Array:
    """Return the states of 12 species after 64 steps, each with a row of its neighbor that is exchanged on its own."""

    def local(x: jax.Array) -> jax.Array:
        ring = [(index, (index + 1) % 8) for index in range(8)]

        def step(x: jax.Array, _: None) -> tuple[jax.Array, None]:
            first = [lax.ppermute(each[-1:], "data", ring) for each in x]  # mistake
            return x - 0.1 * jnp.concatenate([jnp.stack(first), x[:, :-1]], 1), None

        return lax.scan(step, x, None, length=64)[0]

    return jax.shard_map(local, in_specs=P(None, "data"), out_specs=P(None, "data"))(x)


def centers_one_by_one(points: jax.Array, labels: jax.Array) -> jax.Array:
    def local(points: jax.Array, labels: jax.Array) -> jax.Array:
        def center(label: jax.Array) -> jax.Array:
            own = (labels == label).astype("float32")
            total, count = lax.psum((own @ points, own.sum()), "data")  # mistake
            return total / jnp.maximum(count, 1)

        return lax.map(center, jnp.arange(512))

    return jax.shard_map(local, in_specs=P("data"), out_specs=P())(points, labels)


def best_of_all(queries: jax.Array, keys: jax.Array) -> jax.Array:
    def local(queries: jax.Array, keys: jax.Array) -> jax.Array:
        scores = lax.all_gather(queries @ keys.T, "data", axis=1, tiled=True)  # mistake
        return lax.top_k(scores, 100)[0]

    specs = (P(), P("data"))
    return jax.shard_map(local, in_specs=specs, out_specs=P(), check_vma=False)(queries, keys)


def largest_of_all(queries: jax.Array, keys: jax.Array) -> jax.Array:
    def local(queries: jax.Array, keys: jax.Array) -> jax.Array:
        scores = lax.all_gather(queries @ keys.T, "data", axis=1, tiled=True)  # mistake
        return jnp.max(scores * 0.5, axis=1)

    specs = (P(), P("data"))
    return jax.shard_map(local, in_specs=specs, out_specs=P(), check_vma=False)(queries, keys)


def rays_on_one_axis(w: jax.Array, x: jax.Array) -> jax.Array:
    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        return lax.psum(jnp.mean(jnp.tanh(x @ w) ** 2), "model")

    return jax.shard_map(local, in_specs=(P(), P("model")), out_specs=P())(w, x)  # mistake


def pipelined(ws: jax.Array, xs: jax.Array) -> jax.Array:
    """Return the outputs of a pipeline, which are summed over the stages in each tick."""

    def local(ws: jax.Array, xs: jax.Array) -> jax.Array:
        stage, count, ring = lax.axis_index("model"), len(xs), [(index, (index + 1) % 4) for index in range(4)]

        def tick(carry: tuple[jax.Array, jax.Array], at: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
            x, outs = carry
            h = jnp.tanh(jnp.where(stage == 0, xs[at % count], x) @ ws[0])
            outs = lax.dynamic_update_index_in_dim(outs, h, jnp.maximum(at - 3, 0), 0)
            outs = lax.psum(outs * (stage == 3), "model")  # mistake
            return (lax.ppermute(h, "model", ring), outs), None

        return lax.scan(tick, (jnp.zeros_like(xs[0]), jnp.zeros_like(xs)), jnp.arange(count + 3))[0][1]

    specs = (P("model"), P(None, "data"))
    return jax.shard_map(local, in_specs=specs, out_specs=P(None, "data"), check_vma=False)(ws, xs)


def last_stage_loss(ws: jax.Array, xs: jax.Array, *, masked: bool = True) -> jax.Array:
    def local(ws: jax.Array, xs: jax.Array) -> jax.Array:
        outs, is_last = jnp.tanh(xs @ ws[0]), lax.axis_index("model") == 3
        outs = lax.psum(jnp.where(is_last, outs, 0) if masked else outs * is_last, "model")  # mistake
        return lax.psum(jnp.mean(outs**2), "data")

    specs = (P("model"), P(None, "data"))
    return jax.shard_map(local, in_specs=specs, out_specs=P(), check_vma=False)(ws, xs)


def pipelined_loss(ws: jax.Array, xs: jax.Array) -> jax.Array:
    return jnp.mean(pipelined(ws, xs) ** 2)


STAGES = (tensor(4, 2048, 2048, split=P("model")), tensor(8, 256, 2048, split=P(None, "data")))

MISTAKES: dict[str, Mistake] = {
    "a cast of rows that a helper gathers": Mistake(
        "late-cast",
        Written(
            cast_of_gathered_rows,
            (tensor(4096, 4096, split=P("data")), tensor(8192, 4096, split=P("data"), dtype="bfloat16")),
            mesh=EIGHT,
        ),
        at=cast_of_gathered_rows,
    ),
    "a sum over devices before a mean": Mistake(
        "sum-before-reduction",
        Written(mean_of_sums, (tensor(1024, 4096), tensor(65536, 1024, split=P("data"))), mesh=EIGHT),
        at=mean_of_sums,
        has_cure=False,
    ),
    "outputs of a pipeline that are summed in each tick": Mistake(
        "collective-in-loop",
        Written(pipelined, STAGES, mesh={"data": 2, "model": 4}),
        at=pipelined,
        has_cure=False,
    ),
    "outputs of a pipeline that are summed in each tick, with gradients": Mistake(
        "collective-in-loop",
        Written(descend(pipelined_loss), STAGES, mesh={"data": 2, "model": 4}),
        at=pipelined,
        has_cure=False,
    ),
    "outputs of the last stage that are summed before a loss": Mistake(
        "sum-before-reduction",
        Written(last_stage_loss, STAGES, mesh={"data": 2, "model": 4}),
        at=last_stage_loss,
        has_cure=False,
    ),
    "outputs of the last stage times a mask that are summed before a loss": Mistake(
        "sum-before-reduction",
        Written(partial(last_stage_loss, masked=False), STAGES, mesh={"data": 2, "model": 4}),
        at=last_stage_loss,
        has_cure=False,
    ),
    "a cast of weights after their all_gather": Mistake(
        "late-cast",
        Written(
            descend(gathered_loss),
            (tensor(2048, 8192, split=P("data")), tensor(8192, 2048, split=P("data"), dtype="bfloat16")),
            mesh=EIGHT,
        ),
        at=gathered_loss,
    ),
    "a cast of weights of two shapes after their all_gather": Mistake(
        "late-cast",
        Written(
            descend(gathered_pair_loss),
            (
                {"up": tensor(1024, 8192, split=P("data")), "down": tensor(8192, 1024, split=P("data"))},
                tensor(8192, 1024, split=P("data"), dtype="bfloat16"),
            ),
            mesh=EIGHT,
        ),
        at=gathered_pair_loss,
    ),
    "a cast of tokens after their all_to_all": Mistake(
        "late-cast",
        Written(
            descend(exchanged_loss),
            (
                tensor(16, 1024, 512, split=P("data"), dtype="bfloat16"),
                tensor(16, 4096, 1024, split=P(None, "data"), dtype="bfloat16"),
            ),
            mesh=EIGHT,
        ),
        at=exchanged_loss,
    ),
    "halos exchanged level by level": Mistake(
        "many-small-collectives",
        Written(halo_by_level, (tensor(64, 1024, 1024, split=P(None, "data")),), mesh=EIGHT),
        has_cure=False,
    ),
    "halos exchanged species by species in each step": Mistake(
        "many-small-collectives",
        Written(halo_of_species, (tensor(12, 1024, 256, split=P(None, "data")),), mesh=EIGHT),
        has_cure=False,
    ),
    "clusters summed one by one": Mistake(
        "many-small-collectives",
        Written(
            centers_one_by_one,
            (tensor(65536, 64, split=P("data")), tensor(65536, split=P("data"), dtype="int32")),
            mesh=EIGHT,
        ),
        has_cure=False,
    ),
    "scores gathered before the best are kept": Mistake(
        "gather-before-reduction",
        Written(best_of_all, (tensor(256, 128), tensor(65536, 128, split=P("data"))), mesh=EIGHT),
        at=best_of_all,
        has_cure=False,
    ),
    "scores gathered before the largest is taken": Mistake(
        "gather-before-reduction",
        Written(largest_of_all, (tensor(256, 128), tensor(65536, 128, split=P("data"))), mesh=EIGHT),
        at=largest_of_all,
        has_cure=False,
    ),
    "shard_map that leaves out an axis of the mesh": Mistake(
        "manual-computation-repeats",
        Written(rays_on_one_axis, (tensor(256, 8192), tensor(8192, 256, split=P("model")))),
        has_cure=False,
    ),
    "shard_map with all keys, whose scores are large": Mistake(
        "manual-computation-gathers",
        Written(attend_in_parts, (tensor(16, 8192, 256, split=P("data", "model")),) * 3),
        has_cure=False,
    ),
    "shard_map without the axis of the queries": Mistake(
        "manual-computation-repeats",
        Written(searched, (tensor(4096, 128, split=P("data")), tensor(65536, 128, split=P("model")))),
        has_cure=False,
    ),
    "microbatches whose gradients are summed twice": Mistake(
        "sum-of-equal-values",
        Written(summed_twice, (tensor(1024, 1024), DATA), mesh=EIGHT),
        at=summed_twice,
    ),
    "shard_map without the axis of the heads": Mistake(
        "manual-computation-repeats", Written(mapped, (tensor(16, 1024, 8, 64, split=P("data", None, "model")),) * 3)
    ),
    "shard_map in a scan": Mistake(
        "manual-computation-gathers",
        Written(
            mapped_in_scan, (tensor(8, 1024, split=P(None, "model")), tensor(8192, 1024, split=P("data", "model")))
        ),
        at=mapped_in_scan,
    ),
    "shard_map without any axis, in a scan": Mistake(
        "manual-computation-repeats",
        Written(mapped_whole, (tensor(8, 1024, 1024), tensor(8192, 1024, split=P("data"))), mesh=EIGHT),
        at=mapped_whole,
    ),
    "shard_map whose result is gathered": Mistake(
        "manual-computation-returns-whole", Written(mapped_with_gather, (DATA, tensor(1024, 1024)), mesh=EIGHT)
    ),
    "shard_map whose result is computed from gathered rows": Mistake(
        "manual-computation-returns-whole",
        Written(mapped_with_gather_and_norm, (DATA, tensor(1024, 1024)), results=P("data"), mesh=EIGHT),
    ),
    "hundreds of sharded scales": Mistake(
        "many-small-collectives",
        Written(many_gathers, ([tensor(1024, split=P("data"))] * 160, DATA), mesh=EIGHT),
    ),
}
