"""Propagation of many layouts of one program, which share the priorities before those in which they differ."""

from random import Random

import sdy
from descent_programs import train_step
from sdy.dialect.meshes import named_meshes
from sdy.passes.auto.auto import prepared
from sdy.passes.auto.choices import Choice, find_choices, find_choices_of_results
from sdy.passes.auto.folded_program import FoldedProgram, fold
from sdy.passes.auto.shared_propagation import SharedPropagation
from sdy.passes.propagation.step import Steps
from sdy.passes.propagation.user_priority_propagate import UserPriorityPropagatePass


def program_and_choices() -> tuple[FoldedProgram, list[Choice]]:
    module = prepared(sdy.parse(f'sdy.mesh @mesh = <["data"=4, "model"=2]>\n{train_step(3, 64, 64, 256)}'))
    program, mesh = fold(module), named_meshes(module)["mesh"]
    return program, [*find_choices(program, "mesh", mesh), *find_choices_of_results(program, "mesh", mesh)]


def test_layouts_propagate_as_each_of_them_does_alone() -> None:
    program, choices = program_and_choices()
    shared = SharedPropagation(program.snapshot, Steps(program.snapshot.meshes))
    random, layout = Random(0), dict[int, sdy.Sharding]()
    for _ in range(200):
        choice = random.choice(choices)
        option = random.choice((None, *choice.options))
        layout = {node: sharding for node, sharding in layout.items() if node not in choice.nodes}
        if option is not None:
            layout |= dict.fromkeys(choice.nodes, option)
        alone = UserPriorityPropagatePass().solve(program.snapshot, layout)
        assert shared.solve(layout).solution().shardings == alone.shardings


def test_layouts_that_differ_in_the_last_priority_share_all_others() -> None:
    program, choices = program_and_choices()
    shared = SharedPropagation(program.snapshot, Steps(program.snapshot.meshes))
    *_, data, result = [each for each in choices if not each.is_state]
    for number, option in enumerate(result.options[1:4]):
        layout = dict.fromkeys(data.nodes, data.options[1]) | dict.fromkeys(result.nodes, option)
        alone, before = SharedPropagation(program.snapshot, Steps(program.snapshot.meshes)), shared.visits
        alone.solve(layout)
        shared.solve(layout)
        assert (shared.visits - before < alone.visits) == (number > 0)
