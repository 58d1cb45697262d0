# SPDX-License-Identifier: BSD-3-Clause
"""The agent: runs one block's launches on a host, and says what that host is.

Standard library alone, Python 3.9 or later; copied to each host of a testbed as one file, agent.pyz.

    agent.pyz run --block FILE --host NAME --work DIR [--build DIR]
    agent.pyz facts [--host NAME] [--build DIR] [--ld-library-path DIR:...] [--opal-prefix DIR]
    agent.pyz check --work DIR --campaign ID --host NAME --build DIR [--ld-library-path DIR:...] [--opal-prefix DIR]
    agent.pyz clean --work DIR --campaign ID
    agent.pyz look --hosts FILE --host NAME --work DIR --build DIR
    agent.pyz step --job ID --srun PROGRAM [--conf FILE] -- [ssh's options] HOST COMMAND...
    agent.pyz step --job ID --srun PROGRAM [--conf FILE] --hosts HOST,... [--mpi KIND] -- COMMAND...
    agent.pyz slurm PROGRAM ARGUMENTS...

check gets a host ready: ends and removes what a killed agent of the same campaign left, restores values of the kernel
that any killed agent left (beside DIR, host/kernel.py), runs the build's driver once, and writes DIR/node.json. It
prints one line that must be the same on all hosts.

run needs DIR/token, which all agents and drivers of the campaign have. It holds a lease: standard input. A line
{"stop": REASON} ends the block after the launch that is running; end of file, a signal, or the block's deadline ends it
now. However it ends, what it started is killed first. Standard output carries JSON lines, only between launches:

    {"event": "ready", "host", "leader": bool, "todo": N, "agent_version", "realtime_ns",
     "node": {cadge.node/1} or null}
    {"event": "launch_started", "launch_id", "number", "of"}
    {"event": "launch_finished", "launch_id", "status", "reason", "reason_code", "wall_ns", "kept": bool}
    {"event": "launch_record", "launch_id", "record": {cadge.launch-record/2}}
    {"event": "problem", "host", "reason"}
    {"event": "note", "host", "text"}                what a user may want to know: what was removed
    {"event": "block_finished", "host", "made", "kept", "stopped": bool}

After a record the leader waits for {"ack": LAUNCH_ID} before the next launch, so that nobody works on the last one
while the next one measures. A finished launch is DIR/done/ID.json until it is acknowledged, then
DIR/collected/ID.json; a launch found in either is not made again ("kept"), its record is sent again.

The leader is the host of every launch's endpoint 0, to which all other endpoints of the launch connect. The other
hosts of the block, the followers, obey the leader over TCP on their management addresses, after each has proved to the
other that it has the token. Each host starts its own endpoints; mpirun, on the leader, those of all hosts. While a
launch runs, all agents sleep in select(2).

look says what the host is and what is wrong with it, under a lease as run does, and changes nothing. FILE holds the
hosts of the inventory as a block has them. It prints a line "looked" and obeys {"clock": NUMBER} and {"reach": [...]},
with a line "clock" and a line "reached", until {"stop": REASON}; when the lease ends before that, it removes DIR.

step stands in for ssh inside a Slurm allocation: srun runs the command on that host. With --hosts it runs it on all of
them at once, and each line of the output begins with a task's number. slurm runs any program of Slurm. Both try again,
for some time, where Slurm's controller is away.

Exit status of run: 0 finished or stopped, 2 bad arguments or block, 4 another host was lost, 5 the lease or the
deadline ended it, 70 bug. check: 0, or 3 with a sentence on standard error. look: 0, 2 bad arguments, 5 the lease
ended.
"""

from __future__ import annotations

AGENT_VERSION = "2"
