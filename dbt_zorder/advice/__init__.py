"""Advice on the columns to cluster a table by, from the queries that read it and a sample of its rows."""
