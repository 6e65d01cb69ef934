"""`python -m sdy opt ...` is `sdy-opt ...`, also where the folder of scripts is not on the path; so are the others."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

TOOLS = {
    "opt": "run passes on MLIR text, each a flag: see every tensor's sharding, or the program of one device",
    "run": "partition a program, run it on its devices, and compare with the unpartitioned program",
    "auto": "choose how a program is split over devices: least time, within the memory that there is",
    "diff": "show what differs between two programs in how their tensors lie, and in what that costs",
    "report": "write a page of where the bytes of a program go, and why",
    "lint": "tell what will cost in a program, each with its line, the reason, and what to write instead",
    "interpret": "run a program on NumPy arrays, without a compiler",
    "blocks": "run a program in blocks that fit in memory",
}
"""What each of the commands sdy-opt, sdy-run and so on is for."""

_USAGE = "usage: python -m sdy TOOL ..., or sdy-TOOL ...\n\ntools (TOOL --help tells more of each):\n"


def usage() -> str:
    """What there is, a line for each tool."""
    return _USAGE + "".join(f"  {name:11}{summary}\n" for name, summary in TOOLS.items())


def main(words: Sequence[str] | None = None) -> int:
    """Run the tool that the first of `words` names with the others, and return its exit status."""
    name, *rest = (sys.argv[1:] if words is None else words) or ["--help"]
    if name in TOOLS:
        return import_module("sdy.tools.entry").run_command(name, rest)
    if name in ("-h", "--help"):
        print(usage(), end="")
        return 0
    if name == "--version":
        print(import_module("sdy.tools.version").version_line("sdy"))
        return 0
    near = get_close_matches(name.removeprefix("sdy-"), TOOLS, 1)
    hint = f": did you mean '{near[0]}'?" if near else ""
    print(f"sdy: there is no tool '{name}'{hint}\n\n{usage()}", end="", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
