"""Prune a table by the limit of a query: only its first rows in an order are used."""
