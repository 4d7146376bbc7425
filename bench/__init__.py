"""Benchmarks whose figures are ratios within one run on one machine; see bench/README.md."""
