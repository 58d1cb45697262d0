# SPDX-License-Identifier: BSD-3-Clause
"""A real Slurm on emulated hosts: munged and slurmd on each, slurmctld on the first, and a user who is nobody there.

The user has no root, no key and no login by SSH: only Slurm takes him from one host to another. His home is one folder
that all hosts see, or one of each host's own. Needs root, and Debian's slurmctld, slurmd and munge.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Self

from cadge_harness.testbed import testbeds
from cadge_harness.testbed.emulated import exec_prefix

NEEDED = ("slurmctld", "slurmd", "munged", "srun", "sbatch", "scontrol")
USER, UID = "cadgeuser", 54321
READY_S, END_S = 60, 30

CONF = """\
ClusterName=cadge
SlurmctldHost={first}
SlurmUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmdSpoolDir=/run/slurmd
StateSaveLocation=/run/slurm-state
SlurmctldLogFile=/run/slurmctld.log
SlurmdLogFile=/run/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
KillWait=5
NodeName={names} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
CGROUP = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=yes\n"
CONTROLLERS = ("cpuset", "memory", "devices", "freezer")
MOUNT_CGROUPS = f"""
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    for one in {" ".join(CONTROLLERS)}; do
        mkdir -p /run/cgroup/$one /sys/fs/cgroup/$one
        mount -t cgroup -o $one cgroup /run/cgroup/$one
        mkdir /run/cgroup/$one/{{group}}
        mount --bind /run/cgroup/$one/{{group}} /sys/fs/cgroup/$one
    done
    for one in cpus mems; do cat /run/cgroup/cpuset/cpuset.$one >/sys/fs/cgroup/cpuset/cpuset.$one; done
"""
REMOVE_CGROUPS = "find /run/cgroup/*/{group} -depth -type d -exec rmdir {{}} +"
"""A group of the host's own is the whole tree to its slurmd; it would outlive the host, which is a namespace."""


def lacks() -> str:
    """Return why there can be no such cluster here, empty where there can."""
    if os.geteuid() != 0:
        return "needs root"
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in NEEDED if shutil.which(name, path=path) is None]
    return f"needs Debian's slurmctld, slurmd and munge; {', '.join(missing)} missing" if missing else ""


def lacks_cgroup() -> str:
    """Return why Slurm cannot keep steps on processors here, empty where it can: hosts have no systemd to ask."""
    hierarchies = dict(line.split()[:2] for line in Path("/proc/cgroups").read_text().splitlines()[1:])
    missing = [one for one in CONTROLLERS if hierarchies.get(one, "0") == "0"]
    return f"control groups of version 1 are not mounted here: {', '.join(missing)}" if missing else ""


