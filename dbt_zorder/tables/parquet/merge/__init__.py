"""Merge a batch into a Parquet table by a key: match, rewrite the files with a changed row, share the others."""
