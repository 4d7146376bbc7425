"""Formatting of counts and sizes for messages."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

_STEP = 1000.0


def counted(number: int, what: str) -> str:
    """Return a count with its noun, such as ``1 file`` or ``1,600 files``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def printed(what: RenderableType, width: int) -> str:
    """Return what rich prints, without colours, on a console so many characters wide."""
    console = Console(file=io.StringIO(), width=width, record=True, color_system=None)
    console.print(what, crop=False)
    return console.export_text()


def size_text(size: int | None) -> str:
    """Return a size as ``12 B`` or ``32.2 MB``, or ``?`` for None. A megabyte is a million bytes."""
    if size is None:
        return "?"
    left = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if left < _STEP:
            return f"{left:.0f} {unit}" if unit == "B" else f"{left:.1f} {unit}"
        left /= _STEP
    return f"{left:.1f} TB"
