"""Lazy dialects are complete, and a program loads only the files that it needs."""

import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import pytest
from xdsl.ir import Attribute, Operation

from sdy import stablehlo
from sdy.ir.lazy_dialects import LazyDialect
from sdy.stablehlo import STABLEHLO, chlo
from sdy.stablehlo.chlo import CHLO
from sdy.text import context

DIALECTS = {STABLEHLO.name: STABLEHLO, CHLO.name: CHLO}

ADDITION = """
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def defined(kind: type, prefix: str) -> Iterator[str]:
    """Return the names in a dialect of all classes of a kind that any file under `sdy.stablehlo` defines."""
    for found in pkgutil.walk_packages(stablehlo.__path__, "sdy.stablehlo."):
        for value in vars(import_module(found.name)).values():
            if isinstance(value, type) and value.__module__ == found.name and issubclass(value, kind):
                name = vars(value).get("name")
                if isinstance(name, str) and name.startswith(prefix):
                    yield name


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_dialect_has_all_that_its_files_define(dialect: LazyDialect):
    assert sorted(op.name for op in dialect.operations) == sorted(defined(Operation, f"{dialect.name}."))
    assert sorted(each.name for each in dialect.attributes) == sorted(defined(Attribute, f"{dialect.name}."))
    ctx = context()
    for operation in dialect.operations:
        assert ctx.get_op(operation.name) is operation
    for attribute in dialect.attributes:
        assert attribute in (ctx.get_optional_attr(attribute.name), ctx.get_optional_type(attribute.name))


def test_all_classes_are_had_from_the_package_by_name():
    for defined in (*STABLEHLO.operations, *STABLEHLO.attributes):
        assert getattr(stablehlo, defined.__name__) is defined
    with pytest.raises(AttributeError):
        _ = stablehlo.NoSuchOp  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    with pytest.raises(AttributeError):
        _ = stablehlo.Operation  # one of xDSL's that the files import
    with pytest.raises(AttributeError):
        _ = stablehlo.no_such_file  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    assert chlo.CHLO is CHLO


def test_a_context_says_what_a_dialect_does_not_have():
    ctx = context()
    assert ctx.get_optional_op("stablehlo.subtrack") is None
    assert ctx.get_optional_attr("stablehlo.no_such") is None
    assert ctx.get_optional_type("stablehlo.no_such") is None
    assert ctx.get_op("stablehlo.subtract") in STABLEHLO.operations


def test_a_clone_learns_apart():
    ctx = context()
    ctx.get_op("stablehlo.add")
    clone = ctx.clone()
    assert clone.get_op("stablehlo.add") is ctx.get_op("stablehlo.add")
    assert clone.get_op("stablehlo.sort") in STABLEHLO.operations
    assert "stablehlo.sort" not in {op.name for op in ctx.loaded_ops}


def test_program_loads_only_the_dialect_files_it_uses():
    """Imports dominate the time of a short run of sdy-opt."""
    check = """
import sys
from sdy.tools.sdy_opt import main
assert main(["-sdy-propagation-pipeline", "-", "-o", "/dev/null"]) == 0
names = "sdy.stablehlo.elementwise jax numpy lark rich argparse sdy.stablehlo.sort sdy.rules.linalg"
print(*(name for name in names.split() if name in sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", check], input=ADDITION, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["sdy.stablehlo.elementwise"]
