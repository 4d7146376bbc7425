"""Decides whose a version is, and which versions may be deleted."""
