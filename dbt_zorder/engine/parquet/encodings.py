"""How values are encoded that have no dictionary, by the two versions of files that Parquet's own writer knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dbt_zorder.engine.parquet.schema import leaf_types
from dbt_zorder.spark.decimals import can_compact

VERSION_OPTION = "parquet.writer.version"
"""Where the version is set: as an option of the write, or in the session."""
VERSIONS: Mapping[str, int] = {"v1": 1, "PARQUET_1_0": 1, "v2": 2, "PARQUET_2_0": 2}
"""By each name that parquet-java knows it by, in this very spelling."""


@dataclass(frozen=True)
class Encodings:
    """What a version of files does.

    Attributes:
        version: 1, plain values as all readers know them, or 2: differences of whole numbers, and of texts what they
            do not share with the one before, in pages of the second version; as parquet-java's
            ``DefaultV2ValuesWriterFactory`` has it.
    """

    version: int = 1

    def writer_options(self, schema: pa.Schema, repeating: Collection[str]) -> dict[str, Any]:
        """Return what Arrow's writer is told.

        Args:
            schema: of the file.
            repeating: leaves that have a dictionary, as of ``leaves_of``.
        """
        if self.version == 1:
            return {}
        found = {path: _by_differences(kind) for path, kind in leaf_types(schema).items() if path not in repeating}
        chosen = {path: name for path, name in found.items() if name}
        return {"data_page_version": "2.0", "column_encoding": chosen or None}


def _by_differences(kind: pa.DataType) -> str:
    """Return the encoding of a type's values, an empty text for that which its pages have anyway."""
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        return ""
    if _is_text(kind) or (pa.types.is_decimal(kind) and not can_compact(kind)):
        return "DELTA_BYTE_ARRAY"
    return "DELTA_BINARY_PACKED"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))
