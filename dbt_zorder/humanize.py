"""Figures as people read them."""

from __future__ import annotations

_STEP = 1000.0


def counted(number: int, what: str) -> str:
    """Return ``1 file`` or ``1,600 files``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size_text(size: int | None) -> str:
    """Return a number of bytes as ``12 B`` or ``32.2 MB``, a million of bytes each; of one that is not known ``?``."""
    if size is None:
        return "?"
    left = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if left < _STEP:
            return f"{left:.0f} {unit}" if unit == "B" else f"{left:.1f} {unit}"
        left /= _STEP
    return f"{left:.1f} TB"
