"""The functions that an MPMD program calls, each as a module of its own on one mesh."""

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from sdy.dialect.attributes import MeshAttr
from sdy.dialect.ops import MeshOp
from sdy.ir.walking import operations_at_top, operations_of
from sdy.mpmd.attributes import MESH_SHAPE
from sdy.passes.common.donations import drop_unused_donations


def fragment_module(module: ModuleOp, name: str) -> ModuleOp:
    """Return the function `name` of `module` as @main of a new module, with its mesh and its callees.

    Donations that no result can use are dropped: the pipeline releases the arguments after the call.
    """
    functions = {op.sym_name.data: op for op in operations_at_top(module) if isinstance(op, FuncOp)}
    needed = [name]
    for each in needed:
        calls = operations_of(functions[each], CallOp)
        needed += [callee for call in calls if (callee := call.callee.string_value()) not in needed]
    main, *others = (functions[each].clone() for each in dict.fromkeys(needed))
    shape = main.attributes.pop(MESH_SHAPE)
    assert isinstance(shape, MeshAttr), "the verifier of fragment calls checks it"
    main.sym_name, main.sym_visibility = StringAttr("main"), StringAttr("public")
    drop_unused_donations(main)
    for other in others:
        other.sym_visibility = StringAttr("private")
    meshes: list[Operation] = [
        op.clone()
        for op in operations_at_top(module)
        if isinstance(op, MeshOp) and (op.mesh.data == shape.data or not op.mesh.data.axes)
    ]
    return ModuleOp([*(meshes or [MeshOp("mesh", shape.data)]), main, *others])
