"""`sdy-export-gspmd`: convert SDY shardings to GSPMD shardings (`mhlo.sharding`)."""

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from sdy.diagnostics import error
from sdy.dialect.attributes import SHARDING, TensorShardingAttr
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.meshes import device_count
from sdy.dialect.ops import (
    ConstantOp,
    DataFlowEdgeOp,
    ManualComputationOp,
    MeshOp,
    PropagationBarrierOp,
    ReshardOp,
    ShardingConstraintOp,
    ShardingGroupOp,
)
from sdy.dialect.shardings import result_shardings
from sdy.gspmd.hlo_sharding import HloSharding, ShardGroup
from sdy.gspmd.syntax import hlo_sharding_text
from sdy.ir.editing import AnalysisPreservingPass, erase, insert, replace
from sdy.ir.shapes import rank
from sdy.ir.walking import innermost_first, operations, operations_of
from sdy.passes.exporting.export_named_computations import export_named_computations
from sdy.passes.gspmd.calls import inline_calls_in
from sdy.passes.gspmd.export_shardings import ExportedShardings, custom_call
from sdy.passes.gspmd.inline_manual import inline_manual_computation
from sdy.passes.gspmd.named_shardings import NUM_PARTITIONS
from sdy.passes.gspmd.sharding_texts import HLO_SHARDING, SHARDING_CALL
from sdy.rules import remove_sharding_rules
from sdy.stablehlo import constants


class ExportGspmdPass(AnalysisPreservingPass):
    """Convert SDY shardings and operations to `mhlo.sharding` and to the custom calls of XLA's GSPMD partitioner.

    Before::

        sdy.mesh @mesh = <["x"=2, "y"=4]>
        ... %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} ...
        %0 = sdy.sharding_constraint %arg0 <@mesh, [{"y"}, {?}]> : tensor<8x16xf32>

    After::

        ... %arg0: tensor<8x16xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} ...
        %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "unspecified_dims=[1]",
            mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}
            : (tensor<8x16xf32>) -> tensor<8x16xf32>

    A manual computation is inlined between `SPMDFullToShardShape` and `SPMDShardToFullShape`. A sharding group becomes
    a custom call with `shard_as`; constraints, reshards and collectives become custom calls `Sharding`. Meshes,
    priorities, sharding rules and open dimensions of arguments and results have no equivalent in GSPMD and are dropped.

    Raises:
        DiagnosticError: The module has data-flow edges, or partial results of a reduction other than a sum.
    """

    name = "sdy-export-gspmd"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for edge in operations_of(op, DataFlowEdgeOp):
            raise error(edge, "has no equivalent in GSPMD; run sdy-sink-data-flow-edges first")
        export_named_computations(op)
        remove_sharding_rules(operations(op))
        _set_device_count(op)
        inline_calls_in(operations_of(op, ManualComputationOp), op)
        exported = ExportedShardings()
        for each in list(operations(op)):
            _export(each, exported)
        for computation in innermost_first(operations_of(op, ManualComputationOp)):
            inline_manual_computation(computation, exported)
        for mesh in operations_of(op, MeshOp):
            erase(mesh)


def _set_device_count(module: ModuleOp) -> None:
    for name, count in ((NUM_PARTITIONS, device_count(module)), ("mhlo.num_replicas", 1)):
        module.attributes.setdefault(name, IntegerAttr(count, i32))


def _export(op: Operation, exported: ExportedShardings) -> None:
    match op:
        case FuncOp():
            _export_function(op, exported)
        case ShardingConstraintOp() | ReshardOp():
            _replace(op, exported.constraint(op.input, op.sharding.data, op))
        case CollectiveOp():
            _replace(op, exported.constraint(op.tensor, op.out_sharding.data, op))
        case ShardingGroupOp():
            text = hlo_sharding_text(HloSharding("unknown", group=ShardGroup(op.group_id.value.data)))
            call = custom_call(SHARDING_CALL, op.input, op.input.type, text, has_side_effect=True)
            call.location = op.location
            insert(call, InsertPoint.before(op))
            erase(op)
        case PropagationBarrierOp():
            replace(op, [op.input])
        case ConstantOp():
            constant = constants.ConstantOp.create(properties={"value": op.value}, result_types=op.result_types)
            constant.attributes = op.attributes.copy()
            _replace(op, constant)
            _export_results(constant, exported)
        case ManualComputationOp():
            pass
        case _:
            _export_results(op, exported)


def _replace(op: Operation, new: Operation) -> None:
    new.location = op.location
    replace(op, new)


def _export_function(function: FuncOp, exported: ExportedShardings) -> None:
    for name, attributes in (("arg_attrs", function.arg_attrs), ("res_attrs", function.res_attrs)):
        if attributes is not None:
            entries: list[DictionaryAttr] = []
            for entry in attributes:
                new_entry = dict(entry.data)
                sharding = new_entry.pop(SHARDING, None)
                if isinstance(sharding, TensorShardingAttr):
                    new_entry[HLO_SHARDING] = StringAttr(exported.text(sharding.data, function))
                entries.append(DictionaryAttr(new_entry))
            function.properties[name] = ArrayAttr(entries)


def _export_results(op: Operation, exported: ExportedShardings) -> None:
    shardings = [sharding for sharding in result_shardings(op) if sharding is not None]
    op.attributes.pop(SHARDING, None)
    texts: list[str] = []
    if shardings:
        texts = [exported.text(sharding, op) for sharding in shardings]
    elif (computation := exported.manual_part(op)) is not None and _needs_manual_sharding(op, computation, exported):
        texts = [exported.text_inside(type_, computation) for type_ in op.result_types]
    if texts:
        op.attributes[HLO_SHARDING] = StringAttr(texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}")


def _needs_manual_sharding(op: Operation, computation: ManualComputationOp, exported: ExportedShardings) -> bool:
    """Return whether `op` gets an explicit manual sharding, rather than one that GSPMD propagates along free axes."""
    return exported.is_all_manual(computation) or not op.operands or all(rank(type_) == 0 for type_ in op.result_types)
