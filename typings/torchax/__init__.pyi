__path__: list[str]
