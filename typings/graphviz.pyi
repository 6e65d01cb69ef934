class Digraph:
    source: str
    def __init__(
        self,
        name: str | None = ...,
        *,
        format: str | None = ...,
        graph_attr: dict[str, str] | None = ...,
        node_attr: dict[str, str] | None = ...,
        edge_attr: dict[str, str] | None = ...,
    ) -> None: ...
    def node(self, name: str, label: str | None = ..., **attrs: str) -> None: ...
    def edge(self, tail_name: str, head_name: str, label: str | None = ..., **attrs: str) -> None: ...

def escape(s: str) -> str: ...
