"""Finding operations gives what xDSL's own walk gives, in its order."""

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator, Pure

from sdy.dialect.traits import has_trait, is_terminator, trait_of
from sdy.dialect.walk import each_operation, operations, operations_inside_out, operations_of
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import AddOp
from sdy.text import parse

MODULE = parse(
    """
    func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
      %0 = stablehlo.add %x, %x : tensor<f32>
      %1:2 = stablehlo.while(%a = %0, %b = %p) : tensor<f32>, tensor<i1> cond {
        stablehlo.return %b : tensor<i1>
      } do {
        %2 = stablehlo.add %a, %x : tensor<f32>
        stablehlo.return %2, %b : tensor<f32>, tensor<i1>
      }
      return %1#0 : tensor<f32>
    }
    func.func private @declared(tensor<f32>)
    """
)
"""Regions of several levels, two regions in one operation, and one without blocks."""


def test_operations_are_those_of_walk():
    assert operations(MODULE) == list(MODULE.walk())
    assert list(each_operation(MODULE)) == list(MODULE.walk())
    assert operations_inside_out(MODULE) == list(MODULE.walk(region_first=True))


def test_what_stands_beside_an_operation_is_not_in_it():
    add = operations_of(MODULE, AddOp)[0]
    assert operations(add) == list(each_operation(add)) == operations_inside_out(add) == [add]


def test_operations_of_some_classes():
    assert [len(operations_of(MODULE, kind)) for kind in (AddOp, WhileOp, FuncOp, Operation)] == [2, 1, 2, 9]
    assert operations_of(MODULE, ReturnOp, WhileOp)[0].name == "stablehlo.while"


def test_traits_are_those_of_the_class():
    add, end = operations_of(MODULE, AddOp)[0], operations_of(MODULE, ReturnOp)[0]
    assert has_trait(add, Pure)
    assert not is_terminator(add)
    assert is_terminator(end)
    assert isinstance(trait_of(end, IsTerminator), IsTerminator)
