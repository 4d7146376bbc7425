"""Rows with a column of every kind that a curve can be made of."""

from __future__ import annotations


def cast_values(name: str, values: list[str]) -> str:
    """Return a query of some values as ``v``, of one type."""
    return " UNION ALL ".join(f"SELECT CAST({value} AS {name}) AS v" for value in values)


def mixed(rows: int) -> str:
    """Return a query with NULL, NaN and both zeros among its values."""
    return f"""
        SELECT id, CASE WHEN id % 11 > 0 THEN id % 97 END AS a, CASE WHEN id % 7 > 0 THEN sha1(string(id)) END AS s,
          CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D WHEN 3 THEN id / 3D END AS d,
          cast(timestamp_seconds(id * 98765) AS timestamp_ntz) AS t, cast(id * 0.37 AS decimal(20, 4)) AS n,
          unhex(md5(string(id))) AS b, id % 3 = 0 AS flag, id % 4 AS p
        FROM range({rows})
"""
