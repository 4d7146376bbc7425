"""Parse a predicate and resolve its columns."""
