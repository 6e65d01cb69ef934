"""`sdy.to_model_explorer`: a propagated program as a graph of Google's Model Explorer."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import forked_commands
import sdy
from sdy.passes.driver import run_passes
from sdy.passes.spec import parse_pipeline

TRANSFORMER = Path(__file__).parents[2] / "examples/transformer.mlir"
PROGRAM = """\
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
                %b: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) -> tensor<8x16xf32> {
  %0 = stablehlo.dot %a, %b : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  %1 = func.call @tanh(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
func.func private @tanh(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.tanh %a : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""


def graph_of(module: Any) -> Any:
    (graph,) = sdy.to_model_explorer(module)["graphs"]
    return graph


def propagated() -> Any:
    module = sdy.parse(PROGRAM, "program.mlir")
    sdy.propagate(module)
    return graph_of(module)


def overlays(graph: Any) -> dict[str, list[tuple[str, str, str]]]:
    """Return, for each axis, the labels of each edge's ends and its own."""
    (data,) = graph["tasksData"]["edgeOverlaysDataListLeftPane"]
    assert data["type"] == "edge_overlays"
    labels = {node["id"]: node["label"] for node in graph["nodes"]}
    return {
        overlay["name"]: [
            (labels[edge["sourceNodeId"]], labels[edge["targetNodeId"]], edge["label"]) for edge in overlay["edges"]
        ]
        for overlay in data["overlays"]
    }


def test_nodes_are_operations_and_arguments() -> None:
    nodes = propagated()["nodes"]
    assert [(node["label"], node["namespace"]) for node in nodes] == [
        ("%arg0", "arguments"),
        ("%arg1", "arguments"),
        ("stablehlo.dot", ""),
        ("func.call", ""),
        ("func.return", ""),
        ("%arg0", "@tanh/arguments"),
        ("stablehlo.tanh", "@tanh"),
        ("func.return", "@tanh"),
    ]
    dot = nodes[2]
    assert [(edge["sourceNodeId"], edge["targetNodeInputId"]) for edge in dot["incomingEdges"]] == [
        (nodes[0]["id"], "0"),
        (nodes[1]["id"], "1"),
    ]
    assert dot["attrs"] == [{"key": "source", "value": "program.mlir:4:8"}]


def test_a_result_tells_its_sharding_and_its_bytes() -> None:
    graph = propagated()
    (output,) = graph["nodes"][2]["outputsMetadata"]
    assert {told["key"]: told["value"] for told in output["attrs"]} == {
        "name": "%0",
        "tensor_shape": "tensor<8x16xf32>",
        "sharding": '[{"x"}, {"y"}]',
        "bytes": "512 bytes",
        "bytes per device": "64 bytes",
    }
    assert graph["groupNodeAttributes"] == {"": {"@mesh": "x=4, y=2"}}


def test_an_overlay_has_the_way_of_an_axis() -> None:
    found = overlays(propagated())
    onwards = [
        ("stablehlo.dot", "%arg0", "step 1"),  # of @tanh
        ("%arg0", "stablehlo.tanh", "step 2"),
        ("stablehlo.tanh", "func.call", "step 3"),
        ("func.call", "func.return", "step 4"),
    ]
    assert found == {
        "axis x": [("%arg0", "stablehlo.dot", "step 0"), *onwards],
        "axis y": [("%arg1", "stablehlo.dot", "step 0"), *onwards],
    }


def test_a_part_of_an_axis_is_told_with_the_step() -> None:
    module = sdy.parse(PROGRAM.replace('"y"}', '"x":(1)2}').replace('{"x"}, {?}', "{?}, {?}"))
    sdy.propagate(module)
    assert overlays(graph_of(module))["axis x"][0] == ("%arg1", "stablehlo.dot", 'step 0 "x":(1)2')


def test_edges_of_a_text_that_was_propagated_elsewhere() -> None:
    """The text is Shardy's dump, with debug-propagation-edge-sharding."""
    module = sdy.parse(PROGRAM, "program.mlir")
    run_passes(module, parse_pipeline("builtin.module(sdy-basic-propagate{debug-propagation-edge-sharding=true})"))
    text = sdy.format(module)
    assert "sdy.propagation_edges" in text
    assert ("%arg0", "stablehlo.dot", "step 0") in overlays(graph_of(sdy.parse(text)))["axis x"]


def test_without_propagation_there_are_no_overlays() -> None:
    assert overlays(graph_of(sdy.parse(PROGRAM))) == {}


def test_groups_are_the_scopes_of_jax_and_loops() -> None:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        with jax.named_scope("first"):
            y = jnp.tanh(x @ w)
        return jax.lax.fori_loop(0, 3, lambda _, z: jnp.sin(z) @ w, y)

    types = (jax.ShapeDtypeStruct((8, 64), "float32"), jax.ShapeDtypeStruct((64, 64), "float32"))
    mesh = sdy.Mesh.of({"x": 4})
    graph = graph_of(sdy.jit(step, mesh=mesh, in_shardings=(P("x"), P())).lower(*types).module)
    groups = {node["label"]: node["namespace"] for node in graph["nodes"]}
    assert groups["stablehlo.tanh"] == "jit(step)/first"
    assert groups["stablehlo.sine"].startswith("jit(step)/while/body")
    assert groups["%iterArg"] == "jit(step)/while"
    carried = next(node for node in graph["nodes"] if node["label"] == "%iterArg")
    assert len(carried["incomingEdges"]) == 1


def test_reducer_operations_are_no_nodes() -> None:
    module = sdy.parse(TRANSFORMER.read_text())
    labels = [node["label"] for node in graph_of(module)["nodes"]]
    assert "stablehlo.reduce" in labels
    assert labels.count("func.return") == sdy.format(module).count("    return ")
    assert "stablehlo.return" not in labels


def test_each_edge_is_between_nodes() -> None:
    module = sdy.parse(TRANSFORMER.read_text())
    sdy.propagate(module)
    graph = graph_of(module)
    ids = [node["id"] for node in graph["nodes"]]
    assert len(set(ids)) == len(ids)
    (data,) = graph["tasksData"]["edgeOverlaysDataListLeftPane"]
    edges = [edge for overlay in data["overlays"] for edge in overlay["edges"]]
    edges += [edge | {"targetNodeId": node["id"]} for node in graph["nodes"] for edge in node["incomingEdges"]]
    assert len(edges) > 1500
    assert {edge[end] for edge in edges for end in ("sourceNodeId", "targetNodeId")} <= set(ids)


def test_sdy_opt_prints_it() -> None:
    done = forked_commands.run(["-m", "sdy", "opt", "-sdy-propagation-pipeline", "--sdy-model-explorer"], stdin=PROGRAM)
    assert overlays(json.loads(done.stdout)["graphs"][0]).keys() == {"axis x", "axis y"}


def test_model_explorer_reads_it() -> None:
    """The classes of Model Explorer accept every field, and no required field is missing."""
    why = "ai-edge-model-explorer is not installed: with what it needs it is 130 MB, too much to be a test's dependency"
    builder: Any = pytest.importorskip("model_explorer.graph_builder", reason=why)
    dacite: Any = pytest.importorskip("dacite")
    module = sdy.parse(TRANSFORMER.read_text())
    sdy.propagate(module)
    read = json.loads(json.dumps(sdy.to_model_explorer(module)))
    collection = dacite.from_dict(builder.GraphCollection, read, dacite.Config(strict=True))
    (graph,) = collection.graphs
    assert len(graph.nodes) > 500
    (data,) = graph.tasksData.edgeOverlaysDataListLeftPane
    assert [overlay.name for overlay in data.overlays] == ["axis data", "axis model"]
