"""What tensors and other values are: element types, tensor types as constraints, quantized, sparse and bounded ones."""
