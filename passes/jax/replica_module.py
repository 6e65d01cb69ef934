"""A module that says what each device does, for which the devices are replicas of one another.

XLA neither propagates nor partitions such a module: to do so with a manual computation of hundreds of values takes it a
fifth of all the time in which it compiles a deep model.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jax.sharding import NamedSharding, PartitionSpec
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32

from sdy.ir.editing import replace, turn_into
from sdy.ir.walking import operations
from sdy.passes.common.argument_attributes import attribute_names, check_donations, remove_from_arguments_and_results
from sdy.passes.common.call_graph import main_function
from sdy.passes.gspmd.named_shardings import NUM_PARTITIONS
from sdy.passes.jax.sharded_program import MadeLocal, prepare_for_xla
from sdy.passes.spmd.replica_groups import device_list
from sdy.stablehlo.checks.process_groups import GloballyGroupedOp, GroupedOp, numbers_of
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.stablehlo.constants import PartitionIdOp, ReplicaIdOp
from sdy.stablehlo.emitter import before
from sdy.text import format

NUM_REPLICAS = "mhlo.num_replicas"
"""The attribute of a module that says how many devices run it, each on its own data."""

_SHARDINGS = ("sdy.", "mhlo.sharding")


class ReplicaModule(NamedTuple):
    """The text of a module that each device runs, and where whole arguments and results lie."""

    text: str
    inputs: Sequence[NamedSharding]
    outputs: Sequence[NamedSharding]


def make_replicas(module: ModuleOp, local: MadeLocal, declared: ModuleOp) -> ReplicaModule:
    """Let the devices of `module`, which was `local`ly made, be replicas, in place.

    Before, where the main function of `declared` is `@main(%arg0: tensor<8xf32>) -> tensor<8xf32>`::

        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<f32> {
          %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [0] : ...
          return %0 : tensor<f32>
        }

    After::

        module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
          func.func @main(%arg0: tensor<2xf32>) -> tensor<f32> {
            %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [0] : ...
            %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ...
            return %1 : tensor<f32>
          }
        }

    Raises DiagnosticError where XLA cannot run it.
    """
    mesh, interface, grid = local
    prepare_for_xla(module)
    main, outside = interface.main, main_function(declared)
    main.arg_attrs, main.res_attrs = outside.arg_attrs, outside.res_attrs
    remove_from_arguments_and_results(main, {name for name in attribute_names(main) if name.startswith(_SHARDINGS)})
    check_donations(main)
    module.attributes = {name: value for name, value in declared.attributes.items() if not name.startswith(_SHARDINGS)}
    make_partitions_replicas(module, mesh.size)
    inputs, outputs = ([_as_jax_says(port.sharding) for port in ports] for ports in interface.ports(grid))
    return ReplicaModule(format(module, generic=True, debuginfo=True), inputs, outputs)


def _as_jax_says(sharding: NamedSharding) -> NamedSharding:
    """The same sharding, which says nothing of the last dimensions that are whole."""
    partitions = sharding.spec.partitions
    count = max((index for index, axes in enumerate(partitions, 1) if axes is not None), default=0)
    return NamedSharding(sharding.mesh, PartitionSpec(*partitions[:count], unreduced=sharding.spec.unreduced))


def make_partitions_replicas(module: ModuleOp, count: int) -> None:
    """Let `module`, which so many partitions of one replica run, be one that so many replicas run, in place."""
    module.attributes |= {NUM_PARTITIONS: IntegerAttr(1, i32), NUM_REPLICAS: IntegerAttr(count, i32)}
    for op in operations(module):
        if isinstance(op, ReplicaIdOp):
            replace(op, [before(op).filled(tensor_type(op.result), 0)])
        elif isinstance(op, PartitionIdOp):
            turn_into(op, ReplicaIdOp)
        elif isinstance(op, GroupedOp | CollectivePermuteOp):
            _let_replicas_take_part(op, count)


def _let_replicas_take_part(op: GroupedOp | CollectivePermuteOp, count: int) -> None:
    """Let the devices that take part in a collective together be replicas.

    A channel connects partitions: without one, each was alone with those of other replicas, of which there were none.
    """
    is_connected = op.properties.pop("channel_handle", None) is not None
    by_device = op.properties.pop("use_global_device_ids", None) is not None
    everyone = range(count)
    if not is_connected:
        if isinstance(op, GroupedOp):
            op.properties["replica_groups"] = device_list(everyone, (count, 1))
        elif numbers_of(op.source_target_pairs)[1]:
            op.properties["source_target_pairs"] = device_list([n for n in everyone for _ in range(2)], (count, 2))
    elif isinstance(op, GloballyGroupedOp) and not by_device:
        op.properties["replica_groups"] = device_list(everyone, (1, count))
