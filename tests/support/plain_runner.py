"""`python plain_runner.py FOLDER ...`: runs programs of one device on eight devices with PJRT alone.

Nothing here imports this package: it stands for a compiler that knows only StableHLO. A folder contains the program as
`program.mlir`, StableHLO, or as `program.hlo`, a serialized HloModuleProto, and in `inputs`, pickled, arrays `0/1`, the
shard of argument 0 on device 1. The results are written to `results` in the same form.
"""

import os
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import backend
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax, xla_client
from jaxlib._hlo import XlaComputation
from jaxlib.mlir import ir


def main(folders: list[str]) -> None:
    # jax registers LAPACK, which programs may call, on the first use of its linear algebra.
    jnp.linalg.cholesky(jnp.eye(2))
    for folder in map(Path, folders):
        inputs = pickle.loads((folder / "inputs").read_bytes())
        results = run(program(folder), inputs)
        (folder / "results").write_bytes(pickle.dumps(results))
    assert not [name for name in sys.modules if name.partition(".")[0] == "sdy"]


def program(folder: Path) -> str:
    """Return the program of a folder as PJRT compiles it."""
    if (hlo := folder / "program.hlo").exists():
        # PJRT takes only MLIR. XLA's conversion of HLO keeps device assignments, but the sharding of a loop can
        # have more results than the loop.
        back = _jax.mlir.xla_computation_to_mlir_module(XlaComputation(hlo.read_bytes()))
        return marked(back, "stablehlo.while")
    return as_it_is((folder / "program.mlir").read_text())


def marked(program: str, *names: str) -> str:
    """Mark each operation with results, or each operation in `names`, as being for one device."""
    with mlir.make_ir_context():
        module = ir.Module.parse(program)

        def mark(operation: ir.Operation) -> ir.WalkResult:
            if len(operation.results) and (operation.name in names or not names):
                operation.attributes["mhlo.sharding"] = ir.StringAttr.get("{manual}")
            return ir.WalkResult.ADVANCE

        module.operation.walk(mark)
        return str(module)


def run(program: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run the program and return each device's shard of each result."""
    client = backend.get_backend("cpu")
    devices = client.devices()
    options = xla_client.CompileOptions()
    for part in (options, options.executable_build_options):
        part.num_replicas, part.num_partitions = 1, len(devices)
    options.executable_build_options.use_spmd_partitioning = True
    numbers = np.arange(len(devices)).reshape(1, -1)
    options.executable_build_options.device_assignment = xla_client.DeviceAssignment.create(numbers)
    executable = client.compile_and_load(program, xla_client.DeviceList(tuple(devices)), options)
    # The shards of a device are taken as they come: replicas are not compared.
    each_its_own = NamedSharding(Mesh(np.array(devices), "devices"), PartitionSpec())
    given = []
    for number in range(len(inputs) // len(devices)):
        parts = [jax.device_put(inputs[f"{number}/{index}"], device) for index, device in enumerate(devices)]
        given.append(jax.make_array_from_single_device_arrays(parts[0].shape, each_its_own, parts))
    returned = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return {
        f"{number}/{index}": np.asarray(part) for number, each in enumerate(returned) for index, part in enumerate(each)
    }


def as_it_is(program: str) -> str:
    """Mark each operation as partitioned, for XLA's partitioner."""
    program = marked(program)
    with mlir.make_ir_context():
        module = ir.Module.parse(program)
        assert module.operation.verify()
        for function in module.body.operations:
            for kind, types in (("arg_attrs", function.type.inputs), ("res_attrs", function.type.results)):
                manual = ir.DictAttr.get({"mhlo.sharding": ir.StringAttr.get("{manual}")})
                function.attributes[kind] = ir.ArrayAttr.get([manual] * len(types))
        return str(module)


if __name__ == "__main__":
    main(sys.argv[1:])
