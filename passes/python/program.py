"""A module as a Python file that imports JAX alone.

A partitioned module becomes a function of one device, and its call on all devices by `jax.shard_map`; any other
module becomes a function of whole arrays, with its shardings as constraints.
"""

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation

from sdy.diagnostics import error
from sdy.dialect.meshes import mesh_of, named_meshes
from sdy.dialect.shardings import func_arg_shardings, func_result_shardings, get_sharding, set_result_shardings
from sdy.formatting import escape_line
from sdy.interpreter.groups import numbers_of_groups
from sdy.ir.companions import clone_alone
from sdy.ir.shapes import shape
from sdy.ir.walking import operations, values_in
from sdy.mesh import Mesh
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.call_graph import calls_in, find_main_function, functions, main_function
from sdy.passes.common.donations import is_donated
from sdy.passes.common.inline import inline_calls
from sdy.passes.common.symbol_dce import erase_dead_symbols
from sdy.passes.driver import check_is_spmd, run_passes
from sdy.passes.for_xla.renumber_devices import RenumberDevicesPass
from sdy.passes.python.collectives import COLLECTIVES
from sdy.passes.python.constant_scalars import fold_scalars
from sdy.passes.python.control_flow import CONTROL_FLOW
from sdy.passes.python.device_axes import DeviceAxes, interval, intervals_of
from sdy.passes.python.elementwise import BROADCASTING, ELEMENTWISE, HELPERS
from sdy.passes.python.expressions import call, definition, sizes, statement, tuple_of
from sdy.passes.python.indexing import INDEXING
from sdy.passes.python.library_calls import LIBRARY_CALLS
from sdy.passes.python.literals import decoded, optional_dtype_of, type_text
from sdy.passes.python.names import LibraryCall, LibraryFunction, Names, identifier
from sdy.passes.python.products import PRODUCTS
from sdy.passes.python.ranges import is_narrow, narrow, ranges_of
from sdy.passes.python.reductions import REDUCTIONS
from sdy.passes.python.scope import Printer, Scope, Writer
from sdy.passes.python.shaping import SHAPING
from sdy.passes.python.shardings import SHARDINGS, spec
from sdy.passes.spmd.local_module import is_local
from sdy.sharding import TensorSharding
from sdy.stablehlo.composite import CompositeOp
from sdy.stablehlo.constants import ConstantOp

PRINTERS: dict[type[Operation], Printer] = {
    **COLLECTIVES,
    **CONTROL_FLOW,
    **ELEMENTWISE,
    **INDEXING,
    **LIBRARY_CALLS,
    **PRODUCTS,
    **REDUCTIONS,
    **SHAPING,
    **SHARDINGS,
}
"""The printer of each operation; any other is a call that raises."""

_ONE_DEVICE = Mesh.of({"device": 1})


def to_python(module: ModuleOp, name: str = "") -> str:
    """Return `module` as the text of a Python file that imports JAX alone.

    The file defines a function `name` of flat arguments: the arrays that @main takes, in its order. Operations that JAX
    lacks are calls that raise `NotImplementedError`; the file's first lines list them.

    Args:
        module: The module, before or after any pass.
        name: The name of the function, by default that of the module without "jit_", else "program".

    Raises:
        DiagnosticError: The module has no function @main with a body.
        TypeError: `module` is not a module; the message says how to print a JAX program.
    """
    _check_is_module(module)
    check_is_spmd(module)
    main = find_main_function(module)
    if main is None or main.is_declaration:
        raise error(module, "there is no function @main to print")
    module = clone_alone(module)
    if is_local(module):
        run_passes(module, [RenumberDevicesPass()])
    for op in operations(module):
        set_result_shardings(op, ())  # they are not printed, and library functions are compared without them
    axes = _axes(module)
    if _has_wide([module]) and is_narrow(module, ranges_of(module, axes.mesh.size)):
        narrow(module)
    library = _library_functions(module)
    if not is_local(module):
        inline_parts(module, library)
    fold_scalars(module)
    return _File(module, name, axes, library).text()


