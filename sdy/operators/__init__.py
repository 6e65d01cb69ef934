"""Annotated operators: annotations such as `m^ kd+, kd+ n -> m^ n`, their sharding rules, and the operator registry."""
