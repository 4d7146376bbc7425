"""Writes clustered rows into tables whose format has a log of its own. Keeps nothing of ours beside them."""
