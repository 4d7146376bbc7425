"""Z-order clustering and file skipping for plain Parquet tables.

dbt imports every installed module named ``dbt_*`` in every project, whatever its adapter: keep this one empty.
"""

from __future__ import annotations

__version__ = "0.1.0"
