"""The profile of ``type: spark_zorder``: that of dbt-spark, with an embedded session as the default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials

from dbt_zorder.adapter.session import SESSION_DIRECTORY


@dataclass
class ZorderCredentials(SparkCredentials):
    """dbt-spark's credentials; ``schema`` is the only key without a default.

    Attributes:
        method: ``session`` by default; all of dbt-spark's methods work for models without ``zorder_by``.
        session_dir: folder of the embedded metastore and warehouse, by default ``.spark_zorder`` in the project;
            a relative path counts from the project.
    """

    host: str | None = "localhost"
    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    session_dir: str | None = None

    @property
    def type(self) -> str:
        """The adapter's type."""
        return "spark_zorder"

    @property
    def unique_field(self) -> str:
        """What anonymous usage statistics hash."""
        return self.host or "localhost"

    def _connection_keys(self) -> tuple[str, ...]:
        if self.method == SparkConnectionMethod.SESSION:
            return "method", "schema", "session_dir"
        return super()._connection_keys()

    def resolve_session_dir(self, project_root: str) -> None:
        """Make ``session_dir`` absolute, once the project is known."""
        self.session_dir = str(Path(project_root) / (self.session_dir or SESSION_DIRECTORY))
