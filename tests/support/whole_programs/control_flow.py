"""Loops, branches and calls whose blocks contain operations of all families."""

from collections.abc import Sequence

from small_scope.choices import NoCaseError
from whole_programs.block import Block, Family, types
from whole_programs.elementwise import comparison
from whole_programs.operands import of, some
from whole_programs.values import Numbers, Value

DEEPEST = 2
"""Deepest nesting of blocks."""


def families(others: Sequence[Family]) -> list[Family]:
    """Return the families of loops, branches and calls, whose blocks contain operations of `others` and of these."""

    def fill(block: Block) -> None:
        for _ in range(block.choices.of((1, 2, 3))):
            grow(block, [*others, while_, case, call] if block.depth < DEEPEST else others)

    def while_(block: Block) -> list[Value]:
        """Loop a few times; the trip count is a constant or a value."""
        carried = [some(block) for _ in range(block.choices.of((1, 2, 3)))]
        counter = block.scalar("0", "i32")
        turns = block.scalar(str(block.choices.of((2, 1, 3, 0))), "i32")
        if block.choices.below(2):
            turns = block.op("stablehlo.and", (of(block, (), "i32"), turns), (), "i32")
        results = [counter, *carried]
        inside = [Value(block.name(), each.shape, each.element, each.numbers) for each in results]
        test, body = block.inner(inside), block.inner(inside)
        bound = turns if block.choices.below(2) else test.scalar("2", "i32")
        goes_on = test.op("stablehlo.compare", (inside[0], bound), (), "i1", properties=comparison("LT", "SIGNED"))
        one = body.scalar("1", "i32")
        fill(body)
        next_ = body.op("stablehlo.add", (inside[0], one), (), "i32")
        body_results = [next_, *(_late(body, value) for value in inside[1:])]
        regions = [test.region(inside, [goes_on]), body.region(inside, body_results)]
        return block.ops("stablehlo.while", results, results, regions=regions)

    def case(block: Block) -> list[Value]:
        """Branch on an index that may be out of range, or on a boolean."""
        is_if = block.choices.below(2) == 1
        which = of(block, (), "i1" if is_if else "i32")
        branches = [block.inner() for _ in range(2 if is_if else block.choices.of((2, 1, 3)))]
        for branch in branches:
            fill(branch)
        wanted = [some(branches[0]) for _ in range(block.choices.of((1, 2)))]
        last = [[_late(branch, value, is_any=True) for value in wanted] for branch in branches]
        results = [
            Value("", value.shape, value.element, value.numbers.or_(*(each[index].numbers for each in last)))
            for index, value in enumerate(last[0])
        ]
        regions = [branch.region((), values) for branch, values in zip(branches, last, strict=True)]
        return block.ops(f"stablehlo.{'if' if is_if else 'case'}", (which,), results, regions=regions)

    def call(block: Block) -> list[Value]:
        """Call a private function, possibly several times."""
        given = [some(block) for _ in range(block.choices.of((1, 2, 3)))]
        widest = Numbers(4.0, 0.25)
        numbers = [each.numbers.or_(widest) for each in given]
        inside = [
            Value(block.name(), each.shape, each.element, each.numbers if each.is_whole else known)
            for each, known in zip(given, numbers, strict=True)
        ]
        body = Block(block.module, list(inside), is_closed=True, depth=block.depth + 1)
        fill(body)
        returned = body.values[-block.choices.of((1, 2)) :]
        name = f"@f{len(block.module.functions)}"
        head = ", ".join(f"{each.name}: {each.type}" for each in inside)
        lines = "\n".join([*body.lines, f"return {', '.join(each.name for each in returned)} : {types(returned)}"])
        indented = "\n".join(f"  {line}" for line in lines.split("\n"))
        block.module.functions.append(f"func.func private {name}({head}) -> ({types(returned)}) {{\n{indented}\n}}")
        results = block.ops("func.call", given, returned, f"callee = {name}")
        for _ in range(block.choices.of((1, 0, 2))):
            again = [
                of(block, each.shape, each.element, lambda value, each=each: value.numbers.within(each.numbers))
                for each in inside
            ]
            results = block.ops("func.call", again, returned, f"callee = {name}")
        return results

    return [while_, while_, case, call]


def grow(block: Block, chosen: Sequence[Family]) -> None:
    """Append an operation of one of the families, and perhaps constraints on its results."""
    length, count = len(block.lines), len(block.values)
    module = block.module
    sizes = len(module.arguments), len(module.functions)
    try:
        block.choices.of(chosen)(block)
    except NoCaseError:
        del block.lines[length:], block.values[count:]
        del module.arguments[sizes[0] :], module.inputs[sizes[0] :], module.functions[sizes[1] :]
        return
    for value in block.values[count:]:
        if block.choices.below(3) == 1:
            block.constrained(value)


def _late(block: Block, wanted: Value, is_any: bool = False) -> Value:
    """Choose one of the last values of a block with the type of `wanted` and no wider bounds on its elements."""
    found = [
        value
        for value in block.values
        if (value.shape, value.element) == (wanted.shape, wanted.element)
        and (is_any or value.numbers.within(wanted.numbers))
    ]
    if not found:
        return of(block, wanted.shape, wanted.element, lambda value: is_any or value.numbers.within(wanted.numbers))
    return block.choices.of(found[::-1][:2])
