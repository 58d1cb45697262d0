# SPDX-License-Identifier: BSD-3-Clause
"""The block: what travels to the nodes for launches that share node state and hosts (`cadge.block/2`)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, PositiveInt, model_validator

from cadge_results.formats.base import Document, FileName, Frozen, Place
from cadge_results.formats.launch import LaunchFile

Port = Annotated[int, Field(ge=0, le=65535)]


class BlockHost(Frozen):
    """A host that the block uses. `cpus` are for the endpoints, in the order of their use; none: not pinned.

    `ld_library_path` and `opal_prefix` are given to its endpoints as variables, where they are not empty.
    """

    name: str
    management_address: str
    device: str
    address: str
    raw_device: str = ""
    cpus: tuple[Annotated[int, Field(ge=0)], ...] = ()
    ld_library_path: str = ""
    opal_prefix: str = ""


class Mpirun(Frozen):
    """How ranks are started on the leader. A layer's provider may bring a launcher of its own."""

    path: str = "mpirun"
    options: tuple[str, ...] = ()
    ssh: tuple[str, ...] = ()
    """The command that reaches the testbed's hosts; none: the launcher's own."""


class Block(Document):
    """One block of a campaign. Only its hosts are prepared, deployed to and waited for; the leader starts launches."""

    NAME: ClassVar[str] = "cadge.block"
    MAJOR: ClassVar[int] = 2

    block_id: FileName
    campaign_id: str
    place: Place
    hosts: tuple[BlockHost, ...] = Field(min_length=1)
    leader: str
    ports: tuple[Port, Port]
    """First and last: layers use the first ones, endpoint 0 and the agents the last eight."""
    mpirun: Mpirun = Field(default_factory=Mpirun)
    deadline_s: PositiveInt
    launches: tuple[LaunchFile, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _hosts_known(self) -> Self:
        names = {host.name for host in self.hosts}
        used = {endpoint.host for launch in self.launches for endpoint in launch.endpoints}
        if unknown := sorted((used | {self.leader}) - names):
            raise ValueError(f"{', '.join(unknown)} is not among the block's hosts")
        return self
