"""Prune statements of plain SQL before Spark runs them."""
