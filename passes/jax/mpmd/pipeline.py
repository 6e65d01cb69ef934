"""An MPMD program as a function on jax arrays."""

from collections.abc import Mapping
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error
from sdy.mpmd.topology import topology_of
from sdy.passes.common.argument_names import argument_names
from sdy.passes.common.donations import is_donated
from sdy.passes.jax.mpmd.fragments import compile_fragments
from sdy.passes.jax.mpmd.value_places import Place, devices_of_meshes, places_of
from sdy.passes.jax.program.interface import WithPorts, result_names
from sdy.passes.mpmd.programs import entry_point
from sdy.passes.mpmd.steps import Call, Free, StepList, Transfer

_CPU_TRANSFERS = "jax_cross_host_transfer_socket_address"


class Pipeline(WithPorts):
    """A compiled MPMD program: call it with global arrays, jax's or numpy's, to get a tuple of jax arrays.

    Each process compiles and runs the fragments on the meshes that have devices of its own. All processes must call the
    pipeline, with the same arguments. A process has no shards of results on other processes' devices; it can pass them
    to the next call.

    Attributes:
        inputs: the arguments.
        outputs: the results.
        steps: the calls, transfers and releases in the order in which all processes walk them.
        received_bytes: the bytes that a call moves between meshes, by the names of sender and receiver.
        programs: the compiled fragments of this process, by the names of function and mesh.
    """

    def __init__(self, module: ModuleOp, meshes: Mapping[str, jax.sharding.Mesh] | None = None):
        main = entry_point(module)
        topology = topology_of(main)
        plan = StepList.of(main)
        devices = devices_of_meshes(topology, meshes, module)
        names = dict(zip(plan.inputs, argument_names(main), strict=True))
        names |= {
            value: name for value, name in zip(plan.outputs, result_names(main), strict=True) if value not in names
        }
        donated = frozenset(index for index in plan.inputs if is_donated(main, index))
        self._places = places_of(plan.types, names, donated, topology, devices, module)
        self._plan = plan
        self.steps = plan.steps
        self.inputs = tuple(self._places[value] for value in plan.inputs)
        self.outputs = tuple(self._places[value] for value in plan.outputs)
        self.received_bytes = self._transfer_bytes()
        self._check_transfers(module)
        here = jax.process_index()
        owned = {name for name, own in devices.items() if any(device.process_index == here for device in own)}
        calls = [(step.callee, step.mesh) for step in plan.steps if isinstance(step, Call) and step.mesh in owned]
        self.programs = compile_fragments(module, calls, devices)

    def __repr__(self) -> str:
        calls = sum(isinstance(step, Call) for step in self.steps)
        transfers = sum(len(step.inputs) for step in self.steps if isinstance(step, Transfer))
        return f"<a pipeline of {calls} calls and {transfers} transfers; programs here: {len(self.programs)}>"

    def __call__(self, *arguments: Any) -> tuple[jax.Array, ...]:
        """Run the program.

        Raises:
            TypeError: An argument, which the message names, is not an array or has another element type.
            ValueError: An argument, which the message names, has another shape.
        """
        if len(arguments) != len(self.inputs):
            raise TypeError(f"the program takes {len(self.inputs)} arguments, not {len(arguments)}")
        with jax.enable_x64(True):
            pairs = zip(self._plan.inputs, arguments, strict=True)
            values = {value: self._places[value].put(argument) for value, argument in pairs}
            del arguments, pairs
            for step in self.steps:
                match step:
                    case Call():
                        self._call(step, values)
                    case Transfer():
                        self._transfer(step, values)
                    case Free():
                        self._free(step, values)
        return tuple(values[value] for value in self._plan.outputs)

    def _call(self, step: Call, values: dict[int, jax.Array]) -> None:
        program = self.programs.get((step.callee, step.mesh))
        if program is None:
            values.update((value, self._places[value].placeholder()) for value in step.outputs)
        else:
            values.update(zip(step.outputs, program(*(values[value] for value in step.inputs)), strict=True))

    def _transfer(self, step: Transfer, values: dict[int, jax.Array]) -> None:
        """Start the transfers of a step together.

        All processes start a transfer between processes, those without a shard of the value too: jax matches senders
        and receivers by the number of transfers that a process has started.
        """
        pairs = [*zip(step.inputs, step.outputs, strict=True)]
        started = [(source, target) for source, target in pairs if self._starts(source, target)]
        arrays = [self._sent(source, target, values[source]) for source, target in started]
        moved = jax.device_put(arrays, [self._places[target].sharding for _, target in started])
        values.update((target, array) for (_, target), array in zip(started, moved, strict=True))
        values.update((target, self._places[target].placeholder()) for _, target in pairs if target not in values)

    def _sent(self, source: int, target: int, array: jax.Array) -> jax.Array:
        """Return the array to transfer: a copy of a donated one that is sent to another process.

        A transfer between processes reads the array later, when a fragment may have reused its memory.
        """
        leaves = self._places[source].processes != self._places[target].processes
        is_own = jax.process_index() in self._places[source].processes
        return array.copy() if leaves and is_own and self._places[source].donated else array

    def _starts(self, source: int, target: int) -> bool:
        processes = self._places[target].processes
        return self._places[source].processes != processes or jax.process_index() in processes

    def _free(self, step: Free, values: dict[int, jax.Array]) -> None:
        """Release values, and delete donated arguments that no fragment has reused: the caller still refers to them."""
        for value in step.values:
            array = values.pop(value)
            if self._places[value].donated and not array.is_deleted():
                array.delete()

    def _links(self) -> list[tuple[Place, Place]]:
        """Return the source and the target of each transfer."""
        transfers = (step for step in self.steps if isinstance(step, Transfer))
        pairs = (pair for step in transfers for pair in zip(step.inputs, step.outputs, strict=True))
        return [(self._places[source], self._places[target]) for source, target in pairs]

    def _transfer_bytes(self) -> dict[tuple[str, str], int]:
        received: dict[tuple[str, str], int] = {}
        for source, target in self._links():
            if source.mesh_name != target.mesh_name:
                link = (source.mesh_name, target.mesh_name)
                received[link] = received.get(link, 0) + target.byte_count()
        return received

    def _check_transfers(self, module: ModuleOp) -> None:
        """Raise DiagnosticError for transfers that jax cannot do between processes."""
        if jax.process_count() == 1:
            return
        for source, target in self._links():
            counts = source.sharding.num_devices, target.sharding.num_devices
            if counts[0] != counts[1]:
                raise error(
                    module,
                    f'a transfer goes from {counts[0]} devices of the mesh "{source.mesh_name}" to {counts[1]} of '
                    f'"{target.mesh_name}"; between processes the numbers must be equal',
                )
        if jax.devices()[0].platform == "cpu" and not jax.config.values.get(_CPU_TRANSFERS):
            raise error(
                module,
                f"CPU processes transfer arrays only if each sets jax.config's {_CPU_TRANSFERS} to its own "
                "HOST:PORT before jax.distributed.initialize",
            )
