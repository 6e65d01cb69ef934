"""`sdy-import-gspmd`: convert GSPMD shardings (`mhlo.sharding`) to shardings of the SDY dialect."""

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import InsertPoint

from sdy.diagnostics import LostShardingWarning, error, remark, warn
from sdy.dialect.attributes import SHARDING, TensorShardingAttr
from sdy.dialect.mesh_syntax import mesh_text
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import ManualComputationOp, ShardingConstraintOp, ShardingGroupOp
from sdy.dialect.shardings import set_result_shardings
from sdy.gspmd.hlo_sharding import HloSharding
from sdy.ir.editing import AnalysisPreservingPass, insert, replace
from sdy.ir.walking import operations, operations_of
from sdy.passes.common.properties import num_bytes
from sdy.passes.gspmd.frontend import import_frontend_attributes
from sdy.passes.gspmd.frontend_texts import MESHES
from sdy.passes.gspmd.named_shardings import NamedShardings
from sdy.passes.gspmd.outline_manual import outline_manual_parts
from sdy.passes.gspmd.sharding_texts import (
    FULL_TO_SHARD,
    SHARD_TO_FULL,
    SHARDING_CALL,
    ShardingTexts,
    attributes_with_texts,
    is_call,
    open_dims,
    text_in,
    without_text,
)
from sdy.stablehlo.custom_call import CustomCallOp


class ImportGspmdPass(AnalysisPreservingPass):
    """Convert `mhlo.sharding`, and the shardings that XLA stores in `mhlo.frontend_attributes`, to SDY on a new mesh.

    Before::

        ... %arg0: tensor<8x16xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} ...
        %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0)}"}
            : (tensor<8x16xf32>) -> tensor<8x16xf32>

    After::

        sdy.mesh @mesh = <["axis_0"=2, "axis_1"=4]>
        ... %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_0"}, {}]>} ...
        %0 = sdy.sharding_constraint %arg0 <@mesh, [{"axis_1"}, {"axis_0"}]> : tensor<8x16xf32>

    The axes of the mesh are a common refinement of all shardings. Shardings without one, for example tiles of 2 x 3 and
    of 3 x 2 devices, get several meshes, which `sdy-unify-meshes` reports. If the module has meshes, the pass uses them
    and their sub-axes. Groups (`shard_as`, `shard_like`) become `sdy.sharding_group`. The operations between
    `SPMDFullToShardShape` and `SPMDShardToFullShape` become an `sdy.manual_computation`. Frontend attributes take
    precedence over `mhlo.sharding`, which is less precise.

    Raises:
        DiagnosticError: A sharding cannot be parsed, or a manual region cannot be outlined.
    """

    name = "sdy-import-gspmd"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        import_frontend_attributes(op, ctx)
        if not has_gspmd_shardings(op):
            return
        named = NamedShardings(op, ShardingTexts())
        meshes = ", ".join(map(mesh_text, named.meshes))
        remark(op, f"GSPMD shardings (mhlo.sharding) are imported onto the mesh {meshes}")
        outline_manual_parts(op, named)
        for each in list(operations(op)):
            if isinstance(each, FuncOp):
                _import_function(each, named)
            elif is_call(each, SHARDING_CALL):
                _import_constraint(each, named)
            elif is_call(each, FULL_TO_SHARD) or is_call(each, SHARD_TO_FULL):
                raise error(each, f"@{each.call_target_name.data} is not part of a manual region that can be outlined")
            elif text_in(each.attributes) is not None:
                _import_results(each, named)


def needs_import_from_gspmd(module: ModuleOp) -> bool:
    """Return whether `module` has GSPMD shardings, or SDY shardings that XLA stores as text.

    In a module with meshes, only custom calls are inspected: they come from exported programs that the module calls.
    """
    has_shardings = has_gspmd_calls if named_meshes(module) else has_gspmd_shardings
    return text_in(module.attributes, MESHES) is not None or has_shardings(module)


