"""Results of a program as Zarr arrays in a folder, to which a run that was interrupted returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdy.passes.blocks.arrays import zarr
from sdy.passes.blocks.chunk_store import chunk_shape, create_array
from sdy.passes.blocks.graph import StoredTensor

_TOKEN = "sdy_token"


@dataclass(frozen=True)
class ResultStore:
    """A Zarr group with an array for each result: `result0`, `result1` and so on.

    Attributes:
        directory: The folder of the group.
        token: Identifies the program, its blocks and its arguments. A group with another token is replaced.
    """

    directory: Path
    token: str

    def arrays(self, sinks: Sequence[StoredTensor]) -> dict[StoredTensor, Any]:
        """Return the array of each result, opened or created.

        Raises:
            FileExistsError: The folder has other contents than results of a program.
        """
        if self.directory.exists() and any(self.directory.iterdir()):
            try:
                group = zarr().open_group(self.directory, mode="r+")
            except (FileNotFoundError, ValueError):
                group = None
            if group is None or _TOKEN not in group.attrs:
                raise FileExistsError(f"{self.directory} exists, and is not a store of results")
            if group.attrs[_TOKEN] == self.token:
                for unfinished in self.directory.rglob("*.partial"):  # Zarr names files so while it writes them
                    unfinished.unlink()
                return {sink: group[f"result{number}"] for number, sink in enumerate(sinks)}
        group = zarr().open_group(self.directory, mode="w")
        arrays = {
            sink: create_array(self.directory, f"result{number}", sink, "auto") for number, sink in enumerate(sinks)
        }
        group.attrs[_TOKEN] = self.token
        return arrays

    def stored_chunks(self, sink: StoredTensor, array: Any) -> set[int]:
        """Return the chunks that are stored; Zarr writes each to a file that appears when it is complete."""
        sizes = chunk_shape(sink)
        folder = self.directory / array.basename
        found: set[int] = set()
        for number, start in enumerate(sink.chunks.start.tolist()):
            place = tuple(first // size for first, size in zip(start, sizes, strict=True))
            if (folder / array.metadata.encode_chunk_key(place)).exists():
                found.add(number)
        return found
