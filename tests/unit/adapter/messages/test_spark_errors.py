from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt_zorder.adapter.messages.spark_errors import short_message, told

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
    with pytest.raises(DbtRuntimeError) as found, told("select 1"):
        raise mine
    assert found.value is mine
    with pytest.raises(DbtDatabaseError, match="boom"), told("select 1"):
        raise ValueError("boom")
