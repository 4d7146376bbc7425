"""Translates a predicate to a condition on statistics."""
