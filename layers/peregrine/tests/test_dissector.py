# SPDX-License-Identifier: BSD-3-Clause
"""Wireshark's dissector of the Peregrine protocol shows what was put into a capture, and says what is wrong with it."""

from __future__ import annotations

import contextlib
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
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("CADGE_BUILD", ROOT / "build"))
SCRIPT = ROOT / "layers/peregrine/engine/wireshark/peregrine.lua"
ECHO = BUILD / "bin/pgr-echo"
ECHO_ARGUMENTS: tuple[str, ...] = ()
"""What makes it call itself over UDP on the loopback interface, then end."""

TYPES = {"call": 1, "result": 2, "ack": 3, "nack": 4, "probe": 5, "alive": 6, "challenge": 7, "reject": 8}
ASK, COOKIE, BIG_ENDIAN, WORDS, DELEGATED, KEYED, OF_RESULT = (1 << bit for bit in range(7))
CLIENT = 0x1122334455667788
INCARNATION = 0xCAFE0001
COOKIE_VALUE = 0x8877665544332211
NOBODY = "65534"

Frame = dict[str, list[str]]
"""What a frame shows: names of fields, each with its values in the order of the tree; also "info" and "expert"."""


# --- packets and captures ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet; what is not given is right for a call of one packet."""

    type: int = TYPES["call"]
    flags: int = 0
    version: int = 1
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
    target_port: int = 18700
    at_us: int = 0
    keep: int | None = None  # bytes of the packet that the capture kept

    def frame(self) -> bytes:
        """Return the whole frame, with its Ethernet header."""
        data = bytes(self.what)
        protocol = 17 if self.source_port else 253
        address = IPv6Address if ":" in self.source else IPv4Address
        ends = address(self.source).packed + address(self.target).packed
        if self.source_port:
            head = struct.pack(">HHH", self.source_port, self.target_port, 8 + len(data))
            words = ends + struct.pack(">HH", 17, 8 + len(data)) + head + data + bytes(len(data) % 2)
            total = sum(struct.unpack(f">{len(words) // 2}H", words))
            data = head + struct.pack(">H", -total % 0xFFFF or 0xFFFF) + data
        if ":" in self.source:
            return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(data), protocol, 64) + ends + data
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(data), 0, 0, 64, protocol, 0)
        return bytes(12) + b"\x08\x00" + head + ends + data


