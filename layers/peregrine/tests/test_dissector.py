# SPDX-License-Identifier: BSD-3-Clause
"""Wireshark's dissector of the Peregrine protocol shows what was put into a capture, and says what is wrong with it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.spare

ENGINE = Path(__file__).resolve().parents[1] / "engine"
SCRIPT = ENGINE / "wireshark/peregrine.lua"

TYPES = {"call": 1, "result": 2, "ack": 3, "nack": 4, "probe": 5, "alive": 6, "challenge": 7, "reject": 8}
ASK, COOKIE, BIG_ENDIAN, WORDS, DELEGATED, KEYED, OF_RESULT = (1 << bit for bit in range(7))
CLIENT = 0x1122334455667788
INCARNATION = 0xCAFE0001
COOKIE_VALUE = 0x8877665544332211
NOBODY = "65534"
SERVER_PORT = 18700
CALLER, SERVER = 0xA1B2C3D4, 0x01020304
"""Numbers of endpoints, where there are no ports."""
PREFIX = struct.pack(">II", SERVER, CALLER)

Frame = dict[str, list[str]]
"""What a frame shows: names of fields, each with its values in the order of the tree; also "info" and "expert"."""


# --- packets and captures ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet; what is not given is right for a call of one packet."""

    type: int = TYPES["call"]
    flags: int = 0
    version: int = 2
    retransmissions: int = 0
    slot: int = 3
    credits: int = 32
    client: int = CLIENT
    sequence: int = 7
    incarnation: int = INCARNATION
    procedure: int = 0
    message_bytes: int | None = None
    packet_number: int = 0
    data_bytes: int | None = None
    packet_bytes: int = 1400
    cookie: int = COOKIE_VALUE
    check: bytes = bytes(range(8))
    data: bytes = b""

    def __bytes__(self) -> bytes:
        """Return it as it is on the wire."""
        head = struct.pack(
            "<BBBBHHQQIIIIII",
            self.type,
            self.flags,
            self.version,
            self.retransmissions,
            self.slot,
            self.credits,
            self.client,
            self.sequence,
            self.incarnation,
            self.procedure,
            len(self.data) if self.message_bytes is None else self.message_bytes,
            self.packet_number,
            len(self.data) if self.data_bytes is None else self.data_bytes,
            self.packet_bytes,
        )
        cookie = struct.pack("<Q", self.cookie) if self.flags & COOKIE else b""
        return head + cookie + (self.check if self.flags & KEYED else b"") + self.data


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet on its way: over UDP from port to port, or directly on IP where the ports are 0."""

    what: Packet | bytes
    source: str = "10.0.0.1"
    target: str = "10.0.0.2"
    source_port: int = 40000
    target_port: int = SERVER_PORT
    prefix: bytes = PREFIX
    at_us: int = 0
    keep: int | None = None  # bytes of the packet that the capture kept
    in_icmp: bool = False  # within an error that the target sends back

    def back(self, what: Packet | bytes, at_us: int = 0) -> Sent:
        """Return a packet that goes the other way."""
        prefix = self.prefix[4:] + self.prefix[:4]
        return Sent(what, self.target, self.source, self.target_port, self.source_port, prefix, at_us)

    def frame(self) -> bytes:
        """Return the whole frame, with its Ethernet header."""
        data = bytes(self.what)
        protocol = 17 if self.source_port else 253
        address = IPv6Address if ":" in self.source else IPv4Address
        source, target = address(self.source).packed, address(self.target).packed
        if self.source_port:
            head = struct.pack(">HHH", self.source_port, self.target_port, 8 + len(data))
            words = source + target + struct.pack(">HH", 17, 8 + len(data)) + head + data + bytes(len(data) % 2)
            total = sum(struct.unpack(f">{len(words) // 2}H", words))
            data = head + struct.pack(">H", -total % 0xFFFF or 0xFFFF) + data
        else:
            data = self.prefix + data
        if ":" in self.source:
            return (
                bytes(12)
                + b"\x86\xdd"
                + struct.pack(">IHBB", 6 << 28, len(data), protocol, 64)
                + source
                + target
                + data
            )
        packet = ip_header(len(data), protocol) + source + target + data
        if self.in_icmp:
            packet = ip_header(8 + len(packet), 1) + target + source + struct.pack(">BBHI", 3, 3, 0, 0) + packet
        return bytes(12) + b"\x08\x00" + packet


def ip_header(data_bytes: int, protocol: int) -> bytes:
    """Return what stands before the addresses."""
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + data_bytes, 0, 0, 64, protocol, 0)


ON_IP = Sent(b"", source_port=0, target_port=0)


def write_pcap(path: Path, frames: Sequence[tuple[int, bytes, int]]) -> Path:
    """Write frames (time in us, what was captured, bytes of the whole frame) as a capture of an Ethernet interface."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
    for at_us, kept, whole_bytes in frames:
        out += (
            struct.pack("<IIII", 1_700_000_000 + at_us // 1_000_000, at_us % 1_000_000, len(kept), whole_bytes) + kept
        )
    path.write_bytes(out)
    return path


def capture_of(path: Path, sent: Sequence[Sent]) -> Path:
    """Write what was sent as a capture."""
    frames = []
    for each in sent:
        frame = each.frame()
        cut = len(frame) if each.keep is None else len(frame) - len(bytes(each.what)) + each.keep
        frames.append((each.at_us, frame[:cut], len(frame)))
    return write_pcap(path, frames)


# --- tshark -----------------------------------------------------------------------------------------------------------


@functools.cache
def dropping() -> tuple[str, ...]:
    """Return the command that gives root's rights away: as root, tshark of Debian 13 silently runs no Lua script."""
    command = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--")
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return ()
    # root of a user namespace may have no other user to become
    return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else ()


def run_tshark(script: Path, pcap: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run tshark with a script on a capture, as a user without rights, plug-ins or settings."""
    with tempfile.TemporaryDirectory(prefix="pgr-dissector-") as name:
        home = Path(name)
        home.chmod(0o755)
        for source in (script, pcap):  # copies, since that user may not be allowed to look into pytest's folder
            (home / source.name).write_bytes(source.read_bytes())
            (home / source.name).chmod(0o644)
        return subprocess.run(
            [*dropping(), "tshark", "-n", "-X", f"lua_script:{script.name}", "-r", pcap.name, *options],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=home,
            env={
                "PATH": os.environ["PATH"],
                "LC_ALL": "C.UTF-8",
                "HOME": name,
                "XDG_CONFIG_HOME": name,
                "WIRESHARK_CONFIG_DIR": name,
            },
        )


@functools.cache
def tshark_lacks() -> str:
    """Return why the dissector cannot be run here; empty: it can."""
    if shutil.which("tshark") is None:
        return "tshark is not installed"
    with tempfile.TemporaryDirectory() as name:
        pcap = write_pcap(Path(name) / "empty.pcap", [])
        script = Path(name) / "probe.lua"
        script.write_text('print("Lua runs")\n', encoding="utf-8")
        if "Lua runs" in run_tshark(script, pcap).stdout:
            return ""
    return "this tshark runs no Lua script" + (" for root" if os.geteuid() == 0 and not dropping() else "")


def tshark(pcap: Path, *options: str) -> str:
    """Run tshark with the dissector on a capture; return what it wrote."""
    if lacks := tshark_lacks():
        pytest.skip(lacks)
    done = run_tshark(SCRIPT, pcap, *options)
    assert done.returncode == 0, done.stderr
    assert "Lua" not in done.stderr, done.stderr
    assert "Lua Error" not in done.stdout, done.stdout[-4000:]
    return done.stdout


@functools.cache
def field_names() -> tuple[str, ...]:
    """Return the dissector's fields, from its own text."""
    return tuple(sorted(set(re.findall(r'"(peregrine\.[a-z0-9_.]+)"', SCRIPT.read_text(encoding="utf-8")))))


def dissect(pcap: Path, *options: str) -> list[Frame]:
    """Return what the dissector shows of each frame of a capture."""
    asked = [*field_names(), "_ws.expert.message", "_ws.col.Info"]
    text = tshark(pcap, "-2", "-T", "json", *options, *(word for name in asked for word in ("-e", name)))
    frames: list[Frame] = [each["_source"]["layers"] for each in json.loads(text)]
    for frame in frames:
        for name, found in frame.items():
            if name.startswith("peregrine.flags."):  # 4.0 writes 1, 4.4 True
                frame[name] = [{"True": "1", "False": "0"}.get(value, value) for value in found]
        frame["expert"] = frame.pop("_ws.expert.message", [])
        frame["info"] = frame.pop("_ws.col.Info") if "_ws.col.Info" in frame else frame.pop("_ws.col.info")  # 4.0, 4.4
    return frames


def values(frame: Frame, expected: Mapping[str, str | list[str] | None]) -> None:
    """Check fields of a frame, named without "peregrine."; None: the field is absent."""
    found = {name: frame.get(f"peregrine.{name}") for name in expected}
    assert found == {name: [each] if isinstance(each, str) else each for name, each in expected.items()}


def is_peregrine(frame: Frame) -> bool:
    return "peregrine.type" in frame


def back(what: Packet | bytes, at_us: int = 0) -> Sent:
    """Return a packet from the server to the client."""
    return Sent(b"").back(what, at_us)


# --- captures that tests share, since each start of tshark takes its time ---------------------------------------------

FRAME_NUMBERS = ("call_frame", "result_frame", "challenge_frame", "original_frame", "delegated_frame", "whole.frame")
PARTS = "peregrine.whole.part"


class Shared:
    """A capture made of the scenes of many tests, dissected once with the same options."""

    def __init__(self, *options: str) -> None:
        self.options = options
        self.sent: list[Sent] = []
        self.scenes = 0

    def scene(self, *sent: Sent) -> Scene:
        """Add packets of one test. Their hosts, 10.0.0.x and fd00::x, are told from those of other scenes."""
        self.scenes += 1

        def own(address: str) -> str:
            address = re.sub(r"^10\.0\.0\.", f"10.{self.scenes // 256}.{self.scenes % 256}.", address)
            return re.sub(r"^fd00::", f"fd00:{self.scenes:x}::", address)

        begin = len(self.sent)
        self.sent += [replace(each, source=own(each.source), target=own(each.target)) for each in sent]
        return Scene(self, begin, len(self.sent))

    @contextlib.contextmanager
    def pcap(self) -> Iterator[Path]:
        """Write it for a while."""
        with tempfile.TemporaryDirectory() as name:
            yield capture_of(Path(name) / "shared.pcap", self.sent)

    @functools.cached_property
    def frames(self) -> list[Frame]:
        """What is shown of each frame."""
        with self.pcap() as pcap:
            return dissect(pcap, *self.options)

    @functools.cached_property
    def trees(self) -> list[str]:
        """The tree of each frame, as text."""
        with self.pcap() as pcap:
            return re.split(r"^Frame \d+: ", tshark(pcap, "-V", *self.options), flags=re.MULTILINE)[1:]


@dataclass(frozen=True, slots=True)
class Scene:
    """Frames of a shared capture."""

    shared: Shared
    begin: int
    end: int

    def frames(self) -> list[Frame]:
        """Return what is shown of each frame; numbers of frames count from 1 at the scene's first."""
        names = (*(f"peregrine.{name}" for name in FRAME_NUMBERS), PARTS)
        return [
            {
                name: [str(int(each) - self.begin) for each in found] if name in names else found
                for name, found in frame.items()
            }
            for frame in self.shared.frames[self.begin : self.end]
        ]

    def frame(self) -> Frame:
        """Return what is shown of its only frame."""
        (frame,) = self.frames()
        return frame

    def trees(self) -> list[str]:
        """Return the tree of each frame, as text."""
        return self.shared.trees[self.begin : self.end]


PLAIN = Shared()
KNOWN = Shared("-o", f"peregrine.udp_port:{SERVER_PORT}", "-o", "peregrine.reassemble_mib:1")


@pytest.fixture(scope="module", autouse=True)
def dissected() -> None:
    """Dissect both, so that a failure is found once and not again by each test."""
    assert len(PLAIN.frames) == len(PLAIN.sent)
    assert len(KNOWN.frames) == len(KNOWN.sent)


# --- the header -------------------------------------------------------------------------------------------------------

WAYS = {
    "udp": Sent(b""),
    "ip": ON_IP,
    "udp over IPv6": Sent(b"", source="fd00::1", target="fd00::2"),
    "ip, version 6": replace(ON_IP, source="fd00::1", target="fd00::2"),
}
DATA = {"call": b"hello", "result": b"hello", "nack": b"\x05"}
PROCEDURE = {"reject": 3, "challenge": 0xABCD}
EVERY_TYPE = {
    name: Packet(type=number, procedure=PROCEDURE.get(name, 0), data=DATA.get(name, b""), credits=17)
    for name, number in TYPES.items()
}
EVERY_WAY = {
    name: PLAIN.scene(*(replace(way, what=packet) for packet in EVERY_TYPE.values())) for name, way in WAYS.items()
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.first(1)
def test_every_type_over_every_way(way: str) -> None:
    for (name, packet), frame in zip(EVERY_TYPE.items(), EVERY_WAY[way].frames(), strict=True):
        values(
            frame,
            {
                "type": str(TYPES[name]),
                "version": "2",
                "retransmissions": "0",
                "slot": "3",
                "credits": "17" if name != "challenge" else None,
                "taken": "17" if name == "challenge" else None,
                "client": "0x1122334455667788",
                "sequence": "7",
                "incarnation": "0xcafe0001",
                "data_bytes": str(len(packet.data)),
                "packet_bytes": "1400" if name != "challenge" else None,
                "memory": "1400" if name == "challenge" else None,
                "data": b"hello".hex() if name in ("call", "result") else None,
                "source": None if WAYS[way].source_port else "0xa1b2c3d4",
                "destination": None if WAYS[way].source_port else "0x01020304",
            },
        )
        assert frame["info"][0].startswith(f"{name} 7 slot 3")
        if name == "challenge":
            values(frame, {"claimed": "0x0000abcd", "procedure": None, "message_bytes": None, "packet_number": None})
        elif name == "reject":
            values(frame, {"reason": "3", "procedure": None})
        else:
            values(frame, {"procedure": "0", "message_bytes": str(len(packet.data)), "packet_number": "0"})
        assert frame["expert"] == (["Call rejected: busy, try again"] if name == "reject" else [])


def test_the_prefix_is_shown_before_the_header() -> None:
    tree = EVERY_WAY["ip"].trees()[0]
    assert "Peregrine directly on IP: from endpoint 0xa1b2c3d4 to 0x01020304" in tree
    assert tree.index("Source endpoint: 0xa1b2c3d4") < tree.index("Peregrine: call 7 slot 3")


FLAGS = ("ask", "cookie", "big_endian", "words", "delegated", "keyed", "of_result")
EACH_FLAG = PLAIN.scene(*(Sent(Packet(flags=1 << bit)) for bit in range(len(FLAGS))))


def test_each_flag_alone() -> None:
    for bit, frame in enumerate(EACH_FLAG.frames()):
        values(frame, {"flags": f"0x{1 << bit:02x}", "flags.unknown": None})
        values(frame, {f"flags.{name}": "1" if name == FLAGS[bit] else "0" for name in FLAGS})


EXTENDED = Packet(flags=COOKIE | KEYED, data=b"\xaa\xbb")
EXTENSIONS = PLAIN.scene(Sent(EXTENDED), Sent(replace(EXTENDED, flags=KEYED, sequence=8)))


def test_extensions_lie_between_header_and_data() -> None:
    both, check = EXTENSIONS.frames()
    values(both, {"cookie": "0x8877665544332211", "check": "0001020304050607", "data": "aabb"})
    values(check, {"cookie": None, "check": "0001020304050607", "data": "aabb"})


CHALLENGE = PLAIN.scene(
    back(Packet(type=TYPES["challenge"], message_bytes=0x44332211, packet_number=0x88776655, packet_bytes=40000))
)


def test_the_cookie_of_a_challenge_is_put_together() -> None:
    frame = CHALLENGE.frame()
    values(frame, {"cookie": "0x8877665544332211"})
    assert frame["info"] == ["challenge 7 slot 3, incarnation 0xcafe0001, claimed 0x00000000, memory 40000 ms"]


REASONS = {
    1: "no such procedure",
    2: "another version",
    3: "busy, try again",
    4: "too large",
    5: "not authorised",
    6: "failed by the procedure",
    7: "lost",
}
FAILED = 6


def rejected(reason: int, code: int = -70) -> Packet:
    """Return a reject; its code is sent only with the reason that has one."""
    return Packet(type=TYPES["reject"], procedure=reason, data=struct.pack("<i", code) if reason == FAILED else b"")


REJECTED = {reason: PLAIN.scene(back(rejected(reason))) for reason in REASONS}


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_of_a_reject(reason: int) -> None:
    frame = REJECTED[reason].frame()
    assert frame["info"] == [f"reject 7 slot 3, {REASONS[reason]}"]
    values(frame, {"reason": str(reason), "code": "-70" if reason == FAILED else None})
    assert f"Call rejected: {REASONS[reason]}" in frame["expert"]
    assert f"Reason: {REASONS[reason]} ({reason})" in REJECTED[reason].trees()[0]


NAMES = PLAIN.scene(Sent(Packet(flags=ASK | WORDS, procedure=5, credits=1, data=b"abc")))


def test_names_and_units_of_the_tree() -> None:
    (tree,) = NAMES.trees()
    for line in (
        "Peregrine: call 7 slot 3 procedure 5, 3 bytes, ask",
        "Type: call (1)",
        "Flags: 0x09 (ask, words)",
        ".... ...1 = Ask: answer at once: set",
        ".... ..0. = Cookie follows the header: not set",
        "Credits: 1 packet",
        "Message length: 3 bytes",
        "Packet number: 0 (of 1)",
    ):
        assert line in tree


# --- messages and nacks -----------------------------------------------------------------------------------------------


def blast(kind: str, parts: Sequence[bytes], flags: int = 0) -> list[Packet]:
    """Return the packets of a message; its last one asks."""
    return [
        Packet(
            type=TYPES[kind],
            flags=flags | (ASK if number == len(parts) - 1 else 0),
            procedure=5 if kind == "call" else 0,
            message_bytes=sum(map(len, parts)),
            packet_number=number,
            packet_bytes=len(parts[0]),
            data=part,
        )
        for number, part in enumerate(parts)
    ]


def out_of_order(way: Sent) -> list[Sent]:
    first, second, third = blast("call", [b"a" * 100, b"b" * 100, b"c" * 30])
    return [replace(way, what=each) for each in (first, third, second, replace(second, retransmissions=1))]


OUT_OF_ORDER = {name: PLAIN.scene(*out_of_order(way)) for name, way in WAYS.items()}


@pytest.mark.parametrize("way", WAYS)
def test_a_message_of_several_packets_is_put_together(way: str) -> None:
    frames = OUT_OF_ORDER[way].frames()
    assert [frame["info"][0] for frame in frames] == [
        "call 7 slot 3 procedure 5, packet 0 of 3, 100 bytes",
        "call 7 slot 3 procedure 5, packet 2 of 3, 30 bytes, ask",
        "call 7 slot 3 procedure 5, packet 1 of 3, 100 bytes",
        "call 7 slot 3 procedure 5, packet 1 of 3, 100 bytes, retransmission 1",
    ]
    for frame in (frames[0], frames[1], frames[3]):
        values(frame, {"packets": "3", "whole.frame": "3", "whole": None})
    values(frames[2], {"whole": (b"a" * 100 + b"b" * 100 + b"c" * 30).hex(), "whole.bytes": "230"})
    values(frames[2], {"whole.part": ["1", "3", "2"], "whole.frame": None})
    values(frames[3], {"original_frame": "3"})


def begun_anew() -> list[Sent]:
    """Return a call whose large packets vanish but for one, then in small packets, and a large one that comes late."""
    large = blast("call", [b"a" * 1400, b"b" * 1400, b"c" * 200])
    data = b"a" * 1400 + b"b" * 1400 + b"c" * 200
    small = blast("call", [data[at : at + 1136] for at in range(0, 3000, 1136)])
    return [replace(PLAIN_WAY, what=each) for each in (large[0], small[0], large[1], small[1], small[2])]


PLAIN_WAY = WAYS["udp"]
BEGUN_ANEW = PLAIN.scene(*begun_anew())


def test_a_message_that_begins_anew_in_smaller_packets_is_put_together() -> None:
    frames = BEGUN_ANEW.frames()
    assert frames[0]["info"] == ["call 7 slot 3 procedure 5, packet 0 of 3, 1400 bytes"]
    values(frames[4], {"whole": (b"a" * 1400 + b"b" * 1400 + b"c" * 200).hex(), "whole.part": ["2", "4", "5"]})


def test_messages_are_not_put_together_where_that_is_switched_off(tmp_path: Path) -> None:
    pcap = capture_of(tmp_path / "off.pcap", out_of_order(Sent(b"")))
    frames = dissect(pcap, "-o", "peregrine.reassemble:FALSE")
    assert len(frames) == 4
    for frame in frames:
        values(frame, {"whole": None, "whole.frame": None})


ABOVE_1_MIB = [Sent(packet) for packet in blast("result", [b"a" * 60000] * 18)]
SHORT_ENOUGH, TOO_LONG = PLAIN.scene(*ABOVE_1_MIB), KNOWN.scene(*ABOVE_1_MIB)


def test_messages_are_not_put_together_where_they_are_too_long() -> None:
    assert "peregrine.whole" in SHORT_ENOUGH.frames()[-1]
    assert "peregrine.whole" not in TOO_LONG.frames()[-1]


INCOMPLETE = PLAIN.scene(*map(back, blast("result", [b"a" * 100, b"b" * 100, b"c"])[::2]))


def test_an_incomplete_message_stays_in_pieces() -> None:
    for frame in INCOMPLETE.frames():
        values(frame, {"whole": None, "whole.frame": None})
        assert frame["expert"] == []


EMPTY = PLAIN.scene(Sent(Packet(packet_bytes=0)))


def test_an_empty_message_is_one_packet() -> None:
    values(EMPTY.frame(), {"packets": "1", "data": None})
    assert EMPTY.frame()["info"] == ["call 7 slot 3 procedure 0, 0 bytes"]


BITMAPS: list[tuple[bytes, list[int], list[int], str]] = [
    (b"", [4], [], "4"),
    (b"\x00", [4], [], "4"),
    (b"\x01", [4], [5], "4"),
    (b"\x86", [4, 5, 8, 9, 10, 11], [6, 7, 12], "4-5, 8-11"),  # 10000110
    (b"\x00\x02\x00", [4, *range(5, 14)], [14], "4-13"),
    (b"\xff" * 64, [4], list(range(5, 517)), "4"),
    (b"\xaa" * 64, [4, *range(5, 516, 2)], list(range(6, 517, 2)), "4-5, 7, 9, 11, 13, 15, 17, 19, ..."),
]
NACKS = [PLAIN.scene(back(Packet(type=TYPES["nack"], packet_number=4, data=each[0]))) for each in BITMAPS]


@pytest.mark.parametrize("index", range(len(BITMAPS)))
def test_the_bitmap_of_a_nack(index: int) -> None:
    bitmap, missing, arrived, text = BITMAPS[index]
    frame = NACKS[index].frame()
    values(
        frame,
        {
            "nack.missing": [str(number) for number in missing],
            "nack.arrived": [str(number) for number in arrived] or None,
            "nack.bitmap": bitmap.hex() or None,
        },
    )
    assert frame["info"] == [f"nack 7 slot 3, missing {text} of the call"]
    assert frame["expert"] == []


# --- calls and their answers ------------------------------------------------------------------------------------------


def exchange(way: Sent) -> list[Sent]:
    """Return two calls and what belongs to them."""
    call = Packet(data=b"x", procedure=5)
    return [
        replace(way, what=call, at_us=1_000),
        replace(way, what=replace(call, slot=4), at_us=1_500),
        way.back(replace(call, type=TYPES["alive"], data=b""), 2_000),
        way.back(replace(call, type=TYPES["result"], slot=4), 2_500),
        way.back(replace(call, type=TYPES["result"]), 1_004_250),
        replace(way, what=Packet(type=TYPES["ack"], flags=OF_RESULT, packet_number=1), at_us=1_005_000),
        way.back(replace(call, type=TYPES["result"], sequence=99), 1_006_000),
    ]


EXCHANGES = {name: PLAIN.scene(*exchange(way)) for name, way in WAYS.items()}


@pytest.mark.parametrize("way", WAYS)
def test_answers_name_the_frame_of_their_call_and_the_time_since(way: str) -> None:
    frames = EXCHANGES[way].frames()
    values(frames[0], {"result_frame": "5", "call_frame": None})
    values(frames[1], {"result_frame": "4"})
    values(frames[2], {"call_frame": "1", "time": "0.001000000"})
    values(frames[3], {"call_frame": "2", "time": "0.001000000"})
    values(frames[4], {"call_frame": "1", "time": "1.003250000"})
    assert frames[5]["info"] == ["ack 7 slot 3, result has arrived"]
    values(frames[6], {"call_frame": None, "time": None})  # its call was not captured


def test_answers_find_their_call_in_one_pass_too() -> None:
    asked = ("frame.number", "peregrine.call_frame", "peregrine.time")
    words = (word for name in asked for word in ("-e", name))
    with PLAIN.pcap() as pcap:
        out = tshark(pcap, "-T", "fields", *words, "-Y", "peregrine.time")
    expected = [
        [str(number), ",".join(frame["peregrine.call_frame"]), ",".join(frame["peregrine.time"])]
        for number, frame in enumerate(PLAIN.frames, start=1)
        if "peregrine.time" in frame
    ]
    assert [line.split("\t") for line in out.splitlines()] == expected
    assert len(expected) > 10


def between_others(way: Sent, *others: Sent) -> Scene:
    """Return a scene of the same call from several ends, then the results in the other order."""
    ends = [way, *others]
    calls = [replace(end, what=Packet(data=b"x")) for end in ends]
    return PLAIN.scene(*calls, *(end.back(Packet(type=TYPES["result"])) for end in reversed(ends)))


OTHER_ENDS = {
    "udp: port and address": between_others(Sent(b""), Sent(b"", source_port=40001), Sent(b"", source="10.0.0.9")),
    "ip: number and address": between_others(
        ON_IP, replace(ON_IP, prefix=PREFIX[:4] + b"\0\0\0\1"), replace(ON_IP, source="10.0.0.9")
    ),
    "a port is no number": between_others(Sent(b""), replace(ON_IP, prefix=PREFIX[:4] + struct.pack(">I", 40000))),
}


@pytest.mark.parametrize("name", OTHER_ENDS)
def test_calls_of_different_ends_are_told_apart(name: str) -> None:
    frames = OTHER_ENDS[name].frames()
    calls = len(frames) // 2
    for index in range(calls):
        values(frames[index], {"result_frame": str(2 * calls - index), "original_frame": None})
        values(frames[2 * calls - 1 - index], {"call_frame": str(index + 1), "original_frame": None})
    assert [frame["expert"] for frame in frames] == [[]] * len(frames)


ACKS: list[tuple[str, int, str]] = [
    ("ack", 0, "packets below 4 of the call have arrived"),
    ("ack", OF_RESULT, "packets below 4 of the result have arrived"),
    ("ack", OF_RESULT | DELEGATED, "packets below 4 of the result have arrived, delegated"),
    ("nack", 0, "missing 4-5 of the call"),
    ("nack", OF_RESULT, "missing 4-5 of the result"),
]
ACKED = [
    PLAIN.scene(Sent(Packet(type=TYPES[name], flags=flags, packet_number=4, data=b"\x02" if name == "nack" else b"")))
    for name, flags, _ in ACKS
]


@pytest.mark.parametrize("index", range(len(ACKS)))
def test_whose_packets_are_acknowledged(index: int) -> None:
    name, _, text = ACKS[index]
    frame = ACKED[index].frame()
    assert frame["info"] == [f"{name} 7 slot 3, {text}"]
    assert frame["expert"] == []


ACK = Packet(type=TYPES["ack"], packet_number=1)
ACKS_OF_PARTS = PLAIN.scene(
    *map(Sent, blast("call", [b"a" * 100, b"b"])),
    *(back(replace(ACK, packet_number=number)) for number in (1, 2)),
    *map(back, blast("result", [b"a" * 100, b"b"])),
    *(Sent(replace(ACK, flags=OF_RESULT, packet_number=number)) for number in (1, 2, 3)),
)
ACK_ALONE = PLAIN.scene(Sent(replace(ACK, flags=OF_RESULT, packet_number=2)))


def test_an_ack_of_a_part_is_told_from_that_of_the_whole() -> None:
    frames = ACKS_OF_PARTS.frames()
    assert [frame["info"][0] for frame in (*frames[2:4], *frames[6:])] == [
        "ack 7 slot 3, packets below 1 of the call have arrived",
        "ack 7 slot 3, call has arrived",
        "ack 7 slot 3, packets below 1 of the result have arrived",
        "ack 7 slot 3, result has arrived",
        "ack 7 slot 3, packets below 3 of the result have arrived",
    ]
    assert [frame["expert"] for frame in frames] == [[]] * 8 + [["3 packets have arrived, of 2"]]
    # whether there are more is not known
    assert ACK_ALONE.frame()["info"] == ["ack 7 slot 3, packets below 2 of the result have arrived"]


SMALL_CALL, RESULT = Packet(data=b"x", procedure=5), Packet(type=TYPES["result"])
RETRANSMISSIONS = PLAIN.scene(
    Sent(SMALL_CALL),
    Sent(replace(SMALL_CALL, retransmissions=1, flags=ASK)),
    Sent(SMALL_CALL),
    back(replace(RESULT, retransmissions=1)),  # repeats the number of the call: it is itself new
    back(replace(RESULT, retransmissions=1)),
    Sent(replace(SMALL_CALL, retransmissions=2, sequence=8)),  # sent before the capture began
    Sent(replace(SMALL_CALL, retransmissions=2)),
)


def test_retransmissions_are_marked() -> None:
    frames = RETRANSMISSIONS.frames()
    assert [frame["info"][0] for frame in frames] == [
        "call 7 slot 3 procedure 5, 1 bytes",
        "call 7 slot 3 procedure 5, 1 bytes, ask, retransmission 1",
        "call 7 slot 3 procedure 5, 1 bytes, retransmission",
        "result 7 slot 3, 0 bytes",
        "result 7 slot 3, 0 bytes, retransmission",
        "call 8 slot 3 procedure 5, 1 bytes, retransmission 2",
        "call 7 slot 3 procedure 5, 1 bytes, past",
    ]
    marked = [False, True, True, False, True, True, False]
    assert ["peregrine.retransmission" in frame for frame in frames] == marked
    assert ["peregrine.past" in frame for frame in frames] == [False] * 6 + [True]
    assert [frame.get("peregrine.original_frame") for frame in frames] == [None, ["1"], ["1"], None, ["4"], None, None]


PAIR = blast("call", [b"a" * 100, b"b" * 100])
LATE_IN_BLAST = PLAIN.scene(
    Sent(PAIR[0]), Sent(replace(PAIR[0], retransmissions=1)), Sent(replace(PAIR[1], retransmissions=1))
)


def test_a_packet_of_a_blast_that_goes_out_late_is_no_retransmission() -> None:
    assert ["peregrine.retransmission" in frame for frame in LATE_IN_BLAST.frames()] == [False, True, False]


FIRST_CONTACT = PLAIN.scene(
    Sent(Packet(incarnation=0, data=b"x")),
    back(Packet(type=TYPES["challenge"], message_bytes=1, packet_number=2), at_us=10),
    Sent(Packet(flags=COOKIE, data=b"x", retransmissions=1), at_us=20),
    back(Packet(type=TYPES["result"], retransmissions=1), at_us=30),
)


def test_a_call_repeated_for_a_challenge_is_no_loss() -> None:
    frames = FIRST_CONTACT.frames()
    values(frames[1], {"call_frame": "1", "time": "0.000010000"})
    values(frames[2], {"challenge_frame": "2"})
    values(frames[3], {"call_frame": "1", "time": "0.000030000"})
    assert [frame["expert"] for frame in frames] == [[]] * 4


# --- delegation -------------------------------------------------------------------------------------------------------


def token(address: bytes, *, sequence: int = 7, slot: int = 3, packet_bytes: int = 1408) -> bytes:
    return struct.pack("<32sIIQQII", address, 32, packet_bytes, CLIENT, sequence, slot, INCARNATION)


CALLER_HOST = "10.253.0.1"
"""One address for all scenes, since it is in the data too."""
CALLER_IP = IPv4Address(CALLER_HOST).packed
MAC = bytes.fromhex("02000000abcd")
TOKENS: dict[str, tuple[bytes, str, dict[str, str | None]]] = {
    "udp": (
        CALLER_IP + struct.pack(">H", 40000),
        f"{CALLER_HOST}:40000",
        {"port": "40000", "endpoint": None, "mac": None},
    ),
    "ip": (
        CALLER_IP + struct.pack(">I", CALLER),
        f"{CALLER_HOST} endpoint 0xa1b2c3d4",
        {"port": None, "endpoint": "0xa1b2c3d4", "mac": None},
    ),
    "xdp": (
        CALLER_IP + struct.pack(">I", CALLER + 1) + MAC,
        f"{CALLER_HOST} endpoint 0xa1b2c3d5 at 02:00:00:00:ab:cd",
        {"port": None, "endpoint": "0xa1b2c3d5", "mac": "02:00:00:00:ab:cd"},
    ),
}


def passed_on(wire: str) -> Scene:
    """Return a scene of a call, the call that passes it on, and the result from the other server."""
    address = TOKENS[wire][0]
    caller, first, second = address[4:8], struct.pack(">I", 21), struct.pack(">I", 22)
    way = replace(ON_IP if wire != "udp" else Sent(b""), source=CALLER_HOST)
    passed = Packet(client=0x55, sequence=1, slot=0, flags=DELEGATED, data=token(address) + b"args")
    result = Packet(type=TYPES["result"], flags=DELEGATED)
    return PLAIN.scene(
        replace(way, what=Packet(data=b"args"), prefix=first + caller),
        replace(way, what=passed, source="10.0.0.2", target="10.0.0.3", prefix=second + first, at_us=50),
        replace(way, target="10.0.0.3", prefix=second + caller).back(result, 90),
    )


PASSED_ON = {wire: passed_on(wire) for wire in TOKENS}


@pytest.mark.parametrize("wire", TOKENS)
def test_a_delegated_call_names_the_call_it_passes_on(wire: str) -> None:
    address, readable, parts = TOKENS[wire]
    frames = PASSED_ON[wire].frames()
    values(frames[0], {"result_frame": "3"})
    values(
        frames[1],
        {
            "token.address": ":".join(f"{byte:02x}" for byte in address.ljust(32, b"\0")),
            "token.address_bytes": "32",
            "token.packet_bytes": "1408",
            "token.client": "0x1122334455667788",
            "token.sequence": "7",
            "token.slot": "3",
            "token.incarnation": "0xcafe0001",
            "token.ip": CALLER_HOST,
            "delegated_frame": "1",
            "data": b"args".hex(),
        }
        | {f"token.{name}": value for name, value in parts.items()},
    )
    values(frames[2], {"call_frame": "1", "time": "0.000090000", "token": None})
    assert [frame["expert"] for frame in frames] == [[]] * 3
    line = f"Delegation token: call 7 slot 3 of client 0x1122334455667788 of {readable}\n"
    assert line in PASSED_ON[wire].trees()[1]


PIECES = token(b"\x01\x02") + b"args"
TOKEN_IN_PIECES = PLAIN.scene(
    *(Sent(replace(part, client=0x55)) for part in blast("call", [PIECES[:40], PIECES[40:]], DELEGATED))
)


def test_a_token_in_pieces_is_shown_with_the_whole_message() -> None:
    first, second = TOKEN_IN_PIECES.frames()
    values(first, {"token": None})
    values(second, {"token.sequence": "7", "token.address_bytes": "32"})


# --- what is wrong, and what is not ours ------------------------------------------------------------------------------


def with_data(kind: str, data: bytes, procedure: int = 0) -> bytes:
    return bytes(Packet(type=TYPES[kind], procedure=procedure, data=data))


WRONG: dict[str, tuple[bytes, str, str]] = {
    "version": (bytes(Packet(version=1)), "bad_version", "malformed: Version 1, not 2"),
    "type": (bytes(Packet(type=9)), "bad_type", "Unknown type 9"),
    "type 0": (bytes(Packet(type=0)), "bad_type", "Unknown type 0"),
    "flags": (bytes(Packet(flags=128)), "bad_flags", "Unknown flags 0x80"),
    "slot": (bytes(Packet(slot=64)), "bad_slot", "Slot 64: the last one is 63"),
    "sequence": (bytes(Packet(sequence=0)), "bad_sequence", "Sequence numbers begin at 1"),
    "nothing but a type": (b"\x01", "bad_length", "malformed: 1 bytes, but a header has 48"),
    "short header": (bytes(Packet())[:47], "bad_length", "malformed: 47 bytes, but a header has 48"),
    "no cookie": (bytes(Packet(flags=COOKIE))[:50], "bad_length", "Extensions end 6 bytes behind the packet"),
    "truncated data": (bytes(Packet(data=b"abcde"))[:-1], "bad_length", "5 bytes of data do not fit: 4 are there"),
    "bytes behind": (bytes(Packet()) + b"more", "bad_length", "4 bytes behind the packet"),
    "longer packet behind": (bytes(Packet()) + bytes(Packet(data=b"x")), "bad_length", "49 bytes behind the packet"),
    "wrong packet behind": (bytes(Packet()) + bytes(Packet(slot=64)), "bad_length", "48 bytes behind the packet"),
    "part of a packet behind": (bytes(Packet()) + bytes(Packet())[:47], "bad_length", "47 bytes behind the packet"),
    "data by far too long": (
        bytes(Packet(message_bytes=2**32 - 1, data_bytes=2**32 - 1, packet_bytes=2**32 - 1)),
        "bad_length",
        "4294967295 bytes of data do not fit: 0 are there",
    ),
    "message too long": (
        bytes(Packet(message_bytes=2**30 + 1, data=bytes(1400))),
        "bad_length",
        "Message of 1073741825 bytes: the longest has 1073741824",
    ),
    "too many packets": (
        bytes(Packet(message_bytes=2**30, packet_bytes=1, data=b"x")),
        "bad_length",
        "Message of 1073741824 packets: the longest has 1048576",
    ),
    "packets of nothing": (
        bytes(Packet(message_bytes=5, packet_bytes=0, data=b"abcde")),
        "bad_length",
        "Message of 5 bytes in packets of none",
    ),
    "number behind the end": (
        bytes(Packet(message_bytes=2800, packet_number=2, data=bytes(1400))),
        "bad_length",
        "Packet 2 of a message of 2",
    ),
    "number of a short message": (
        bytes(Packet(packet_number=1, data=b"x")),
        "bad_length",
        "Packet 1 of a message of 1",
    ),
    "short packet in the middle": (
        bytes(Packet(message_bytes=2800, data=bytes(1399))),
        "bad_length",
        "1399 bytes of data, but packet 0 of 2800 bytes by 1400 has 1400",
    ),
    "last packet too long": (
        bytes(Packet(message_bytes=1401, packet_number=1, data=b"xy")),
        "bad_length",
        "2 bytes of data, but packet 1 of 1401 bytes by 1400 has 1",
    ),
    "bitmap too long": (with_data("nack", bytes(65)), "bad_length", "Bitmap of 65 bytes: the longest has 64"),
    "failure without code": (with_data("reject", b"", FAILED), "bad_length", "0 bytes of data, but a code has 4"),
    "failure with more": (with_data("reject", bytes(5), FAILED), "bad_length", "5 bytes of data, but a code has 4"),
    "busy with a code": (
        with_data("reject", bytes(4), 3),
        "bad_length",
        "4 bytes of data in a packet of type reject, reason 3",
    ),
    "lost with a code": (
        with_data("reject", bytes(4), 7),
        "bad_length",
        "4 bytes of data in a packet of type reject, reason 7",
    ),
} | {
    f"{kind} with data": (with_data(kind, b"x"), "bad_length", f"1 bytes of data in a packet of type {kind}")
    for kind in ("ack", "probe", "alive", "challenge")
}
WRONG_KNOWN = {
    name: KNOWN.scene(Sent(data), replace(ON_IP, what=data), Sent(Packet(data=b"x")))
    for name, (data, _, _) in WRONG.items()
}
WRONG_UNKNOWN = PLAIN.scene(*(Sent(data) for data, _, _ in WRONG.values()))


@pytest.mark.parametrize("name", WRONG)
def test_malformed_packets_are_told_where_the_port_is_known(name: str) -> None:
    _, field, text = WRONG[name]
    *wrong, right = WRONG_KNOWN[name].frames()
    for frame in wrong:
        assert f"peregrine.{field}" in frame
        assert text in frame["expert"]
        assert "malformed" in frame["info"][0]
    assert right["expert"] == []  # and they leave no trace in what is known of calls


def test_malformed_packets_are_not_taken_for_ours_by_the_heuristic() -> None:
    for frame in WRONG_UNKNOWN.frames():
        assert not is_peregrine(frame)
        assert frame["expert"] == []


WRONG_AFTER_RIGHT = PLAIN.scene(Sent(Packet()), back(WRONG["flags"][0]))


def test_between_known_ends_malformed_packets_are_told_without_a_port() -> None:
    assert WRONG_AFTER_RIGHT.frames()[1]["expert"] == ["Unknown flags 0x80"]


OTHERS = PLAIN.scene(*map(Sent, (b"", b"hello", bytes(48), b"\x01" * 48, b"\xff" * 1400)))


def test_other_traffic_is_left_alone() -> None:
    for frame in OTHERS.frames():
        assert not is_peregrine(frame)


BEHIND = KNOWN.scene(Sent(WRONG["bytes behind"][0]), Sent(with_data("nack", b"\x01") + b"more"))


def test_bytes_behind_a_packet_are_shown() -> None:
    for frame in BEHIND.frames():
        values(frame, {"rest": b"more".hex()})


# A burst is captured on its own host as one large datagram.
LONG_DATA = bytes(range(256)) * 16
BURST = tuple(
    Packet(message_bytes=4096, packet_number=n, data=LONG_DATA[n * 1408 : (n + 1) * 1408], packet_bytes=1408)
    for n in range(3)
)
JOINED = PLAIN.scene(
    Sent(b"".join(map(bytes, BURST))),
    back(b"".join(bytes(replace(each, type=TYPES["result"])) for each in BURST[:2])),
    back(replace(BURST[2], type=TYPES["result"])),
    replace(ON_IP, what=bytes(Packet()) * 2),
)
JOINED_CUT = {
    keep: PLAIN.scene(Sent(b"".join(map(bytes, BURST)), keep=keep)) for keep in (48, 100, 1456, 1460, 1600, 2960)
}


def test_packets_joined_in_one_datagram_are_told_apart() -> None:
    call, begun, ended, on_ip = JOINED.frames()
    assert call["expert"] == begun["expert"] == ended["expert"] == []
    values(call, {"packet_number": ["0", "1", "2"], "whole.bytes": "4096", "result_frame": ["2"] * 3})
    values(call, {"whole": LONG_DATA.hex(), "whole.part": "1", "retransmission": None})
    assert call["info"] == ["call 7 slot 3 procedure 0, packet 0 of 3, 1408 bytes (and 2 more packets)"]
    values(begun, {"packet_number": ["0", "1"], "call_frame": ["1", "1"], "whole.frame": ["3", "3"], "whole": None})
    values(ended, {"whole": LONG_DATA.hex(), "whole.part": ["2", "3"]})
    assert "48 bytes behind the packet" in on_ip["expert"]  # nothing joins packets there


@pytest.mark.parametrize("keep", JOINED_CUT)
def test_joined_packets_of_a_capture_that_kept_only_the_beginning(keep: int) -> None:
    frame = JOINED_CUT[keep].frame()
    shown = ["0", "1", "2"][: 1 + (keep >= 2 * 1456 + 48) + (keep >= 1456 + 48)]
    values(frame, {"packet_number": shown, "bad_length": None})
    assert "peregrine.cut" in frame


PREFIXES: dict[str, tuple[Sent, str]] = {
    "none": (replace(ON_IP, prefix=b"\1"), "malformed: 1 bytes, but a prefix has 8"),
    "short": (replace(ON_IP, prefix=PREFIX[:7]), "malformed: 7 bytes, but a prefix has 8"),
    "nothing behind": (ON_IP, "malformed: 0 bytes, but a header has 48"),
    "to 0": (replace(ON_IP, what=Packet(), prefix=bytes(4) + PREFIX[4:]), "No endpoint has the number 0"),
    "from 0": (replace(ON_IP, what=Packet(), prefix=PREFIX[:4] + bytes(4)), "No endpoint has the number 0"),
}
BAD_PREFIX = {name: PLAIN.scene(sent) for name, (sent, _) in PREFIXES.items()}


@pytest.mark.parametrize("name", PREFIXES)
def test_what_is_wrong_with_a_prefix_is_told(name: str) -> None:
    assert BAD_PREFIX[name].frame()["expert"] == [PREFIXES[name][1]]


DELEGATED_CALL = Packet(flags=DELEGATED, client=0x55)
UNUSUAL: dict[str, tuple[Packet, str]] = {
    "call of a result": (Packet(flags=OF_RESULT), "A packet of type call is not of a result"),
    "reason 0": (rejected(0), "Unknown reason 0"),
    "reason 8": (rejected(8), "Unknown reason 8"),
    "code": (rejected(FAILED, -63), "Code -63: a procedure's own are -64 or below"),
    "no token": (DELEGATED_CALL, "A delegated call of 0 bytes: its token has 64"),
    "token's slot": (replace(DELEGATED_CALL, data=token(b"\1", slot=64)), "Slot 64: the last one is 63"),
    "token's sequence": (replace(DELEGATED_CALL, data=token(b"\1", sequence=0)), "Sequence numbers begin at 1"),
    "token's length": (
        replace(DELEGATED_CALL, data=token(b"\1")[:32] + struct.pack("<I", 33) + token(b"\1")[36:]),
        "Client address of 33 bytes: it has room for 32",
    ),
}
WARNED = {name: PLAIN.scene(Sent(packet)) for name, (packet, _) in UNUSUAL.items()}


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_no_sender_does_is_told(name: str) -> None:
    frame = WARNED[name].frame()
    assert UNUSUAL[name][1] in frame["expert"]
    assert "malformed" not in frame["info"][0]


def beginning(way: Sent, keep: int) -> Scene:
    """Return a scene of packets of which only so many bytes were captured."""
    call = Packet(flags=COOKIE, data=token(b"\x01") + b"args")
    packets = (call, replace(call, flags=COOKIE | DELEGATED), Packet(type=TYPES["nack"], data=b"\xff" * 64))
    # each between ends of its own: where one was recognised, the next is known by its port
    return PLAIN.scene(
        *(replace(way, what=each, keep=keep, target=f"10.0.0.{n + 2}") for n, each in enumerate(packets))
    )


KEPT = (1, 20, 48, 52, 60, 100)
BEGINNINGS_UDP = {keep: beginning(Sent(b""), keep) for keep in KEPT}
BEGINNINGS_IP = {keep: beginning(ON_IP, keep) for keep in (-7, -1, 0, *KEPT)}


@pytest.mark.parametrize("keep", BEGINNINGS_IP)
def test_a_capture_that_kept_only_the_beginning(keep: int) -> None:
    for frame in BEGINNINGS_UDP[keep].frames() if keep in KEPT else []:
        assert is_peregrine(frame) == (keep >= 48)  # less than a header says nothing
    for frame in BEGINNINGS_IP[keep].frames():
        assert "peregrine.cut" in frame
        assert not any(name.startswith("peregrine.bad") for name in frame)


def thrown() -> list[Sent]:
    """Return packets by the dice, some of them nearly right."""
    dice = random.Random(1993)
    sent: list[Sent] = []
    for _ in range(1500):
        data = dice.choice((b"", token(bytes(range(6)).ljust(32, b"\0")), token(b"\x01" * 9), dice.randbytes(70)))
        flags = dice.randrange(128)
        number = dice.randrange(1, 9)
        packet = bytearray(bytes(Packet(type=number, flags=flags, sequence=dice.randrange(4), slot=0, data=data)))
        for _ in range(dice.choice((0, 0, 1, 3))):
            packet[dice.randrange(len(packet))] = dice.choice((0, 1, 2, 64, 255))
        whole = bytes(packet[: dice.randrange(len(packet) + 1)] if dice.random() < 0.2 else packet)
        keep = dice.randrange(len(whole) + 1) if dice.random() < 0.2 else None
        prefix = PREFIX if dice.random() < 0.9 else dice.randbytes(dice.randrange(9))
        sent.append(Sent(whole, source_port=dice.choice((0, 40000)), prefix=prefix, keep=keep))
    return sent


DICE = KNOWN.scene(*thrown())


def test_nothing_that_comes_makes_the_script_fail() -> None:
    assert len(DICE.frames()) == len(DICE.trees()) == 1500  # the script did not fail, or there would be neither
    assert sum("Peregrine: " in tree for tree in DICE.trees()) > 1000


IN_ICMP = PLAIN.scene(Sent(Packet(data=b"x")), Sent(Packet(data=b"x"), in_icmp=True))


def test_the_copy_within_an_icmp_error_is_no_retransmission() -> None:
    copy = IN_ICMP.frames()[1]
    values(copy, {"original_frame": None, "sequence": "7"})
    assert "peregrine.retransmission" not in copy


# --- captured traffic -------------------------------------------------------------------------------------------------

ECHO, FAIL, PASS_ON, NOWHERE = range(1, 5)
CALLS = 20
LONG = 100_000
WIRES = ("udp", "udp, IPv6", "ip")


def tap(source: str) -> socket.socket:
    """Return a socket that gets each frame that an address sends over the loopback interface."""
    everything, attach_filter = 3, 26  # ETH_P_ALL, SO_ATTACH_FILTER
    load_half, load_word, jump_if_equal, give = 0x28, 0x20, 0x15, 0x06
    kind, at = (0x86DD, 22) if ":" in source else (0x0800, 26)
    words = struct.unpack(f">{4 if ':' in source else 1}I", ip_address(source).packed)
    steps = [(load_half, 0, 0, 12), (jump_if_equal, 0, 2 * len(words) + 1, kind)]
    for number, word in enumerate(words):
        left = 2 * (len(words) - number) - 1
        steps += [(load_word, 0, 0, at + 4 * number), (jump_if_equal, 0, left, word)]
    steps += [(give, 0, 0, 1 << 18), (give, 0, 0, 0)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # gets nothing before it is bound
    found.setsockopt(socket.SOL_SOCKET, attach_filter, struct.pack("HP", len(steps), ctypes.addressof(program)))
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    found.bind(("lo", everything))
    return found


def taken(tapped: socket.socket) -> list[bytes]:
    """Return the frames that wait in a tap; the loopback interface has put them there when it sent them."""
    outgoing = 4  # PACKET_OUTGOING: each frame is seen twice, as it leaves and as it arrives
    frames: list[bytes] = []
    tapped.setblocking(False)
    while True:
        try:
            frame, (_, _, kind, *_) = tapped.recvfrom(1 << 18)
        except BlockingIOError:
            return frames
        if kind != outgoing:
            frames.append(frame)


def traffic(pgr: ModuleType, wire: str, tapped: socket.socket, address: str) -> dict[str, list[bytes]]:
    """Return frames of the engine's own packets, by what was called."""
    results: list[Any] = []
    scenes: dict[str, list[bytes]] = {}
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(pgr.Endpoint(wire, address)) for _ in range(3)]
        client, server, back = ends
        onward = server.bind(back.address)
        back.trust(server.address)

        def fail(_arguments: bytes) -> bytes:
            raise pgr.Error(-70)

        for each in (server, back):
            each.serve(ECHO, bytes)
            each.serve(FAIL, fail)
        server.serve(PASS_ON, lambda arguments: pgr.PassOn(onward, ECHO, arguments))
        peer = client.bind(server.address)
        ports = {int(each.address.rpartition(":")[2]) for each in ends} if wire == "udp" else set()

        def call(scene: str, procedure: int, arguments: bytes, times: int = 1) -> list[Any]:
            for number in range(times):
                peer.start(procedure, arguments, results.append)
                pgr.poll_all(ends, lambda expected=number + 1: len(results) == expected)
            idle = time.monotonic() + 0.05  # longer than an ack waits
            pgr.poll_all(ends, lambda: time.monotonic() > idle)
            frames = taken(tapped)
            at = 54 if ":" in address else 34
            scenes[scene] = [
                frame for frame in frames if not ports or ports >= set(struct.unpack_from(">HH", frame, at))
            ]
            ended = results.copy()
            results.clear()
            return ended

        assert call("short", ECHO, b"falcon", CALLS) == [b"falcon"] * CALLS
        assert call("long", ECHO, bytes(LONG)) == [bytes(LONG)]
        assert call("failed", FAIL, b"")[0].code == -70
        assert str(call("no procedure", NOWHERE, b"")[0]) == "no such procedure"
        assert call("passed on", PASS_ON, b"falcon") == [b"falcon"]
        assert call("passed on, long", PASS_ON, bytes(LONG)) == [bytes(LONG)]
    return scenes


@pytest.fixture(scope="module")
def captured(pgr: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[Frame]]]:
    """Return what is shown of the engine's packets over each wire, by what was called; all of one capture."""
    address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"  # nobody else's
    scenes: list[tuple[str, str, list[bytes]]] = []
    for wire in WIRES:
        at = "::1" if "IPv6" in wire else address
        if at == "::1" and not Path("/proc/net/if_inet6").exists():
            continue
        try:
            tapped = tap(at)
        except PermissionError:
            pytest.skip("capturing needs CAP_NET_RAW")
        with tapped:
            scenes += [(wire, *scene) for scene in traffic(pgr, wire.partition(",")[0], tapped, at).items()]
    pcap = tmp_path_factory.mktemp("captured") / "engine.pcap"
    frames = [frame for *_, frames in scenes for frame in frames]
    write_pcap(pcap, [(number, frame, len(frame)) for number, frame in enumerate(frames)])
    shown = [frame | {"number": [str(number)]} for number, frame in enumerate(dissect(pcap), start=1)]
    assert len(shown) == len(frames)
    found: dict[str, dict[str, list[Frame]]] = {wire: {} for wire in WIRES}
    for wire, scene, sent in scenes:
        found[wire][scene], shown = shown[: len(sent)], shown[len(sent) :]
    return found


def scene_of(captured: dict[str, dict[str, list[Frame]]], wire: str, scene: str) -> list[Frame]:
    if not captured[wire]:
        pytest.skip("no IPv6 here")
    return captured[wire][scene]


def of_type(frames: Sequence[Frame], name: str) -> list[Frame]:
    return [frame for frame in frames if set(frame["peregrine.type"]) == {str(TYPES[name])}]


def which(frame: Frame) -> tuple[str, str, str]:
    """Return which call a packet belongs to."""
    client, slot, sequence = (frame[f"peregrine.{name}"][0] for name in ("client", "slot", "sequence"))
    return client, slot, sequence


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.long
def test_captured_traffic_of_the_engine(captured: dict[str, dict[str, list[Frame]]], wire: str) -> None:
    scene_of(captured, wire, "short")
    odd = ("peregrine.bad", "peregrine.odd", "peregrine.cut", "peregrine.past", "peregrine.rest")
    for frames in captured[wire].values():
        assert frames
        for frame in frames:
            assert is_peregrine(frame), frame
            assert not any(name.startswith(odd) for name in frame), frame["info"]


@pytest.mark.parametrize("wire", WIRES)
def test_captured_short_calls(captured: dict[str, dict[str, list[Frame]]], wire: str) -> None:
    frames = scene_of(captured, wire, "short")
    calls, results = of_type(frames, "call"), of_type(frames, "result")
    assert len({which(call) for call in calls}) == len({which(result) for result in results}) == CALLS
    assert {frame["peregrine.procedure"][0] for frame in calls} == {str(ECHO)}
    assert {frame["peregrine.client"][0] for frame in frames} == {frames[0]["peregrine.client"][0]}

    first = {which(call): call["number"] for call in reversed(calls)}
    for result in results:
        assert result["peregrine.call_frame"] == first[which(result)]
    answered = {which(result): result["number"] for result in reversed(results)}
    for call in calls:
        assert call["peregrine.result_frame"] == answered[which(call)]


@pytest.mark.parametrize("wire", WIRES)
def test_captured_first_contact(captured: dict[str, dict[str, list[Frame]]], wire: str) -> None:
    frames = scene_of(captured, wire, "short")
    challenge = of_type(frames, "challenge")[0]
    values(frames[0], {"type": str(TYPES["call"]), "incarnation": "0x00000000", "sequence": "1", "cookie": None})
    values(challenge, {"claimed": "0x00000000", "call_frame": frames[0]["number"]})
    repeated = next(frame for frame in of_type(frames, "call") if "peregrine.challenge_frame" in frame)
    values(repeated, {"cookie": challenge["peregrine.cookie"], "challenge_frame": challenge["number"]})
    assert repeated["peregrine.incarnation"] == challenge["peregrine.incarnation"]


@pytest.mark.parametrize("scene", ["long", "passed on, long"])
@pytest.mark.parametrize("wire", WIRES)
def test_captured_long_messages(captured: dict[str, dict[str, list[Frame]]], wire: str, scene: str) -> None:
    frames = scene_of(captured, wire, scene)
    whole: dict[str, list[int]] = {"call": [], "result": []}
    for kind, lengths in whole.items():
        for frame in of_type(frames, kind):
            lengths += map(int, frame.get("peregrine.whole.bytes", []))
        first = of_type(frames, kind)[0]
        packets = {
            int(number)
            for frame in of_type(frames, kind)
            if frame["peregrine.client"][0] == first["peregrine.client"][0]
            for number in frame["peregrine.packet_number"]
        }
        assert packets == set(range(int(first["peregrine.packets"][0])))
        assert len(packets) > 1
    assert whole == {"call": [LONG] if scene == "long" else [LONG, LONG + 64], "result": [LONG]}


@pytest.mark.parametrize("wire", WIRES)
def test_captured_rejects(captured: dict[str, dict[str, list[Frame]]], wire: str) -> None:
    failed = scene_of(captured, wire, "failed")
    values(of_type(failed, "reject")[0], {"reason": str(FAILED), "code": "-70", "call_frame": failed[0]["number"]})
    unknown = captured[wire]["no procedure"]
    values(of_type(unknown, "reject")[0], {"reason": "1", "code": None, "call_frame": unknown[0]["number"]})


@pytest.mark.parametrize("wire", WIRES)
def test_captured_calls_that_are_passed_on(captured: dict[str, dict[str, list[Frame]]], wire: str) -> None:
    frames = scene_of(captured, wire, "passed on")
    call = frames[0]
    passed = next(frame for frame in of_type(frames, "call") if frame["peregrine.flags.delegated"] == ["1"])
    assert passed["peregrine.delegated_frame"] == call["number"]
    assert passed["peregrine.token.client"] == call["peregrine.client"]
    results = [frame for frame in of_type(frames, "result") if "peregrine.data" in frame]
    assert {which(result) for result in results} == {which(call)}  # the front gets an empty one
    values(results[0], {"call_frame": call["number"], "data": b"falcon".hex()})


def test_captured_endpoints_have_the_same_numbers_throughout(captured: dict[str, dict[str, list[Frame]]]) -> None:
    frames = [frame for scene in ("short", "long", "failed") for frame in captured["ip"][scene]]
    ends = {frozenset((frame["peregrine.source"][0], frame["peregrine.destination"][0])) for frame in frames}
    (pair,) = ends
    assert len(pair) == 2
    client, server = (frames[0][f"peregrine.{name}"] for name in ("source", "destination"))
    for frame in of_type(frames, "result"):
        assert (frame["peregrine.source"], frame["peregrine.destination"]) == (server, client)
