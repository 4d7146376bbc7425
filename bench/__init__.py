"""Benchmarks: every figure is a ratio in one run on one machine; see bench/README.md."""
