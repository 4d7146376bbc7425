"""Grants, which Spark's session catalog does not have: it answers GRANT and SHOW GRANT with an error of syntax."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.grants.test_incremental_grants import BaseIncrementalGrants
from dbt.tests.adapter.grants.test_invalid_grants import BaseInvalidGrants
from dbt.tests.adapter.grants.test_model_grants import BaseModelGrants
from dbt.tests.adapter.grants.test_seed_grants import BaseSeedGrants
from dbt.tests.adapter.grants.test_snapshot_grants import BaseSnapshotGrants

no_grants = pytest.mark.skip(reason="Spark's session catalog knows no grants")


@no_grants
class TestModelGrants(BaseModelGrants):
    pass


@no_grants
class TestIncrementalGrants(BaseIncrementalGrants):
    pass


@no_grants
class TestSeedGrants(BaseSeedGrants):
    pass


@no_grants
class TestSnapshotGrants(BaseSnapshotGrants):
    pass


@no_grants
class TestInvalidGrants(BaseInvalidGrants):
    pass
