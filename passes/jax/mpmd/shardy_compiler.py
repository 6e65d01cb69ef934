"""Shardy's MPMD compiler: the C++ in jaxlib, in a process of its own, because it logs to standard output.

`jaxlib._sdy_mpmd` imports a module by a name of its build, `jax.jaxlib`; an alias in `sys.modules` makes it importable.
So does an empty module in place of `jax`, whose import takes three times as long as the rest.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from sdy.passes.common.call_graph import main_function
from sdy.text import format

PHASES = ("IMPORT", "OPTIMIZE", "PARTITION")

_VERSIONS = "0.10.2 to 0.12.0.1"
"""The versions of jaxlib whose compiler this file was tested with."""

CHILD = """
import json, os, sys, types
import jaxlib, jaxlib._jax
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # the compiler logs to standard output
sys.modules.update({"jax": types.ModuleType("jax"), "jax.jaxlib": jaxlib, "jax.jaxlib._jax": jaxlib._jax})
try:
    import jaxlib._sdy_mpmd as mpmd
except ImportError:
    json.dump(None, answer)
    sys.exit()
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, mpmd as mpmd_dialect, sdy, stablehlo

request = json.load(sys.stdin)
upstream = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(upstream)
with ir.Context() as context:
    context.append_dialect_registry(upstream)
    context.load_all_available_dialects()
    for dialect in (chlo, mpmd_dialect, sdy, stablehlo):
        dialect.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    module = ir.Module.parse(request["text"])
    for phase in request["phases"]:
        options = request["partitioning"] | {"assignment": {
            name: tuple(mesh) if isinstance(mesh, list) else mesh
            for name, mesh in request["partitioning"]["assignment"].items()
        }}
        result = mpmd.apply_mpmd_partitioning(
            module,
            fragment_merge_rules=[],
            fragment_schedule_rules=[],
            phases=getattr(mpmd.PartitioningPhase, phase),
            **options,
        )
        module = result.mpmd_module
    texts = [module.operation.get_asm(**flags) for flags in request["flags"]]
json.dump(texts, answer)
"""


def partition(
    module: ModuleOp,
    meshes: Mapping[str, Mapping[str, int]],
    assignment: Mapping[str, tuple[str, int]],
    *,
    phases: Sequence[str] = PHASES,
    donated: Sequence[int] = (),
    splits_backwards: bool = False,
    schedule: str = "None",
) -> str:
    """Return a module after phases of the compiler, with every inference of meshes allowed.

    Args:
        module: A module whose @main has named computations.
        meshes: The axes of each mesh.
        assignment: The mesh and the number of the stage of each name.
        phases: Some of `PHASES`.
        donated: The indices of the donated arguments.
        splits_backwards: Whether gradients of inputs and of weights are separate fragments.
        schedule: Shardy's name of a schedule, such as "1F1B"; by default, microbatches follow each other.

    Raises:
        NotImplementedError: jaxlib has no MPMD compiler.
        ValueError: The compiler rejects the program.
    """
    main = main_function(module)
    partitioning = {
        "func_name": "main",
        "named_meshes": [(name, [*axes.items()]) for name, axes in meshes.items()],
        "assignment": assignment,
        "input_meshes": [None] * len(main.function_type.inputs),
        "output_meshes": [None] * len(main.function_type.outputs),
        "donate_argnums": [*donated],
        "partitioning_options": {
            "mpmd_infer_transfers": True,
            "mpmd_infer_cross_mesh_reductions": True,
            "mpmd_pipeline_schedule": schedule,
            "mpmd_split_bwd_fragments": splits_backwards,
        },
    }
    (text,) = ask(format(module), phases=phases, partitioning=partitioning)
    return text


def ask(
    text: str,
    *flags: Mapping[str, bool],
    phases: Sequence[str] = (),
    partitioning: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return a module after phases of the compiler, as MLIR prints it with each of the `flags`.

    Raises:
        NotImplementedError: jaxlib has no MPMD compiler.
        ValueError: The compiler rejects the program.
    """
    request = {"text": text, "phases": phases, "partitioning": partitioning, "flags": flags or ({},)}
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    if child.returncode:
        errors = [line for line in child.stderr.splitlines() if "error:" in line] or child.stderr.splitlines()[-1:]
        raise ValueError("Shardy's MPMD compiler failed: " + "\n".join(errors))
    answer = json.loads(child.stdout)
    if answer is None:
        raise NotImplementedError(
            f"jaxlib {version('jaxlib')} has no MPMD compiler (jaxlib._sdy_mpmd), which partitions pipelines; "
            f"jaxlib {_VERSIONS} have it"
        )
    return answer
