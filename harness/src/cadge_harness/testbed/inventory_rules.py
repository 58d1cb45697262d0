# SPDX-License-Identifier: BSD-3-Clause
"""What an inventory may say of a host, as one model that is applied before anything is started or reached.

What stands here becomes file names, words of command lines and of shells, and members of lists with commas and colons.
So a rule names the characters that are allowed, and no others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from cadge_harness.errors import named, shown
from cadge_harness.testbed.model import DEFAULT_PORTS
from cadge_results.formats.complaint import example_of, near_names, nearest, schema_parts, with_example

CPUS_MOST = 8192  # what a kernel can be built for, and the driver's own bound
PORTS_LEAST = 32
NAME_MOST = 200
"""A name becomes part of file names (255 bytes at most), so it cannot have the 253 characters of DNS."""

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_NUMBER_AT_END = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)")  # the C library takes `127.1` for an address
_DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
_NOT_DEVICES = ("all", "default")  # the kernel refuses them; UCX takes the first for every device
_PATH = re.compile(r"(?:/[A-Za-z0-9_.,+@=-]*)+")
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def is_address(text: str) -> bool:
    """Whether a text is the IPv4 address of one host. 0.x, multicast, reserved and broadcast are of none."""
    try:
        number = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return 1 <= number.packed[0] < 224


def is_name(text: str) -> bool:
    """Whether a text is a host's name (RFC 1123, and `_` inside), or its IPv4 address."""
    if _NUMBER_AT_END.fullmatch(text):
        return is_address(text)
    return len(text) <= NAME_MOST and _NAME.fullmatch(text) is not None


def loops_back(text: str) -> bool:
    """Whether a name or address is each host's own, so that no other host reaches it."""
    return text.lower() == "localhost" or (_is_numeric(text) and ipaddress.ip_address(text).is_loopback)


def is_v6(text: str) -> bool:
    """Whether a text is the IPv6 address of one host. A link's own needs a zone, and that may hold anything."""
    try:
        found = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    others = found.is_multicast, found.is_link_local, found.is_unspecified, found.ipv4_mapped
    return "%" not in text and not any(others)


def _is_numeric(text: str) -> bool:
    return is_address(text) or is_v6(text)


def canonical(text: str) -> str:
    """Return a name or an address in the one form in which equal ones are equal."""
    return str(ipaddress.ip_address(text)) if _is_numeric(text) else text.lower()


def _is_reached(text: str) -> bool:
    return is_name(text) or is_v6(text)


def _is_device(text: str) -> bool:
    return _DEVICE.fullmatch(text) is not None and text not in _NOT_DEVICES


def _is_path(text: str) -> bool:
    return len(text) <= 1000 and _PATH.fullmatch(text) is not None


def _is_search_path(text: str) -> bool:
    return text == "" or all(map(_is_path, text.split(":")))


def _distinct(cpus: list[int]) -> bool:
    return len(set(cpus)) == len(cpus)


def _rule(holds: Callable[[Any], bool]) -> AfterValidator:
    def check(value: object) -> object:
        if not holds(value):
            raise ValueError
        return value

    return AfterValidator(check)


def truth(value: object) -> object:
    """Read the words for true and false: of an INI file they come as text."""
    return _TRUTH.get(value.lower(), value) if isinstance(value, str) else value


_A_NAME = (
    f"a host name (at most {NAME_MOST} characters: letters, digits, '-' and '_' in parts with dots between, "
    "the last part no number)"
)
_A_DEVICE = "the name of a network device (at most 15 letters, digits, '_', '-' and '.', neither of the last two first)"
_A_PATH = "an absolute path out of letters, digits and any of / . _ - + = , @"
_A_PORT = "a port within 1024-65535"

_Reached = Annotated[str, _rule(_is_reached)]
_Device = Annotated[str, _rule(_is_device)]
_Cpu = Annotated[int, Field(ge=0, lt=CPUS_MOST)]
_Port = Annotated[int, Field(ge=1024, le=65535)]


