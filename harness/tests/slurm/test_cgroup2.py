# SPDX-License-Identifier: BSD-3-Clause
"""Processors of a step under control groups of version 2: a real Slurm on the emulated machine of ci/rdma-machine.

A machine that mounts the controllers as version 1, as those with emulated hosts may, has none left for version 2.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import CONF, lacks

from cadge_harness.paths import find_checkout
from cadge_harness.testbed import slurm

pytestmark = pytest.mark.long

DEADLINE_S = 300
SCRIPT = """\
set -e
hostname h1
ip link set lo up
ip link add va type veth peer name vb
ip addr add 10.9.0.1/24 dev va
ip link set va up
ip link set vb up
mkdir /run/etc
mount -t tmpfs none /run/etc
mkdir /run/etc/upper /run/etc/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work /etc
echo '10.9.0.1 h1' >/etc/hosts
mkdir -p /etc/slurm /run/slurmd /run/slurm-state
printf %s {conf} >/etc/slurm/slurm.conf
printf 'CgroupPlugin=cgroup/v2\\nIgnoreSystemd=yes\\nConstrainCores=yes\\n' >/etc/slurm/cgroup.conf
mount -t cgroup2 none /sys/fs/cgroup
mkdir /sys/fs/cgroup/system.slice
for group in /sys/fs/cgroup /sys/fs/cgroup/system.slice; do echo '+cpuset +cpu' >$group/cgroup.subtree_control; done
install -d -o munge -g munge /run/munge
head -c 1024 /dev/urandom >/run/munge/key
chown munge:munge /run/munge/key
chmod 400 /run/munge/key
setpriv --reuid munge --regid munge --clear-groups munged --key-file=/run/munge/key --log-file=/run/munge/log \\
    --pid-file=/run/munge/pid --seed-file=/run/munge/seed
slurmctld
slurmd -N h1
for at in $(seq 100); do [ "$(sinfo -h -o %T)" != idle ] || break; sleep 0.5; done
sinfo -h -o %T || tail -n 20 /run/slurmctld.log /run/slurmd.log
for count in 1 2; do
    salloc -n1 -c$count sh -c {step} || tail -n 20 /run/slurmd.log
done
"""


@pytest.fixture
def script() -> Iterator[Path]:
    """Give a file of the checkout, which the emulated machine sees."""
    path = find_checkout().build / "slurm-cgroup2.sh"
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_step_is_read_on_the_processors_of_its_job(script: Path) -> None:
    if why := lacks() or ("" if shutil.which("qemu-system-x86_64") else "needs qemu-system-x86"):
        pytest.skip(why)
    conf = CONF.format(first="h1", names="h1", cpus=2) + "MessageTimeout=60\n"
    conf = conf.replace("task/none", "task/cgroup").replace("proctrack/linuxproc", "proctrack/cgroup")
    look = f"cat /proc/self/cgroup; {slurm._LOOK}"
    step = f"{sys.executable} harness/agent step --job $SLURM_JOB_ID --srun /usr/bin/srun --hosts h1 -- "
    script.write_text(SCRIPT.format(conf=shlex.quote(conf), step=shlex.quote(step + shlex.quote(look))))
    root = find_checkout().root
    argv = [root / "ci" / "rdma-machine", "--seconds", str(DEADLINE_S), "--", "bash", script.relative_to(root)]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    jobs = done.stdout.split("salloc: Granted job allocation")[1:]
    assert len(jobs) == 2, done.stdout + done.stderr
    for count, said in enumerate(jobs, 1):
        lines = re.findall(r"^0: (.*)$", said, re.MULTILINE)
        assert lines[0].startswith("0::/system.slice/h1_slurmstepd.scope/job_"), said
        assert len(slurm._read_node(lines, {}).cpus) == count, said
