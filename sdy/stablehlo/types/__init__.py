"""The types of StableHLO: element types, constraints on tensor types, quantized, sparse and bounded tensors."""
