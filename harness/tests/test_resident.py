# SPDX-License-Identifier: BSD-3-Clause
"""What opening a layer and bringing up its channels takes of memory, told of every process of a launch."""

import pytest

from .test_driver_run import Json, Pair, launch, need, pingpong
from .test_incast import calls, document

pytestmark = pytest.mark.paired

PAGE = 4096
MOMENTS = ("before", "opened", "connected")


def told(result: Json, processes: int) -> list[Json]:
    """Return the numbers by process, having checked what is true of every layer."""
    assert (result["status"], result["reason"]) == ("done", None)
    found = result["resident_bytes"]
    assert [tuple(one) for one in found] == [MOMENTS] * processes
    for one in found:
        for moment in MOMENTS:
            sizes = one[moment]
            assert sizes["private"] > 0
            assert sizes["file"] > 0
            assert all(number % PAGE == 0 for name, number in sizes.items() if name != "shared_part")
            assert sizes["shared_part"] <= sizes["shared"]
        assert one["before"]["private"] < one["opened"]["private"] <= one["connected"]["private"]
    return found


def test_a_layer_in_the_kernel_takes_little_and_shares_nothing(some: Pair) -> None:
    need("sockets-unix")
    for one in told(some.run(document("sockets-unix", 3, [calls(3)])), 4):
        assert one["connected"]["shared"] == 0
        assert one["connected"]["private"] - one["before"]["private"] < 1_000_000


def test_what_is_shared_is_whole_in_each_and_divided_in_all(some: Pair) -> None:
    """Channels in shared memory: a server has three, each of its clients one, and nobody else has touched them."""
    need("peregrine-shm")
    server, *clients = told(some.run(document("peregrine-shm", 3, [calls(3)])), 4)
    shared = [one["connected"]["shared"] - one["opened"]["shared"] for one in clients]
    assert min(shared) > 1_000_000
    assert server["connected"]["shared"] - server["opened"]["shared"] > 2.5 * max(shared)
    both = [one["connected"]["shared_part"] / one["connected"]["shared"] for one in (server, *clients)]
    assert both == [pytest.approx(0.5, abs=0.1)] * 4


def test_a_launch_of_one_process(pair: Pair) -> None:
    need("null-self")
    told(pair.run(launch("null-self", [pingpong(64)], "self")), 1)


def test_what_never_connected_is_not_told(pair: Pair) -> None:
    need("null-self")
    result = pair.run(launch("null-self", [pingpong(64)]), (3, 3))
    assert result["status"] == "refused"
    assert "resident_bytes" not in result