def has_gspmd_shardings(module: ModuleOp) -> bool:
    """Return whether anything in `module` has a GSPMD sharding."""
    return any(text_in(attributes) is not None for _, attributes in attributes_with_texts(module))


def has_gspmd_calls(module: ModuleOp) -> bool:
    """Return whether `module` has a custom call that exists only for its GSPMD sharding.

    JAX lowers a program for Shardy with such calls if it calls a program that was exported for GSPMD.
    """
    targets = (SHARDING_CALL, FULL_TO_SHARD, SHARD_TO_FULL)
    calls = (call for call in operations_of(module, CustomCallOp) if call.call_target_name.data in targets)
    return any(text_in(call.attributes) is not None for call in calls)


def _import_function(function: FuncOp, named: NamedShardings) -> None:
    types = function.function_type
    for name, attributes, value_types in (
        ("arg_attrs", function.arg_attrs, types.inputs),
        ("res_attrs", function.res_attrs, types.outputs),
    ):
        if attributes is not None:
            pairs = zip(attributes, value_types, strict=True)
            entries = [_entry(entry.data, type_, function, named) for entry, type_ in pairs]
            function.properties[name] = ArrayAttr(map(DictionaryAttr, entries))
            if not any(entries):
                del function.properties[name]


def _entry(
    attributes: Mapping[str, Attribute], type_: Attribute, function: FuncOp, named: NamedShardings
) -> Mapping[str, Attribute]:
    sharding = named.texts.one_in(attributes, function)
    if sharding is None:
        return attributes
    others = without_text(attributes)
    if _is_unspecified(sharding, type_, function):
        return others
    return {**others, SHARDING: TensorShardingAttr.of(named.sharding(sharding, type_, function))}


def _import_results(op: Operation, named: NamedShardings) -> None:
    sharding = named.texts.sharding_in(op.attributes, op)
    assert sharding is not None
    if not op.results and isinstance(sharding, HloSharding) and sharding.kind == "maximal":
        set_result_shardings(op, [named.sharding(sharding, NoneAttr(), op)])
    count = len(op.results)
    each = sharding if isinstance(sharding, tuple) else (sharding,) * count
    if len(each) != count:
        raise error(op, f"'mhlo.sharding' has {len(each)} shardings, and '{op.name}' {count} results")
    op.attributes = without_text(op.attributes)
    pairs = [(one, result.type) for one, result in zip(each, op.results, strict=True)]
    converted = [None if _is_unspecified(one, type_, op) else named.sharding(one, type_, op) for one, type_ in pairs]
    if any(converted):
        types = op.result_types
        shardings = [one or named.unspecified(type_) for one, type_ in zip(converted, types, strict=True)]
        set_result_shardings(op, shardings)


def _import_constraint(call: CustomCallOp, named: NamedShardings) -> None:
    sharding = named.texts.one_in(call.attributes, call)
    value = call.inputs[0]
    if sharding is not None and sharding.group is not None:
        group = ShardingGroupOp(value, sharding.group.number)
        group.location = call.location
        insert(group, InsertPoint.before(call))
    if sharding is None or _is_unspecified(sharding, value.type, call):
        replace(call, [value])
        return
    converted = named.sharding(sharding, value.type, call, open_dims(call))
    if converted.is_unconstrained or (sharding.is_manual and not converted.dims):
        replace(call, [value])
        return
    constraint = ShardingConstraintOp(value, converted)
    constraint.location = call.location
    replace(call, constraint)


def _is_unspecified(sharding: HloSharding, type_: Attribute, where: Operation) -> bool:
    """Return whether `sharding` specifies no layout; warn of a manual sharding outside of a manual computation."""
    if sharding.kind == "manual" and not _is_in_manual_computation(where):
        warn(
            where,
            f"{num_bytes(type_):,} bytes have the sharding {{manual}} outside of a manual region; it is ignored",
            category=LostShardingWarning,
        )
    return sharding.kind in ("manual", "unknown")


def _is_in_manual_computation(op: Operation) -> bool:
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, ManualComputationOp):
        parent = parent.parent_op()
    return parent is not None
