"""Directives of assembly formats."""
