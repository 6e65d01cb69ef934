from typing import Any

class Device:
    id: int
    platform: str
    process_index: int
    device_kind: str
    def default_memory(self) -> Any: ...
    def memory_stats(self) -> dict[str, int] | None: ...

def __getattr__(name: str) -> Any: ...
