"""``--sample``: a part of the rows, by time."""

from __future__ import annotations

from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest


class TestSampleModeTest(BaseSampleModeTest):
    pass