def write_pcap(path: Path, frames: Sequence[tuple[int, bytes, int]]) -> Path:
    """Write frames (time in us, what was captured, bytes of the whole frame) as a capture of an Ethernet interface."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
    for at_us, kept, whole_bytes in frames:
        out += (
            struct.pack("<IIII", 1_700_000_000 + at_us // 1_000_000, at_us % 1_000_000, len(kept), whole_bytes) + kept
        )
    path.write_bytes(out)
    return path


def capture_of(path: Path, *sent: Sent) -> Path:
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


def shown(tmp_path: Path, *sent: Sent, options: Sequence[str] = ()) -> list[Frame]:
    """Dissect what was sent."""
    return dissect(capture_of(tmp_path / "sent.pcap", *sent), *options)


def values(frame: Frame, expected: Mapping[str, str | list[str] | None]) -> None:
    """Check fields of a frame, named without "peregrine."; None: the field is absent."""
    found = {name: frame.get(f"peregrine.{name}") for name in expected}
    assert found == {name: [each] if isinstance(each, str) else each for name, each in expected.items()}


def is_peregrine(frame: Frame) -> bool:
    return "peregrine.type" in frame


def back(what: Packet | bytes, at_us: int = 0) -> Sent:
    """Return a packet from the server to the client."""
    return Sent(what, "10.0.0.2", "10.0.0.1", 18700, 40000, at_us)


# --- the header -------------------------------------------------------------------------------------------------------

WAYS = {
    "udp": Sent(b""),
    "ip": Sent(b"", source_port=0, target_port=0),
    "udp over IPv6": Sent(b"", source="fd00::1", target="fd00::2"),
    "ip, version 6": Sent(b"", source="fd00::1", target="fd00::2", source_port=0, target_port=0),
}


DATA = {"call": b"hello", "result": b"hello", "nack": b"\x05"}
PROCEDURE = {"reject": 3, "challenge": 0xABCD}


@pytest.mark.parametrize("way", WAYS)
def test_every_type_over_every_way(tmp_path: Path, way: str) -> None:
    packets = {
        name: Packet(type=number, procedure=PROCEDURE.get(name, 0), data=DATA.get(name, b""), credits=17)
        for name, number in TYPES.items()
    }
    frames = shown(tmp_path, *(replace(WAYS[way], what=packet) for packet in packets.values()))
    for name, frame in zip(TYPES, frames, strict=True):
        values(
            frame,
            {
                "type": str(TYPES[name]),
                "version": "1",
                "retransmissions": "0",
                "slot": "3",
                "credits": "17",
                "client": "0x1122334455667788",
                "sequence": "7",
                "incarnation": "0xcafe0001",
                "data_bytes": str(len(packets[name].data)),
                "packet_bytes": "1400",
                "data": b"hello".hex() if name in ("call", "result") else None,
            },
        )
        assert frame["info"][0].startswith(f"{name} 7 slot 3")
        if name == "challenge":
            values(frame, {"claimed": "0x0000abcd", "procedure": None, "message_bytes": None, "packet_number": None})
        elif name == "reject":
            values(frame, {"reason": "3", "procedure": None})
        else:
            message_bytes = str(len(packets[name].data))
            values(frame, {"procedure": "0", "message_bytes": message_bytes, "packet_number": "0"})
        assert frame["expert"] == (["Call rejected: busy, try again"] if name == "reject" else [])


def test_each_flag_alone(tmp_path: Path) -> None:
    flags = ("ask", "cookie", "big_endian", "words", "delegated", "keyed", "of_result")
    frames = shown(tmp_path, *(Sent(Packet(flags=1 << bit)) for bit in range(len(flags))))
    for bit, frame in enumerate(frames):
        values(frame, {"flags": f"0x{1 << bit:02x}", "flags.unknown": None})
        values(frame, {f"flags.{name}": "1" if name == flags[bit] else "0" for name in flags})


def test_extensions_lie_between_header_and_data(tmp_path: Path) -> None:
    both = Packet(flags=COOKIE | KEYED, data=b"\xaa\xbb")
    frames = shown(tmp_path, Sent(both), Sent(replace(both, flags=KEYED, sequence=8)))
    values(frames[0], {"cookie": "0x8877665544332211", "check": "0001020304050607", "data": "aabb"})
    values(frames[1], {"cookie": None, "check": "0001020304050607", "data": "aabb"})


def test_the_cookie_of_a_challenge_is_put_together(tmp_path: Path) -> None:
    challenge = Packet(type=TYPES["challenge"], message_bytes=0x44332211, packet_number=0x88776655)
    (frame,) = shown(tmp_path, back(challenge))
    values(frame, {"cookie": "0x8877665544332211"})
    assert frame["info"] == ["challenge 7 slot 3, incarnation 0xcafe0001, claimed 0x00000000"]


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (1, "no such procedure"),
        (2, "bad version"),
        (3, "busy, try again"),
        (4, "too large"),
        (5, "not authorised"),
        (6, "failed by the procedure"),
    ],
)
def test_reasons_of_a_reject(tmp_path: Path, reason: int, text: str) -> None:
    data = struct.pack("<i", -70) if reason == 6 else b""
    (frame,) = shown(tmp_path, back(Packet(type=TYPES["reject"], procedure=reason, data=data)))
    assert frame["info"] == [f"reject 7 slot 3, {text}"]
    values(frame, {"reason": str(reason), "code": "-70" if reason == 6 else None})
    assert f"Reason: {text} ({reason})" in tshark(tmp_path / "sent.pcap", "-V")


def test_names_and_units_of_the_tree(tmp_path: Path) -> None:
    pcap = capture_of(tmp_path / "tree.pcap", Sent(Packet(flags=ASK | WORDS, procedure=5, credits=1, data=b"abc")))
    tree = tshark(pcap, "-V")
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


def test_a_message_of_several_packets_is_put_together(tmp_path: Path) -> None:
    first, second, third = blast("call", [b"a" * 100, b"b" * 100, b"c" * 30])
    frames = shown(tmp_path, Sent(first), Sent(third), Sent(second), Sent(replace(second, retransmissions=1)))
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


def test_messages_are_not_put_together_where_that_is_switched_off_or_too_long(tmp_path: Path) -> None:
    packets = [Sent(packet) for packet in blast("result", [b"a" * 60000] * 18)]
    assert "peregrine.whole" in shown(tmp_path, *packets)[-1]
    for option in ("peregrine.reassemble:FALSE", "peregrine.reassemble_mib:1"):
        assert "peregrine.whole" not in shown(tmp_path, *packets, options=["-o", option])[-1]


def test_an_incomplete_message_stays_in_pieces(tmp_path: Path) -> None:
    first, _, third = blast("result", [b"a" * 100, b"b" * 100, b"c"])
    for frame in shown(tmp_path, back(first), back(third)):
        values(frame, {"whole": None, "whole.frame": None})
        assert frame["expert"] == []


def test_an_empty_message_is_one_packet(tmp_path: Path) -> None:
    (frame,) = shown(tmp_path, Sent(Packet(packet_bytes=0)))
    values(frame, {"packets": "1", "data": None})
    assert frame["info"] == ["call 7 slot 3 procedure 0, 0 bytes"]


@pytest.mark.parametrize(
    ("bitmap", "missing", "arrived", "text"),
    [
        (b"", [4], [], "4"),
        (b"\x00", [4], [], "4"),
        (b"\x01", [4], [5], "4"),
        (b"\x86", [4, 5, 8, 9, 10, 11], [6, 7, 12], "4-5, 8-11"),  # 10000110
        (b"\x00\x02\x00", [4, *range(5, 14)], [14], "4-13"),
        (b"\xff" * 64, [4], list(range(5, 517)), "4"),
        (b"\xaa" * 64, [4, *range(5, 516, 2)], list(range(6, 517, 2)), "4-5, 7, 9, 11, 13, 15, 17, 19, ..."),
    ],
)
def test_the_bitmap_of_a_nack(tmp_path: Path, bitmap: bytes, missing: list[int], arrived: list[int], text: str) -> None:
    nack = Packet(type=TYPES["nack"], packet_number=4, message_bytes=0, data=bitmap)
    (frame,) = shown(tmp_path, back(nack))
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


def test_answers_name_the_frame_of_their_call_and_the_time_since(tmp_path: Path) -> None:
    call = Packet(data=b"x", procedure=5)
    frames = shown(
        tmp_path,
        Sent(call, at_us=1_000),
        Sent(replace(call, slot=4), at_us=1_500),
        back(replace(call, type=TYPES["alive"], data=b""), at_us=2_000),
        back(replace(call, type=TYPES["result"], slot=4), at_us=2_500),
        back(replace(call, type=TYPES["result"]), at_us=1_004_250),
        Sent(Packet(type=TYPES["ack"], flags=OF_RESULT, packet_number=1), at_us=1_005_000),
        back(replace(call, type=TYPES["result"], sequence=99), at_us=1_006_000),
    )
    values(frames[0], {"result_frame": "5", "call_frame": None})
    values(frames[1], {"result_frame": "4"})
    values(frames[2], {"call_frame": "1", "time": "0.001000000"})
    values(frames[3], {"call_frame": "2", "time": "0.001000000"})
    values(frames[4], {"call_frame": "1", "time": "1.003250000"})
    assert frames[5]["info"] == ["ack 7 slot 3, result has arrived"]
    values(frames[6], {"call_frame": None, "time": None})  # its call was not captured


def test_answers_find_their_call_in_one_pass_too(tmp_path: Path) -> None:
    call = Packet(data=b"x")
    pcap = capture_of(tmp_path / "once.pcap", Sent(call), back(replace(call, type=TYPES["result"]), at_us=30))
    out = tshark(pcap, "-T", "fields", "-e", "peregrine.call_frame", "-e", "peregrine.time", "-Y", "peregrine.time")
    assert out == "1\t0.000030000\n"


@pytest.mark.parametrize(
    ("name", "flags", "text"),
    [
        ("ack", 0, "packets below 4 of the call have arrived"),
        ("ack", OF_RESULT, "packets below 4 of the result have arrived"),
        ("ack", OF_RESULT | DELEGATED, "packets below 4 of the result have arrived, delegated"),
        ("nack", 0, "missing 4-5 of the call"),
        ("nack", OF_RESULT, "missing 4-5 of the result"),
    ],
)
def test_whose_packets_are_acknowledged(tmp_path: Path, name: str, flags: int, text: str) -> None:
    data = b"\x02" if name == "nack" else b""
    (frame,) = shown(tmp_path, Sent(Packet(type=TYPES[name], flags=flags, packet_number=4, data=data)))
    assert frame["info"] == [f"{name} 7 slot 3, {text}"]
    assert frame["expert"] == []


def test_an_ack_of_a_part_of_the_result_is_told_from_that_of_the_whole(tmp_path: Path) -> None:
    ack = Packet(type=TYPES["ack"], flags=OF_RESULT, packet_number=1)
    results = blast("result", [b"a" * 100, b"b"])
    sent = [Sent(Packet()), *map(back, results), Sent(ack), Sent(replace(ack, packet_number=2))]
    frames = shown(tmp_path, *sent)
    assert frames[3]["info"] == ["ack 7 slot 3, packets below 1 of the result have arrived"]
    assert frames[4]["info"] == ["ack 7 slot 3, result has arrived"]
    (alone,) = shown(tmp_path, sent[4])  # whether there are more is not known
    assert alone["info"] == ["ack 7 slot 3, packets below 2 of the result have arrived"]


def test_retransmissions_are_marked(tmp_path: Path) -> None:
    call, result = Packet(data=b"x", procedure=5), Packet(type=TYPES["result"])
    frames = shown(
        tmp_path,
        Sent(call),
        Sent(replace(call, retransmissions=1, flags=ASK)),
        Sent(call),
        back(replace(result, retransmissions=1)),  # repeats the number of the call: it is itself new
        back(replace(result, retransmissions=1)),
        Sent(replace(call, retransmissions=2, sequence=8)),  # sent before the capture began
        Sent(replace(call, retransmissions=2)),
    )
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


def test_a_packet_of_a_blast_that_goes_out_late_is_no_retransmission(tmp_path: Path) -> None:
    first, second = blast("call", [b"a" * 100, b"b" * 100])
    frames = shown(
        tmp_path, Sent(first), Sent(replace(first, retransmissions=1)), Sent(replace(second, retransmissions=1))
    )
    assert ["peregrine.retransmission" in frame for frame in frames] == [False, True, False]


def test_a_call_repeated_for_a_challenge_is_no_loss(tmp_path: Path) -> None:
    call = Packet(incarnation=0, data=b"x")
    frames = shown(
        tmp_path,
        Sent(call),
        back(Packet(type=TYPES["challenge"], message_bytes=1, packet_number=2), at_us=10),
        Sent(replace(call, flags=COOKIE, incarnation=INCARNATION, retransmissions=1), at_us=20),
        back(Packet(type=TYPES["result"], retransmissions=1), at_us=30),
    )
    values(frames[1], {"call_frame": "1", "time": "0.000010000"})
    values(frames[2], {"challenge_frame": "2"})
    values(frames[3], {"call_frame": "1", "time": "0.000030000"})
    assert [frame["expert"] for frame in frames] == [[]] * 4


def token(address: bytes, client: int = CLIENT, sequence: int = 7, slot: int = 3) -> bytes:
    return struct.pack("<32sIIQQII", address, len(address), BIG_ENDIAN, client, sequence, slot, INCARNATION)


def test_a_delegated_call_names_the_call_it_passes_on(tmp_path: Path) -> None:
    address = (IPv4Address("10.0.0.1").packed + struct.pack(">H", 40000)).ljust(32, b"\0")
    passed = Packet(client=0x55, sequence=1, slot=0, flags=DELEGATED, data=token(address) + b"args")
    frames = shown(
        tmp_path,
        Sent(Packet(data=b"args")),
        Sent(passed, "10.0.0.2", "10.0.0.3", 18700, 18700, 50),
        Sent(Packet(type=TYPES["result"], flags=DELEGATED), "10.0.0.3", "10.0.0.1", 18700, 40000, 90),
    )
    values(
        frames[1],
        {
            "token.address": ":".join(f"{byte:02x}" for byte in address),
            "token.address_bytes": "32",
            "token.flags": "0x00000004",
            "token.client": "0x1122334455667788",
            "token.sequence": "7",
            "token.slot": "3",
            "token.incarnation": "0xcafe0001",
            "delegated_frame": "1",
            "data": b"args".hex(),
        },
    )
    values(frames[2], {"call_frame": "1", "time": "0.000090000", "token": None})
    tree = tshark(tmp_path / "sent.pcap", "-V")
    assert "Delegation token: call 7 slot 3 of client 0x1122334455667788 at 10.0.0.1:40000" in tree


def test_a_token_in_pieces_is_shown_with_the_whole_message(tmp_path: Path) -> None:
    data = token(b"\x01\x02") + b"args"
    parts = blast("call", [data[:40], data[40:]], DELEGATED)
    frames = shown(tmp_path, *(Sent(replace(part, client=0x55)) for part in parts))
    values(frames[0], {"token": None})
    values(frames[1], {"token.sequence": "7", "token.address_bytes": "2"})


# --- what is wrong, and what is not ours ------------------------------------------------------------------------------

WRONG: dict[str, tuple[bytes, str, str]] = {
    "version": (bytes(Packet(version=2)), "bad_version", "malformed: Version 2, not 1"),
    "type": (bytes(Packet(type=9)), "bad_type", "Unknown type 9"),
    "type 0": (bytes(Packet(type=0)), "bad_type", "Unknown type 0"),
    "flags": (bytes(Packet(flags=128)), "bad_flags", "Unknown flags 0x80"),
    "slot": (bytes(Packet(slot=64)), "bad_slot", "Slot 64: the last one is 63"),
    "nothing but a type": (b"\x01", "bad_length", "malformed: 1 bytes, but a header has 48"),
    "short header": (bytes(Packet())[:47], "bad_length", "malformed: 47 bytes, but a header has 48"),
    "no cookie": (bytes(Packet(flags=COOKIE))[:50], "bad_length", "Extensions end 6 bytes behind the packet"),
    "truncated data": (bytes(Packet(data=b"abcde"))[:-1], "bad_length", "5 bytes of data do not fit: 4 are there"),
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
}


@pytest.mark.parametrize("name", WRONG)
def test_malformed_packets_are_told_where_the_port_is_known(tmp_path: Path, name: str) -> None:
    data, field, text = WRONG[name]
    right = Packet(data=b"x")
    frames = shown(
        tmp_path,
        Sent(data),
        Sent(data, source_port=0, target_port=0),
        Sent(right),
        options=["-o", "peregrine.udp_port:18700"],
    )
    for frame in frames[:2]:
        assert f"peregrine.{field}" in frame
        assert text in frame["expert"]
        assert "malformed" in frame["info"][0]
    assert frames[2]["expert"] == []  # and they leave no trace in what is known of calls


def test_malformed_packets_are_not_taken_for_ours_by_the_heuristic(tmp_path: Path) -> None:
    for frame in shown(tmp_path, *(Sent(data) for data, _, _ in WRONG.values())):
        assert not is_peregrine(frame)
        assert frame["expert"] == []


def test_between_known_ends_malformed_packets_are_told_without_a_port(tmp_path: Path) -> None:
    frames = shown(tmp_path, Sent(Packet()), back(WRONG["flags"][0]))
    assert frames[1]["expert"] == ["Unknown flags 0x80"]


def test_other_traffic_is_left_alone(tmp_path: Path) -> None:
    others = (b"", b"hello", bytes(48), b"\x01" * 48, b"\xff" * 1400, bytes(Packet()) + b"more")
    for frame in shown(tmp_path, *map(Sent, others)):
        assert not is_peregrine(frame)


def test_bytes_behind_a_packet_are_told(tmp_path: Path) -> None:
    (frame,) = shown(tmp_path, Sent(bytes(Packet()) + b"more", source_port=0, target_port=0))
    values(frame, {"rest": b"more".hex()})
    assert frame["expert"] == ["4 bytes behind the packet"]


@pytest.mark.parametrize(
    ("packet", "text"),
    [
        (Packet(type=TYPES["probe"], data=b"x"), "A packet of type probe with 1 bytes of data"),
        (Packet(type=TYPES["nack"], data=bytes(65)), "A bitmap has at most 64 bytes"),
        (Packet(sequence=0), "Sequence numbers begin at 1"),
        (Packet(flags=OF_RESULT), "A packet of type call is not of a result"),
        (Packet(type=TYPES["reject"], procedure=7), "Unknown reason 7"),
    ],
)
def test_what_no_sender_does_is_told(tmp_path: Path, packet: Packet, text: str) -> None:
    (frame,) = shown(tmp_path, Sent(packet))
    assert text in frame["expert"]
    assert "malformed" not in frame["info"][0]


def test_several_packets_in_a_datagram_are_all_shown(tmp_path: Path) -> None:
    packets = blast("call", [b"a" * 100, b"b" * 100, b"c"])
    (frame,) = shown(tmp_path, Sent(b"".join(map(bytes, packets))))
    values(frame, {"packet_number": ["0", "1", "2"], "whole.bytes": "201"})
    assert frame["expert"] == ["3 packets in one datagram: segmentation offload"]


@pytest.mark.parametrize("keep", [1, 20, 48, 52, 60, 100])
def test_a_capture_that_kept_only_the_beginning(tmp_path: Path, keep: int) -> None:
    packet = Packet(flags=COOKIE, data=token(b"\x01") + b"args")
    for each in (packet, replace(packet, flags=COOKIE | DELEGATED), Packet(type=TYPES["nack"], data=b"\xff" * 64)):
        frames = shown(tmp_path, Sent(each, keep=keep), Sent(each, keep=keep, source_port=0, target_port=0))
        assert is_peregrine(frames[0]) == (keep >= 48)  # less than a header says nothing
        assert "peregrine.cut" in frames[1]
        assert not any(name.startswith("peregrine.bad") for name in frames[1])


def test_nothing_that_comes_makes_the_script_fail(tmp_path: Path) -> None:
    dice = random.Random(1993)
    frames: list[Sent] = []
    for _ in range(1500):
        data = dice.choice((b"", token(bytes(range(6)).ljust(32, b"\0")), token(b"\x01" * 9), dice.randbytes(70)))
        flags = dice.randrange(128)
        number = dice.randrange(1, 9)
        packet = bytearray(bytes(Packet(type=number, flags=flags, sequence=dice.randrange(4), slot=0, data=data)))
        for _ in range(dice.choice((0, 0, 1, 3))):
            packet[dice.randrange(len(packet))] = dice.choice((0, 1, 2, 64, 255))
        whole = bytes(packet[: dice.randrange(len(packet) + 1)] if dice.random() < 0.2 else packet)
        keep = dice.randrange(len(whole) + 1) if dice.random() < 0.2 else None
        frames.append(Sent(whole, source_port=dice.choice((0, 40000)), keep=keep))
    pcap = capture_of(tmp_path / "dice.pcap", *frames)
    assert len(dissect(pcap, "-o", "peregrine.udp_port:18700")) == len(frames)
    assert "Peregrine: " in tshark(pcap, "-V", "-o", "peregrine.udp_port:18700")


def test_the_copy_within_an_icmp_error_is_no_retransmission(tmp_path: Path) -> None:
    call = Sent(Packet(data=b"x"))
    inner = call.frame()[14:]
    icmp = struct.pack(">BBHI", 3, 3, 0, 0) + inner
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(icmp), 0, 0, 64, 1, 0)
    error = bytes(12) + b"\x08\x00" + head + IPv4Address("10.0.0.2").packed + IPv4Address("10.0.0.1").packed + icmp
    frame = call.frame()
    pcap = write_pcap(tmp_path / "icmp.pcap", [(0, frame, len(frame)), (10, error, len(error))])
    frames = dissect(pcap)
    values(frames[1], {"original_frame": None, "sequence": "7"})
    assert "peregrine.retransmission" not in frames[1]


# --- captured traffic -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def capture(path: Path, interface: str = "lo") -> Iterator[None]:
    """Write what the body sends over an interface as a capture; skips where the kernel does not allow it."""
    everything, outgoing = 3, 4  # ETH_P_ALL, PACKET_OUTGOING
    try:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(everything))
    except PermissionError:
        pytest.skip("capturing needs CAP_NET_RAW")
    frames: list[tuple[int, bytes, int]] = []
    ends = threading.Event()

    def read() -> None:
        begin_ns = time.monotonic_ns()
        while not ends.is_set():
            with contextlib.suppress(TimeoutError):
                frame, (_, _, kind, *_) = tap.recvfrom(1 << 18)
                # the loopback interface shows each frame twice: as it leaves, and as it arrives
                if interface != "lo" or kind != outgoing:
                    frames.append(((time.monotonic_ns() - begin_ns) // 1000, frame, len(frame)))

    with tap:
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        tap.bind((interface, 0))
        tap.settimeout(0.1)
        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield
            time.sleep(0.2)  # what is still in the tap's queue
        finally:
            ends.set()
            reader.join()
    write_pcap(path, frames)


def test_packets_captured_from_the_loopback_interface(tmp_path: Path) -> None:
    client = int.from_bytes(os.urandom(8))
    call = Packet(client=client, data=b"ping")
    with (
        capture(tmp_path / "lo.pcap"),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    ):
        for end in (caller, server):
            end.bind(("127.0.0.1", 0))
            end.settimeout(10)
        caller.sendto(bytes(call), server.getsockname())
        server.recv(2048)
        server.sendto(bytes(replace(call, type=TYPES["result"])), caller.getsockname())
        caller.recv(2048)
    # others may use the interface at the same time
    frames = [each for each in dissect(tmp_path / "lo.pcap") if each.get("peregrine.client") == [f"0x{client:016x}"]]
    assert [frame["peregrine.type"] for frame in frames] == [["1"], ["2"]]
    assert "peregrine.call_frame" in frames[1]


def test_captured_traffic_of_the_engine(tmp_path: Path) -> None:
    if not ECHO.exists():
        pytest.skip(f"{ECHO} is not built")
    with capture(tmp_path / "echo.pcap"):
        subprocess.run([ECHO, *ECHO_ARGUMENTS], check=True, timeout=60, capture_output=True)
    frames = [frame for frame in dissect(tmp_path / "echo.pcap") if is_peregrine(frame)]
    assert frames
    assert [frame["info"][0] for frame in frames if any(name.startswith("peregrine.bad") for name in frame)] == []
    results = [frame for frame in frames if str(TYPES["result"]) in frame["peregrine.type"]]
    assert results
    assert all("peregrine.call_frame" in frame for frame in results)
