"""Formatting and parsing of byte sizes."""

import pytest

from sdy.formatting import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("80G", 80 * 2**30),
        ("80GiB", 80 * 2**30),
        ("1.5 T", 3 * 2**39),
        ("16kb", 2**14),
        (" 2m ", 2**21),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1G", "1e9", "0", "0.1", "80P", "80GG", "nan"])
def test_invalid_byte_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size: bytes, or a number with K, M, G or T"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1000, "1000 bytes"),
        (1024, "1 KiB"),
        (1027340, "1,003 KiB"),
        (6.5 * 2**30, "6.5 GiB"),
        (2**55, "32,768 TiB"),
    ],
)
def test_a_size_is_shown(size: float, text: str) -> None:
    assert format_bytes(size) == text
