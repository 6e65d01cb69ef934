"""Execution of programs on devices, and the account of their communication."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import sdy
from sdy.diagnostics import DiagnosticError
from sdy.dialect.meshes import device_count
from sdy.passes.driver import partition, propagate
from sdy.passes.jax.api.compile import compile, compile_unpartitioned
from sdy.passes.jax.hlo_collectives import Traffic, collectives, total
from sdy.passes.jax.program.difference import Difference, largest_difference
from sdy.passes.jax.program.inputs import arrange_inputs, random_inputs, read_arrays
from sdy.text import parse

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformer.mlir"


def scaled(type_: str, sharding: str, mesh: str = '<["x"=2, "y"=4]>') -> Any:
    """Return a program that doubles its argument, which has this sharding."""
    return parse(f"""
      sdy.mesh @mesh = {mesh}
      func.func @main(%arg0: {type_} {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}})
          -> ({type_} {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}) {{
        %0 = stablehlo.add %arg0, %arg0 {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {sharding}>]>}} : {type_}
        return %0 : {type_}
      }}""")


@pytest.fixture(scope="module")
def program() -> Any:
    return compile(scaled("tensor<8x4xf32>", '[{"x", "y"}, {}]'))


def test_shardings_are_those_of_the_module(program: Any):
    assert program.in_shardings[0].spec == PartitionSpec(("x", "y"), None)
    assert dict(program.in_shardings[0].mesh.shape) == {"x": 2, "y": 4}
    (result,) = program(np.ones((8, 4), np.float32))
    assert result.sharding == program.out_shardings[0]
    assert result.shape == (8, 4)
    assert result.addressable_shards[3].data.shape == (1, 4)


def test_arrays_of_jax_and_of_numpy_are_taken(program: Any):
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    for given in (x, x.astype(">f4"), jax.numpy.asarray(x), jax.device_put(x, program.in_shardings[0])):
        np.testing.assert_array_equal(program(given)[0], 2 * x)


WRONG = {
    "number": ((), TypeError, "the program takes 1 arguments, not 0"),
    "shape": ((np.ones((4, 4), np.float32),), ValueError, r"argument 0 must have shape \(8, 4\), not \(4, 4\)"),
    "element type": ((np.ones((8, 4)),), TypeError, "argument 0 must have elements of type float32, not float64"),
    "no array": (([1.0],), TypeError, "argument 0 must be an array, not list"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_refused_by_name(
    program: Any, arguments: tuple[Any, ...], error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        program(*arguments)


def test_arguments_have_the_names_that_jax_gave_them():
    module = sdy.from_jax(jax.jit(lambda weights: weights * 2), jax.ShapeDtypeStruct((4,), "float32"))
    with pytest.raises(ValueError, match=r"argument 0 \(weights\) must have shape"):
        compile(module)(np.ones(3, np.float32))


def test_too_few_devices_are_told():
    module = scaled("tensor<16xf32>", '[{"x"}]', '<["x"=16]>')
    with pytest.raises(DiagnosticError, match="mesh has 16 devices, but there are only 8"):
        compile(module)
    with pytest.raises(DiagnosticError, match="mesh has 8 devices, but there are only 3"):
        compile(scaled("tensor<8xf32>", '[{"x"}]'), jax.devices()[:3])


def test_a_mesh_of_jax_says_the_devices():
    module = scaled("tensor<8xf32>", '[{"x"}]', '<["x"=4]>')
    devices = jax.devices()[7:3:-1]
    program = compile(module, jax.make_mesh((4,), ("x",), devices=devices))
    assert set(program.devices) == set(devices)
    np.testing.assert_array_equal(program(np.ones(8, np.float32))[0], np.full(8, 2))
    with pytest.raises(DiagnosticError, match=r"has the axes \{'y': 4\}, but the module is for \[\{'x': 4\}\]"):
        compile(module, jax.make_mesh((4,), ("y",), devices=devices))


@pytest.mark.parametrize("attribute", ["jax.buffer_donor = true", "tf.aliasing_output = 0 : i32"])
def test_donated_arguments_are_gone(attribute: str):
    type_, sharding = "tensor<8xf32>", '#sdy.sharding<@mesh, [{"x"}]>'
    program = compile(
        parse(f"""
      sdy.mesh @mesh = <["x"=8]>
      func.func @main(%arg0: {type_} {{{attribute}, sdy.sharding = {sharding}}},
                      %arg1: {type_} {{sdy.sharding = {sharding}}}) -> ({type_} {{sdy.sharding = {sharding}}}) {{
        %0 = stablehlo.add %arg0, %arg1 {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}]>]>}} : {type_}
        return %0 : {type_}
      }}""")
    )
    given, kept = (jax.device_put(np.ones(8, np.float32), program.in_shardings[0]) for _ in range(2))
    np.testing.assert_array_equal(program(given, kept)[0], np.full(8, 2))
    assert given.is_deleted()
    assert not kept.is_deleted()


def test_functions_of_python_cannot_be_called():
    module = sdy.from_jax(jax.jit(lambda x: jax.debug.print("{}", x)), jax.ShapeDtypeStruct((4,), "float32"))
    with pytest.raises(DiagnosticError, match=r"calls a Python function, which a module does not hold: sdy\.jit runs"):
        compile(module)


def test_module_without_main_is_told():
    with pytest.raises(DiagnosticError, match="no function @main"):
        compile(parse("func.func @f() {\n  return\n}"))


@pytest.mark.parametrize("element", ["i1", "i8", "ui32", "i64", "f16", "bf16", "f64", "complex<f64>"])
def test_element_types_stay_as_they_are(element: str):
    module = scaled(f"tensor<8x2x{element}>", '[{"x"}, {}]')
    program = compile(module)
    inputs = random_inputs(program.inputs, seed=1)
    (result,) = program(*inputs)
    assert result.dtype == inputs[0].dtype
    np.testing.assert_array_equal(np.asarray(result), inputs[0] | inputs[0] if element == "i1" else inputs[0] * 2)


def test_scalars_are_taken_for_arrays_without_dimensions():
    (result,) = compile(scaled("tensor<f32>", "[]"))(1.5)
    assert result == 3.0


def test_sub_axes_cut_the_mesh():
    program = compile(scaled("tensor<8x4xf32>", '[{"y":(2)2}, {"y":(1)2, "x"}]'))
    sharding = program.in_shardings[0]
    assert dict(sharding.mesh.shape) == {"x": 2, "y:(1)2": 2, "y:(2)2": 2}
    assert sharding.spec == PartitionSpec("y:(2)2", ("y:(1)2", "x"))
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(program(x)[0], 2 * x)


def test_each_array_lies_on_the_mesh_that_it_was_given():
    module = parse("""
      sdy.mesh @rows = <["x"=2, "y"=4]>
      sdy.mesh @all = <["z"=8]>
      func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@all, [{"z"}]>},
                      %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@rows, [{"y"}]>}) {
        return
      }""")
    first, second = compile(module).in_shardings
    assert (dict(first.mesh.shape), first.spec) == ({"z": 8}, PartitionSpec("z"))
    assert (dict(second.mesh.shape), second.spec) == ({"x": 2, "y": 4}, PartitionSpec("y"))


def test_meshes_of_different_sizes_are_told():
    module = parse('sdy.mesh @a = <["x"=2]>\nsdy.mesh @b = <["y"=4]>\nfunc.func @main() {\n  return\n}')
    with pytest.raises(DiagnosticError, match="different devices"):
        compile(module)


def test_order_of_devices_decides_who_has_which_part():
    program = compile(scaled("tensor<4xf32>", '[{"x"}]', '<["x"=4], device_ids=[2, 0, 3, 1]>'), jax.devices()[:4])
    (result,) = program(np.arange(4, dtype=np.float32))
    parts = {shard.device.id: float(shard.data[0]) for shard in result.addressable_shards}
    assert [parts[device.id] for device in jax.devices()[:4]] == [2.0, 6.0, 0.0, 4.0]


def test_program_without_mesh_runs_on_one_device():
    module = parse("func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n  return %arg0 : tensor<2xf32>\n}")
    assert device_count(module) == 1
    np.testing.assert_array_equal(compile(module)(np.ones(2, np.float32))[0], np.ones(2))


def test_compile_leaves_the_module_as_it_is():
    module = scaled("tensor<8xf32>", '[{"x"}]')
    before = sdy.format(module)
    compile(module)
    assert sdy.format(module) == before


def test_transformer_computes_the_same_and_communicates_no_more_than_with_xla(xla_partitioner: Any):
    original = parse(EXAMPLE.read_text())
    module = original.clone()
    propagate(module)
    partition(module)
    program, whole = compile(module), compile_unpartitioned(original)
    inputs = random_inputs(program.inputs, seed=0)
    difference = largest_difference(program(*inputs), whole(*inputs), [port.name for port in program.outputs])
    assert difference is not None
    assert difference.largest < 1e-4
    ours, theirs = (
        total(collectives(text)) for text in (program.compiled_text(), xla_partitioner(EXAMPLE.read_text(), 8))
    )
    assert 0 < ours.bytes <= theirs.bytes


@pytest.fixture
def xla_partitioner() -> Any:
    """Return the bench's function that compiles a text with XLA's own partitioner and returns the optimized HLO."""
    spec = spec_from_file_location("collectives", EXAMPLE.parent.parent / "bench" / "collectives.py")
    assert spec is not None
    assert spec.loader is not None
    bench = module_from_spec(spec)
    spec.loader.exec_module(bench)
    return bench.compiled_by_xla


def test_collectives_are_counted_with_the_bytes_of_their_results():
    hlo = """
  %ar = (f32[64]{0}, f32[16,8]{1,0:T(8,128)}) all-reduce(%a, %b), channel_id=1, replica_groups={{0,1}}
  ROOT %x.1 = bf16[4,4]{1,0} all-gather-done(%s)
  %s = (bf16[2,4]{1,0}, bf16[4,4]{1,0}) all-gather-start(%s), channel_id=2
  %y = pred[3] all-to-all(%s), metadata={op_name="x = f32[9] all-reduce()"}
  %z = s4[3] collective-permute(%y)
  %c = c64[2,2] all-reduce(%z)
