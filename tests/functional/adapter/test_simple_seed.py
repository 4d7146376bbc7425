"""dbt's suites for seeds, plain and z-ordered, and what they do not ask."""

from __future__ import annotations

from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
)

TestBasic = BaseBasicSeedTests
