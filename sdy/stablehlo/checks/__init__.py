"""What verifiers of several families check and infer, with MLIR's messages."""
