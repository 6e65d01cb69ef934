"""Programs that Shardy's MPMD compiler partitions compute on several meshes what jax computes on one device."""

from typing import Any

import jax
import numpy as np
import pytest

import sdy
from pipelines import Training
from samples import covering, sample
from sdy.diagnostics import DiagnosticError

TRAININGS = {
    "1F1B": Training(),
    "GPipe": Training(schedule="GPipe"),
    "more microbatches than stages": Training(microbatches=7),
    "two stages of four devices": Training(layers=(1, 1), devices=4),
    "uneven stages": Training(layers=(1, 2, 3)),
    "tied": Training(layers=(1, 1, 1), tied=True),
}


def train(step: Any, state: Any, batch: Any) -> list[np.ndarray[Any, Any]]:
    """Return loss and state after two steps."""
    results: list[np.ndarray[Any, Any]] = []
    for _ in range(2):
        loss, state = step(state, *batch)
        results += map(np.asarray, (loss, *jax.tree.leaves(state)))
    return results


@covering
@pytest.mark.parametrize("name", sample(TRAININGS, one_in=3))
@pytest.mark.parametrize("donates", [False, True])
def test_training_equals_that_on_one_device(name: str, donates: bool):
    training = TRAININGS[name]
    pipeline = sdy.mpmd.run(training.partitioned(donates=donates))
    structure = jax.tree.structure(training.state())

    def step(state: Any, *batch: Any) -> Any:
        loss, *new = pipeline(*jax.tree.leaves(state), *batch)
        return loss, jax.tree.unflatten(structure, new)

    wanted = train(jax.jit(training.step()), training.state(), training.batch())
    for value, want in zip(train(step, training.state(), training.batch()), wanted, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-5)


def test_donated_state_is_reused_and_results_are_on_the_mesh_of_their_stage():
    training = Training()
    pipeline = sdy.mpmd.run(training.partitioned())
    state = [
        jax.device_put(array, sharding)
        for array, sharding in zip(jax.tree.leaves(training.state()), pipeline.in_shardings, strict=False)
    ]
    _, *new = pipeline(*state, *training.batch())
    assert all(array.is_deleted() for array in state)
    weights = new[: training.stages]
    assert [sorted(d.id for d in array.sharding.device_set) for array in weights] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [array.sharding for array in new] == [*pipeline.out_shardings[1:]]


def test_meshes_may_be_given():
    training = Training(layers=(1, 1))
    devices = np.array(jax.devices())
    meshes = {f"mesh{index}": jax.sharding.Mesh(devices[6 - 2 * index :][:2], ("data",)) for index in range(2)}
    pipeline = sdy.mpmd.run(training.partitioned(), meshes)
    assert [sorted(d.id for d in sharding.device_set) for sharding in pipeline.in_shardings[:2]] == [[6, 7], [4, 5]]
    loss, *_ = pipeline(*jax.tree.leaves(training.state()), *training.batch())
    want, _ = jax.jit(training.step())(training.state(), *training.batch())
    np.testing.assert_allclose(loss, want, rtol=1e-5)


def test_activations_and_cotangents_are_the_bytes_between_stages():
    training = Training(microbatches=6)
    activations = training.batch()[0].nbytes
    forward = {(f"mesh{index}", f"mesh{index + 1}"): activations for index in range(3)}
    backward = {(target, source): count for (source, target), count in forward.items()}
    assert sdy.mpmd.run(training.partitioned()).received_bytes == forward | backward


def test_a_program_that_is_not_partitioned_is_rejected():
    with pytest.raises(
        DiagnosticError, match=r"<mpmd>:\d+:\d+: error: 'mpmd.fragment' op cannot be executed; the phase"
    ):
        sdy.mpmd.run(Training().partitioned(["IMPORT"]))


def test_too_few_devices_are_rejected():
    with pytest.raises(DiagnosticError, match="the meshes have 16 devices, but there are only 8"):
        sdy.mpmd.run(Training(devices=4).partitioned())


def test_wrong_arguments_are_named():
    training = Training(layers=(1, 1))
    pipeline = sdy.mpmd.run(training.partitioned())
    arguments = [*jax.tree.leaves(training.state()), *training.batch()]
    with pytest.raises(TypeError, match=f"the program takes {len(arguments)} arguments, not 1"):
        pipeline(arguments[0])
    arguments[1] = arguments[1][:3]
    with pytest.raises(ValueError, match=r"argument 1 must have shape \(16, 16\), not \(3, 16\)"):
        pipeline(*arguments)
