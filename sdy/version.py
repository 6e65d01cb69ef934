"""Versions of sdy and of the packages that it needs, from package metadata."""

from importlib.metadata import PackageNotFoundError, version


def version_of(package: str) -> str:
    """Return the version of an installed package, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


__version__ = version_of("sdy")
