"""Remembers the settings of the first target, to warn when a second target asks for different ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class FirstTarget:
    """The target that opened the session.

    Attributes:
        directory: folder for metastore and warehouse.
        user_settings: ``server_side_parameters`` of the target.
        settings: all settings that the session was opened with, including ``server_side_parameters``.
    """

    directory: str
    user_settings: Mapping[str, str]
    settings: Mapping[str, str]
    _warned: set[str | tuple[str, ...]] = field(default_factory=set)

    def warn(self, directory: str, user: Mapping[str, str]) -> None:
        """Warn once about each difference of another target, because the open session ignores it.

        Args:
            directory: folder for metastore and warehouse of the other target.
            user: ``server_side_parameters`` of the other target.
        """
        if directory != self.directory and self._is_new(directory):
            _LOG.warning(
                "This process has a Spark session already, with metastore and warehouse in %s: what was to be in %s is "
                "there, too. Run dbt in a process of its own for each target.",
                self.directory,
                directory,
            )
        differences = self._differences(user)
        if differences and self._is_new(differences):
            _LOG.warning(
                "This process has a Spark session already, and server_side_parameters stay as its first target has "
                "them, also %s, which this target has otherwise. Run dbt in a process of its own for each target.",
                ", ".join(differences),  # their values may be secret
            )

    def _differences(self, user: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of the settings that another target changes or omits."""
        settings = (self.user_settings, self.settings)
        changed = [key for key, value in user.items() if all(opened.get(key) != value for opened in settings)]
        return (*changed, *(key for key in self.user_settings if key not in user))

    def _is_new(self, difference: str | tuple[str, ...]) -> bool:
        is_new = difference not in self._warned
        self._warned.add(difference)
        return is_new
