# SPDX-License-Identifier: BSD-3-Clause
"""What the driver finds around it when it is asked something on this machine: what an endpoint of a launch would find.

Asked in the user's own surroundings it would answer for them: libraries read dozens of variables, and files in the
home and in the working folder, of which a launch has none.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHM = Path("/dev/shm")  # noqa: S108 - its size is looked at
MORE_MEMORY = "mount -o remount,size=1g /dev/shm; of a container: --shm-size=1g"
MORE_LOCKED = "ulimit -l unlimited; of a container: --ulimit memlock=-1"
_TIMEOUT_S = 20
_NEWER_LIBC = re.compile(r"version `(GLIBC_[0-9.]+)' not found")
NOTHING_STATED: Mapping[str, str] = {}


def shm_free_bytes() -> int:
    """Return how much shared memory is free on this machine."""
    return shutil.disk_usage(SHM).free if SHM.is_dir() else 0


def variables(stated: Mapping[str, str] = NOTHING_STATED) -> dict[str, str]:
    """Return the agent's variables (cadge_agent/environment.py) for a host of which the inventory states these."""
    return {"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8", **stated}


@contextmanager
def surroundings(stated: Mapping[str, str] = NOTHING_STATED) -> Iterator[tuple[dict[str, str], Path]]:
    """Yield an environment, and an empty folder that is home and working folder; what is left there goes."""
    with tempfile.TemporaryDirectory(prefix="cadge-") as folder:
        home = Path(folder, "home")
        home.mkdir(mode=0o700)
        yield {**variables(stated), "HOME": str(home), "TMPDIR": folder}, home


def ask(driver: Path, *question: str, stated: Mapping[str, str] = NOTHING_STATED) -> Mapping[str, object] | None:
    """Return the driver's answer; None where there is none. `stated`: the inventory's variables."""
    try:
        raw = json.loads(_called(driver, *question, stated=stated).stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return raw if isinstance(raw, dict) else None


def _called(
    driver: Path, *question: str, stated: Mapping[str, str] = NOTHING_STATED
) -> subprocess.CompletedProcess[bytes]:
    with surroundings(stated) as (environment, folder):
        return subprocess.run(
            [str(driver.absolute()), *question],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )


def newer_libc(said: str) -> str:
    """Return which libc a build needs where a message of the loader is in `said`; "" where it did not."""
    missing = sorted(set(_NEWER_LIBC.findall(said)), key=lambda name: [int(one) for one in re.findall("[0-9]+", name)])
    return f"it needs {missing[-1]}, and this machine has {' '.join(platform.libc_ver())}" if missing else ""


def why_it_fails(driver: Path) -> str:
    """Return why the loader does not start the driver on this machine; "" where it does, or says nothing."""
    try:
        done = _called(driver, "version")
    except OSError as error:
        return error.strerror or ""
    except subprocess.TimeoutExpired:
        return ""
    return "" if done.returncode == 0 else newer_libc(done.stderr.decode(errors="replace"))
