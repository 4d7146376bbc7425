"""Builds tables of any format and adds batches to them."""
