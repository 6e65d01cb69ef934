"""The registry of passes by name. Passes are imported on first use.

The pass `sdy-foo-bar` is the class `FooBarPass` in the file `foo_bar.py` of its folder.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from xdsl.passes import ModulePass

_FOLDERS = {
    "auto": """
        sdy-auto-partition
    """,
    "blocks": """
        sdy-fit-blocks
        sdy-split-reductions
    """,
    "common": """
        canonicalize
        cse
        inline
        symbol-dce
        sdy-inline-meshes
        sdy-save-module
    """,
    "importing": """
        sdy-add-data-flow-edges
        sdy-add-func-data-flow-edges
        sdy-apply-sharding-constraints
        sdy-constant-or-scalar-splitter
        sdy-expand-operations
        sdy-explicit-gather-scatter-batching
        sdy-flatten-call-graph
        sdy-import-func-calls
        sdy-import-gspmd
        sdy-lift-inlined-meshes
        sdy-manual-axes-cleanup
        sdy-pre-order-funcs
        sdy-propagate-sharding-from-func-to-call
        sdy-remove-size-one-axes
        sdy-rewrite-as-hlo
        sdy-sharding-group-import
        sdy-split-triangular-solves
        sdy-unify-meshes
    """,
    "propagation": """
        sdy-aggressive-propagate
        sdy-basic-propagate
        sdy-op-priority-propagate
        sdy-populate-op-sharding-rules
        sdy-user-priority-propagate
    """,
    "exporting": """
        sdy-close-shardings
        sdy-constant-or-scalar-merger
        sdy-drop-sharding-and-mesh
        sdy-drop-sharding-rules
        sdy-export-gspmd
        sdy-export-named-computations
        sdy-insert-explicit-reshards
        sdy-insert-func-call-reshards
        sdy-propagate-to-func-results
        sdy-remove-all-gather-reduce-scatter-for-cmv1
        sdy-remove-propagation-debug-info
        sdy-remove-sharding-groups
        sdy-remove-sub-axes-in-input-output-shardings
        sdy-reshard-to-collectives
        sdy-sharding-constraint-to-reshard
        sdy-sink-data-flow-edges
        sdy-sink-func-data-flow-edges
        sdy-unflatten-call-graph
        sdy-update-non-divisible-input-output-shardings
        sdy-verify-unreduced-axes
    """,
    "partitioning": """
        sdy-accumulate-in-stages
        sdy-compose-slices-and-pads
        sdy-convert-global-to-local
        sdy-drop-idle-axes
        sdy-expand-split-operations
        sdy-fold-empty-tensors
        sdy-fold-single-elements
        sdy-inline-functions
        sdy-inline-operators
        sdy-nest-input-output-sub-axes
        sdy-pad-for-divisibility
        sdy-per-instruction-partitioning
        sdy-plain
        sdy-reduce-in-stages
        sdy-rematerialize
        sdy-remove-propagation-barriers
        sdy-remove-unused-results
        sdy-resolve-permutation-factors
        sdy-resolve-single-device-sharding
        sdy-rewrite-as-slices-and-pads
        sdy-scatter-in-stages
        sdy-top-k-in-stages
    """,
    "communication": """
        sdy-end-row-loops
        sdy-expand-after-collectives
        sdy-hoist-invariant-collectives
        sdy-keep-own-slices
        sdy-mark-row-loops
        sdy-merge-equal-collectives
        sdy-merge-overlapping-permutes
        sdy-narrow-collectives
        sdy-prefetch-in-loops
        sdy-reduce-sums-once
        sdy-slice-before-collectives
        sdy-sum-after-loops
        sdy-window-products
    """,
    "for_xla": """
        sdy-combine-small-reductions
        sdy-constrain-fft-layouts
        sdy-draw-unsigned-bits
        sdy-keep-nan-in-collectives
        sdy-renumber-devices
    """,
}

_PIPELINES = {
    "sdy-prepare-pipeline": "PreparePipeline",
    "sdy-import-pipeline": "ImportPipeline",
    "sdy-propagation-pipeline": "PropagationPipeline",
    "sdy-export-pipeline": "ExportPipeline",
    "sdy-partition-pipeline": "PartitionPipeline",
    "sdy-for-xla-pipeline": "ForXlaPipeline",
}


def _load(module: str, class_name: str) -> type[ModulePass]:
    return getattr(import_module(f"sdy.passes.{module}"), class_name)


def _pass_loader(folder: str, name: str) -> Callable[[], type[ModulePass]]:
    words = name.removeprefix("sdy-").split("-")
    return partial(_load, f"{folder}.{'_'.join(words)}", "".join(word.capitalize() for word in words) + "Pass")


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    name: _pass_loader(folder, name) for folder, names in _FOLDERS.items() for name in names.split()
} | {name: partial(_load, "pipelines", class_name) for name, class_name in _PIPELINES.items()}
"""Loaders of the pass classes, by pass name."""


def summary(pass_class: type[ModulePass]) -> str:
    """Return the one-line summary of a pass: the first line of its docstring."""
    return (pass_class.__doc__ or "").strip().partition("\n")[0]
