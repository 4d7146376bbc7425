from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_zorder.engine.parquet.column_options import float_columns
from dbt_zorder.engine.parquet.leaves import leaf_types, leaves_of

ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "s": [{"a": 1, "in": {"f": 0.5}}, None, {"a": None, "in": None}, {"a": 4, "in": {"f": None}}],
        "l": pa.array([[1, None], None, [], [2]], pa.list_(pa.field("element", pa.int64()))),
        "m": pa.array([[("x", 1.5)], None, [], [("y", None), ("z", 2.5)]], pa.map_(pa.string(), pa.float64())),
        "deep": pa.array(
            [[{"t": "a", "n": [[1], None]}], None, [], [{"t": None, "n": None}, {"t": "b", "n": [[], [2, 3]]}]],
            pa.list_(pa.struct([("t", pa.string()), ("n", pa.list_(pa.list_(pa.int32())))])),
        ),
    }
)


def test_every_leaf_has_its_values_under_its_path() -> None:
    found = {path: values.to_pylist() for path, values in leaves_of(ROWS)}
    assert found == {
        "id": [1, 2, 3, 4],
        "s.a": [1, None, None, 4],
        "s.in.f": [0.5, None, None, None],
        "l.list.element": [1, None, 2],
        "m.key_value.key": ["x", "y", "z"],
        "m.key_value.value": [1.5, None, 2.5],
        "deep.list.element.t": ["a", None, "b"],
        "deep.list.element.n.list.element.list.element": [1, 2, 3],
    }


def test_some_rows_have_but_their_own_values() -> None:
    chunks = pa.concat_tables([ROWS[:2], ROWS[2:]])
    for rows in (ROWS[3:], chunks[3:]):
        found = {path: values.to_pylist() for path, values in leaves_of(rows)}
        assert found["l.list.element"] == [2]
        assert found["s.a"] == [4]
        assert found["m.key_value.key"] == ["y", "z"]
        assert found["deep.list.element.n.list.element.list.element"] == [2, 3]


def test_a_column_tells_if_any_of_its_leaves_does() -> None:
    """Also where another leaf has the same path."""
    same = pa.struct([("b.c", pa.float64()), ("b", pa.struct([("c", pa.int32())]))])
    assert float_columns(pa.schema([("a", same), ("n", pa.int64())])) == ["a"]


def test_paths_are_those_of_files(tmp_path: object) -> None:
    file = f"{tmp_path}/t.parquet"
    pq.write_table(ROWS, file)
    schema = pq.ParquetFile(file).schema
    assert list(leaf_types(ROWS.schema)) == [schema.column(number).path for number in range(len(schema))]
    assert leaf_types(ROWS.schema)["deep.list.element.t"] == pa.string()
