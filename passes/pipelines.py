"""The named pipelines: sequences of passes.

sdy-prepare-pipeline       converts GSPMD shardings and decomposes operations, before sdy-propagation-pipeline
sdy-import-pipeline        prepares a module for propagation: meshes, constants, data flow
sdy-propagation-pipeline   imports, propagates and exports: every value gets its final sharding
sdy-export-pipeline        cleans up after propagation, and inserts reshards
sdy-partition-pipeline     partitions a propagated module into the per-device program with collectives
sdy-for-xla-pipeline       rewrites a per-device program for XLA, which compiles some operations wrongly or slowly

Passes that most programs do not need are imported on use.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sdy.dialect.attributes import HARDWARE, MEMORY_LIMIT
from sdy.passes.common.canonicalize import CanonicalizePass
from sdy.passes.common.inline_meshes import InlineMeshesPass
from sdy.passes.common.save_module import SaveModulePass
from sdy.passes.common.symbol_dce import SymbolDcePass
from sdy.passes.exporting.close_shardings import CloseShardingsPass
from sdy.passes.exporting.constant_or_scalar_merger import ConstantOrScalarMergerPass
from sdy.passes.exporting.drop_sharding_rules import DropShardingRulesPass
from sdy.passes.exporting.export_named_computations import ExportNamedComputationsPass
from sdy.passes.exporting.insert_explicit_reshards import InsertExplicitReshardsPass
from sdy.passes.exporting.insert_func_call_reshards import InsertFuncCallReshardsPass
from sdy.passes.exporting.propagate_to_func_results import PropagateToFuncResultsPass
from sdy.passes.exporting.remove_sharding_groups import RemoveShardingGroupsPass
from sdy.passes.exporting.remove_sub_axes_in_input_output_shardings import RemoveSubAxesInInputOutputShardingsPass
from sdy.passes.exporting.sharding_constraint_to_reshard import ShardingConstraintToReshardPass
from sdy.passes.exporting.sink_data_flow_edges import SinkDataFlowEdgesPass
from sdy.passes.exporting.unflatten_call_graph import UnflattenCallGraphPass
from sdy.passes.exporting.update_non_divisible_input_output_shardings import UpdateNonDivisibleInputOutputShardingsPass
from sdy.passes.exporting.verify_unreduced_axes import VerifyUnreducedAxesPass
from sdy.passes.importing.add_data_flow_edges import AddDataFlowEdgesPass
from sdy.passes.importing.apply_sharding_constraints import ApplyShardingConstraintsPass
from sdy.passes.importing.constant_or_scalar_splitter import ConstantOrScalarSplitterPass
from sdy.passes.importing.expand_operations import ExpandOperationsPass
from sdy.passes.importing.flatten_call_graph import FlattenCallGraphPass
from sdy.passes.importing.import_func_calls import ImportFuncCallsPass
from sdy.passes.importing.lift_inlined_meshes import LiftInlinedMeshesPass
from sdy.passes.importing.manual_axes_cleanup import ManualAxesCleanupPass
from sdy.passes.importing.pre_order_funcs import PreOrderFuncsPass
from sdy.passes.importing.propagate_sharding_from_func_to_call import PropagateShardingFromFuncToCallPass
from sdy.passes.importing.remove_size_one_axes import RemoveSizeOneAxesPass
from sdy.passes.importing.sharding_group_import import ShardingGroupImportPass
from sdy.passes.importing.split_triangular_solves import SplitTriangularSolvesPass
from sdy.passes.importing.unify_meshes import UnifyMeshesPass
from sdy.passes.propagation.user_priority_propagate import UserPriorityPropagatePass


@dataclass(frozen=True)
class Pipeline(ModulePass):
    """A sequence of passes, which numbers the files that they save."""

    first_dump: ClassVar[int] = 0
    """The number of the first saved file."""

    @abstractmethod
    def passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        """Yield the passes for `module` in order. A pass is requested after its predecessors have run."""

    def numbered_passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        """Yield the passes; those that save files get the number of their next file."""
        index = self.first_dump
        for step in self.passes(module):
            saves = type(step) is SaveModulePass
            if saves or type(step) is UserPriorityPropagatePass:
                step = replace(step, dump_index=index)
            yield step
            index += saves

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for step in self.numbered_passes(op):
            step.apply(ctx, op)


@dataclass(frozen=True)
class PreparePipeline(Pipeline):
    """Convert GSPMD shardings, and decompose operations through which shardings cannot propagate.

    `sdy.propagate`, `sdy.jit`, `sdy.auto` and the tools run it before `sdy-propagation-pipeline`, which is Shardy's.
    """

    name = "sdy-prepare-pipeline"

    def passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        from sdy.passes.importing.import_gspmd import ImportGspmdPass, needs_import_from_gspmd

        if needs_import_from_gspmd(module):
            yield ImportGspmdPass()
        yield ExpandOperationsPass()
        yield SplitTriangularSolvesPass()
        yield SymbolDcePass()


@dataclass(frozen=True)
class ImportPipeline(Pipeline):
    """Prepare a module for propagation: lift meshes, split constants, insert data-flow edges.

    With `unify_meshes`, an addition to Shardy's options, shardings on several meshes over the same devices are
    converted to a common mesh.
    """

    name = "sdy-import-pipeline"
    dedup_functions_fully: bool = False
    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False
    dump_directory: str = ""
    enable_explicit_gather_scatter_batching: bool = False
    unify_meshes: bool = False

    def passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        yield SymbolDcePass()
        yield LiftInlinedMeshesPass()
        if self.unify_meshes:
            yield UnifyMeshesPass()
        yield RemoveSizeOneAxesPass()
        yield PropagateShardingFromFuncToCallPass()
        yield ConstantOrScalarSplitterPass()
        if self.enable_explicit_gather_scatter_batching:
            from sdy.passes.importing.explicit_gather_scatter_batching import ExplicitGatherScatterBatchingPass

            yield ExplicitGatherScatterBatchingPass()
        yield SymbolDcePass()
        yield ManualAxesCleanupPass()
        yield SaveModulePass(self.dump_directory, "before_propagation")
        yield AddDataFlowEdgesPass()
        if self.dedup_functions_fully:
            yield ApplyShardingConstraintsPass(self.debug_sharding_origins, self.debug_propagation_edge_sharding)
            yield ShardingGroupImportPass()


@dataclass(frozen=True)
class ExportPipeline(Pipeline):
    """Clean up after propagation: finalize shardings, and insert reshards or, optionally, collectives.

    `avoid_reshards_on_calls` has no effect, as in Shardy; it exists so that Shardy's command lines are accepted.
    """

    name = "sdy-export-pipeline"
    avoid_export_for_partitioning: bool = False
    enable_insert_explicit_collectives: bool = False
    remove_all_gather_reduce_scatter_for_cmv1: bool = False
    enable_per_instruction_partitioning: bool = False
    per_instruction_partitioning_filter: str = ""
    replica_count: int = 1
    partition_count: int = 1
    keep_sharding_rules: bool = False
    dump_sharding_origins: bool = False
    dump_propagation_edges: bool = False
    avoid_reshards_on_calls: bool = False
    update_non_divisible_input_output_shardings: bool = True
    inline_meshes: bool = True
    dump_directory: str = ""

    def passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        yield ConstantOrScalarMergerPass()
        yield SinkDataFlowEdgesPass(self.dump_sharding_origins, self.dump_propagation_edges)
        if not self.avoid_export_for_partitioning:
            yield RemoveShardingGroupsPass()
            yield ShardingConstraintToReshardPass()
        if self.update_non_divisible_input_output_shardings:
            yield UpdateNonDivisibleInputOutputShardingsPass()
            yield RemoveSubAxesInInputOutputShardingsPass()
        yield CloseShardingsPass()
        yield SaveModulePass(self.dump_directory, "after_propagation")
        if not self.avoid_export_for_partitioning:
            per_instruction = None
            if self.enable_per_instruction_partitioning:
                from sdy.passes.partitioning.per_instruction_partitioning import PerInstructionPartitioningPass

                per_instruction = PerInstructionPartitioningPass(
                    self.per_instruction_partitioning_filter,
                    replica_count=self.replica_count,
                    partition_count=self.partition_count,
                )
            yield from insert_reshards(
                self.enable_insert_explicit_collectives,
                self.dump_directory,
                self.remove_all_gather_reduce_scatter_for_cmv1,
                per_instruction=per_instruction,
            )
        if self.dump_sharding_origins or self.dump_propagation_edges:
            from sdy.passes.exporting.remove_propagation_debug_info import RemovePropagationDebugInfoPass

            yield RemovePropagationDebugInfoPass()
        if not self.keep_sharding_rules:
            yield DropShardingRulesPass()
        if self.inline_meshes and not self.avoid_export_for_partitioning:
            yield InlineMeshesPass()


def insert_reshards(
    explicit_collectives: bool,
    dump_directory: str = "",
    for_cmv1: bool = False,
    least_communication: bool = False,
    per_instruction: ModulePass | None = None,
) -> Iterator[ModulePass]:
    """Yield the passes that insert reshards or collectives.

    Args:
        explicit_collectives: Lower reshards to collectives.
        dump_directory: The directory to which intermediate modules are saved; empty to save none.
        for_cmv1: Remove the collectives that XLA's first collective matmul inserts itself.
        least_communication: Choose the collectives that send the fewest elements, with halo exchanges, not Shardy's.
        per_instruction: A pass that partitions selected operations and reshards to per-device programs; reshards are
            then not lowered to collectives.
    """
    yield VerifyUnreducedAxesPass()
    in_full = explicit_collectives or per_instruction is not None
    yield InsertExplicitReshardsPass(in_full, least_communication)
    if per_instruction is not None:
        yield SaveModulePass(dump_directory, "before_per_instruction_partitioning")
        yield per_instruction
        yield SaveModulePass(dump_directory, "after_per_instruction_partitioning")
    elif explicit_collectives:
        from sdy.passes.exporting.reshard_to_collectives import ReshardToCollectivesPass

        if least_communication:
            from sdy.passes.partitioning.resolve_permutation_factors import ResolvePermutationFactorsPass

            yield ResolvePermutationFactorsPass(least_communication=True)
        yield SaveModulePass(dump_directory, "after_explicit_reshards")
        yield CanonicalizePass(enable_patterns=("sdy-reshard",))
        yield ReshardToCollectivesPass(least_communication=least_communication)
    yield CanonicalizePass(enable_patterns=("sdy-collective",))
    if explicit_collectives and for_cmv1:
        from sdy.passes.exporting.remove_all_gather_reduce_scatter_for_cmv1 import (
            RemoveAllGatherReduceScatterForCmv1Pass,
        )

        yield RemoveAllGatherReduceScatterForCmv1Pass()
    partitioner = "partitioner" if explicit_collectives else "minimal_partitioner"
    yield SaveModulePass(dump_directory, f"after_{partitioner}_with_global_shapes")


@dataclass(frozen=True)
class PropagationPipeline(Pipeline):
    """Propagate shardings to every tensor: import, propagate by user and operation priority, export."""

    name = "sdy-propagation-pipeline"
    first_dump = 1
    dedup_functions_fully: bool = False
    keep_sharding_rules: bool = False
    conservative_propagation: bool = False
    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False
    avoid_export_for_partitioning: bool = False
    enable_insert_explicit_collectives: bool = False
    update_non_divisible_input_output_shardings: bool = True
    inline_meshes: bool = False
    dump_directory: str = ""
    unify_meshes: bool = False

    def passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        yield from self.passes_before_propagation(module)
        yield UserPriorityPropagatePass(
            keep_sharding_rules=True,
            conservative_propagation=self.conservative_propagation,
            debug_sharding_origins=self.debug_sharding_origins,
            debug_propagation_edge_sharding=self.debug_propagation_edge_sharding,
            module_dump_directory=self.dump_directory,
        )
        yield from self._passes_after_propagation(module)

    def passes_before_propagation(self, module: ModuleOp) -> Iterator[ModulePass]:
        """Yield the passes that leave `module` as `sdy-user-priority-propagate` takes it."""
        debug = (self.debug_sharding_origins, self.debug_propagation_edge_sharding)
        yield from ImportPipeline(
            self.dedup_functions_fully, *debug, self.dump_directory, unify_meshes=self.unify_meshes
        ).passes(module)
        if self.dedup_functions_fully:
            from sdy.passes.importing.add_func_data_flow_edges import AddFuncDataFlowEdgesPass

            yield AddFuncDataFlowEdgesPass()
        else:
            yield FlattenCallGraphPass()
            yield SymbolDcePass()
            yield ImportFuncCallsPass()
            yield SymbolDcePass()
            yield ApplyShardingConstraintsPass(*debug)
            yield ShardingGroupImportPass()
        yield PreOrderFuncsPass()

    def _passes_after_propagation(self, module: ModuleOp) -> Iterator[ModulePass]:
        if self.dedup_functions_fully:
            from sdy.passes.exporting.sink_func_data_flow_edges import SinkFuncDataFlowEdgesPass

            yield PropagateToFuncResultsPass()
            yield SinkFuncDataFlowEdgesPass()
        else:
            yield ExportNamedComputationsPass()
            yield PropagateToFuncResultsPass()
        yield UnflattenCallGraphPass()
        yield SymbolDcePass()
        yield InsertFuncCallReshardsPass()
        yield from ExportPipeline(
            avoid_export_for_partitioning=self.avoid_export_for_partitioning,
            enable_insert_explicit_collectives=self.enable_insert_explicit_collectives,
            keep_sharding_rules=self.keep_sharding_rules,
            dump_sharding_origins=self.debug_sharding_origins,
            dump_propagation_edges=self.debug_propagation_edge_sharding,
            update_non_divisible_input_output_shardings=self.update_non_divisible_input_output_shardings,
            inline_meshes=self.inline_meshes,
            dump_directory=self.dump_directory,
        ).passes(module)


@dataclass(frozen=True)
class PartitionPipeline(Pipeline):
    """Partition a propagated module into the per-device program, with explicit collectives.

    With `enable_rgv3`, replica groups refer to mesh axes instead of listing devices, where they correspond to full
    axes. With `memory`, a size such as `2G`, values are recomputed until the predicted memory of a device is at most
    that, or moved to the host if `hardware`, a preset or a file, has a link to it. By default, they are the module's
    attributes `sdy.memory_limit` and `sdy.hardware`, if any.
    """

    name = "sdy-partition-pipeline"
    first_dump = 4
    dump_directory: str = ""
    enable_rgv3: bool = False
    memory: str = ""
    hardware: str = ""

    def passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        from sdy.passes.communication.end_row_loops import EndRowLoopsPass
        from sdy.passes.communication.expand_after_collectives import ExpandAfterCollectivesPass
        from sdy.passes.communication.hoist_invariant_collectives import HoistInvariantCollectivesPass
        from sdy.passes.communication.keep_own_slices import KeepOwnSlicesPass
        from sdy.passes.communication.mark_row_loops import MarkRowLoopsPass
        from sdy.passes.communication.merge_equal_collectives import MergeEqualCollectivesPass
        from sdy.passes.communication.merge_overlapping_permutes import MergeOverlappingPermutesPass
        from sdy.passes.communication.narrow_collectives import NarrowCollectivesPass
        from sdy.passes.communication.reduce_sums_once import ReduceSumsOncePass
        from sdy.passes.communication.slice_before_collectives import SliceBeforeCollectivesPass
        from sdy.passes.communication.sum_after_loops import SumAfterLoopsPass
        from sdy.passes.partitioning.accumulate_in_stages import AccumulateInStagesPass
        from sdy.passes.partitioning.compose_slices_and_pads import ComposeSlicesAndPadsPass
        from sdy.passes.partitioning.convert_global_to_local import ConvertGlobalToLocalPass
        from sdy.passes.partitioning.drop_idle_axes import DropIdleAxesPass
        from sdy.passes.partitioning.expand_split_operations import ExpandSplitOperationsPass, expands
        from sdy.passes.partitioning.fold_empty_tensors import FoldEmptyTensorsPass
        from sdy.passes.partitioning.fold_single_elements import FoldSingleElementsPass
        from sdy.passes.partitioning.inline_functions import InlineFunctionsPass
        from sdy.passes.partitioning.inline_operators import InlineOperatorsPass
        from sdy.passes.partitioning.nest_input_output_sub_axes import NestInputOutputSubAxesPass
        from sdy.passes.partitioning.pad_for_divisibility import PadForDivisibilityPass
        from sdy.passes.partitioning.reduce_in_stages import ReduceInStagesPass
        from sdy.passes.partitioning.remove_propagation_barriers import RemovePropagationBarriersPass
        from sdy.passes.partitioning.remove_unused_results import RemoveUnusedResultsPass
        from sdy.passes.partitioning.resolve_single_device_sharding import ResolveSingleDeviceShardingPass
        from sdy.passes.partitioning.rewrite_as_slices_and_pads import RewriteAsSlicesAndPadsPass
        from sdy.passes.partitioning.scatter_in_stages import ScatterInStagesPass
        from sdy.passes.partitioning.top_k_in_stages import TopKInStagesPass
        from sdy.passes.spmd.shards.layout import refuse_large_meshes

        refuse_large_meshes(module)
        yield UnifyMeshesPass()
        is_to_propagate = expands(module)
        yield ExpandSplitOperationsPass()
        if is_to_propagate:
            yield PropagationPipeline()
        yield RemovePropagationBarriersPass()
        yield InlineFunctionsPass()
        yield FoldEmptyTensorsPass()
        yield FoldSingleElementsPass()
        yield RewriteAsSlicesAndPadsPass()
        yield ComposeSlicesAndPadsPass()
        yield UpdateNonDivisibleInputOutputShardingsPass()
        yield NestInputOutputSubAxesPass()
        yield DropIdleAxesPass()
        yield TopKInStagesPass()
        yield ScatterInStagesPass()
        yield ReduceInStagesPass()
        yield AccumulateInStagesPass()
        yield RemoveUnusedResultsPass()
        yield from insert_reshards(True, self.dump_directory, least_communication=True)
        yield DropShardingRulesPass()
        yield MarkRowLoopsPass()
        yield PadForDivisibilityPass(least_communication=True)
        yield ResolveSingleDeviceShardingPass()
        yield ConvertGlobalToLocalPass(
            combine_multi_dimension_reduce_scatter=True,
            compute_whole=True,
            enable_rgv3=self.enable_rgv3,
            least_communication=True,
        )
        yield InlineOperatorsPass()
        yield RemoveUnusedResultsPass()
        yield KeepOwnSlicesPass()
        yield ReduceSumsOncePass(self.hardware)
        yield SumAfterLoopsPass(self.hardware)
        yield HoistInvariantCollectivesPass(self.hardware)
        yield EndRowLoopsPass()
        yield MergeEqualCollectivesPass()
        yield MergeOverlappingPermutesPass()
        yield ExpandAfterCollectivesPass()
        yield NarrowCollectivesPass()
        yield SliceBeforeCollectivesPass()
        yield SymbolDcePass()
        if self.hardware or HARDWARE in module.attributes:
            from sdy.passes.communication.prefetch_in_loops import PrefetchInLoopsPass
            from sdy.passes.communication.window_products import WindowProductsPass

            yield WindowProductsPass(self.hardware)
            yield PrefetchInLoopsPass(self.hardware, self.memory)
        if self.memory or MEMORY_LIMIT in module.attributes:
            from sdy.passes.partitioning.rematerialize import RematerializePass

            yield RematerializePass(self.memory, self.hardware)


@dataclass(frozen=True)
class ForXlaPipeline(Pipeline):
    """Rewrite a per-device program for XLA, which refuses some operations, or compiles them wrongly or slowly.

    `sdy.jit` and `sdy.compile` run it after `sdy-partition-pipeline`.
    """

    name = "sdy-for-xla-pipeline"

    def passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        from sdy.passes.for_xla.combine_small_reductions import CombineSmallReductionsPass
        from sdy.passes.for_xla.constrain_fft_layouts import ConstrainFftLayoutsPass
        from sdy.passes.for_xla.draw_unsigned_bits import DrawUnsignedBitsPass
        from sdy.passes.for_xla.keep_nan_in_collectives import KeepNanInCollectivesPass

        yield DrawUnsignedBitsPass()
        yield KeepNanInCollectivesPass()
        yield CombineSmallReductionsPass()
        yield ConstrainFftLayoutsPass()
