"""The CHLO dialect, one file per family of operations."""

from sdy.ir.lazy_dialects import LazyDialect

CHLO = LazyDialect("chlo", __name__)
