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


def nested(rows: int) -> str:
    """Return a query with structs, arrays and maps that are NULL, empty, hold NULL, and hold each other."""
    return f"""
        SELECT id, pmod(hash(id), 100) AS a,
          CASE WHEN id % 7 > 0 THEN named_struct('id', pmod(hash(id, 1), 500), 'x.y', sha1(string(id)), 'in',
            CASE WHEN id % 3 > 0 THEN named_struct('f', CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D
              WHEN 2 THEN 0.0D WHEN 3 THEN id / 3D END, 'day', date_add(DATE'2020-01-01', int(id))) END) END AS s,
          CASE id % 4 WHEN 0 THEN array() WHEN 1 THEN array(id, NULL, id + 1) WHEN 2 THEN array(-id) END AS l,
          CASE WHEN id % 6 > 0 THEN transform(sequence(1, int(id % 9)), i ->
            named_struct('t', repeat('w', i), 'n', i * 1.5BD, 'm', map(i, array('p', NULL)))) END AS deep,
          CASE WHEN id % 5 > 0 THEN map(string(id), timestamp_seconds(id), 'none', NULL) END AS m,
          array(float('NaN'), -0.0F, NULL) AS fs, id % 4 AS p
        FROM range(0, {rows}, 1, 3)
"""
