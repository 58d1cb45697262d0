# SPDX-License-Identifier: BSD-3-Clause
"""Who holds something that others wait for: a process and its user, in words that a terminal does not obey."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

_COMMAND_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Holder:
    """A process. pid is 0 where the process cannot be seen, uid None where the kernel does not say who it is."""

    pid: int
    uid: int | None

    @property
    def foreign(self) -> bool:
        """Whether this is neither the user nor root."""
        return self.uid not in (0, os.geteuid())

    @property
    def who(self) -> str:
        """The process and its user in words, by what the kernel says."""
        if self.uid is None:
            return "an unknown process"
        try:
            user = pwd.getpwuid(self.uid).pw_name
        except KeyError:
            user = str(self.uid)
        return f"process {self.pid} of user {user}" if self.pid else f"a process of user {user}"

    @property
    def command(self) -> str:
        """The command line, if the process is still that user's, without anything that a terminal would obey."""
        folder = Path(f"/proc/{self.pid}")
        try:
            if folder.stat().st_uid != self.uid:
                return ""
            text = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()
        except OSError:
            return ""
        plain = "".join(char if char.isprintable() else "?" for char in text)
        return plain if len(plain) <= _COMMAND_LONGEST else plain[: _COMMAND_LONGEST - 3] + "..."

    def __str__(self) -> str:
        """Return `who` and what the process calls itself, as far as that can be printed."""
        command = self.command
        return f"{self.who}: {command}" if command else self.who
