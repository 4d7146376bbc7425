"""Write and commit Delta Lake tables."""
