"""`sdy.explain`: the reason for the sharding of a value, for every kind of program."""

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy.passes.account.keywords import check_keywords
from sdy.passes.account.partitioned_program import Program, partitioned_program
from sdy.passes.propagation.provenance.explain import explain as explain_value
from sdy.passes.propagation.provenance.explanation import Explanation


def explain(program: Program, value: SSAValue | str, *args: Any, **kwargs: Any) -> Explanation:
    """Explain why `value` has its sharding.

    For each axis of the sharding, the explanation lists the steps that propagated it, back to the argument, result,
    constraint, manual computation or operation that the user sharded. If several tensors of an operation had the axis,
    the step names the first. For a value without axes, it lists the axes that neighboring tensors have along a factor
    of the value, and the conflict that stopped each. If the layout was selected among candidates, it lists the bytes
    that a device receives with each.

    Values are traced through the passes that follow propagation; names are the current names in the module.

    Args:
        program: The module after `sdy.propagate(module)`, or any other program that `sdy.account` takes.
        value: The value, or its name in the printed module: `"%12"`, or `"@f:%12"` for a value of the function @f.
            An argument also has the name that JAX gave it, such as `"params['blocks'][3]['down']"`. A source line,
            such as `"train.py:18"`, `"train.py:18:16"` with a column as `sdy.account` prints it, or `"18"` in any file,
            stands for the tensors that it computes and uses, one of each type and sharding.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        **kwargs: The keyword arguments of a function.

    Returns:
        The explanation; its `str()` is a readable text. For a source line it is the explanation of the first tensor,
        with those of the other tensors in `others`.

    Raises:
        TypeError: Arguments are given for a program that is not a function, a function does not take a keyword, or
            `value` is neither a value nor a text.
        DiagnosticError: The module has not been propagated, or the value is not in it, or no operation is at the line.
    """
    check_keywords(explain, program, kwargs)
    if not isinstance(value, SSAValue | str):  # pyright: ignore[reportUnnecessaryIsInstance]
        example = 'a name such as "%12", or a source line such as "train.py:18" or "18"'
        raise TypeError(f"the value to explain must be {example}, not {value!r}")
    if isinstance(program, ModuleOp) and not args:
        return explain_value(program, value)
    return explain_value(partitioned_program(program, *args, **kwargs).module, value)
