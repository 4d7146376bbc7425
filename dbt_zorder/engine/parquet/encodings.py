"""Chooses the encodings of values without a dictionary, for the two versions of files that parquet-java writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dbt_zorder.engine.parquet.leaves import leaf_types
from dbt_zorder.spark.decimals import can_compact

VERSION_OPTION = "parquet.writer.version"
"""Names the version, as an option of the write or in the session."""
VERSIONS: Mapping[str, int] = {"v1": 1, "PARQUET_1_0": 1, "v2": 2, "PARQUET_2_0": 2}
"""Versions by each name that parquet-java accepts; names are case-sensitive."""


@dataclass(frozen=True)
class Encodings:
    """The encodings of a file version.

    Attributes:
        version: 1 for plain values, which all readers support. 2 for delta encodings of whole numbers and texts, in
            data pages of the second version, as in parquet-java's ``DefaultV2ValuesWriterFactory``.
    """

    version: int = 1

    def writer_options(self, schema: pa.Schema, repeating: Collection[str]) -> dict[str, Any]:
        """Return the options for Arrow's writer.

        Args:
            schema: schema of the file.
            repeating: leaves that have a dictionary, see ``leaves_of``.
        """
        if self.version == 1:
            return {}
        found = {path: _by_differences(kind) for path, kind in leaf_types(schema).items() if path not in repeating}
        chosen = {path: name for path, name in found.items() if name}
        return {"data_page_version": "2.0", "column_encoding": chosen or None}


def _by_differences(kind: pa.DataType) -> str:
    """Return the encoding of a type's values, an empty text for the default."""
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        return ""
    if _is_text(kind) or (pa.types.is_decimal(kind) and not can_compact(kind)):
        return "DELTA_BYTE_ARRAY"
    return "DELTA_BINARY_PACKED"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))
