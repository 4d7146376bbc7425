from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

MODULES = [f"dbt_zorder.curve.{name.stem}" for name in files("dbt_zorder.curve").iterdir() if name.suffix == ".py"]  # type: ignore[attr-defined]


def test_curves_know_no_spark() -> None:
    code = f"import sys, importlib; [importlib.import_module(m) for m in {MODULES}]; print('pyspark' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
