from typing import Any

class TopologyDescription:
    devices: list[Any]

def get_topology_desc(topology_name: str = ..., platform: str | None = ..., **kwargs: Any) -> TopologyDescription: ...
