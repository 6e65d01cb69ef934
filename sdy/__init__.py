"""Sharding propagation and SPMD partitioning of StableHLO programs, on xDSL.

    module = sdy.parse(text)            # or sdy.from_jax(jax.jit(step), *arguments)
    sdy.propagate(module)               # shards every tensor
    print(sdy.format(module))
    print(sdy.explain(module, "%12"))   # why a value has its sharding
    program = sdy.compile(module)       # partitions and compiles for the devices of the mesh
    results = program(*arrays)

The names of the public API are imported from their modules on first use.
"""

from typing import TYPE_CHECKING

from sdy.lazy_names import lazy_names as _lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sdy import blocks as blocks
    from sdy import mpmd as mpmd
    from sdy.axes import AxisRef as AxisRef
    from sdy.builder import Builder as Builder
    from sdy.diagnostics import ComputedWholeWarning as ComputedWholeWarning
    from sdy.diagnostics import DiagnosticError as DiagnosticError
    from sdy.diagnostics import LostShardingWarning as LostShardingWarning
    from sdy.diagnostics import MemoryLimitWarning as MemoryLimitWarning
    from sdy.diagnostics import ShardingWarning as ShardingWarning
    from sdy.diagnostics import UnknownOperationWarning as UnknownOperationWarning
    from sdy.dialect.shardings import get_sharding as get_sharding
    from sdy.mesh import Mesh as Mesh
    from sdy.operators.call import operator_name as operator_name
    from sdy.operators.work import Work as Work
    from sdy.passes import torch as torch
    from sdy.passes.account.account import account as account
    from sdy.passes.account.diff import diff as diff
    from sdy.passes.account.explain import explain as explain
    from sdy.passes.account.golden import ChangedLayoutError as ChangedLayoutError
    from sdy.passes.account.golden import check_golden as check_golden
    from sdy.passes.account.lint.lint import lint as lint
    from sdy.passes.account.lint.options import LintOptions as LintOptions
    from sdy.passes.account.model_explorer import to_model_explorer as to_model_explorer
    from sdy.passes.account.report.report import report as report
    from sdy.passes.auto.auto import auto as auto
    from sdy.passes.driver import partition as partition
    from sdy.passes.driver import propagate as propagate
    from sdy.passes.driver import run_passes as run_passes
    from sdy.passes.exporting.hlo import to_hlo_proto as to_hlo_proto
    from sdy.passes.exporting.hlo import to_hlo_text as to_hlo_text
    from sdy.passes.interpret import interpret as interpret
    from sdy.passes.jax.api.accumulate import accumulate as accumulate
    from sdy.passes.jax.api.auto_jit import AUTO as AUTO
    from sdy.passes.jax.api.auto_jit import Auto as Auto
    from sdy.passes.jax.api.compile import compile as compile
    from sdy.passes.jax.api.compiler import compiler as compiler
    from sdy.passes.jax.api.jit import jit as jit
    from sdy.passes.jax.bindings.from_jax import from_jax as from_jax
    from sdy.passes.jax.operators.register import register_op as register_op
    from sdy.passes.policy.split import split as split
    from sdy.passes.python.program import to_python as to_python
    from sdy.passes.python_layouts.specs import Specs as Specs
    from sdy.passes.python_layouts.specs import specs as specs
    from sdy.rule import OpShardingRule as OpShardingRule
    from sdy.sharding import DimSharding as DimSharding
    from sdy.sharding import TensorSharding
    from sdy.text import format as format
    from sdy.text import parse as parse
    from sdy.text import to_bytecode as to_bytecode

    Sharding = TensorSharding

_MODULES = {
    "AUTO": "sdy.passes.jax.api.auto_jit",
    "Auto": "sdy.passes.jax.api.auto_jit",
    "AxisRef": "sdy.axes",
    "Builder": "sdy.builder",
    "ChangedLayoutError": "sdy.passes.account.golden",
    "ComputedWholeWarning": "sdy.diagnostics",
    "DiagnosticError": "sdy.diagnostics",
    "DimSharding": "sdy.sharding",
    "LintOptions": "sdy.passes.account.lint.options",
    "LostShardingWarning": "sdy.diagnostics",
    "MemoryLimitWarning": "sdy.diagnostics",
    "Mesh": "sdy.mesh",
    "OpShardingRule": "sdy.rule",
    "Sharding": "sdy.sharding:TensorSharding",
    "ShardingWarning": "sdy.diagnostics",
    "UnknownOperationWarning": "sdy.diagnostics",
    "accumulate": "sdy.passes.jax.api.accumulate",
    "auto": "sdy.passes.auto.auto",
    "Work": "sdy.operators.work",
    "account": "sdy.passes.account.account",
    "blocks": "sdy.blocks:",
    "check_golden": "sdy.passes.account.golden",
    "compile": "sdy.passes.jax.api.compile",
    "compiler": "sdy.passes.jax.api.compiler",
    "diff": "sdy.passes.account.diff",
    "explain": "sdy.passes.account.explain",
    "format": "sdy.text",
    "from_jax": "sdy.passes.jax.bindings.from_jax",
    "get_sharding": "sdy.dialect.shardings",
    "interpret": "sdy.passes.interpret",
    "jit": "sdy.passes.jax.api.jit",
    "lint": "sdy.passes.account.lint.lint",
    "mpmd": "sdy.mpmd:",
    "operator_name": "sdy.operators.call",
    "parse": "sdy.text",
    "partition": "sdy.passes.driver",
    "propagate": "sdy.passes.driver",
    "register_op": "sdy.passes.jax.operators.register",
    "report": "sdy.passes.account.report.report",
    "run_passes": "sdy.passes.driver",
    "Specs": "sdy.passes.python_layouts.specs",
    "specs": "sdy.passes.python_layouts.specs",
    "split": "sdy.passes.policy.split",
    "to_bytecode": "sdy.text",
    "to_hlo_proto": "sdy.passes.exporting.hlo",
    "to_hlo_text": "sdy.passes.exporting.hlo",
    "to_model_explorer": "sdy.passes.account.model_explorer",
    "to_python": "sdy.passes.python.program",
    "torch": "sdy.passes.torch:",
}

__getattr__, __dir__ = _lazy_names("sdy", globals(), _MODULES)
