"""Hooks of mkdocs: pages and figures that lie outside docs/ join the site, and links to them lead there.

On GitHub every link is relative to its file in the repository. On the site the same links must lead to pages.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "performance/benchmarks.md",
}
"""Places on the site of pages outside docs/, by their places in the repository."""

FIGURES = "bench/results"
"""Folder of the benchmarks' raw figures, which the site keeps under the same name."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and figures that lie outside docs/."""
    figures = [path for path in (ROOT / FIGURES).iterdir() if path.suffix in {".csv", ".md", ".png", ".svg"}]
    places = PAGES | {f"{FIGURES}/{path.name}": f"{FIGURES}/{path.name}" for path in figures}
    for source, place in places.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with its links changed from places in the repository to places on the site."""
    place = page.file.src_uri
    source = next((old for old, new in PAGES.items() if new == place), f"docs/{place}")

    def moved(link: re.Match[str]) -> str:
        path, hash_sign, anchor = link[1].partition("#")
        if not path or "://" in path:
            return link[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        on_site = PAGES.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(on_site, posixpath.dirname(place) or '.')}{hash_sign}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", moved, markdown)
