"""Profile of ``type: spark_zorder``: dbt-spark's credentials, with an embedded session as the default."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials
from dbt_common.dataclass_schema import ValidationError
from dbt_common.exceptions import DbtConfigError

from dbt_zorder.adapter.session.environment import read_spark_files
from dbt_zorder.adapter.session.format_packages import format_settings
from dbt_zorder.adapter.session.open import SESSION_DIRECTORY
from dbt_zorder.adapter.session.remote import redact
from dbt_zorder.errors import ConfigError

_KEYS = ("session_dir", "spark_remote", "zorder_formats", "zorder_prune")
"""Keys of the profile that dbt-spark lacks."""

AUTO = "auto"
_PRUNE = {"true": True, "false": False, AUTO: AUTO}
"""Values of ``zorder_prune``; an environment variable gives a text."""

_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a mapping of names to values",
    "string": "a text",
}
"""Names of JSON types in messages."""


@dataclass
class ZorderCredentials(SparkCredentials):
    """dbt-spark's credentials, with keys for z-ordering. ``schema`` is the only key without a default.

    Attributes:
        method: dbt-spark's connection method, ``session`` by default. Models without ``zorder_by`` work with all of
            dbt-spark's methods.
        spark_remote: address of a Spark Connect server, such as ``sc://host:15002``. With ``method: session``,
            everything runs there. With another method, SQL uses that method, and the server runs z-ordering, seeds
            and Python models. The server must then share the method's catalog. Without it, z-ordering is SQL of that
            method. The default, with ``method: session``, is the environment variable ``SPARK_REMOTE``, then
            ``spark.remote``.
        session_dir: folder of the embedded metastore and warehouse, by default ``.spark_zorder`` in the project.
            A relative path starts at the project.
        zorder_formats: ``delta`` or ``iceberg``, the format that the embedded session is set up for.
        zorder_prune: whether plain SQL in models, tests and ``dbt show`` skips files of z-ordered tables that cannot
            match, as ``zorder_scan`` does. ``auto``, the default, does so in the session that dbt opens itself, for
            tables that are large enough to gain.
        server_side_parameters: settings of the session. Numbers are allowed here, as YAML parses them. dbt-spark
            accepts only texts.
    """

    host: str | None = "localhost"
    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    session_dir: str | None = None
    spark_remote: str | None = None
    zorder_formats: Any = None  # a text or a list of texts; dbt's decoder of unions would split a text into letters
    zorder_prune: Any = AUTO
    server_side_parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def validate(cls, data: Any) -> None:
        """Check the types of all keys. Errors omit the value, which may be a secret."""
        try:
            super().validate(data)
        except ValidationError as exc:
            if not exc.path or exc.validator == "enum":
                raise
            allowed = (one.get("type") for one in exc.schema.get("anyOf", [exc.schema]))
            kinds = " or ".join(_KINDS[kind] for kind in allowed if kind in _KINDS) or "of another kind"
            msg = f"The profile has {_yaml_type(exc.instance)} in '{exc.path[0]}', but it must be {kinds}."
        else:
            return
        raise DbtConfigError(msg)  # without a cause, because the original error shows the value

    @classmethod
    def __pre_deserialize__(cls, data: dict[Any, Any]) -> dict[Any, Any]:
        """Raise for misspelled keys of this adapter, because dbt silently ignores unknown keys."""
        for key in data:
            near = difflib.get_close_matches(str(key), _KEYS, 1, 0.8)
            if key in _KEYS or not (near or str(key).startswith("zorder")):
                continue
            meant = f" Did you mean '{near[0]}'?" if near else " What a model is to be is said by the model's config."
            msg = f"The profile has '{key}', which is no key of spark_zorder's.{meant} Its own are: {', '.join(_KEYS)}."
            raise DbtConfigError(msg)
        found: dict[Any, Any] = super().__pre_deserialize__(data)
        return found

    def __post_init__(self) -> None:
        """Check the profile, and read the server's address from the environment as PySpark does."""
        self.server_side_parameters = {key: _as_text(key, value) for key, value in self.server_side_parameters.items()}
        super().__post_init__()
        if self.spark_remote is None and self.method == SparkConnectionMethod.SESSION:
            self.spark_remote = os.environ.get("SPARK_REMOTE") or self.server_side_parameters.get("spark.remote")
        if self.spark_remote is not None and not self.spark_remote.startswith("sc://"):
            msg = f"spark_remote is {redact(self.spark_remote)!r}, but it must be an address like sc://localhost:15002."
            raise DbtConfigError(msg)
        if self.zorder_formats:
            self._set_up_formats()
        given = str(self.zorder_prune).lower()
        if given not in _PRUNE:
            msg = f"zorder_prune is {self.zorder_prune!r}, but it must be auto, true or false."
            raise DbtConfigError(msg)
        self.zorder_prune = _PRUNE[given]
        if self.zorder_prune is True and not self._is_embedded():
            msg = (
                "zorder_prune looks into the plans of the session that dbt opens itself, which a server does not show, "
                "so leave it out; zorder_scan prunes there too."
            )
            raise DbtConfigError(msg)

    def _is_embedded(self) -> bool:
        return self.spark_remote is None and self.method == SparkConnectionMethod.SESSION

    def _set_up_formats(self) -> None:
        if not self._is_embedded():
            msg = (
                "zorder_formats sets up the session that dbt opens itself; packages and extensions of a server are its "
                "own, so leave it out."
            )
            raise DbtConfigError(msg)
        names = [self.zorder_formats] if isinstance(self.zorder_formats, str) else self.zorder_formats
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            msg = f"zorder_formats is {self.zorder_formats!r}, but it must be a list of names, as [delta]."
            raise DbtConfigError(msg)
        try:
            given = self.server_side_parameters
            self.server_side_parameters = format_settings(names, given, pyspark.__version__, read_spark_files())
        except ConfigError as exc:
            raise DbtConfigError(str(exc)) from exc

    @property
    def type(self) -> str:
        """The adapter's type."""
        return "spark_zorder"

    @property
    def unique_field(self) -> str:
        """The value that dbt hashes for anonymous usage statistics."""
        return self.host or "localhost"

    def _connection_keys(self) -> tuple[str, ...]:
        if self.method == SparkConnectionMethod.SESSION:
            return "method", "schema", "spark_remote" if self.spark_remote else "session_dir"
        return (*super()._connection_keys(), *(["spark_remote"] if self.spark_remote else []))

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """Return the keys and values that ``dbt debug`` shows, without tokens."""
        for key, value in super().connection_info(with_aliases=with_aliases):
            displayed = SESSION_DIRECTORY if key == "session_dir" and value is None else value
            yield key, redact(value) if key == "spark_remote" and value else displayed

    def resolve_session_dir(self, project_root: str) -> None:
        """Make ``session_dir`` absolute, relative to the project's root."""
        self.session_dir = str(Path(project_root) / Path(self.session_dir or SESSION_DIRECTORY).expanduser())


def _as_text(key: str, value: Any) -> str:
    """Return a setting as text in Spark's spelling, and raise if the value is not a scalar."""
    if value is None or isinstance(value, (dict, list)):
        msg = (
            f"server_side_parameters has {_yaml_type(value)} as {key}, but it must be a text, a number, true or false."
        )
        raise DbtConfigError(msg)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _yaml_type(value: Any) -> str:
    """Return the name of a value's YAML type, without the value."""
    if value is None:
        return _KINDS["null"]
    json_types = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object", list: "array"}
    return _KINDS[json_types[type(value)]] if type(value) in json_types else f"a {type(value).__name__}"
