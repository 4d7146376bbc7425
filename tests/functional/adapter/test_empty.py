"""x"""

from __future__ import annotations

from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)


class TestTestEmpty(BaseTestEmpty):
    pass


class TestTestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestTestEmptySeedFlag(BaseTestEmptySeedFlag):
    pass


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    pass
