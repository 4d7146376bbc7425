"""The assignment of rows to files, independent of the engine that moves them."""
