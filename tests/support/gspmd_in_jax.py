"""Programs lowered by jax for GSPMD, and their execution by XLA's GSPMD partitioner, in a separate process.

    python gspmd_in_jax.py lower FOLDER         writes each program to FOLDER/NAME.mlir
    python gspmd_in_jax.py run FOLDER           runs each FOLDER/NAME.mlir on 8 devices, and writes the results to
    NAME.npz
    python gspmd_in_jax.py through-hlo FOLDER   writes each program, lowered for Shardy and converted to HLO and back

The first two exit with 3 if jax has no GSPMD.
"""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

SHAPES = ((16, 32), (32, 64))
"""The shapes of the arguments of each program."""


@contextmanager
def lowering_for_gspmd() -> Generator[None]:
    """Let jax lower for GSPMD within a `with` block. Raises AttributeError if jax has no GSPMD."""
    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        yield
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)


def placed(*axes: Any) -> NamedSharding:
    return NamedSharding(mesh(), P(*axes))


def split(x: Any, w: Any) -> Any:
    y = jax.lax.with_sharding_constraint(x @ w, placed("b", "a"))
    return jnp.tanh(y), jax.lax.with_sharding_constraint(y * 2, placed(P.UNCONSTRAINED, ("b", "a")))


def manual(x: Any, w: Any) -> Any:
    specs: Any = {"in_specs": (P("a", "b"), P("b")), "out_specs": (P("a"), P("a", "b"))}
    return jax.shard_map(lambda x, w: (jax.lax.psum(x @ w, "b"), x + 1), mesh=mesh(), **specs)(x, w)


def twice_manual(x: Any, w: Any) -> Any:
    row = jax.shard_map(lambda x: jax.lax.psum(x, "a"), mesh=mesh(), in_specs=P("a"), out_specs=P())
    column = jax.shard_map(lambda x, y: x * y.sum(), mesh=mesh(), in_specs=(P(None, "b"), P()), out_specs=P(None, "b"))
    return column(x, row(x)), w


def partly_manual(x: Any, w: Any) -> Any:
    def body(x: Any, w: Any) -> Any:
        return jax.lax.psum(jnp.tanh(x) @ w, "b")

    specs: Any = {"in_specs": (P(None, "b"), P("b")), "out_specs": P(), "axis_names": {"b"}}
    return jax.shard_map(body, mesh=mesh(), **specs)(x, w)


def with_calls(x: Any, w: Any) -> Any:
    scaled = jax.jit(lambda x: jnp.where(x > 0, x, 2 * x) + jax.lax.psum(x, "b"))

    def body(x: Any, w: Any) -> Any:
        return scaled(x) @ w, jnp.linalg.norm(scaled(w))[None]

    specs: Any = {"in_specs": (P("a"), P(None, "b")), "out_specs": (P("a", "b"), P("b")), "check_vma": False}
    return jax.shard_map(body, mesh=mesh(), **specs)(x, w), scaled_outside(x)


def scaled_outside(x: Any) -> Any:
    return jax.jit(lambda x: jax.lax.with_sharding_constraint(jnp.where(x > 0, x, 2 * x), placed("b")))(x)


def partly_manual_with_loop(x: Any, w: Any) -> Any:
    def body(x: Any, w: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            x = jax.lax.with_sharding_constraint(jnp.tanh(x @ w @ w.T), P("a"))
            return jax.lax.psum(x, "b") / 4, jnp.cumsum(x)[0]

        return jax.lax.scan(step, x, None, length=3)

    specs: Any = {"in_specs": (P(), P(None, "b")), "out_specs": (P(), P()), "axis_names": {"b"}, "check_vma": False}
    return jax.shard_map(body, mesh=mesh(), **specs)(x, w)


def without_inputs(x: Any, w: Any) -> Any:
    index = jax.shard_map(lambda: jax.lax.axis_index("b")[None] * 1.0, mesh=mesh(), in_specs=(), out_specs=P("b"))()
    return index, x, w


def loop(x: Any, w: Any) -> Any:
    def step(x: Any, _: Any) -> Any:
        x = jax.lax.with_sharding_constraint(jnp.tanh(x @ w @ w.T), placed("a"))
        return x, x.sum()

    return jax.lax.scan(step, x, None, length=3)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "split": split,
    "manual": manual,
    "twice manual": twice_manual,
    "with calls": with_calls,
    "partly manual": partly_manual,
    "partly manual with a loop": partly_manual_with_loop,
    "without inputs": without_inputs,
    "loop": loop,
}


def lower(folder: Path) -> None:
    for name, program in PROGRAMS.items():
        types = [jax.ShapeDtypeStruct(shape, "float32") for shape in SHAPES]
        lowered = jax.jit(program, in_shardings=(placed("a"), placed(None, "b"))).lower(*types)
        (folder / f"{name}.mlir").write_text(lowered.as_text())


def through_hlo(folder: Path) -> None:
    xla = import_module("jaxlib._jax").mlir
    for name, program in PROGRAMS.items():
        types = [jax.ShapeDtypeStruct(shape, "float32") for shape in SHAPES]
        lowered = jax.jit(program, in_shardings=(placed("a"), placed(None, "b"))).lower(*types).as_text()
        hlo = xla.mlir_module_to_xla_computation(lowered, use_tuple_args=False, return_tuple=False)
        (folder / f"{name}.mlir").write_text(xla.xla_computation_to_mlir_module(hlo))


def run(folder: Path) -> None:
    untyped: Any = jax
    compiler, lib, sharding_impls = (_internal(name) for name in ("compiler", "lib", "sharding_impls"))
    devices: Any = untyped.devices()

    def shardings(protos: Any) -> list[Any]:
        read = lib.xla_client.HloSharding.from_proto
        return [sharding_impls.GSPMDSharding(devices, read(proto)) for proto in protos]

    for path in folder.glob("*.mlir"):
        options = compiler.get_compile_options(1, 8, np.arange(8).reshape(1, 8))
        options.executable_build_options.use_spmd_partitioning = True
        options.executable_build_options.use_shardy_partitioner = False
        compiled = devices[0].client.compile_and_load(path.read_text(), tuple(devices), options)
        given = zip(inputs(), shardings(compiled.get_parameter_shardings()), strict=True)
        done = compiled.execute_sharded([jax.device_put(array, sharding) for array, sharding in given])
        parts = done.disassemble_into_single_device_arrays()
        types: Any = untyped.tree.leaves(untyped.eval_shape(PROGRAMS[path.stem], *inputs()))
        whole = [
            untyped.make_array_from_single_device_arrays(type_.shape, sharding, arrays)
            for type_, sharding, arrays in zip(types, shardings(compiled.get_output_shardings()), parts, strict=True)
        ]
        np.savez(path.with_suffix(".npz"), *map(np.asarray, whole))


def _internal(name: str) -> Any:
    return import_module(f"jax._src.{name}")


def inputs() -> list[Any]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def main(command: str, folder: str) -> int:
    if command != "through-hlo":
        try:
            jax.config.update("jax_use_shardy_partitioner", False)
        except AttributeError:
            return 3
    {"lower": lower, "run": run, "through-hlo": through_hlo}[command](Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
