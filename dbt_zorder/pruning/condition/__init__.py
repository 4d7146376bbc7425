"""Translate a predicate to a condition on file statistics."""
