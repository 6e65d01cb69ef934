def initialize(
    coordinator_address: str | None = ...,
    num_processes: int | None = ...,
    process_id: int | None = ...,
    *,
    initialization_timeout: int = ...,
    heartbeat_timeout_seconds: int = ...,
) -> None: ...
