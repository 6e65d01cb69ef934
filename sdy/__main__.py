"""Entry point of `python -m sdy opt ...`, which runs `sdy-opt ...`, and of the other tools."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

TOOLS = {
    "opt": "run passes, given as flags, on MLIR text: propagate shardings, or partition into the per-device program",
    "run": "partition a program, run it on its devices, and compare with the unpartitioned program",
    "auto": "choose the shardings of a program: least time within the memory of the devices",
    "diff": "compare the shardings, collectives and costs of two programs",
    "report": "write an HTML page of a program's collectives and memory, with the reason for each",
    "lint": "report expensive collectives, replication and memory, with source line, reason and fix",
    "interpret": "interpret a program on NumPy arrays, without a compiler",
    "blocks": "run a program out of core, in blocks that fit in memory",
}
"""One-line summary of each of the commands sdy-opt, sdy-run and so on."""

_USAGE = "usage: python -m sdy TOOL ..., or sdy-TOOL ...\n\ntools (see TOOL --help):\n"


def usage() -> str:
    """Return the usage text, with one line per tool."""
    return _USAGE + "".join(f"  {name:11}{summary}\n" for name, summary in TOOLS.items())


def main(words: Sequence[str] | None = None) -> int:
    """Run the tool named by the first of `words` with the remaining words as arguments, and return its exit status."""
    name, *rest = (sys.argv[1:] if words is None else words) or ["--help"]
    if name in TOOLS:
        return import_module("sdy.tools.entry").run_command(name, rest)
    if name in ("-h", "--help"):
        print(usage(), end="")
        return 0
    if name == "--version":
        print(import_module("sdy.tools.arguments").version_line("sdy"))
        return 0
    matches = get_close_matches(name.removeprefix("sdy-"), TOOLS, 1)
    hint = f": did you mean '{matches[0]}'?" if matches else ""
    print(f"sdy: there is no tool '{name}'{hint}\n\n{usage()}", end="", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
