# SPDX-License-Identifier: BSD-3-Clause
"""Taking names out of what is published: hosts, addresses, hardware, users, home folders, jobs, e-mail.

Only strings change: a number is the same before and after. Those that identify or count (ids, digests, parameters,
versions) are read as well, but less is taken for a name there: in a version, four numbers are no address unless they
are one elsewhere. Each name has one pseudonym throughout a campaign. Pseudonyms are of kinds that nobody has: addresses
from the ranges kept for documents (RFC 5737, RFC 3849, RFC 7042), `n1` for hosts, `u1` for users; what is one already
stays, so that redacting twice is redacting once.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from pydantic import JsonValue

CATEGORIES = ("hosts", "addresses", "hardware", "users", "paths", "jobs", "mail", "also")
_HOST_KEYS = frozenset({"host", "hosts", "leader"})
_FIXED = frozenset(
    """
    schema launch_id launch_ids campaign_id block_id block point_id point_ids attempt_id cell_id selftest_id after
    plan_hash build build_id revision checksum sha256 records_sha256 decision_sha256 log_sha256 histogram sum_sq_ns2
    role roles layer layers style substrate shims pattern patterns floors tool statistic kind status place wait launcher
    quantity quantities parameters state reason_code caps traits semantics redacted
    version versions stated_version release compiler libc python created_utc started_utc finished_utc
    """.split()  # noqa: SIM905 - ninety quotes would not be easier to read
)
"""Keys of the store whose text names no person or machine: ids, digests, versions, words of our own."""
_FROZEN = frozenset({"parameters", "patterns", "floors", "quantities", "traits", "semantics", "redacted", "versions"})
"""Of these, keys under which nothing else stands either."""
_VERSIONS = frozenset("version versions stated_version release revision compiler libc python".split())  # noqa: SIM905
"""Of these, keys whose text others wrote: its words are not ours, and its numbers may look like an address."""
_ADDRESSES = frozenset({"address", "management_address"})
"""Keys under which an address must stand."""
_FREE = frozenset({"parameters", "traits", "quantities"})
"""Of these, keys under which a text may be anything: as a whole it is no word of ours."""
_UNREAD = frozenset({"histogram", "first_ns"})
"""Keys under which there are numbers alone: whoever verifies a campaign decodes them."""
USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_GENERIC = frozenset({"root", "localhost", "nobody", "user", "users", "home", "shared", "public"})
_WORD = re.compile(r"[A-Za-z0-9_]+")
_PLAIN_NUMBER = re.compile(r"[0-9.]+[A-Za-z]{0,3}")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_ ]*")
_VERSION = re.compile(r"\d+\.\d+\.\d+\.\d+")

_MODULES = "/layers/"
"""Where built layers lie: `native-ucx@1.22.0.so` is one on a provider, and nobody's address."""
_MAIL = rf"(?<![A-Za-z0-9._%+-])(?<!{_MODULES})[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{{2,}}"
_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_MAC = r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5,31}"
"""Ethernet's six bytes, an EUI-64, the seven of BOOTIF with its type in front, IPoIB's twenty."""
_GUID = (
    r"(?:[0-9A-Fa-f]{4}(?::[0-9A-Fa-f]{4}){3}|0x(?!0{4}|[Ff]{4})[0-9A-Fa-f]{16}"
    r"|(?<=[Gg][Uu][Ii][Dd][ :=])[0-9A-Fa-f]{16}|(?<=[Gg][Uu][Ii][Dd][:=] )[0-9A-Fa-f]{16})"
)
_DEVICE = r"(?:en|wl|ib)x[0-9a-f]{12}"
"""An interface that its MAC address names."""
_V6 = r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"
_V4 = r"\d{1,3}(?:\.\d{1,3}){3}"
_PRIVATE = r"(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}"
_RANGE = rf"{_V4}(?=-{_V4})|{_PRIVATE}(?=-\d{{1,3}}(?![\w.]))"
"""Its first address: what follows is no part of a version."""
_V4_IN_NAME = r"(?P<prefix>(?:ip|ec2|host|vm)-)(?P<dashed>\d{1,3}(?:-\d{1,3}){3})(?:\.[A-Za-z0-9-]+)*"
"""As clouds name hosts, with or without a domain."""
_SHARED = r"home\d*|homes|Users|users|scratch\d*"
_HOME = rf"/(?:{_SHARED})(?:/(?:{_SHARED}))*/(?P<owner>[^\s/:;,\"'<>&\\]+)"
_OWN = r"(?P<whose>\b(?:SUDO_USER|USER|LOGNAME|USERNAME)=)(?P<login>[A-Za-z_][\w.-]*)"
_NUMBER = r"\d{3,}(?:\[\d*\])?(?:\.[A-Za-z][\w-]*)*"
_JOB = (
    r"(?i:(?<![A-Za-z0-9])(?P<job>slurm[._-]?(?:job)?[._-]?|(?:[a-z]+_)*job[ _.-]?id[ =:_.-]*|job[ =_.-]))"
    rf"(?P<number>{_NUMBER})"
)
_JOB_KEY = re.compile(r"(?i)(?:[a-z]+_)*job_?id")
_DOMAIN = r"(?:\.[A-Za-z0-9-]+)+\.[A-Za-z]{2,}(?![\w-])|\.(?:local|localdomain|lan|internal|novalocal)(?![\w-])"
_PATTERNS = (
    ("mail", _MAIL),
    ("uuid", _UUID),
    ("mac", rf"(?<![:.-]){_MAC}(?![:.-])"),
    ("guid", rf"(?<![:.]){_GUID}(?![:.])"),
    ("six", rf"(?<![:.]){_V6}(?![:.])"),
    ("device", _DEVICE),
    ("four", rf"(?<![.])(?:{_RANGE}|{_V4}(?!\.?[\w~+-])(?<!\.))"),
)
Reading = Literal["text", "ids", "versions"]
Key = str | None
"""The fixed key that a text stands under; None for running text."""
_OF = {
    "mail": "mail",
    "uuid": "hardware",
    "mac": "hardware",
    "guid": "hardware",
    "device": "hardware",
    "six": "addresses",
    "four": "addresses",
}
_DOCUMENTS = tuple(map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")))


def _alone(name: str, text: str) -> str:
    return f"(?<!\\w)(?P<{name}>{text})(?!\\w)"


def _each(names: Iterable[str], group: str, more: str = "") -> str:
    """Return the expression of names, longer ones first, that stand as words of their own, and what may follow."""
    each = "|".join(re.escape(name) for name in sorted(names, key=lambda one: (-len(one), one)))
    return f"(?<![A-Za-z0-9_])(?P<{group}>{each})(?:{more})?(?![A-Za-z0-9_])"


def _numbered(names: Names) -> dict[str, str]:
    """Return what stands for each name of a host: its own, the kernel's, and the short form of a long one."""
    found: dict[str, str] = {}
    numbers = count(1)

    def add(name: str, known: str | None) -> None:
        if name and name not in _GENERIC and name not in found:
            found[name] = known or f"n{next(numbers)}"

    for name in names.hosts:
        add(name, None)
    for alias, name in names.aliases.items():
        add(alias, found.get(name))
    for name, pseudonym in list(found.items()):
        if not re.fullmatch(_V4, name):
            add(name.partition(".")[0], pseudonym)
    return found


_OF_PEOPLE = (_alone("mail", _MAIL), _HOME)
_FOUR = _alone(*_PATTERNS[-1])


def _any_of(parts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(parts) or r"(?!)")


def _reading(key: str) -> Reading:
    """Return how a text under a fixed key is read."""
    return "versions" if key in _VERSIONS else "ids"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What is known of a campaign before its text is read: hosts in order, users, and words that are no names."""

    hosts: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of hosts, and whose they are: the kernel's own where the inventory has another."""
    users: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """What the user wants replaced beside all that."""
    words: frozenset[str] = frozenset()
    """A name that is such a word as well is replaced where a host must stand, and left in running text."""
    versions: frozenset[str] = frozenset()
    """Four numbers with dots that are a version here, and no address."""
    addresses: frozenset[str] = frozenset()
    """IPv4 addresses of hosts: four numbers in a version that are one of them are no version."""
    taken: frozenset[str] = frozenset()
    """Pseudonyms that stand in the campaign already, for something else."""


@dataclass(slots=True)
class Redactor:
    """Replaces names. `places` counts what was replaced: (category, name, pseudonym)."""

    names: Names
    keep: Collection[str] = ()
    places: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _given: dict[tuple[str, str], str] = field(default_factory=dict)
    _hosts: dict[str, str] = field(init=False)
    _known: dict[str, str] = field(init=False)
    _expressions: dict[Reading, re.Pattern[str]] = field(init=False)
    _seen: dict[tuple[str, Reading], tuple[str, tuple[tuple[str, str, str], ...]]] = field(default_factory=dict)
    _found: list[tuple[str, str, str]] = field(default_factory=list)
    _counters: dict[str, Iterator[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Give hosts their pseudonyms in order, and make the one expression that finds every name."""
        self._hosts = {} if "hosts" in self.keep else _numbered(self.names)
        self._known = {}
        for category, some in (("users", self.names.users), ("hosts", self._hosts), ("also", self.names.also)):
            if category not in self.keep:
                self._known |= {name: category for name in some if self._is_distinct(name) or category == "also"}
        parts = [_alone(name, text) for name, text in _PATTERNS if _OF[name] not in self.keep and name != "mail"]
        if "addresses" not in self.keep:
            parts.append(rf"(?<![\w-]){_V4_IN_NAME}(?![\w-])")
        if "paths" not in self.keep:
            parts.append(_HOME)
        if "users" not in self.keep:
            parts.append(_OWN)
        hosts = [name for name, category in self._known.items() if category == "hosts"]
        others = [name for name, category in self._known.items() if category != "hosts"]
        # a name that looks like something else is a name, but one within a mail address is none of its own
        first = [_alone("mail", _MAIL)] if "mail" not in self.keep else []
        first += [_each(hosts, "name", _DOMAIN)] if hosts else []
        first += [_each(others, "other")] if others else []
        addresses = [_each(own, "four")] if (own := self.names.addresses) and "addresses" not in self.keep else []
        jobs = [_JOB] if "jobs" not in self.keep else []
        self._expressions = {
            "ids": _any_of([*first, *parts]),
            "versions": _any_of([*addresses, *first, *(one for one in parts if one != _FOUR)]),
            "text": _any_of([*first, *parts, *jobs]),
        }

    @property
    def untold(self) -> tuple[str, ...]:
        """Names that are words as well, and are not looked for in running text."""
        every = {**dict.fromkeys(self.names.users, "users"), **dict.fromkeys(self._hosts, "hosts")}
        return tuple(sorted(n for n, c in every.items() if c not in self.keep and not self._is_distinct(n)))

    def _is_distinct(self, name: str) -> bool:
        """Tell a name from numbers, sizes and words of our own, by which running text would be spoiled."""
        if len(name) < 2 or name in _GENERIC or _PLAIN_NUMBER.fullmatch(name):
            return False
        return name not in self.names.words and name.lower() not in self.names.words

    def host(self, name: str) -> str:
        """Return what stands for a host where a host must stand."""
        found = self._hosts.get(name)
        if found is None:
            return self.text(name)
        self._count("hosts", name, found)
        return found

    def text(self, text: str) -> str:
        """Return running text without names."""
        return self._without(text, "text")

    def fixed(self, text: str, key: str) -> str:
        """Return what stands under a fixed key, without what cannot stand there rightly."""
        return self._without(text, _reading(key))

    def told(self, text: str, key: str | None = None) -> tuple[tuple[str, str, str], ...]:
        """Return what is replaced, in running text or under a fixed key: kind, name, pseudonym."""
        return self._looked_at(text, "text" if key is None else _reading(key))[1]

    def _without(self, text: str, how: Reading) -> str:
        made, found = self._looked_at(text, how)
        for one in found:
            self.places[one] += 1
        return made

    def _looked_at(self, text: str, how: Reading) -> tuple[str, tuple[tuple[str, str, str], ...]]:
        known = self._seen.get((text, how))
        if known is None:
            self._found = []
            made = self._expressions[how].sub(self._replace, text)
            known = self._seen[text, how] = made, tuple(self._found)
        return known

    def value(self, value: JsonValue, key: str = "") -> JsonValue:
        """Return JSON without names: numbers are the same."""
        if _is_fixed(key, value):
            return self._fixed_value(value, key)
        if isinstance(value, str):
            return self.host(value) if key in _HOST_KEYS else self._redacted_text(value, key)
        if isinstance(value, list):
            return [self._block_host(one) if key == "hosts" and isinstance(one, dict) else self.value(one, key)
                    for one in value]  # fmt: skip
        if isinstance(value, dict):
            return {self._key(name): self.value(one, name) for name, one in value.items()}
        return value

    def _redacted_text(self, value: str, key: str) -> str:
        """Return running text without names; a number of a job is told by its key, as in an environment."""
        if _JOB_KEY.fullmatch(key) and re.fullmatch(_NUMBER.replace("{3,}", "+"), value) and "jobs" not in self.keep:
            made = f"j{self._number('jobs', value)}"
            self._count("jobs", value, made)
            return made
        if key in USER_VARIABLES and value and "users" not in self.keep:
            made = self._pseudonym("users", value)
            self._count("users", value, made)
            return made
        return self.text(value)

    def _fixed_value(self, value: JsonValue, key: str) -> JsonValue:
        if isinstance(value, str):
            return self.fixed(value, key)
        if isinstance(value, list):
            return [self._fixed_value(one, key) for one in value]
        if isinstance(value, dict):
            return {
                self._key(name, key): one if name in _UNREAD else self._fixed_value(one, key)
                for name, one in value.items()
            }
        return value

    def _block_host(self, host: Mapping[str, JsonValue]) -> JsonValue:
        plain = {name: one for name, one in host.items() if name != "name"}
        name = host.get("name")
        made = self.value(plain)
        named = {"name": self.host(name)} if isinstance(name, str) else {}
        return {**named, **made} if isinstance(made, dict) else made

    def _key(self, name: str, fixed: str | None = None) -> str:
        if _is_plain(name):  # a word of ours: see CampaignTexts.value
            return name
        return self.text(name) if fixed is None else self.fixed(name, fixed)

    def _count(self, category: str, old: str, new: str) -> None:
        if old != new:
            self.places[category, old, new] += 1

    def _replace(self, match: re.Match[str]) -> str:
        kind, old = match.lastgroup or "", match.group()
        groups = match.groupdict()
        if groups.get("owner"):
            owner = groups["owner"]
            new = f"{old[: -len(owner)]}{self._pseudonym('users', owner)}"
            return self._noted("paths", old, new)
        if groups.get("number"):
            return self._noted("jobs", old, f"{groups['job']}j{self._number('jobs', groups['number'])}")
        if groups.get("login"):
            return self._noted("users", old, f"{groups['whose']}{self._pseudonym('users', groups['login'])}")
        if groups.get("dashed"):
            new = self._pseudonym("four", groups["dashed"].replace("-", "."))
            return self._noted("addresses", old, f"{groups['prefix']}{new.replace('.', '-').replace(':', '-')}")
        if groups.get("name"):
            return self._noted("hosts", old, self._hosts[groups["name"]])
        if groups.get("other"):
            category = self._known[old]
            return self._noted(category, old, self._pseudonym(category, old))
        kind = next(name for name in _OF if groups.get(name))
        return self._noted(_OF[kind], old, self._pseudonym(kind, old))

    def _noted(self, category: str, old: str, new: str) -> str:
        if new != old:
            self._found.append((category, old, new))
        return new

    def _number(self, kind: str, old: str) -> int:
        given = self._given.get((kind, old))
        if given is None:
            given = self._given[kind, old] = str(next(self._counters.setdefault(kind, count(1))))
        return int(given)

    def _pseudonym(self, kind: str, old: str) -> str:
        """Return the pseudonym of a name; a name that is one already, or names nobody, is its own."""
        if kind == "device" and not self._is_nobodys(kind, old):
            address = self._pseudonym("mac", ":".join(re.findall("..", old[3:])))
            return old[:3] + address.replace(":", "")
        if self._is_nobodys(kind, old):
            return old
        given = self._given.get((kind, old))
        while given is None or given in self.names.taken:
            given = _MADE[kind](next(self._counters.setdefault(kind, count(1))))
        self._given[kind, old] = given
        return given

    def _is_nobodys(self, kind: str, old: str) -> bool:
        match kind:
            case "users":
                return old in _GENERIC or re.fullmatch(r"u\d+", old) is not None
            case "also":
                return re.fullmatch(r"x\d+", old) is not None
            case "mail":
                return old.endswith("@example.org")
            case "uuid":
                return old.startswith("00000000-0000-0000-0000-")
            case "mac":
                return old.lower().startswith("00:00:5e:00:53:") or len(set(old)) == 2
            case "guid":
                return old.startswith("0000:0000:0000:")
            case "device":
                return old[3:].startswith("00005e0053")
            case _:
                return old in self.names.versions or not _is_address(old)


def _is_plain(key: str) -> bool:
    """Tell a key of ours, or of a system, from one that names somebody's device."""
    return _PLAIN_KEY.fullmatch(key) is not None and re.fullmatch(_DEVICE, key) is None


def _is_fixed(key: str, value: JsonValue) -> bool:
    """Tell whether what stands under a key is never read for names that are words: see Redactor.fixed."""
    return key in _FIXED and (isinstance(value, str) or (key in _FROZEN and isinstance(value, dict)))


def texts(value: JsonValue, key: str = "", fixed: Key = None) -> Iterator[tuple[str, Key]]:
    """Yield every text of JSON, keys as well, with the fixed key that it stands under, or None."""
    if isinstance(value, str):
        yield value, key if fixed is None and key in _FIXED else fixed
    elif isinstance(value, list):
        for one in value:
            yield from texts(one, key, fixed)
    elif isinstance(value, dict):
        below = key if fixed is None and key in _FROZEN else fixed
        for name, one in value.items():
            yield name, below
            if name not in _UNREAD:
                yield from texts(one, name, below)


def _is_address(text: str) -> bool:
    """Tell an address that belongs to somebody: not loopback, any, a mask, or one of those for documents."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and max(map(len, text.split(":"))) < 2:
        return False
    if found.is_loopback or found.is_unspecified or text.startswith("255."):
        return False
    return not any(found in network for network in _DOCUMENTS)


def _four(number: int) -> str:
    """Return an address from the three ranges for documents, and where those are used up an IPv6 one."""
    place, host = divmod(number - 1, 254)
    return f"{('192.0.2', '198.51.100', '203.0.113')[place]}.{host + 1}" if place < 3 else f"2001:db8::4:{number:x}"


_MADE: Mapping[str, Callable[[int], str]] = {
    "users": "u{}".format,
    "also": "x{}".format,
    "mail": "m{}@example.org".format,
    "uuid": "00000000-0000-0000-0000-{:012x}".format,
    "mac": lambda number: (
        f"00:00:5e:00:53:{number:02x}" if number < 256 else f"00:00:5e:00:53:{number >> 8:02x}:{number & 255:02x}"
    ),
    "guid": "0000:0000:0000:{:04x}".format,
    "six": "2001:db8::{:x}".format,
    "four": _four,
}
_TAKEN = re.compile(
    r"\bu\d+\b|\bx\d+\b|\bm\d+@example\.org\b|00:00:5e:00:53:[0-9a-f]{2}|0000:0000:0000:[0-9a-f]{4}"
    r"|00000000-0000-0000-0000-[0-9a-f]{12}|2001:db8::[0-9a-f:]+|\b(?:192\.0\.2|198\.51\.100|203\.0\.113)\.\d+\b"
)
_OWNER = re.compile(_HOME)
_OWN_NAME = re.compile(_OWN)
_IN_FIXED = _any_of(_OF_PEOPLE)


@dataclass(slots=True)
class CampaignTexts:
    """What stands in a campaign's documents, put together while they are read."""

    users: dict[str, None] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    def text(self, text: str) -> None:
        """Read running text."""
        self.taken.update(_TAKEN.findall(text))
        self.users.update(dict.fromkeys(found["owner"] for found in _OWNER.finditer(text)))
        self.users.update(dict.fromkeys(found["login"] for found in _OWN_NAME.finditer(text)))

    def value(self, value: JsonValue, key: str = "") -> None:
        """Read JSON."""
        if isinstance(value, str):
            if key in _UNREAD:
                return
            if key in _FIXED:
                self._fixed(value, key)
                return
            if key in _ADDRESSES and _VERSION.fullmatch(value) and _is_address(value):
                self.addresses.add(value)
            if key in USER_VARIABLES and value:
                self.users[value] = None
            self.text(value)
        elif isinstance(value, list):
            if key not in _UNREAD:
                for one in value:
                    self.value(one, key)
        elif isinstance(value, dict):
            for name, one in value.items():
                if _is_plain(name):
                    self.words.add(name)
                self.text(name)
                # what stands under a frozen key is of our own words
                self.value(one, key if key in _FROZEN and name not in _UNREAD else name)

    def _fixed(self, text: str, key: str) -> None:
        """Read what stands under a fixed key: its words are our own, but for those that others wrote."""
        self.text(text)
        plain = _IN_FIXED.sub(" ", text)
        if _reading(key) == "versions":
            self.versions.update(_VERSION.findall(plain))
        else:
            self.words.update(_WORD.findall(plain))
            if key not in _FREE:
                self.words.add(text)


def names_of(
    gathered: CampaignTexts, hosts: Iterable[str], *, users: Iterable[str] = (), also: Iterable[str] = (),
    words: Iterable[str] = (), aliases: Mapping[str, str] | None = None,
) -> Names:  # fmt: skip
    """Return the names of a campaign, of which `gathered` has read all documents."""
    return Names(
        hosts=tuple(hosts),
        aliases=dict(aliases or {}),
        users=tuple(dict.fromkeys((*gathered.users, *users))),
        also=tuple(also),
        words=frozenset(gathered.words) | frozenset(words),
        versions=frozenset(gathered.versions) - gathered.addresses,
        addresses=frozenset(gathered.addresses),
        taken=frozenset(gathered.taken),
    )
