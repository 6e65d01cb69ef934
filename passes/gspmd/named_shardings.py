"""Conversion of a module's GSPMD shardings to SDY shardings on named meshes."""

from dataclasses import replace

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef
from sdy.diagnostics import error
from sdy.dialect.mesh_syntax import mesh_text
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.gspmd.hlo_sharding import HloSharding
from sdy.gspmd.meshes import RecoveredMeshes
from sdy.ir.editing import insert
from sdy.ir.shapes import rank
from sdy.ir.walking import operations_at_top
from sdy.mesh import Mesh
from sdy.passes.common.symbols import Symbols
from sdy.passes.gspmd.sharding_texts import HLO_SHARDING, ShardingTexts
from sdy.sharding import TensorSharding

NUM_PARTITIONS = "mhlo.num_partitions"
"""Attribute of a module: the number of devices."""


class NamedShardings:
    """Converter of the GSPMD shardings of `module`, which adds mesh operations on first use.

    Raises:
        DiagnosticError: If the shardings are for another number of devices than the module.
    """

    def __init__(self, module: ModuleOp, texts: ShardingTexts):
        self.texts = texts
        self._module = module
        module_meshes = named_meshes(module)
        count = module.attributes.get(NUM_PARTITIONS)
        device_count = count.value.data if isinstance(count, IntegerAttr) else 1
        with_axes = [mesh for mesh in module_meshes.values() if mesh.axes]
        self._hlo_meshes = RecoveredMeshes.of(texts.all_in(module), with_axes, device_count)
        self._names = {mesh: name for name, mesh in reversed(module_meshes.items())}
        for mesh in self.meshes:
            if device_count not in (1, mesh.size):
                message = f"'{NUM_PARTITIONS}' is {device_count}, but a mesh of its shardings has {mesh.size} devices"
                raise error(module, f"{message}: {mesh_text(mesh)}")

    @property
    def meshes(self) -> tuple[Mesh, ...]:
        """The meshes of the shardings, over all devices."""
        return self._hlo_meshes.meshes

    def sharding(
        self, sharding: HloSharding, type_: Attribute, where: Operation, open_dims: frozenset[int] = frozenset()
    ) -> TensorSharding:
        """Return the SDY sharding of a value of type `type_`. Raises DiagnosticError if the ranks differ."""
        try:
            converted = self._hlo_meshes.tensor_sharding(sharding, rank(type_), open_dims)
        except ValueError as problem:
            raise error(where, f"'{HLO_SHARDING}' is invalid for '{type_}': {problem}") from None
        assert isinstance(converted.mesh, Mesh)
        return replace(converted, mesh=self._name(converted.mesh))

    def unspecified(self, type_: Attribute) -> TensorSharding:
        """Return the open sharding of a value without a GSPMD sharding."""
        return TensorSharding.replicated_open(self._name(self.meshes[0]), rank(type_))

    def manual_axes(self, sharding: HloSharding) -> tuple[str, ...]:
        """Return the manual axes of `sharding`, in mesh order."""
        mesh = self._hlo_meshes.mesh_of(sharding)
        axes: tuple[AxisRef, ...] = self._hlo_meshes.manual_axes(sharding)
        return tuple(sorted((axis.name for axis in axes), key=mesh.axis_index))

    def mesh(self, sharding: HloSharding) -> Mesh:
        """Return the mesh of `sharding`."""
        return self._hlo_meshes.mesh_of(sharding)

    def _name(self, mesh: Mesh) -> str:
        if mesh not in self._names:
            name = f"maximal_mesh_{mesh.device_ids[0]}" if mesh.is_maximal else "mesh"
            symbols = Symbols(self._module)
            mesh_ops = [op for op in operations_at_top(self._module) if isinstance(op, MeshOp)]
            op = MeshOp(name, mesh)
            insert(op, InsertPoint.after(mesh_ops[-1]) if mesh_ops else InsertPoint.at_start(self._module.body.block))
            self._names[mesh] = symbols.insert(op)
        return self._names[mesh]
