"""Shows what a user gains: fewer files, fewer seconds on slow storage, runs that read and write only what is new."""

from __future__ import annotations