class SlurmCluster:
    """The hosts, from `with` on. `folder`: seen by all of them; `home`: the user's, shared or not."""

    def __init__(
        self, folder: Path, hosts: int = 2, *, cpus: int = 2, shared_home: bool = True, cgroup: bool = False
    ) -> None:
        """Describe it. cpus: of each node, as Slurm counts them. cgroup: steps are kept on the job's processors."""
        self.folder, self.count, self.cpus, self.cgroup = folder, hosts, cpus, cgroup
        self.home = folder / "home" if shared_home else Path("/run/home")

    def __enter__(self) -> Self:
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        now = testbeds.up(self.count, shared=[self.folder] if self.folder.is_relative_to("/tmp") else [])
        self.names: list[str] = now["hosts"]
        self._state, self._pid = Path(now["folder"]), now["pid"]
        try:
            self._begin()
        except BaseException:
            testbeds.down()
            raise
        return self

    def _begin(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for name in self.names:
            self._prepare(name, key)
        self.root(self.names[0], "slurmctld")
        for name in self.names:
            self.root(name, f"slurmd -N {name}")
        self.await_idle()

    def __exit__(self, *_: object) -> None:
        try:
            for name in self.names if self.cgroup else ():
                remove = REMOVE_CGROUPS.format(group=f"cadge-{self._pid}-{name}")
                self.root(name, f"kill -KILL $(cat /run/slurmd.pid); {remove}")
        finally:
            testbeds.down()

    def _prepare(self, name: str, key: Path) -> None:
        names = f"{self.names[0]}" if self.count == 1 else f"h[1-{self.count}]"
        conf = CONF.format(first=self.names[0], names=names, cpus=self.cpus)
        more = ""
        if self.cgroup:
            conf = conf.replace("task/none", "task/cgroup").replace("proctrack/linuxproc", "proctrack/cgroup")
            more = MOUNT_CGROUPS.format(group=f"cadge-{self._pid}-{name}")
        script = f"""
            set -e
            umask 022
            echo '{USER}:x:{UID}:{UID}::{self.home}:/bin/sh' >>/etc/passwd
            echo '{USER}:x:{UID}:' >>/etc/group
            echo '{USER}:*:19000:0:99999:7:::' >>/etc/shadow
            install -d -o {UID} -g {UID} {self.home}
            install -d /etc/slurm /run/slurmd /run/slurm-state
            install -d -o munge -g munge /run/munge
            printf %s {shlex.quote(conf)} >/etc/slurm/slurm.conf
            printf %s {shlex.quote(CGROUP)} >/etc/slurm/cgroup.conf
            install -o munge -g munge -m 400 {key} /run/munge/key
            install -d -o munge -g munge /run/munge-log
            setpriv --reuid munge --regid munge --clear-groups munged --key-file=/run/munge/key \\
                --log-file=/run/munge-log/log --pid-file=/run/munge/pid --seed-file=/run/munge/seed
            {more}
        """
        self.root(name, script)

    def on(self, host: str, argv: list[str]) -> subprocess.Popen[str]:
        """Start a command on a host, as root; what it prints can be read."""
        ssh = ["ssh", "-F", f"{self._state}/ssh_config", host, "--", shlex.join(argv)]
        return subprocess.Popen(
            [*exec_prefix(self._pid), *ssh],
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def root(self, host: str, script: str) -> str:
        """Run a script on a host, as root; returns what it printed."""
        with self.on(host, ["sh", "-c", script]) as run:
            out, _ = run.communicate(timeout=READY_S)
        assert run.returncode == 0, out
        return out

    def start(self, script: str, host: str | None = None, **variables: str) -> subprocess.Popen[str]:
        """Start a script as the user, on the first host or another, with a login's environment and these variables."""
        own = {"HOME": str(self.home), "USER": USER, "LOGNAME": USER, "LANG": "C.UTF-8"}
        own["PATH"] = "/usr/local/bin:/usr/bin:/bin"
        env = [f"{name}={value}" for name, value in (own | variables).items()]
        drop = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "env", "-i", *env]
        argv = [*drop, "sh", "-c", f"cd && {script}"]
        return self.on(host or self.names[0], argv)

    def user(self, script: str, host: str | None = None, timeout_s: float = 300, **variables: str) -> tuple[int, str]:
        """Run a script as the user; returns its exit status and what it printed."""
        with self.start(script, host, **variables) as run:
            out, _ = run.communicate(timeout=timeout_s)
        return run.returncode, out

    def await_idle(self) -> None:
        """Wait until all nodes are idle."""
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            states = self.root(self.names[0], "sinfo -h -N -o %T || true").split()
            if states == ["idle"] * self.count:
                return
            time.sleep(0.2)
        logs = self.root(self.names[0], "tail -n 5 /run/slurmctld.log /run/slurmd.log")
        raise AssertionError(f"Slurm's nodes are {states}:\n{logs}")


def user_exists() -> bool:
    """Say whether the machine itself has a user of that number, who would then own what the tests write."""
    try:
        pwd.getpwuid(UID)
    except KeyError:
        return False
    return True
