"""Write the files of README's quick start into a folder: ``python -m documents.quick_start FOLDER``."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"(?:#|--) ([\w/]+\.(?:yml|sql|py))\b")


def named_files(text: str) -> dict[str, str]:
    """Return the code blocks of a page whose first line is a comment with a file's name, by that name."""
    blocks = (body for _, body in _BLOCK.findall(text))
    return {found[1]: body for body in blocks if (found := _NAME.match(body))}


def commands(text: str) -> list[list[str]]:
    """Return the arguments of dbt's commands in a page's shell blocks."""
    shell = "".join(body for language, body in _BLOCK.findall(text) if language == "shell")
    return [shlex.split(line, comments=True)[1:] for line in re.findall(r"^dbt .*", shell, re.MULTILINE)]


def main(folder: Path) -> None:
    """Write all named files of README."""
    for name, body in named_files(README.read_text(encoding="utf-8")).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
