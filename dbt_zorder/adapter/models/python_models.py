"""Python models, which run in dbt's own process and in the same Spark session as SQL models."""

from __future__ import annotations

import sys
import traceback
import uuid
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.adapter.messages.spark_errors import short_message
from dbt_zorder.adapter.models.frames import spark_frame
from dbt_zorder.adapter.models.session_scope import MODEL_SCOPES, ModelScope
from dbt_zorder.adapter.names import model_name
from dbt_zorder.errors import ZorderError


class PythonModelError(ZorderError):
    """A Python model raised an error, or its result is not a table."""


def run_python(
    spark: SparkSession, model: Mapping[str, Any], code: str, on_end: Callable[[Callable[[], None]], Any]
) -> DataFrame:
    """Run the code of a Python model, and return the DataFrame that its function ``model`` returns.

    Args:
        spark: the session that the model receives as ``session``, and as the global ``spark``.
        model: dbt's node, whose name and file appear in messages.
        code: the model's file with the code that dbt appends to it.
        on_end: a function that registers a callback to run after the result has been written. Spark may run the query
            and send its functions to the workers as late as the write.

    Raises:
        PythonModelError: the code failed, or its result is not a table. The message quotes the lines of the model's
            file that led to the error.
    """
    path = str(model.get("original_file_path"))
    module = _module(on_end)
    module.__dict__["spark"] = spark  # models written for other platforms use this name for the session
    try:
        exec(compile(code, path, "exec", dont_inherit=True), module.__dict__)
        result = module.__dict__["model"](module.__dict__["dbtObj"](spark.table), spark)
    except (Exception, SystemExit) as exc:
        raise PythonModelError(_format_error(exc, module.__name__, path, code)) from exc
    try:
        df = spark_frame(spark, result)
    except Exception as exc:
        msg = f"What model() returned cannot become a table: {short_message(exc)}"
        raise PythonModelError(msg) from exc
    if df is None:
        kind = type(result)
        msg = (
            f"model() returned {kind.__module__}.{kind.__qualname__}, and a table is made only of a DataFrame of "
            "PySpark, pandas or pandas on Spark, an Arrow table, or what gives an Arrow stream, as Polars does."
        )
        raise PythonModelError(msg)
    return df


def run_model(spark: SparkSession, model: Mapping[str, Any], code: str) -> DataFrame:
    """Run a Python model within its scope, which restores the settings that the model changes when it ends.

    Raises:
        DbtRuntimeError: ``run_python`` raised. The message names the model.
    """
    scope = MODEL_SCOPES.current() or ModelScope()
    MODEL_SCOPES.save_baseline(spark)
    try:
        return run_python(spark, model, code, scope.callback)
    except PythonModelError as exc:
        msg = f"Model {model_name(model)} failed:\n{exc}"
        raise DbtRuntimeError(msg) from exc
    finally:
        MODEL_SCOPES.track_changes(spark)


def _module(on_end: Callable[[Callable[[], None]], Any]) -> ModuleType:
    """Return an empty module, registered under a unique name because dataclasses and pickle look modules up by name.

    Its functions go to Spark's workers by value, because the workers cannot import the module.
    """
    module = ModuleType(f"dbt_python_model_{uuid.uuid4().hex}")
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]

    def unregister() -> None:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
        sys.modules.pop(module.__name__, None)

    on_end(unregister)
    return module


def _format_error(exc: BaseException, module: str, path: str, code: str) -> str:
    """Return an error formatted like a Python traceback that contains only the frames of the model's own file."""
    lines = code.splitlines()
    frames = []
    for frame, number in traceback.walk_tb(exc.__traceback__):
        if frame.f_globals.get("__name__") == module:
            text = lines[number - 1].strip() if number <= len(lines) else ""
            frames.append(f'  File "{path}", line {number}, in {frame.f_code.co_name}\n    {text}')
    return "\n".join([*frames, f"{type(exc).__name__}: {short_message(exc)}"])
