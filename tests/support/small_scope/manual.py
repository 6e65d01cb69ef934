"""What is written for each device along some axes, while others are still to be partitioned."""

from sdy.axes import AxisRef
from sdy.device_groups import device_groups
from small_scope.indexing import region
from small_scope.program import Program, type_text


def manual_computation(program: Program) -> Program:
    """Rows in parts along an axis, columns in any way along others; rows are turned around, and maybe added up."""
    axis, parts = program.choices.of(program.mesh.axes)
    rows, columns = program.choices.of((1, 2)), program.size()
    value = program.argument((rows * parts, columns))
    part = type_text((rows, columns))
    adds = program.choices.of((False, True))
    body = [f"%r = stablehlo.reverse %p, dims = [0, 1] : {part}"]
    if free := [name for name in program.mesh.axis_names if name != axis]:
        other = program.choices.of(free)
        body.append(f'%q = sdy.sharding_constraint %r <@mesh, [{{}}, {{"{other}"}}]> : {part}')
    last = "%q" if free else "%r"
    if adds:
        groups = device_groups([AxisRef(axis)], program.mesh)
        body.append(
            f'%s = "stablehlo.all_reduce"({last}) <{{replica_groups = dense<{groups}> : '
            f"tensor<{len(groups)}x{parts}xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
            f"use_global_device_ids}}> {region('add')} : ({part}) -> {part}"
        )
        last = "%s"
    out, result = ("{}", (rows, columns)) if adds else (f'{{"{axis}"}}', value.shape)
    return program.result(
        program.op(
            f'sdy.manual_computation({value.name}) in_shardings=[<@mesh, [{{"{axis}"}}, {{?}}]>] '
            f'out_shardings=[<@mesh, [{out}, {{?}}]>] manual_axes={{"{axis}"}} (%p: {part}) {{ '
            f"{' '.join(body)} sdy.return {last} : {part} }}",
            result,
            operands=(value,),
        )
    )


MANUAL = [manual_computation]
