from typing import Any

class Memory:
    kind: str

class Device:
    id: int
    platform: str
    process_index: int
    device_kind: str
    def addressable_memories(self) -> list[Memory]: ...
    def default_memory(self) -> Any: ...
    def memory_stats(self) -> dict[str, int] | None: ...

def __getattr__(name: str) -> Any: ...
