"""Export of a program, its shardings and their propagation to Google's Model Explorer.

    Path("step.json").write_text(json.dumps(sdy.to_model_explorer(module)))

`model-explorer step.json` opens the file. Its format is that of `model_explorer.graph_builder` in the package
`ai-edge-model-explorer`: a collection with one graph. The nodes are operations and arguments, grouped by function and
by JAX name scope. An edge overlay for each mesh axis shows how propagation spread it.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FusedLoc, LocationAttr, ModuleOp, NameLoc, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from sdy.diagnostics import location_of
from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.interfaces import data_flow_of, defining_op
from sdy.dialect.meshes import find_mesh, named_meshes
from sdy.dialect.shardings import get_sharding
from sdy.foreign_dialects import adopt
from sdy.formatting import format_bytes
from sdy.passes.common.call_graph import find_main_function
from sdy.passes.common.properties import num_bytes
from sdy.passes.common.replication_cost import local_bytes
from sdy.passes.propagation.provenance.axis_trace import Place, axis_trace
from sdy.text.printing.names import Names

Json = dict[str, Any]
_Group = tuple[str, ...]
"""Names of nested groups, the outermost first."""

_COLORS = ("#d32f2f", "#1976d2", "#388e3c", "#f57c00", "#7b1fa2", "#00838f")


def to_model_explorer(module: ModuleOp) -> Json:
    """Convert `module` to the JSON graph of Model Explorer.

    Each node lists the sharding, the bytes and the bytes per device of its results. The overlay of an axis labels each
    edge along which propagation spread the axis with the step that did so.

    Args:
        module: A module; without a propagation history, the graph has no overlays.

    Returns:
        An object that `json.dumps` serializes.
    """
    adopt(module)
    name = module.sym_name.data if module.sym_name else "module"
    meshes = {
        f"@{mesh}": ", ".join(f"{axis}={size}" for axis, size in value.axes)
        for mesh, value in named_meshes(module).items()
    }
    graph = _Graph(module)
    graph_json: Json = {
        "id": name,
        "nodes": graph.nodes,
        "groupNodeAttributes": {"": meshes},
        "tasksData": {
            "edgeOverlaysDataListLeftPane": [
                {"name": "axes, by step of propagation", "type": "edge_overlays", "overlays": graph.overlays()}
            ]
        },
    }
    return {"label": name, "graphs": [graph_json]}


class _Graph:
    def __init__(self, module: ModuleOp) -> None:
        self.nodes: list[Json] = []
        self._module = module
        self._node_of: dict[Place, str] = {}
        """The node id of each operation and value."""
        self._names = Names(generic=False)
        self._names.add(module)
        main = find_main_function(module)
        for op in module.ops:
            if isinstance(op, FuncOp):
                function = () if op is main else (f"@{op.sym_name.data}",)
                self._add_inside(op, function, (*function, "arguments"), function)

    def _add_inside(self, op: Operation, group: _Group, arguments: _Group, function: _Group) -> None:
        """Add the block arguments and operations inside `op`.

        An operation goes to the group of its JAX name scope within `function`, or to `group` if it has none.
        """
        for block in (block for region in op.regions for block in region.blocks):
            for argument in block.args:
                self._add_node(argument, f"%{self._names.values[argument]}", arguments, [argument])
            for inner in block.ops:
                *scopes, last = _scopes(inner.location) or [inner.name]
                inner_group = (*function, *scopes) if scopes else group
                self._add_node(inner, inner.name, inner_group, inner.results)
                # Other regions, such as the body of a reduction, compute scalars.
                if data_flow_of(inner) is not None:
                    self._add_inside(inner, (*inner_group, last), (*inner_group, last), function)

    def _add_node(self, place: Place, label: str, group: _Group, values: Sequence[SSAValue]) -> None:
        key = str(len(self.nodes))
        self._node_of |= dict.fromkeys((place, *values), key)
        where = location_of(place)
        self.nodes.append(
            {
                "id": key,
                "label": label,
                "namespace": "/".join(group),
                "attrs": _attributes({} if where is None else {"source": str(where)}),
                "incomingEdges": list(self._incoming(place)),
                "outputsMetadata": [
                    {"id": str(number), "attrs": _attributes(self._metadata(value))}
                    for number, value in enumerate(values)
                ],
            }
        )

    def _incoming(self, place: Place) -> Iterator[Json]:
        for number, value in enumerate(_inputs(place)):
            if value in self._node_of:
                yield {
                    "sourceNodeId": self._node_of[value],
                    "sourceNodeOutputId": str(value.index) if isinstance(value, OpResult) else "0",
                    "targetNodeInputId": str(number),
                }

    def _metadata(self, value: SSAValue) -> dict[str, str]:
        metadata = {"name": f"%{self._names.values[value]}", "tensor_shape": str(value.type)}
        if isa(value.type, TensorType[Attribute]):
            sharding = get_sharding(value)
            mesh = None if sharding is None else find_mesh(sharding, self._module)
            metadata["sharding"] = format_dims(sharding)
            metadata["bytes"] = format_bytes(num_bytes(value.type))
            metadata["bytes per device"] = format_bytes(local_bytes(value.type, sharding, mesh))
        return metadata

    def overlays(self) -> list[Json]:
        """Return an overlay per axis, with an edge for the first time that propagation spread it between two nodes."""
        axes: dict[str, dict[tuple[str, str, str], Json]] = {}
        for move in axis_trace(self._module):
            source, target = self._node_of.get(move.source), self._node_of.get(move.target)
            if source is not None and target is not None and source != target:
                part = "" if move.axis.size is None else f" {move.axis}"
                edge = {"sourceNodeId": source, "targetNodeId": target, "label": f"step {move.step}{part}"}
                axes.setdefault(move.axis.name, {}).setdefault((source, target, part), edge)
        return [
            {"name": f"axis {axis}", "edgeColor": color, "edgeWidth": 2, "edges": list(edges.values())}
            for (axis, edges), color in zip(sorted(axes.items()), cycle(_COLORS))
        ]


def _attributes(values: dict[str, str]) -> list[Json]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _inputs(place: Place) -> Sequence[SSAValue]:
    """Return the operands of an operation, or the operands that flow into a block argument of its regions."""
    if isinstance(place, Operation):
        return place.operands
    op = defining_op(place)
    if op is None or (flow := data_flow_of(op)) is None:
        return ()
    uses = flow.edge_sources(op, flow.edge_owner_from_target(op, place))
    return [op.operands[use.index] for use in uses if use.operation is op]


def _scopes(location: Attribute) -> list[str]:
    """Split JAX's name of an operation into its scopes and its primitive; empty if it has none.

    For an inlined operation, such as one of a loop body, the path of the call site comes first.
    """
    match location:
        case NameLoc():
            return [part for part in location.desc.data.replace(";", ",").split("/") if part]
        case CallSiteLoc():
            return [*_scopes(location.caller), *_scopes(location.callee)]
        case FusedLoc():
            parts = cast(ArrayAttr[LocationAttr], location.locations)
            return next((path for path in map(_scopes, parts) if path), list[str]())
        case _:
            return []
