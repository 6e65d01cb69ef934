"""Annotated operators: what an annotation such as `m^ kd+, kd+ n -> m^ n` says, and which operators there are."""
