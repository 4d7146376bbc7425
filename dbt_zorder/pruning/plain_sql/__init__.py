"""Prunes statements of plain SQL before Spark runs them."""
