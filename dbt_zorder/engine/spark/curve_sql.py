"""Computes a row's key on a curve over a grid, as SQL that Spark compiles: no UDF, no Python worker.

The default order does not need it, because there the path down the tree is the key (see ``descent``).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.curve.morton import spread
from dbt_zorder.engine.spark import hilbert, linear, morton
from dbt_zorder.engine.spark.literals import key_array
from dbt_zorder.engine.spark.lookup_tables import long_table
from dbt_zorder.layout.bit_keys import bits_of
from dbt_zorder.layout.curve import Curve, prefix
from dbt_zorder.layout.keys import Key
from dbt_zorder.spark.columns import leaf_names
from dbt_zorder.spark.sql import quote_name

_MOST_HILBERT_LEVELS = 3  # per projection: each level doubles the text
_MOST_USES = 4
_MOST_USES_WIDE = 32
_MOST_FIELDS = 100
"""Maximum columns of a row for which Spark uses whole-stage code generation (``spark.sql.codegen.maxFields``)."""


def add_curve(df: DataFrame, curve: Curve, keys: Sequence[Key], name: str) -> DataFrame:
    """Add a column ``name`` that sorts and cuts rows.

    Args:
        df: rows with the columns of ``keys``; no column name begins with ``name``.
    """
    columns = df.columns
    if curve.curve == "linear":
        return df.withColumn(name, f.expr(linear.tuple_sql(prefix(keys))))
    add = _add_rank_key if curve.encoding == "rank" else _add_bits_key
    steps = add(df, curve, keys, name)
    return steps.select(*map(quote_name, columns), name)


def shared(expression: str) -> str:
    """Write an integer expression twice, so that Spark treats it as common and gives it a Java method of its own."""
    return f"({expression}) | ({expression})"


def most_uses(df: DataFrame, more: int) -> int:
    """Return how often an expression may occur in one projection, beside ``more`` of our columns.

    With whole-stage code generation the limit is low, because projections share a method. Without it the limit is high,
    so that there are few projections, because each copies the row.
    """
    return _MOST_USES if len(leaf_names(df.schema)) + more <= _MOST_FIELDS else _MOST_USES_WIDE


def steps_at_once(df: DataFrame, more: int) -> int:
    """Return the number of steps in one projection, beside ``more`` columns; each step uses the previous one twice."""
    return most_uses(df, more).bit_length() - 1


def _add_rank_key(df: DataFrame, curve: Curve, keys: Sequence[Key], name: str) -> DataFrame:
    indices = [f"{name}_{number}" for number in range(len(keys))]
    steps = df.withColumns(
        {index: f.expr(f"CAST({key.expression} IS NOT NULL AS INT)") for index, key in zip(indices, keys, strict=True)}
    )
    arrays = [key_array(values, key.carrier) for values, key in zip(curve.boundaries, keys, strict=True)]
    depths = [len(values).bit_length() for values in curve.boundaries]
    at_once = steps_at_once(df, len(keys))
    for top in range(max(depths), 0, -at_once):
        columns = {}
        for index, key, array, depth in zip(indices, keys, arrays, depths, strict=True):
            found = index
            for place in range(min(top, depth), max(0, top - at_once), -1):
                found = search_sql(key.expression, found, array, 1 << place - 1)
            if found != index:
                columns[index] = f.expr(shared(found))
        steps = steps.withColumns(columns)
    parts = [
        f"get({long_table([spread(code, number, len(keys)) for code in codes])}, {index})"
        for number, (index, codes) in enumerate(zip(indices, curve.codes, strict=True))
    ]
    steps = steps.withColumn(name, f.expr(" | ".join(parts)))
    if curve.curve == "zorder":
        return steps
    # drops the ranks
    return _hilbert_of_long(steps, name, curve.bits, len(keys), steps_at_once(df, 3))


def _hilbert_of_long(df: DataFrame, name: str, bits: int, columns: int, at_once: int) -> DataFrame:
    """Convert the Morton key ``name``, a BIGINT, to the Hilbert index."""
    carried, index = f"{name}_z", f"{name}_h"
    steps = df.withColumns({carried: f.lit(0), index: f.expr("0L")})
    at_once = min(at_once, _MOST_HILBERT_LEVELS)
    for top in range(bits, 0, -at_once):
        state, places = carried, index
        for level in range(top - 1, max(-1, top - 1 - at_once), -1):
            places = hilbert.append_sql(places, state, columns)
            state = hilbert.step_sql(state, hilbert.digit_sql(name, columns, level), columns)
        steps = steps.withColumns({carried: f.expr(shared(state)), index: f.expr(shared(places))})
    return steps.withColumn(name, f.expr(hilbert.append_sql(index, carried, columns)))


def _add_bits_key(df: DataFrame, curve: Curve, keys: Sequence[Key], name: str) -> DataFrame:
    values = [f"{name}_{number}" for number in range(len(keys))]
    steps = df.withColumns(
        {value: f.expr(shared(bits_of(key.column))) for value, key in zip(values, keys, strict=True)}
    )
    words = [*map(shared, morton.words_sql(values, curve.bits))]
    if curve.curve == "hilbert":
        names = [f"{name}_w{number}" for number in range(len(words))]
        folds = [f"{name}_f{number}" for number in range(len(words))]
        steps = steps.withColumns({word: f.expr(sql) for word, sql in zip(names, words, strict=True)})
        carried = "0"
        for word, fold in zip(names, folds, strict=True):
            steps = steps.withColumn(fold, f.expr(hilbert.fold_sql(word, carried, len(keys))))
            carried = f"{fold}.z"
        words = [hilbert.append_sql(f"{fold}.h", f"{fold}.z", len(keys)) for fold in folds]
    return steps.withColumn(name, f.expr(morton.bytes_sql(words, len(keys))))


def search_sql(key: str, index: str, boundaries: str, stride: int) -> str:
    """Return SQL text of one step of the branch-free binary search for a key's slot.

    Args:
        key: SQL text of the key; no boundary is at or below NULL.
        index: SQL text of the current INT index, which starts as 0 for NULL and 1 otherwise; used twice.
        boundaries: SQL text of the constant array of boundaries.
        stride: half of the width that remains to be searched, a power of two.
    """
    # <=> true makes NULL false without a branch, inside which Spark would find no common expressions
    at = f"({index}) + {stride - 2}" if stride != 2 else f"({index})"
    return f"({index}) + {stride} * CAST(({key} >= get({boundaries}, {at})) <=> true AS INT)"
