"""Source lines of the instructions of a compiled program, parsed from the metadata in XLA's HLO text.

Tables at the beginning of the text have the call stacks:

    FileNames
    1 "/home/me/train.py"

    FileLocations
    3 {file_name_id=1 function_name_id=3 line=5 end_line=5 column=33 end_column=33}

    StackFrames
    4 {file_location_id=3 parent_frame_id=2}

An instruction refers to a frame, `metadata={op_name="jit(step)/dot_general" stack_frame_id=4}`. In older versions of
XLA it has the line, `metadata={op_name="..." source_file="/home/me/train.py" source_line=5}`. The outermost frame is
its own parent.
"""

import re
from collections.abc import Iterator

from sdy.diagnostics import Location, is_library

_FILE = re.compile(r'^(\d+) "(.*)"$', re.MULTILINE)
_LOCATION = re.compile(
    r"^(\d+) \{file_name_id=(\d+) function_name_id=\d+ line=(\d+)(?: end_line=\d+)?(?: column=(\d+))?", re.MULTILINE
)
_FRAME = re.compile(r"^(\d+) \{file_location_id=(\d+)(?: parent_frame_id=(\d+))?", re.MULTILINE)
_FRAME_OF_INSTRUCTION = re.compile(r"metadata=\{[^}]*stack_frame_id=(\d+)")
_LINE_OF_INSTRUCTION = re.compile(r'metadata=\{[^}]*source_file="([^"]*)" source_line=(\d+)')


class HloPlaces:
    """The call stacks of a compiled program."""

    def __init__(self, hlo: str) -> None:
        tables = hlo.partition("\n%")[0]
        files = {match[1]: match[2] for match in _FILE.finditer(tables.partition("FunctionNames")[0])}
        locations = {
            match[1]: Location(files[match[2]], int(match[3]), int(match[4] or 1))
            for match in _LOCATION.finditer(tables)
        }
        self._frames = {match[1]: (locations[match[2]], match[3]) for match in _FRAME.finditer(tables)}

    def of(self, instruction: str) -> Location | None:
        """Return the innermost line of a person's file that stands for an instruction, else the innermost line."""
        if match := _LINE_OF_INSTRUCTION.search(instruction):
            return Location(match[1], int(match[2]), 1)
        match = _FRAME_OF_INSTRUCTION.search(instruction)
        stack = [*self._stack(match[1])] if match else []
        return next((place for place in stack if not is_library(place.filename)), stack[0] if stack else None)

    def _stack(self, frame: str | None) -> Iterator[Location]:
        """Yield the lines of a frame and of its callers."""
        while frame in self._frames:
            place, parent = self._frames[frame]
            yield place
            frame = None if parent == frame else parent
