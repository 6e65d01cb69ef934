"""Partitioned programs of the corpus as plain StableHLO, with the shards of arguments and the expected results."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from corpus import PROGRAMS
from partitioned_programs import assert_same, partitioned
from sdy.interpreter.manual import assemble, shard
from sdy.passes.driver import run_passes
from sdy.passes.jax.api.compile import compile, compile_unpartitioned
from sdy.passes.jax.program.inputs import random_inputs
from sdy.passes.jax.program.interface import Interface
from sdy.passes.partitioning.plain import PlainPass

DEVICES = 8


@dataclass(frozen=True)
class PlainProgram:
    """Program of the corpus: `inputs["0/1"]` is argument 0's shard on device 1, `whole` the unpartitioned results."""

    name: str
    module: ModuleOp
    inputs: Mapping[str, np.ndarray]
    whole: list[np.ndarray]
    _interface: Interface

    @classmethod
    def of(cls, name: str) -> "PlainProgram":
        module = PROGRAMS[name].module()
        local = partitioned(module)
        interface = Interface.of(local)
        inputs = [np.asarray(each) for each in random_inputs(compile(local).inputs, seed=0)]
        parts = {
            f"{number}/{device}": each if placed is None else shard(each, placed.sharding.dim_axes, placed.mesh, device)
            for number, (each, placed) in enumerate(zip(inputs, interface.inputs, strict=True))
            for device in range(DEVICES)
        }
        run_passes(local, [PlainPass()])
        whole = [np.asarray(each) for each in compile_unpartitioned(module)(*inputs)]
        return cls(name, local, parts, whole, interface)

    def check(self, parts: Mapping[str, np.ndarray]) -> None:
        """Check that the shards of the results are those of the unpartitioned results."""
        for number, placed in enumerate(self._interface.outputs):
            of_devices = {device: parts[f"{number}/{device}"] for device in range(DEVICES)}
            result = of_devices[0] if placed is None else assemble(of_devices, placed.sharding.dim_axes, placed.mesh)
            assert_same([result], [self.whole[number]], PROGRAMS[self.name].tolerance)
