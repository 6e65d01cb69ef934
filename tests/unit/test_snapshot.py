"""Snapshots: solved repeatedly, without their module, and written back to it."""

import gc
import weakref
from collections.abc import Sequence
from dataclasses import fields, replace

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import sdy
from propagation_modules import MODULES
from random_modules import random_module
from samples import covering
from sdy.axes import AxisRef
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import set_sharding
from sdy.ir.shapes import rank
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import run_passes
from sdy.passes.propagation.provenance.history import history_of
from sdy.passes.propagation.reading.reader import read
from sdy.passes.propagation.snapshot import Snapshot
from sdy.passes.propagation.user_priority_propagate import UserPriorityPropagatePass
from sdy.passes.propagation.writing import write
from sdy.passes.spec import parse_pipeline
from sdy.sharding import DimSharding, TensorSharding
from sdy.text.printing.names import Names

pytestmark = pytest.mark.usefixtures("only_new_objects_are_collected")

PROPAGATE = UserPriorityPropagatePass()
PREPARATION = (
    "sdy-import-pipeline,sdy-flatten-call-graph,symbol-dce,sdy-import-func-calls,symbol-dce,"
    "sdy-apply-sharding-constraints,sdy-sharding-group-import,sdy-pre-order-funcs"
)
TEXTS = MODULES | {
    f"random {seed}": random_module(seed, num_operations=30, priorities=seed % 3 == 0) for seed in range(12)
}
WITHOUT_GROUPS = {name: text for name, text in TEXTS.items() if "sharding_group" not in text}
"""Sharding groups are synchronized before a module is read."""


def prepared(text: str) -> ModuleOp:
    """Return a module after the import pipeline."""
    module = sdy.parse(text)
    if "edge" not in text:
        run_passes(module, parse_pipeline(PREPARATION))
    return module


def contents(snapshot: Snapshot) -> Sequence[str]:
    """Return the fields of a snapshot."""
    return [repr(getattr(snapshot, field.name)) for field in fields(snapshot)] + [
        repr(vars(snapshot.dead_code)),
    ]


@pytest.mark.filterwarnings("ignore::sdy.ShardingWarning")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_solving_a_snapshot_changes_neither_it_nor_the_module(text: str) -> None:
    module = prepared(text)
    before = sdy.format(module)
    snapshot, _ = read(module)
    held = contents(snapshot)
    first = PROPAGATE.solve(snapshot)
    assert sdy.format(module) == before
    assert contents(snapshot) == held
    second = PROPAGATE.solve(snapshot)
    assert second == first
    assert second.changes == first.changes


@pytest.mark.filterwarnings("ignore::sdy.ShardingWarning")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_snapshot_outlives_its_module(text: str) -> None:
    module = prepared(text)
    operations = [weakref.ref(op) for op in module.walk()]
    snapshot, binding = read(module)
    first = PROPAGATE.solve(snapshot)
    del module, binding
    gc.collect()
    assert not any(operation() for operation in operations)
    assert PROPAGATE.solve(snapshot) == first


def split_along(module: ModuleOp, axis: int) -> tuple[SSAValue, TensorSharding]:
    """Return the node of the main function's first argument, and a sharding with a mesh axis along dimension 0."""
    argument = main_function(module).args[0]
    name, mesh = next(iter(named_meshes(module).items()))
    open_ = TensorSharding.replicated_open(name, rank(argument.type))
    first = DimSharding((AxisRef(mesh.axes[axis][0]),), is_closed=True)
    return argument, replace(open_, dims=(first, *open_.dims[1:]))


@covering
@pytest.mark.filterwarnings("ignore::sdy.ShardingWarning")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("text", WITHOUT_GROUPS.values(), ids=WITHOUT_GROUPS)
def test_an_initial_sharding_overrides_that_of_the_module(text: str, axis: int) -> None:
    expected = prepared(text)
    set_sharding(*split_along(expected, axis))
    run_passes(expected, [PROPAGATE])
    module = prepared(text)
    snapshot, binding = read(module)
    PROPAGATE.solve(snapshot)
    argument, sharding = split_along(module, axis)
    node = binding.node_of(argument)
    assert node is not None
    assert snapshot.main is not None
    assert node == snapshot.functions[snapshot.main].arguments[0]
    write(PROPAGATE.solve(snapshot, {node: sharding}), binding)
    assert sdy.format(module) == sdy.format(expected)


def test_an_initial_sharding_can_be_removed() -> None:
    module = prepared(MODULES["chain"])
    snapshot, binding = read(module)
    (main,) = snapshot.functions
    write(PROPAGATE.solve(snapshot, dict.fromkeys(main.arguments)), binding)
    assert "#sdy.sharding" not in sdy.format(module)


def test_dead_code_is_erased_when_a_solution_is_written() -> None:
    module = prepared(MODULES["dead operations"])
    before = len(operations(module))
    snapshot, binding = read(module)
    solution = PROPAGATE.solve(snapshot)
    assert solution.erased
    assert len(operations(module)) == before
    write(solution, binding)
    assert len(operations(module)) == before - len(solution.erased)


def test_milestones_are_the_solutions_after_each_priority() -> None:
    snapshot, _ = read(prepared(MODULES["priorities"]))
    solution = PROPAGATE.solve(snapshot)
    assert [priority for priority, _ in solution.milestones] == [0, 1]
    assert all(milestone != solution for _, milestone in solution.milestones)


@pytest.mark.filterwarnings("ignore::sdy.ShardingWarning")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_clone_has_the_explanations_of_the_module(text: str) -> None:
    module = sdy.parse(text)
    run_passes(module, parse_pipeline("sdy-propagation-pipeline" if "edge" not in text else PROPAGATE.name))
    expected = explanations(module)
    clone = module.clone()
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None
    assert explanations(clone) == expected
    assert explanations(clone.clone()) == expected


def explanations(module: ModuleOp) -> list[str]:
    """Return the explanation of each value of a module."""
    names = Names(generic=False)
    names.add(module)
    return [str(sdy.explain(module, value)) for value in names.values]


def test_the_history_of_a_clone_is_separate() -> None:
    module = sdy.parse(MODULES["chain"])
    sdy.propagate(module)
    clone = module.clone()
    assert sdy.format(clone) == sdy.format(module)
    sdy.propagate(clone)
    assert [len(history_of(each).runs) for each in (module, clone)] == [1, 2]


def test_a_solution_is_freed_with_its_module() -> None:
    module = sdy.parse(MODULES["chain"])
    sdy.propagate(module)
    solution = weakref.ref(history_of(module).runs[0].solution)
    clone = module.clone()
    del module
    gc.collect()
    assert solution() is not None
    del clone
    gc.collect()
    assert solution() is None
