"""The pieces of syntax that operations share, as directives of their assembly formats."""
