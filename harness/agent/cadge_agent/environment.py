# SPDX-License-Identifier: BSD-3-Clause
"""What a process of a launch finds around it: what stands here, and nothing of the user's that steers a library.

Communication libraries read dozens of variables, and files in the home and in the working folder. With one of them
wrong, times change severalfold while the path stays the same. So endpoints get a list of variables, never the agent's
own ones less some, and an empty folder of ours, which is their home and their working folder.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from cadge_agent.formats import BlockHost, Launch
from cadge_agent.host.kernel import PREFIXES

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for: the login's own PATH names folders of the user's, and differs between logins."""
VARIABLE = "env."
"""How settings begin that are variables, which a sweep sets."""
LINK = "link."
"""And those that are the link's, which was set before the block began."""
HOSTS = "hosts."
"""And those that say on which hosts a launch is made."""
OF_SSH = ("SSH_AUTH_SOCK", "KRB5CCNAME")
"""What a launcher's ssh needs to prove who it is; no library reads it, and no rank gets it."""
OF_LAUNCHERS = "OMPI_*|PMIX_*|PRTE_*|HFI_NO_BACKTRACE|IPATH_NO_BACKTRACE|PMI_*|HYD*|MPI_LOCAL*"
"""What launchers set for ranks, Open MPI's first and then hydra, as a pattern of sh."""
STEERING = "OMPI_MCA_*|PMIX_MCA_*|PRTE_MCA_*"


def base_environment(ld_library_path: str, opal_prefix: str = "") -> dict[str, str]:
    """Return what programs need to be found and to find their libraries; empty where the inventory states nothing."""
    stated = {"LD_LIBRARY_PATH": ld_library_path, "OPAL_PREFIX": opal_prefix}
    return {"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8", **{name: value for name, value in stated.items() if value}}


def endpoint_environment(host: BlockHost, home: Path, temporary: Path) -> dict[str, str]:
    """Return the variables of every endpoint on a host, but for the mark."""
    base = base_environment(host.get("ld_library_path", ""), host.get("opal_prefix", ""))
    return {**base, "HOME": str(home), "TMPDIR": str(temporary)}


def variables_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a launch's settings state."""
    return {name[len(VARIABLE) :]: value for name, value in settings.items() if name.startswith(VARIABLE)}


def of_the_driver(launch: Launch) -> Launch:
    """Return a launch as its drivers read it: without what is set around them, lent rights and the epoch."""
    own = launch.copy()
    around = (VARIABLE, LINK, HOSTS, *PREFIXES)
    others = {name: value for name, value in launch["settings"].items() if not name.startswith(around)}
    own["settings"] = others
    own.pop("rights", None)
    own.pop("epoch", None)
    return own


def empty_folder(folder: Path) -> None:
    """Have a folder with nothing in it. It stays the same folder, for processes may be in it. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def shell_environment(variables: Mapping[str, str], folder: str, keep: str, *, started_by_login: bool) -> str:
    """Return commands of sh that leave a rank these variables, what the launcher set for it, and what to keep.

    A launcher hands on its own environment. On the host where we start it, that is ours. On another it is that of a
    login there, and what steers Open MPI in it has the same names as what the launcher sets for ranks: only what the
    launcher itself was begun with tells them apart. keep: names of variables, as a pattern of sh.
    """
    commands = ["set -f"]  # a word of a value may hold a *
    if started_by_login:
        commands.append(_for_each_name("tr '\\0' '\\n' </proc/$PPID/environ", f"{STEERING}) command unset $name;;"))
    commands.append(_for_each_name("env", f"*[!A-Za-z0-9_]*|{OF_LAUNCHERS}|{keep}) ;; *) command unset $name;;"))
    commands.append("export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items()))
    commands.append(f"cd {shlex.quote(folder)} || exit 71")
    return "; ".join(commands)


def _for_each_name(listed: str, cases: str) -> str:
    """Return a loop of sh over the names of variables that a command lists; one that is no name does no harm."""
    return f"for name in $({listed} | sed -n 's/=.*//p'); do case $name in {cases} esac; done 2>/dev/null"
