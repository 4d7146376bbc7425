"""Fetches all rows of a small query to lay them out here: a shuffle in Spark takes longer than all remaining work.

Figures are in docs/decisions/012.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from dbt_zorder.engine.local.row_estimate import SLACK, estimated_row_bytes, text_length, texts_of
from dbt_zorder.layout.key_arrays import key_values
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.known_keys import Fetched
from dbt_zorder.layout.partitions import folder_names, partition_hash
from dbt_zorder.spark.arrow import collect_arrow, one_chunk
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.small_queries import first_numbered, partitions_of
from dbt_zorder.spark.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")

_MOST_FOLDERS = 20_000
"""Limit for the number of folders: naming each calls the JVM."""


def fetch(
    df: DataFrame,
    keys: Sequence[Key],
    most_bytes: int,
    partition_by: Sequence[ResolvedColumn] = (),
    *,
    whole: bool = False,
) -> Fetched | None:
    """Return all rows of a query that is estimated to be small; None if they are too many or too long.

    Also returns None if there are too many partitions, or if the name of one is not UTF-8.

    No Spark partition sends more than its share of rows, nor unlimited text: the later a row, the less text it may
    have. Rows of equal length therefore occupy at most ``SLACK`` times the limit.

    Args:
        df: query of types that ``estimated_row_bytes`` supports.
        keys: keys that place the rows.
        most_bytes: limit for the bytes of the rows in memory.
        partition_by: partition columns of the table, each a top-level column.
        whole: whether files contain the partition columns, and an empty text is another partition than NULL.
    """
    width = estimated_row_bytes(df.schema)
    assert width
    quoted = {name: quote_name(name) for name in df.columns}
    wanted, extras_sql = [*quoted.values()], partition_sql(partition_by)
    partitions = max(1, partitions_of(df))
    share, budget = most_bytes // width // partitions, SLACK * most_bytes // partitions
    if not share:
        return None
    number, too_long = _free_names(df)
    asked = first_numbered(df, share, number)
    overflow = f"{number} = {share - 1}L"
    long_texts = texts_of(df.schema)
    if long_texts:
        # a column, so that Spark evaluates it once a row for all columns of text
        asked = asked.selectExpr("*", f"({text_length(df)}) * ({number} + 1L) > {budget}L AS {too_long}")
        wanted = [f"IF({too_long}, NULL, {sql})" if name in long_texts else sql for name, sql in quoted.items()]
        overflow += f" OR {too_long}"
    extras_sql.append(overflow)
    # one select, because the analysis of each takes milliseconds
    found = collect_arrow(asked.selectExpr(*(f"{sql} AS c{place}" for place, sql in enumerate([*wanted, *extras_sql]))))
    extras = found.columns[len(found.columns) - len(extras_sql) :]
    if pc.any(extras[-1]).as_py():
        _LOG.debug("rows were fetched in vain: they are more, or longer, than %d bytes allow", most_bytes)
        return None
    by_name = {name: one_chunk(_plain_text(column)) for name, column in zip(df.columns, found.columns, strict=False)}
    placed_by = {f"k{n}": key_values(by_name[key.column.name], key) for n, key in enumerate(keys)}
    folders, folder_of = [""], np.zeros(found.num_rows, dtype=np.int32)
    if partition_by:
        texts, placed_by["p"] = extras[: len(partition_by)], one_chunk(extras[len(partition_by)])
        try:
            distinct, folder_of = distinct_partitions(texts, _MOST_FOLDERS)
            folders = folder_names(df.sparkSession, [column.name for column in partition_by], distinct, whole=whole)
        except Exception as exc:  # impossible names, bytes that are not text, or another version of Spark
            _LOG.debug("Spark names the folders of partitions: %s", in_one_line(exc))
            return None
        if not folders and found.num_rows:
            _LOG.debug("there are more than %d partitions", _MOST_FOLDERS)
            return None
    parts = set() if whole else {part.name for part in partition_by}
    data = {name: column for name, column in by_name.items() if name not in parts}
    return Fetched(pa.table(placed_by), pa.table(data), folders, folder_of)


def partition_sql(partition_by: Sequence[ResolvedColumn]) -> list[str]:
    """Return SQL text of a row's partition: its values as text, and their hash."""
    texts = [f"CAST({part.sql} AS STRING)" for part in partition_by]
    return [*texts, partition_hash([part.sql for part in partition_by])] if partition_by else []


def distinct_partitions(
    texts: Sequence[pa.ChunkedArray], most: int
) -> tuple[list[tuple[str | None, ...]], npt.NDArray[np.int32]]:
    """Return the distinct partition values, and each row's index among them.

    Returns empty results if there are more than ``most`` partitions.
    """
    distinct: list[list[str | None]] = []
    of_column: list[npt.NDArray[np.int32]] = []
    together = np.zeros(len(texts[0]), dtype=np.int64)
    for column in texts:
        coded = one_chunk(column).dictionary_encode()
        distinct.append([*coded.dictionary.to_pylist(), None])
        codes = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        # renumbered after each column, so that numbers stay below the number of rows
        together = np.unique(together * len(distinct[-1]) + codes, return_inverse=True)[1].reshape(-1)
        if len(together) and together.max() >= most:
            return [], np.zeros(0, dtype=np.int32)
        of_column.append(codes)
    _, first = np.unique(together, return_index=True)
    found = [
        tuple(values[codes[row]] for values, codes in zip(distinct, of_column, strict=True)) for row in first.tolist()
    ]
    return found, together.astype(np.int32)


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text with 32-bit offsets, as files and keys have it; sessions may use 64-bit ones."""
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(column.type)
    return column if plain is None else column.cast(plain)


def _free_names(df: DataFrame) -> tuple[str, str]:
    """Return two names that no column of ``df`` has."""
    name = "_zorder_row"
    while any(column.lower().startswith(name) for column in df.columns):
        name += "_"
    return f"{name}_number", f"{name}_long"
