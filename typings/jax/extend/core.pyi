from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from jax._src import core

_F = TypeVar("_F", bound=Callable[..., Any])

class JaxprEqn:
    invars: list[Any]
    outvars: list[Any]
    params: dict[str, Any]
    primitive: Primitive
    source_info: Any
    def replace(
        self,
        invars: list[Any] | None = ...,
        outvars: list[Any] | None = ...,
        params: dict[str, Any] | None = ...,
        source_info: Any = ...,
    ) -> JaxprEqn: ...

class Jaxpr:
    eqns: list[JaxprEqn]
    def replace(self, *, eqns: list[JaxprEqn]) -> Jaxpr: ...

class ClosedJaxpr:
    in_avals: list[Any]
    jaxpr: Jaxpr
    def replace(self, *, jaxpr: Jaxpr) -> ClosedJaxpr: ...

class Primitive(core.Primitive):
    name: str
    multiple_results: bool
    def __init__(self, name: str) -> None: ...
    def bind(self, *args: Any, **params: Any) -> Any: ...
    def def_impl(self, impl: _F) -> _F: ...
    def def_abstract_eval(self, abstract_eval: _F) -> _F: ...
    def def_effectful_abstract_eval(self, effectful_abstract_eval: _F) -> _F: ...

def get_opaque_trace_state() -> object: ...
def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Any]: ...
def jaxpr_as_fun(closed_jaxpr: Any, *args: Any) -> Callable[..., list[Any]]: ...