def _check_is_module(program: object) -> None:
    if not isinstance(program, ModuleOp):
        whole, local = "sdy.to_python(sdy.from_jax(f, x))", "sdy.jit(f).lower(x).to_python()"
        ways = f"{whole} prints a function, and {local} what a device runs"
        raise TypeError(f"expected a module, not {type(program).__name__}; {ways}")


_BODIES = re.compile(r"(None|checkpoint|closed_call)(_\d+)?")
"""The names that JAX gives to the functions of bodies of loops and branches."""

_PARTS = re.compile(r"(dynamic_(update_)?index_in_dim|_\w+?)(_\d+)?")
"""The names of functions of JAX's libraries that are parts of others."""

_FEW = 4
"""The most operations of a small part with its return, without constants."""


def inline_parts(module: ModuleOp, library: Container[str]) -> None:
    """Inline small parts of JAX's own functions, and bodies with one call, unless they have shardings.

    Functions of `library` are called by name.
    """
    calls = Counter(call.callee.string_value() for call in calls_in(module))

    def selects(call: CallOp, function: FuncOp) -> bool:
        name = function.sym_name.data
        is_small = sum(not isinstance(op, ConstantOp) for op in function.body.block.ops) <= _FEW
        is_part = is_small and _PARTS.fullmatch(name) is not None
        is_body = calls[name] == 1 and _BODIES.fullmatch(name) is not None
        shardings = (*func_arg_shardings(function), *func_result_shardings(function))
        is_selected = (is_part or is_body) and name not in library
        return is_selected and not any(shardings)

    inline_calls(module, selects=selects)
    erase_dead_symbols(module)


