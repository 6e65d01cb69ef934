"""Loops, branches and calls around sharded values."""

from small_scope.program import Program


def while_(program: Program) -> Program:
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    value, turns = program.argument(shape), program.constant(0)
    type_ = value.type
    _, last = program.ops(
        f'"stablehlo.while"({turns.name}, {value.name}) ({{ ^bb0(%i: tensor<i32>, %v: {type_}): '
        "%end = stablehlo.constant dense<2> : tensor<i32> "
        "%c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1> "
        f"stablehlo.return %c : tensor<i1> }}, {{ ^bb0(%i: tensor<i32>, %v: {type_}): "
        "%one = stablehlo.constant dense<1> : tensor<i32> %n = stablehlo.add %i, %one : tensor<i32> "
        f"%w = stablehlo.reverse %v, dims = [0] : {type_} %u = stablehlo.subtract %w, %v : {type_} "
        f"stablehlo.return %n, %u : tensor<i32>, {type_} }})",
        [(), shape],
        (turns, value),
    )
    return program.result(last)


def if_(program: Program) -> Program:
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    one, other = program.argument(shape), program.argument(shape)
    which = program.index(0, 1)
    case = program.op(
        f'"stablehlo.case"({which.name}) ({{ %n = stablehlo.negate {one.name} : {one.type} '
        f"stablehlo.return %n : {one.type} }}, {{ stablehlo.return {other.name} : {one.type} }})",
        shape,
        operands=(which,),
    )
    return program.result(case)


def call(program: Program) -> Program:
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    value = program.argument(shape)
    program.function(
        f"func.func private @turned(%v: {value.type}) -> {value.type} {{ "
        f"%w = stablehlo.reverse %v, dims = [0] : {value.type} return %w : {value.type} }}"
    )
    once = program.op(f"func.call @turned({value.name})", shape, operands=(value,))
    twice = program.constrained(program.op(f"func.call @turned({once.name})", shape, operands=(once,)))
    return program.result(program.op(f"stablehlo.subtract {once.name}, {twice.name}", shape))


def composite(program: Program) -> Program:
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    value = program.argument(shape)
    program.function(
        f"func.func private @doubled(%v: {value.type}) -> {value.type} {{ "
        f"%w = stablehlo.add %v, %v : {value.type} return %w : {value.type} }}"
    )
    text = f'stablehlo.composite "my.doubled" {value.name} {{decomposition = @doubled}}'
    return program.result(program.op(text, shape, operands=(value,)))


CONTROL_FLOW = [while_, if_, call, composite]
