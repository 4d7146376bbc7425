"""Programs that draw, generate and check what stands in README.md and docs/."""