class _File:
    """The parts of the file of a module."""

    def __init__(self, module: ModuleOp, name: str, axes: DeviceAxes, library: Mapping[str, LibraryFunction]):
        self._module = module
        self._main = main_function(module)
        self._functions = _printed_functions(module, library)
        self._is_wide = _has_wide(self._functions)
        called = module.sym_name.data.removeprefix("jit_") if module.sym_name is not None else ""
        ranges = ranges_of(module, axes.mesh.size)
        patterns = _library_patterns(self._functions, x64=self._is_wide)
        self._writer = Writer(PRINTERS, axes, BROADCASTING, library, patterns, ranges=ranges)
        self._names = self._writer.names
        called = name or called
        self._name = self._names.new("" if called in ("<lambda>", "_lambda_") else called, "program")
        self._is_local = is_local(module)

    def text(self) -> str:
        """Return the text of the file."""
        functions = [each for each in self._functions if each is not self._main]
        for function in functions:
            self._writer.functions[function.sym_name.data] = self._names.new(function.sym_name.data, "function")
        main_name = self._names.new(f"{self._name}_on_one_device") if self._is_local else self._name
        parts = [self._function(each, self._writer.functions[each.sym_name.data]) for each in functions]
        main, arguments = self._main_function(main_name)
        parts += [*self._writer.layers, main]
        if self._is_local:
            parts.append(self._mapped(main_name))
        elif _donated(self._main):
            parts.append(self._jitted(main_name))
        parts[:0] = [HELPERS[helper].split("\n") for helper in sorted(self._writer.helpers)]
        body = "\n\n\n".join("\n".join(part) for part in parts)
        head = "\n".join(self._head(body, arguments)).rstrip("\n")
        return f"{head}\n\n\n{body}\n"

    def _head(self, body: str, arguments: Iterable[str]) -> Iterator[str]:
        mesh = self._writer.axes.mesh
        devices = math.prod(self._writer.axes.sizes)
        axes = escape_line(", ".join(f"{axis}={size}" for axis, size in mesh.axes))
        where = f" for the {devices} devices of the mesh {axes}" if self._uses_mesh(body) else ""
        yield f'"""`{self._name}`{where}, printed from StableHLO.'
        yield ""
        yield "Args:"
        yield from arguments
        if self._writer.unsupported:
            yield ""
            yield "JAX has no equivalent of these operations; calling them raises NotImplementedError:"
            yield ""
            for op, reason in sorted(self._writer.unsupported.items()):
                yield f"    {op}" + (f": {_escaped(reason)}" if reason else "")
        yield '"""'
        yield ""
        code = "\n".join(line for line in body.split("\n") if not line.lstrip().startswith("#"))
        if self._writer.constants:
            yield from ("import base64", "")
        if re.search(r"\bjax\.", code) or self._is_wide or self._uses_mesh(body):
            yield "import jax"
        if "jnp." in code or self._writer.constants:
            yield "import jax.numpy as jnp"
        if self._writer.constants or re.search(r"\bnp\.", code):
            yield "import numpy as np"
        if "lax." in code:
            yield "from jax import lax"
        if "NamedSharding(" in code:
            yield "from jax.sharding import NamedSharding"
        if re.search(r"\bP[.(]", code):
            yield "from jax.sharding import PartitionSpec as P"
        if "lapack." in code:
            yield "from jaxlib import lapack"
        if self._is_wide:
            yield ""
            yield 'jax.config.update("jax_enable_x64", True)'
        if self._uses_mesh(body):
            yield ""
            yield from statement("mesh = ", self._writer.axes.text(), 0)
        if self._writer.constants:
            yield ""
        for name, values in self._writer.constants.items():
            yield from statement(f"{name} = ", decoded(values), 0)
        if self._writer.unsupported:
            yield ""
            yield ""
            yield "def unsupported(name, *arguments):"
            yield '    raise NotImplementedError(f"{name} has no equivalent in JAX")'

    def _uses_mesh(self, body: str) -> bool:
        return "mesh" in body and self._writer.axes.mesh is not _ONE_DEVICE

    def _function(self, function: FuncOp, name: str) -> list[str]:
        """Return the lines of a function with a parameter for each argument."""
        scope = Scope(self._writer, Names(self._names))
        parameters = [scope.name(argument, given_name(argument) or "x") for argument in function.body.block.args]
        if function.is_declaration:
            return [f"def {name}(*arguments):", f'    unsupported("{name}")']
        scope.write_body(function.body.block)
        return [*definition(name, parameters), *scope.statements.lines()]

    def _main_function(self, name: str) -> tuple[list[str], list[str]]:
        """Return the lines of the main function, and a line on each argument."""
        scope = Scope(self._writer, Names(self._names), folds=True)
        arguments: list[str] = []
        parameters: list[str] = []
        for argument in self._main.body.block.args:
            given = given_name(argument)
            parameter = scope.name(argument, identifier(given or "x"))
            parameters.append(parameter)
            origin = f", {_escaped(given)}" if given and given != parameter else ""
            arguments.append(f"    {parameter}: {self._type_of(argument)}{origin}")
        scope.write_body(self._main.body.block)
        return [*definition(name, parameters), *scope.statements.lines()], arguments

    def _type_of(self, argument: BlockArgument) -> str:
        """Return the type of a whole argument."""
        sharding = get_sharding(argument)
        dims = shape(argument.type)
        if self._is_local and sharding is not None:
            dims = sharding.global_shape(dims, mesh_of(sharding, self._main))
        kind = type_text(argument).split("[")[0]
        return f"{kind}[{', '.join(map(str, dims))}]"

    def _mapped(self, local: str) -> list[str]:
        axes = self._writer.axes
        ins = [spec(each, self._main, axes) for each in func_arg_shardings(self._main)]
        outs = [spec(each, self._main, axes) for each in func_result_shardings(self._main)]
        mapped = call(
            "jax.shard_map",
            local,
            mesh="mesh",
            in_specs=tuple_of(ins),
            out_specs=outs[0] if len(outs) == 1 else tuple_of(outs),
            check_vma="False",
        )
        donated = _donated(self._main)
        mapped = call("jax.jit", mapped, **({"donate_argnums": sizes(donated)} if donated else {}))
        return [*statement(f"{self._name} = ", mapped, 0)]

    def _jitted(self, name: str) -> list[str]:
        return [*statement(f"{name} = ", call("jax.jit", name, donate_argnums=sizes(_donated(self._main))), 0)]


