"""Programs that use several meshes for the same devices, or a mesh without axes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from oracle import oracle
from sdy.common_mesh import CommonMesh
from sdy.diagnostics import capture
from sdy.passes.driver import run_passes
from sdy.passes.importing.unify_meshes import UnifyMeshesPass
from sdy.passes.jax.bindings.to_bindings import module_to_bindings
from sdy.passes.jax.hlo_collectives import collectives, total
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.type_helpers import Function

DEVICES = np.array(jax.devices())
GRID = Mesh(DEVICES.reshape(4, 2), ("x", "y"))
LINE = Mesh(DEVICES, ("a",))
OTHER = Mesh(DEVICES.reshape(2, 4), ("p", "q"))
U = np.linspace(-1, 1, 512, dtype=np.float32).reshape(16, 32)
V = np.linspace(-2, 1, 512, dtype=np.float32).reshape(32, 16)


def on(mesh: Any, *axes: Any) -> NamedSharding:
    return NamedSharding(mesh, P(*axes))


def constrained(x: jax.Array, mesh: Any, *axes: Any) -> jax.Array:
    return jax.lax.with_sharding_constraint(x, on(mesh, *axes))


@pytest.mark.parametrize(
    ("meshes", "common"),
    [
        (({"x": 4, "y": 2}, {"a": 8}), {"x": 4, "y": 2}),
        (({"a": 8}, {"x": 4, "y": 2}), {"x": 4, "y": 2}),
        (({"x": 4, "y": 2}, {"p": 2, "q": 4}), {"x:(1)2": 2, "x:(2)2": 2, "y": 2}),
        (({"x": 2, "y": 3}, {"a": 6}), {"x": 2, "y": 3}),
        (({"x": 2, "y": 3}, {"a": 3, "b": 2}), {"x": 2, "y": 3}),
        (({"x": 12}, {"a": 2, "b": 6}, {"c": 4, "d": 3}), {"x:(1)2": 2, "x:(2)2": 2, "x:(4)3": 3}),
    ],
)
def test_the_common_mesh_is_cut_where_any_of_them_is(meshes: tuple[dict[str, int], ...], common: dict[str, int]):
    assert CommonMesh.of([sdy.Mesh.of(mesh) for mesh in meshes]).mesh == sdy.Mesh.of(common)


def test_a_mesh_that_is_turned_has_the_same_axes_in_another_order():
    grid, turned = sdy.Mesh.of({"x": 4, "y": 2}), sdy.Mesh.of({"s": 2, "t": 4}, [0, 2, 4, 6, 1, 3, 5, 7])
    common = CommonMesh.of([grid, turned])
    assert common.mesh == grid
    assert common.sharding(sdy.Sharding.of("t", ("s",)), turned, "mesh") == sdy.Sharding.of("x", "y")
    assert turned in common


def test_common_mesh_of_one_sharding_but_not_of_the_other():
    first, second = sdy.Mesh.of({"x": 2, "y": 3}), sdy.Mesh.of({"a": 3, "b": 2})
    common = CommonMesh.of([first, second])
    assert second not in common
    assert common.sharding(sdy.Sharding.of(("a", "b"), None), second, "mesh") == sdy.Sharding.of(("x", "y"), None)
    assert common.sharding(sdy.Sharding.of("a", None), second, "mesh") is None


def chain(u: jax.Array, v: jax.Array) -> jax.Array:
    hidden = constrained(jnp.tanh(u @ v), LINE, "a", None)
    return constrained(hidden * 2, OTHER, "p", "q") + 1


def inner(x: jax.Array) -> jax.Array:
    return jax.jit(jnp.sin, in_shardings=on(OTHER, "q", "p"), out_shardings=on(LINE, None, "a"))(x)


def nested(u: jax.Array, v: jax.Array) -> jax.Array:
    return inner(u @ v) + 1


def mapped(u: jax.Array, v: jax.Array) -> jax.Array:
    rows = jax.shard_map(lambda x: jax.lax.psum(x, "p"), mesh=OTHER, in_specs=P("p", "q"), out_specs=P(None, "q"))
    return rows(u)[:, :16] @ constrained(v, GRID, None, "x")[:16]


PROGRAMS = {"constraints": chain, "a nested jit": nested, "shard_map": mapped}


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_several_meshes_in_one_program_compute_what_jax_does(function: Function[Any]):
    u, v = jax.device_put(U, on(GRID, "x", "y")), jax.device_put(V, on(LINE, "a"))
    with capture() as told:
        given = sdy.jit(function)(u, v)
    np.testing.assert_allclose(given, jax.jit(function)(u, v), rtol=1e-5, atol=1e-5)
    assert [each.message for each in told] == []


@pytest.mark.parametrize(("function", "wanted"), [(chain, on(OTHER, "p", "q")), (nested, on(LINE, None, "a"))])
def test_results_lie_on_a_mesh_that_the_person_named(function: Function[Any], wanted: NamedSharding):
    u, v = jax.device_put(U, on(GRID, "x", "y")), jax.device_put(V, on(LINE, "a"))
    assert sdy.jit(function)(u, v).sharding == wanted


def test_results_lie_on_axes_of_the_names_that_the_person_gave():
    """XLA accepts these; quotes, backslashes and letters outside of ASCII are errors, or end the process."""
    mesh = Mesh(DEVICES.reshape(4, 2), ("100 %", "%41 !#$&()*+,-./:;<=>?@[]^_`{|}~"))
    x = jax.device_put(U, on(mesh, *mesh.axis_names))
    assert sdy.jit(jnp.tanh)(x).sharding == jax.jit(jnp.tanh)(x).sharding == x.sharding


def test_a_change_of_mesh_sends_no_more_than_the_layouts_differ_by():
    """Rows sharded over x, y become rows over a, an equal sharding, and then rows over p and columns over q."""

    def change(u: jax.Array) -> jax.Array:
        return constrained(constrained(u, LINE, "a", None) * 2, OTHER, "p", "q")

    u = jax.device_put(U, on(GRID, ("x", "y")))
    traffic = collectives(sdy.jit(change).lower(u).compile().as_text())
    assert set(traffic) == {"all-to-all"}
    assert total(traffic).bytes <= U.nbytes // 8


def reshard(one: str, given: str, other: str, wanted: str, shape: str) -> str:
    """Return a program that doubles a tensor sharded on one mesh and reshards it to another mesh."""
    tensor = f"tensor<{shape}xf32>"
    return f"""
      sdy.mesh @one = <{one}>
      sdy.mesh @other = <{other}>
      func.func @main(%0: {tensor} {{sdy.sharding = #sdy.sharding<@one, {given}>}}) -> {tensor} {{
        %1 = stablehlo.add %0, %0 : {tensor}
        %2 = sdy.sharding_constraint %1 <@other, {wanted}> : {tensor}
        %3 = stablehlo.add %2, %2 : {tensor}
        return %3 : {tensor}
      }}"""


TURNED = '["s"=2, "t"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]'


@pytest.mark.parametrize("propagated", [False, True], ids=["partitioned alone", "propagated"])
@pytest.mark.parametrize(
    ("one", "given", "other", "wanted"),
    [
        ('["x"=4, "y"=2]', '[{"x"}, {"y"}]', '["a"=8]', '[{}, {"a"}]'),
        ('["x"=4, "y"=2]', '[{"x"}, {"y"}]', TURNED, '[{"t"}, {"s"}]'),
        ('["a"=8]', '[{"a":(1)4}, {"a":(4)2}]', '["p"=2, "q"=4]', '[{"q"}, {"p"}]'),
    ],
    ids=["coarser", "turned", "sub-axes"],
)
def test_a_module_with_several_meshes_runs_without_a_warning(
    one: str, given: str, other: str, wanted: str, propagated: bool
):
    module = sdy.parse(reshard(one, given, other, wanted, "8x8"))
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    with capture() as told:
        if propagated:
            sdy.propagate(module)
        program = sdy.compile(module)
    np.testing.assert_array_equal(program(x)[0], 4 * x)
    assert told == []


def test_sharding_without_an_equivalent_on_the_common_mesh_is_dropped_with_a_warning():
    module = sdy.parse(reshard('["x"=2, "y"=3]', '[{"x"}, {"y"}]', '["a"=3, "b"=2]', '[{"a"}, {"b"}]', "6x12"))
    with capture() as told:
        sdy.propagate(module)
        program = sdy.compile(module)
    assert [str(each.location) for each in told] == ["<stdin>:6:14"]
    assert 'the sharding <@other, [{"a"}, {"b"}]> of 288 bytes has no equivalent on the common mesh' in told[0].message
    x = np.arange(72, dtype=np.float32).reshape(6, 12)
    np.testing.assert_array_equal(program(x)[0], 4 * x)
    assert program.out_shardings[0].spec == P("x", "y")


MANY = AbstractMesh((256, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
TYPES = jax.ShapeDtypeStruct((512, 64), np.float32), jax.ShapeDtypeStruct((64, 32), np.float32)
SPECS = P("x", "y"), P("y")


def product(u: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.tanh(u @ v)


def typed(mesh: Any) -> list[Any]:
    return [jax.ShapeDtypeStruct(t.shape, t.dtype, sharding=on(mesh, *s)) for t, s in zip(TYPES, SPECS, strict=True)]


WAYS: dict[str, tuple[dict[str, Any], Any]] = {
    "mesh": ({"mesh": MANY, "in_shardings": SPECS}, TYPES),
    "description": ({"mesh": sdy.Mesh.of({"x": 256, "y": 2}), "in_shardings": SPECS}, TYPES),
    "in_shardings": ({"in_shardings": tuple(on(MANY, *spec) for spec in SPECS)}, TYPES),
    "arguments": ({}, typed(MANY)),
}


@pytest.mark.parametrize(("options", "arguments"), WAYS.values(), ids=WAYS)
def test_a_function_is_lowered_for_more_devices_than_there_are(options: dict[str, Any], arguments: Any):
    lowered = sdy.jit(product, **options).lower(*arguments)
    assert "tensor<2x32xf32>" in lowered.device_text()
    assert "replica_groups = dense<[[0, 1], [2, 3], [4, 5]," in lowered.device_text()
    assert module_to_bindings(lowered.program.local.module, mlir.make_ir_context()).operation.verify()
    assert [port.sharding.spec for port in lowered.program.inputs] == [P("x", "y"), P("y", None)]
    local = lowered.module.clone()
    sdy.partition(local)
    assert bytes_received(local) == 2 * (2 * 32 * 4) / 2
    with pytest.raises(ValueError, match=r"abstract mesh of 512 devices \(x=256, y=2\); jax has 8"):
        lowered.compile()


def with_constraint(mesh: Any, *types: Any) -> Any:
    def function(u: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.tanh(constrained(u @ v, mesh, "x"))

    return jax.jit(function), *types


def in_a_loop(mesh: Any, *types: Any) -> Any:
    def function(u: jax.Array, v: jax.Array) -> Any:
        return jax.lax.scan(lambda c, _: (constrained(c + 1, mesh, "y"), None), u @ v, length=3)

    return function, *types


BY_JAX: dict[str, Callable[[Any], Any]] = {
    "arguments": lambda mesh: (jax.jit(product), *typed(mesh)),
    "in_shardings": lambda mesh: (jax.jit(product, in_shardings=tuple(on(mesh, *spec) for spec in SPECS)), *TYPES),
    "constraint": lambda mesh: with_constraint(mesh, *TYPES),
    "constraint and arguments": lambda mesh: with_constraint(mesh, *typed(mesh)),
    "loop": lambda mesh: in_a_loop(mesh, *typed(mesh)),
}


@pytest.mark.parametrize("program", BY_JAX.values(), ids=BY_JAX)
def test_a_function_of_jax_is_imported_on_an_abstract_mesh_as_on_its_devices(program: Callable[[Any], Any]):
    abstract, concrete = (sdy.from_jax(*program(mesh)) for mesh in (GRID.abstract_mesh, GRID))
    # jax counts one partition if only constraints are on the abstract mesh.
    assert sdy.format(abstract).replace("num_partitions = 1", "num_partitions = 8") == sdy.format(concrete)
    assert "x=256, y=2" in str(sdy.account(*program(MANY)))
    assert str(sdy.lint(*program(GRID.abstract_mesh))) == str(sdy.lint(*program(GRID)))


def test_a_function_on_an_abstract_mesh_says_that_it_cannot_be_run():
    run = sdy.jit(product, mesh=MANY, in_shardings=SPECS)
    with pytest.raises(ValueError, match="to compile and run it, pass"):
        run(np.ones(TYPES[0].shape, np.float32), np.ones(TYPES[1].shape, np.float32))


def test_the_abstract_mesh_of_the_context_is_lowered_for():
    run = sdy.jit(lambda u: jax.lax.with_sharding_constraint(u @ u.T, P("x")))
    with jax.sharding.use_abstract_mesh(MANY):
        assert "tensor<2x512xf32>" in run.lower(TYPES[0]).device_text()
        with pytest.raises(ValueError, match="abstract mesh of 512 devices"):
            run(np.ones(TYPES[0].shape, np.float32))


def test_shardings_on_an_abstract_mesh_are_those_of_the_mesh_that_is_given():
    abstract = GRID.abstract_mesh
    run = sdy.jit(product, mesh=GRID, in_shardings=(on(abstract, "x", "y"), on(abstract, "y")))
    assert run(U, V).sharding.spec == P("x")
    arguments = jax.device_put(U, on(GRID, "x", "y")), jax.device_put(V, on(GRID, "y"))
    within = sdy.jit(lambda u, v: constrained(u @ v, abstract, "y", "x"))
    assert within(*arguments).sharding == on(GRID, "y", "x")


def test_groups_of_devices_can_be_named_by_the_axes_of_the_mesh():
    module = sdy.jit(product, mesh=MANY, in_shardings=SPECS).lower(*TYPES).module
    sdy.partition(module, enable_rgv3=True)
    named = '<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>'
    assert f"replica_groups = #stablehlo.replica_group_mesh_axes{named}" in sdy.format(module)


def test_groups_of_many_devices_are_listed_and_read_back():
    module = sdy.jit(product, mesh=MANY, in_shardings=SPECS).lower(*TYPES).module
    sdy.partition(module)
    text = sdy.format(module)
    assert "replica_groups = dense<[[0, 1], [2, 3]," in text
    assert sdy.format(sdy.parse(text)) == text
    assert sdy.format(sdy.parse(oracle(text, "symbol-dce"))) == text


def test_single_device_and_undefined_meshes_stay_unchanged():
    text = """
        module attributes {other.note = #sdy.sharding<@nowhere, []>} {
          sdy.mesh @line = <["a"=1]>
          sdy.mesh @one = <["x"=4, "y"=2]>
          sdy.mesh @other = <["p"=2, "q"=4]>
          func.func @main(%0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}]>}) -> tensor<8xf32> {
            %1 = sdy.sharding_constraint %0 <@line, [{"a"}]> : tensor<8xf32>
            %2 = sdy.sharding_constraint %1 <@other, [{"q"}]> : tensor<8xf32>
            return %2 : tensor<8xf32>
          }
        }"""
    module = sdy.parse(text)
    run_passes(module, [UnifyMeshesPass()])
    printed = sdy.format(module)
    assert "other.note = #sdy.sharding<@nowhere, []>" in printed
    assert 'sdy.sharding_constraint %arg0 <@line, [{"a"}]>' in printed
    assert '<@common_mesh, [{"x:(2)2", "y"}]>' in printed
