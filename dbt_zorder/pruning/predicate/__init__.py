"""Parses a predicate and resolves its columns."""