def _library_functions(module: ModuleOp) -> Mapping[str, LibraryFunction]:
    """Return the functions of `module` that are JAX's own; none if JAX, which text does not need, is missing."""
    try:
        from sdy.passes.python.library_functions import library_functions
    except ModuleNotFoundError:
        return {}
    library = library_functions(module, x64=False)
    return library_functions(module, x64=True) if _has_wide(_printed_functions(module, library)) else library


def _library_patterns(functions: Sequence[FuncOp], *, x64: bool) -> dict[Operation, LibraryCall]:
    """Return the calls of functions of JAX that operations of `functions` are; none if JAX is missing."""
    try:
        from sdy.passes.python.library_patterns import library_patterns
    except ModuleNotFoundError:
        return {}
    return library_patterns(functions, x64=x64)


def _printed_functions(module: ModuleOp, library: Container[str]) -> list[FuncOp]:
    """Return the functions that a file has: all that are called, without those of `library` and what these call."""
    main = main_function(module)
    others = {each.sym_name.data: each for each in functions(module)}
    entered = {main.sym_name.data}
    pending = [main]
    while pending:
        for symbol in map(_symbol_called, operations(pending.pop())):
            if symbol in others and symbol not in library and symbol not in entered:
                entered.add(symbol)
                pending.append(others[symbol])
    return [each for name, each in others.items() if name in entered]


def _symbol_called(op: Operation) -> str:
    """Return the symbol of the function that `op` calls; empty if it calls none."""
    match op:
        case CallOp():
            return op.callee.string_value()
        case CompositeOp():
            return op.decomposition.string_value()
        case _:
            return ""


def _has_wide(roots: Iterable[Operation]) -> bool:
    """Return whether a value has 64-bit elements, which JAX does not have by default."""
    wide = {np.dtype(kind) for kind in (np.int64, np.uint64, np.float64, np.complex128)}
    return any(optional_dtype_of(value) in wide for root in roots for value in values_in(root))


def _donated(main: FuncOp) -> list[int]:
    return [index for index in range(len(main.args)) if is_donated(main, index)]


def _escaped(text: str) -> str:
    """Return `text` as it may stand in a docstring."""
    return escape_line(text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'))


def _axes(module: ModuleOp) -> DeviceAxes:
    """Return the axes of the devices, cut for all shardings and collectives of the module."""
    meshes = [mesh for mesh in named_meshes(module).values() if mesh.axes and not mesh.is_maximal]
    mesh = meshes[0] if meshes else _ONE_DEVICE
    shardings = [get_sharding(value) for value in values_in(module)]
    for function in module.ops:
        if isinstance(function, FuncOp):
            shardings += [*func_arg_shardings(function), *func_result_shardings(function)]
    try:
        axes = DeviceAxes.of(mesh, (cut for sharding in shardings for cut in _cuts(sharding, module)))
    except NotImplementedError as problem:
        raise error(module, f"the shardings of the program cannot be printed: {problem}") from problem
    for op in operations(module):
        if "replica_groups" in op.properties:
            axes = _cut_for(axes, numbers_of_groups(op)) or axes
    return axes


def _cut_for(axes: DeviceAxes, groups: Sequence[Sequence[int]]) -> DeviceAxes | None:
    """Cut the axes where groups of devices begin and end; None if there are no such axes."""
    places = [place for bounds in axes.bounds for place in bounds]
    try:
        intervals = intervals_of(groups[0], axes.mesh.size) if groups else []
        return DeviceAxes.of(axes.mesh, [*places, *(place for bounds in intervals for place in bounds)])
    except NotImplementedError:
        return None


def _cuts(sharding: TensorSharding | None, module: ModuleOp) -> Iterator[int]:
    if sharding is not None and not (mesh := mesh_of(sharding, module)).is_maximal:
        for axis in sharding.axes():
            yield from interval(axis, mesh)
