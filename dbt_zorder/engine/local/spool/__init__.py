"""Spools the rows of a query to this machine's disk, and reads them back in chunks."""
