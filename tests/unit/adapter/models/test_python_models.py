from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.adapter.models.python_models import PythonModelError, run_python

DBT = "\n\nclass dbtObj:\n    def __init__(self, load):\n        self.ref = load\n"
NODE = {"name": "m", "original_file_path": "models/m.py"}


def test_a_module_of_its_own_lasts_until_the_result_is_written(spark: SparkSession) -> None:
    code = (
        "def model(dbt, session):\n    assert session is spark\n    return session.range(int(__name__ in NAMES) + 1)\n"
    )
    ends: list[Callable[[], None]] = []
    df = run_python(spark, NODE, "import sys\nNAMES = sys.modules\n" + code + DBT, ends.append)
    assert df.count() == 2
    assert len([name for name in sys.modules if name.startswith("dbt_python_model_")]) == 1
    for end in ends:
        end()
    assert not [name for name in sys.modules if name.startswith("dbt_python_model_")]


def test_an_error_shows_the_lines_of_the_model_alone(spark: SparkSession) -> None:
    code = "import json\n\n\ndef model(dbt, session):\n    return json.loads('{')\n" + DBT
    ends: list[Callable[[], None]] = []
    with pytest.raises(PythonModelError) as found:
        run_python(spark, NODE, code, ends.append)
    ends[0]()
    assert str(found.value).splitlines() == [
        '  File "models/m.py", line 5, in model',
        "    return json.loads('{')",
        "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ]
