"""Builder of modules in Python: a function over a mesh, one operation at a time.

    b = sdy.Builder(sdy.Mesh.of({"data": 4, "model": 2}))
    x = b.argument((16, 64), "data", None)
    w = b.argument((64, 256), None, "model")
    y = b.elementwise("tanh", b.einsum("bi,ij->bj", x, w))
    module = b.build(y)
    sdy.propagate(module)
    print(sdy.get_sharding(y))

Shardings are written as the arguments of `TensorSharding.of`.
"""

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntegerType,
    ModuleOp,
    TensorType,
    f32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sdy.dialect.ops import MeshOp, ShardingConstraintOp
from sdy.dialect.sharding_checks import sharding_problem
from sdy.dialect.shardings import set_sharding
from sdy.mesh import Mesh
from sdy.sharding import DimSpec, TensorSharding
from sdy.stablehlo import STABLEHLO
from sdy.stablehlo.attributes.operation_attributes import DotDimensionNumbers, DotDimensionNumbersAttr
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.shape import TransposeOp

ElementType: TypeAlias = AnyFloat | IntegerType

MESH_NAME = "mesh"


class Builder:
    """Builder of a module with a function `@main` over one mesh."""

    def __init__(self, mesh: Mesh):
        self._mesh = mesh
        self._body = Block()
        self._shardings: list[TensorSharding | None] = []

    def argument(self, shape: Sequence[int], *dims: DimSpec, element_type: ElementType = f32) -> SSAValue:
        """Add an argument to the function.

        Args:
            shape: The global shape, in elements.
            *dims: The sharding of each dimension; without it, propagation chooses the sharding.
            element_type: The element type.

        Raises:
            ValueError: `dims` does not match the rank of `shape`, names an unknown axis, or uses an axis twice.
        """
        type_ = TensorType(element_type, shape)
        self._shardings.append(self._sharding(dims, type_) if dims else None)
        return self._body.insert_arg(type_, len(self._body.args))

    def insert(self, op: Operation) -> SSAValue:
        """Append an operation with one result and return the result."""
        self._body.add_op(op)
        return op.results[0]

    def constant(self, value: float, shape: Sequence[int] = (), element_type: ElementType = f32) -> SSAValue:
        """Append a constant of `shape` with all elements equal to `value`."""
        if isinstance(element_type, IntegerType):
            dense = DenseIntOrFPElementsAttr.from_list(TensorType(element_type, shape), [int(value)])
        else:
            dense = DenseIntOrFPElementsAttr.from_list(TensorType(element_type, shape), [float(value)])
        return self.insert(ConstantOp(dense))

    def elementwise(self, name: str, *operands: SSAValue) -> SSAValue:
        """Append the StableHLO operation `name`, such as "add" or "tanh"; its result has the type of the first operand.

        Raises:
            ValueError: StableHLO has no operation `name`.
        """
        classes = {op.name.removeprefix("stablehlo."): op for op in STABLEHLO.operations}
        if name not in classes:
            raise ValueError(f"unknown operation 'stablehlo.{name}'")
        return self.insert(classes[name].create(operands=operands, result_types=[operands[0].type]))

    def einsum(self, equation: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Append a product of two tensors, as in `einsum("ik,kj->ij", x, w)`.

        Letters missing from the result are contracted. The letters of each operand are distinct, and a letter of only
        one operand occurs in the result.

        Args:
            equation: The letters of the dimensions of both operands and the result.
            lhs: The left operand.
            rhs: The right operand.

        Raises:
            ValueError: The equation is not of this form, or does not fit the operands.
        """
        left, right, out = _letters(equation, lhs, rhs)
        batching = [c for c in left if c in right and c in out]
        contracting = [c for c in left if c in right and c not in out]
        natural = batching + [c for c in left if c not in right] + [c for c in right if c not in left]
        if sorted(natural) != sorted(out):
            raise ValueError(f"einsum '{equation}': the result's letters must be {''.join(natural)}, in any order")
        sizes = dict(zip(left + right, _shape(lhs) + _shape(rhs), strict=True))
        numbers = DotDimensionNumbers(
            *(tuple(side.index(c) for c in letters) for letters in (batching, contracting) for side in (left, right))
        )
        product_type = TensorType(_element_type(lhs), [sizes[c] for c in natural])
        product = self.insert(
            DotGeneralOp.create(
                operands=[lhs, rhs],
                properties={"dot_dimension_numbers": DotDimensionNumbersAttr(numbers)},
                result_types=[product_type],
            )
        )
        if natural == list(out):
            return product
        result_type = TensorType(_element_type(lhs), [sizes[c] for c in out])
        return self.insert(TransposeOp(product, [natural.index(c) for c in out], result_type))

    def constrain(self, value: SSAValue, *dims: DimSpec) -> SSAValue:
        """Append a sharding constraint on `value`.

        Args:
            value: The tensor to constrain.
            *dims: The sharding of each dimension.

        Returns:
            The result of the constraint.

        Raises:
            ValueError: `dims` does not match the rank of `value`, names an unknown axis, or uses an axis twice.
        """
        return self.insert(ShardingConstraintOp(value, self._sharding(dims, _tensor_type(value))))

    def _sharding(self, dims: Sequence[DimSpec], type_: TensorType[ElementType]) -> TensorSharding:
        rank, sharding = type_.get_num_dims(), TensorSharding.of(*dims)
        if len(dims) != rank:
            raise ValueError(f"the shape has {rank} dimensions, the sharding {len(dims)}")
        for axis in sharding.axes():
            if axis.name not in self._mesh:
                known = ", ".join(f"'{name}'" for name in self._mesh) or "none"
                raise ValueError(f"the mesh has no axis '{axis.name}': its axes are {known}")
        if problem := sharding_problem(sharding, type_, self._mesh):
            raise ValueError(problem)
        return sharding

    def build(self, *results: SSAValue) -> ModuleOp:
        """Return the module of the mesh and the function, which returns `results`."""
        self._body.add_op(ReturnOp(*results))
        types = FunctionType.from_lists([arg.type for arg in self._body.args], [value.type for value in results])
        function = FuncOp("main", types, Region(self._body))
        module = ModuleOp([MeshOp(MESH_NAME, self._mesh), function])
        for argument, sharding in zip(self._body.args, self._shardings, strict=True):
            if sharding is not None:
                set_sharding(argument, sharding)
        return module


def _letters(equation: str, lhs: SSAValue, rhs: SSAValue) -> tuple[str, str, str]:
    inputs, arrow, out = equation.replace(" ", "").partition("->")
    left, comma, right = inputs.partition(",")
    if not arrow or not comma:
        raise ValueError(f"einsum '{equation}' is not of the form 'ik,kj->ij'")
    for letters, value in ((left, lhs), (right, rhs)):
        if len(letters) != len(_shape(value)) or len(set(letters)) != len(letters):
            raise ValueError(f"einsum '{equation}': '{letters}' does not name the {len(_shape(value))} dimensions")
    for letter in set(left) & set(right):
        if _shape(lhs)[left.index(letter)] != _shape(rhs)[right.index(letter)]:
            raise ValueError(f"einsum '{equation}': the operands differ in the size of '{letter}'")
    return left, right, out


def _tensor_type(value: SSAValue) -> TensorType[ElementType]:
    type_: Attribute = value.type
    if not isinstance(type_, TensorType):
        raise ValueError(f"expected a tensor, not a value of type {type_}")
    return cast(TensorType[ElementType], type_)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return _tensor_type(value).get_shape()


def _element_type(value: SSAValue) -> ElementType:
    return _tensor_type(value).element_type