class HostVariables(BaseModel):
    """A host's name and the variables that Cadge reads. A field says what is allowed, and gives an example.

    Strict, so that `true` is no number. A variable that is not given is its default, which no rule has to allow.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    inventory_hostname: Annotated[str, _rule(is_name)] = Field(
        description=f"{_A_NAME} or an IPv4 address", examples=["n1"]
    )
    ansible_host: _Reached = Field("", description=f"{_A_NAME} or an IP address", examples=["10.0.0.1"])
    ansible_ssh_host: _Reached = Field(  # its old name
        "", description=f"{_A_NAME} or an IP address", examples=["10.0.0.1"]
    )
    cadge_device: _Device = Field(description=_A_DEVICE, examples=["eth0"])
    cadge_address: Annotated[str, _rule(_is_numeric)] = Field(
        description="an IPv4 or IPv6 address of one host, without leading zeros", examples=["10.1.0.1"]
    )
    cadge_management_address: _Reached = Field(
        "", description=f"an IP address of one host or {_A_NAME}", examples=["10.0.0.1"]
    )
    cadge_raw_device: Annotated[str, _rule(lambda text: text == "" or _is_device(text))] = Field(
        "", description=f"{_A_DEVICE}, or empty", examples=["eth1"]
    )
    cadge_cpus: Annotated[list[_Cpu], _rule(_distinct)] = Field(
        [], description=f"a list of processor numbers, each once, from 0 to {CPUS_MOST - 1}", examples=[[2, 3]]
    )
    cadge_port_first: _Port = Field(DEFAULT_PORTS[0], description=_A_PORT)
    cadge_port_last: _Port = Field(DEFAULT_PORTS[1], description=_A_PORT)
    cadge_build_path: Annotated[str, _rule(_is_path)] = Field("", description=_A_PATH, examples=["/opt/cadge/build"])
    cadge_ld_library_path: Annotated[str, _rule(_is_search_path)] = Field(
        "", description=f"{_A_PATH}, or several with ':' between, or empty", examples=["/opt/ucx/lib"]
    )
    cadge_opal_prefix: Annotated[str, _rule(lambda text: text == "" or _is_path(text))] = Field(
        "", description=f"{_A_PATH}, or empty", examples=["/opt/openmpi"]
    )
    cadge_tunable: Annotated[bool, BeforeValidator(truth)] = Field(True, description="true or false")
    cadge_link_own: Annotated[bool, BeforeValidator(truth)] = Field(False, description="true or false")
    """An emulated testbed made the link, which may be given a rate. Its inventory says so, and may be copied."""

    @property
    def management_address(self) -> str:
        """Where the other hosts find this one."""
        return self.cadge_management_address or self.ansible_host or self.inventory_hostname

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.cadge_raw_device == self.cadge_device:
            text = f"cadge_raw_device must be a link of its own, not cadge_device ({self.cadge_device})"
            raise ValueError(for_example(text, "cadge_device", "cadge_raw_device"))
        first, last = self.cadge_port_first, self.cadge_port_last
        if last - first + 1 < PORTS_LEAST:
            text = f"cadge_port_first and cadge_port_last must span at least {PORTS_LEAST} ports, not {first}-{last}"
            raise ValueError(for_example(text, "cadge_port_first", "cadge_port_last"))
        return self


KNOWN = tuple(HostVariables.model_fields)


def for_example(text: str, *variables: str) -> str:
    """Return what is wrong, with the examples of the variables that mend it."""
    parts = schema_parts(HostVariables)
    examples = [example_of((variable,), parts).removeprefix("inventory_hostname: ") for variable in variables]
    return with_example(text, ", ".join(examples))


def read_host(name: str, variables: Mapping[str, object]) -> HostVariables | list[str]:
    """Return what the inventory says of a host, or what is wrong with it, a sentence each.

    Whatever begins with `cadge_` has to be known here. What is Ansible's alone is left to Ansible.
    """
    given = {key: value for key, value in variables.items() if key in KNOWN or key.startswith("cadge_")}
    given["inventory_hostname"] = name
    unknown = [key for key in given if key not in KNOWN]
    if unknown:
        own = [key for key in KNOWN if key.startswith("cadge_")]
        text = f"host {named(name)}: there is no variable {named(unknown[0])}{nearest(unknown[0], own)}"
        return [for_example(text, *near) if (near := near_names(unknown[0], own)[:1]) else text]
    try:
        return HostVariables.model_validate(given)
    except ValidationError as error:
        # One sentence a variable, however many members of a list are wrong.
        wrong = {item["loc"][:1]: item for item in error.errors(include_url=False, include_input=False)}
        return [f"host {named(name)}{_sentence(where, dict(item), given)}" for where, item in wrong.items()]


def _sentence(where: tuple[int | str, ...], item: Mapping[str, Any], given: Mapping[str, object]) -> str:
    if not where:
        return f": {item['msg'].removeprefix('Value error, ')}"
    variable = str(where[0])
    if item["type"] == "missing":
        return for_example(f" lacks the variable {variable} in the inventory", variable)
    allowed = HostVariables.model_fields[variable].description
    value = given[variable]
    hint = "; Cadge fills in no templates" if isinstance(value, str) and "{{" in value else ""
    called = "its name" if variable == "inventory_hostname" else variable
    return for_example(f": {called} must be {allowed}, not {shown(value)}{hint}", variable)
