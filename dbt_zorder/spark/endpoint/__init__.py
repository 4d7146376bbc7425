"""Runs Spark Connect's plans as SQL text, where a server answers SQL alone."""
