"""The file of a layout for `jax.jit`."""

from collections.abc import Iterator

from sdy.passes.python.expressions import tuple_of
from sdy.passes.python_layouts.constrained import CONSTRAIN_IMPORTS, CONSTRAIN_JAX_IMPORTS, CONSTRAIN_LINES
from sdy.passes.python_layouts.file import (
    HOW,
    RULE_FOR,
    argument_rules,
    docstring,
    file_of,
    mesh_lines,
    received_text,
    result_rules,
    rule_lines,
    statement,
    string,
    title,
)
from sdy.passes.python_layouts.layout_specs import LayoutSpecs

_LONGEST = 60
"""The length of a list of arguments in a docstring; a longer one is left out."""


def jax_file(specs: LayoutSpecs) -> str:
    """Return a file for `jax.jit`: the mesh, the rules of arguments and results, and `shardings`.

    If the layout has constraints of equations' results, the file has them and `constrained`, which applies them.
    """
    names = specs.argument_names
    shown = ", ".join(name if name.isidentifier() else f"argument_{index}" for index, name in enumerate(names))
    shown = "..." if len(shown) > _LONGEST else f"{shown}," if len(names) == 1 else shown
    equation_rules = specs.equation_rules
    function = "constrained(function)" if equation_rules else "function"
    return file_of(
        (
            [
                *docstring(
                    title(specs),
                    f"     arguments = ({shown})\n"
                    "     in_shardings = shardings(arguments, mesh)\n"
                    "     results = jax.eval_shape(function, *arguments)\n"
                    "     out_shardings = shardings(results, mesh, RESULTS)\n"
                    f"     jax.jit({function}, in_shardings=in_shardings, out_shardings=out_shardings)",
                    HOW,
                    *([_HOW_CONSTRAINED] if equation_rules else ()),
                    received_text(specs.received),
                    *_left_out(specs),
                ),
                "",
                *sorted(["from fnmatch import fnmatchcase", *(CONSTRAIN_IMPORTS if equation_rules else ())]),
                "",
                "import jax",
                *(CONSTRAIN_JAX_IMPORTS if equation_rules else ()),
                f"from jax.sharding import AxisType, {'Mesh, ' if equation_rules else ''}NamedSharding",
                "from jax.sharding import PartitionSpec as P",
                "from jax.tree_util import keystr, tree_map_with_path",
                "",
                *mesh_lines(specs),
                "",
                *statement("NAMES = ", tuple_of(map(string, names)), 0),
                "",
                *rule_lines("ARGUMENTS", argument_rules(specs)),
                "",
                *rule_lines("RESULTS", result_rules(specs)),
                *(["", *rule_lines("EQUATIONS", equation_rules)] if equation_rules else ()),
            ],
            RULE_FOR.splitlines(),
            _SHARDINGS.splitlines(),
            *([_CONSTRAINED.splitlines(), *CONSTRAIN_LINES] if equation_rules else ()),
        )
    )


def _left_out(specs: LayoutSpecs) -> Iterator[str]:
    """Yield a text on the constraints that a file does not apply, if a device receives more without them."""
    if specs.constraints and not specs.equation_rules and (specs.received is None or specs.received.is_more):
        yield "sdy.auto also chose shardings of operations' results; write them with jax.lax.with_sharding_constraint:"
        yield "\n".join(f"     {each.name}: {each.spec}" for each in specs.constraints)


_HOW_CONSTRAINED = (
    "EQUATIONS has the shardings of the results of equations in the function's jaxpr, where XLA would choose others. "
    "The path of an equation has its primitive, the type of its result, and its number among those with the same."
)

_CONSTRAINED = '''\
def constrained(function, mesh=mesh):
    """Return `function` with the shardings of EQUATIONS."""
    return constrain(function, mesh, EQUATIONS)
'''

_SHARDINGS = '''\
def shardings(tree, mesh=mesh, rules=ARGUMENTS):
    """Return the tree of shardings for the tuple of all arguments, or for one of them."""

    def sharding(path, leaf):
        return NamedSharding(mesh, rule_for(path, rules))

    if rules is not RESULTS and type(tree) is tuple and len(tree) == len(NAMES):
        named = tree_map_with_path(sharding, dict(zip(NAMES, tree, strict=True)))
        return tuple(named[name] for name in NAMES)
    return tree_map_with_path(sharding, tree)
'''