"""
    counted = collectives(hlo)
    assert counted == {
        "all-reduce": Traffic(2, 64 * 4 + 128 * 4 + 32),
        "all-gather": Traffic(1, 32),
        "all-to-all": Traffic(1, 3),
        "collective-permute": Traffic(1, 2),
    }
    assert total(counted).count == 5


def test_largest_difference_names_its_result():
    a, b = np.array([1.0, np.nan, np.inf]), np.array([1.5, np.nan, np.inf])
    assert largest_difference([a, a], [a, b], ["p", "q"]) == Difference(0.5, "q", 1.5)
    assert np.isnan(largest_difference([a], [np.ones(3)], ["p"]).largest)  # pyright: ignore
    empty = np.ones((0,))
    assert largest_difference([empty], [empty], ["p"]) is None


def read_inputs(path: Path, ports: Any) -> list[Any]:
    return arrange_inputs(read_arrays(str(path)), ports, str(path))


def test_inputs_are_read_in_order(tmp_path: Path, program: Any):
    x = np.ones((8, 4), np.float32)
    np.savez(tmp_path / "named.npz", arg0=x)
    np.savez(tmp_path / "plain.npz", x)
    for name in ("named.npz", "plain.npz"):
        np.testing.assert_array_equal(read_inputs(tmp_path / name, program.inputs)[0], x)


def test_inputs_of_types_that_numpy_does_not_know_are_read(tmp_path: Path):
    ports = compile(scaled("tensor<2xbf16>", "[{}]")).inputs
    x = np.array([1.5, 2.0], ml_dtypes.bfloat16)
    np.savez(tmp_path / "inputs.npz", x)
    np.testing.assert_array_equal(read_inputs(tmp_path / "inputs.npz", ports)[0], x)


WRONG_FILES: dict[str, tuple[dict[str, Any], str]] = {
    "missing array": ({}, "missing array 'arg0' for argument 0"),
    "array too many": ({"arg0": np.ones((8, 4), np.float32), "arg1": np.ones(1)}, "unexpected array 'arg1'"),
    "wrong shape": ({"arg0": np.ones(8, np.float32)}, r"argument 0 must have shape \(8, 4\), not \(8,\)"),
    "objects": ({"arg0": np.array([{}], dtype=object)}, "not an .npz file"),
}


@pytest.mark.parametrize(("arrays", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_wrong_files_of_inputs_are_told(tmp_path: Path, program: Any, arrays: dict[str, Any], message: str):
    np.savez(tmp_path / "inputs.npz", **arrays)
    with pytest.raises(DiagnosticError, match=message):
        read_inputs(tmp_path / "inputs.npz", program.inputs)


def test_files_that_hold_no_arrays_are_told(tmp_path: Path):
    (tmp_path / "text.npz").write_text("not arrays")
    with pytest.raises(DiagnosticError, match=r"not an \.npz file"):
        read_arrays(str(tmp_path / "text.npz"))
    with pytest.raises(DiagnosticError, match="no such file"):
        read_arrays(str(tmp_path / "none.npz"))
