"""Packages that import a name's module when the name is first used.

__getattr__, __dir__ = lazy_names("sdy", globals(), {"parse": "sdy.text", "Sharding": "sdy.sharding:TensorSharding"})

Type checkers see the imports below `if TYPE_CHECKING:` instead.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from sdy.extras import explain_missing_extra


def lazy_names(
    package: str, namespace: dict[str, Any], homes: Mapping[str, str], needs: str = "", classes: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package.

    Args:
        package: The name of the package in messages.
        namespace: The globals of the package, which keep each name after its first use.
        homes: The module of each name, with `:attribute` if the name differs there, or `:` if the name is the module.
        needs: A package to import first; without it, its extra is named in the error.
        classes: A module from which all other classes that the package defines are available.
    """

    def get(name: str) -> Any:
        home, is_renamed, attribute = homes.get(name, classes if name[0].isupper() else "").partition(":")
        value: Any = None
        if home:
            with explain_missing_extra(f"{package}.{name}"):
                if needs:
                    import_module(needs)
                module = import_module(home)
                value = module if is_renamed and not attribute else getattr(module, attribute or name, None)
        if value is None or (name not in homes and not value.__module__.startswith(package)):
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        namespace[name] = value
        return value

    return get, lambda: sorted({*namespace, *homes})
