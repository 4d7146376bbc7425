from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt_zorder.adapter.messages.spark_errors import dbt_errors, short_message
from dbt_zorder.errors import BuildError, SchemaChangeError, ZorderError

PARSE = """[PARSE_SYNTAX_ERROR] Syntax error at or near 'c'. SQLSTATE: 42601 (line 5, pos 4)

== SQL ==
/* app */
select 1,

  2,
a b c
----^^^
from t
"""
PARSE_SHORT = """[PARSE_SYNTAX_ERROR] Syntax error at or near 'c'. SQLSTATE: 42601 (line 5, pos 4)
== SQL ==
select 1,
  2,
a b c
----^^^"""
DIVISION = "[DIVIDE_BY_ZERO] Division by zero.\n== SQL (line 2, position 3) ==\n1 / 0\n^^^^^\n"


@pytest.mark.parametrize(("text", "message"), [(PARSE, PARSE_SHORT), (DIVISION, DIVISION.strip()), ("a\n\tat x", "a")])
def test_of_the_sql_that_spark_shows_the_lines_at_its_mark_stay(text: str, message: str) -> None:
    assert short_message(ValueError(text)) == message


@pytest.mark.parametrize(
    ("position", "pointed"),
    [
        ("line 2 pos 2", "\n== SQL ==\n  nope.x,\n  ^^^^^^"),
        ("line 3 pos 0", "\n== SQL ==\n`a b`\n^^^^^"),
        ("line 1 pos 6", "\n== SQL ==\nselect\n      ^"),
        ("line 9 pos 2", ""),
    ],
)
def test_the_line_that_a_message_points_to_is_shown(position: str, pointed: str) -> None:
    error = ValueError(f"[X] no; {position};\n'Project [nope]")
    assert short_message(error, "select\n  nope.x,\n`a b`\n1") == f"[X] no; {position}{pointed}"


def test_an_error_of_dbts_own_is_raised_as_it_is() -> None:
    mine = DbtRuntimeError("mine")
    with pytest.raises(DbtRuntimeError) as found, dbt_errors("select 1"):
        raise mine
    assert found.value is mine
    with pytest.raises(DbtDatabaseError, match="boom"), dbt_errors("select 1"):
        raise ValueError("boom")


@pytest.mark.parametrize(
    ("error", "model", "ours", "kind", "text"),
    [
        (BuildError("x"), None, CompilationError, CompilationError, "x"),
        (BuildError("x"), None, DbtDatabaseError, DbtDatabaseError, "x"),
        (BuildError("x"), {"name": "m", "original_file_path": "m.sql"}, CompilationError, DbtRuntimeError, "Model 'm'"),
        (SchemaChangeError("x"), {"name": "m"}, DbtRuntimeError, CompilationError, "Model 'm'"),
    ],
)
def test_our_errors_name_the_model_and_keep_their_kind(
    error: ZorderError, model: dict[str, str] | None, ours: type[DbtRuntimeError], kind: type[Exception], text: str
) -> None:
    with pytest.raises(DbtRuntimeError) as found, dbt_errors(model=model, ours=ours):
        raise error
    assert type(found.value) is kind
    assert text in str(found.value)
    assert found.value.__cause__ is error
