"""Places rows in this process, with NumPy and Arrow."""
