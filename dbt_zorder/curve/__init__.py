"""Trees and space-filling curves over ranks, in NumPy alone."""
