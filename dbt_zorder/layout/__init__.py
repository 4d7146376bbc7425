"""Decides which row belongs to which file. Knows no engine."""
