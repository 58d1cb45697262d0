# SPDX-License-Identifier: BSD-3-Clause
"""A log of a web server, made from a seed, with the odd cases of real ones; and what a reader has to find in it."""

import random
from collections import Counter
from dataclasses import dataclass, field

from cadge_harness.plan import weblog

LINES = 2000
FILES = 150


@dataclass
class Log:
    """A log, and what it holds: names in the order in which they are asked for, and what was left out by reason."""

    lines: list[bytes] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    lengths: dict[bytes, int] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    first_lines: dict[str, int] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def ask(self, line: bytes, name: bytes, length: int) -> None:
        """Add a line that is replayed."""
        self.lines.append(line)
        self.requests.append(name)
        self.lengths[name] = max(self.lengths.get(name, 0), length)

    def leave(self, line: bytes, reason: str) -> None:
        """Add a line that is not."""
        self.lines.append(line)
        self.left_out[reason] += 1
        self.first_lines.setdefault(reason, len(self.lines))

    def by_popularity(self) -> list[bytes]:
        """Return the names as a trace numbers them."""
        asked = Counter(self.requests)  # in the order of their coming, which sorting keeps
        return sorted(asked, key=lambda name: -asked[name])


def line(request: bytes, status: int = 200, length: int | str = "-", more: bytes = b"", who: int = 1) -> bytes:
    """Return a line in Common Log Format, with what comes behind it in others."""
    host = b"h%d.clients.example.net" % who
    end = b'" %d %s' % (status, str(length).encode())
    return host + b' - - [28/Aug/1995:00:00:34 -0400] "' + request + end + more


def synthetic_log(seed: int, lines: int = LINES) -> Log:
    """Make a log."""
    rng = random.Random(seed)
    names = [b"/images/picture%d.gif" % number for number in range(FILES - 4)]
    names += [b"/with a blank.html", b"/~user/caf\xe9.html", b'/a\\"quote.txt', b"/" + b"long/" * 40]
    sizes = {name: rng.randrange(100, 40_000) for name in names}
    sizes[names[1]], sizes[names[2]] = 20, 2_500_000  # what is shortened, and lengthened
    weights = [1 / (place + 1) for place in range(FILES)]
    log = Log()
    odd = [
        (b"", weblog.NO_LINE),
        (b"not a line of a log", weblog.NO_LINE),
        (b'h1 - - [28/Aug/1995:00:00:34 -0400] "GET /cut', weblog.NO_LINE),
        (line(b"GET /a.html HTTP/1.0", 200, "12x"), weblog.NO_LINE),
        (b"\x00\xff\xfe] \x80" * 9, weblog.NO_LINE),
        (line(b"GET " + b"/x" * 40_000, 200, 5), weblog.TOO_LONG),
        (line(b"-", 408), weblog.NO_NAME),
        (line(b"", 400), weblog.NO_NAME),
        (line(b"GET HTTP/1.0", 200, 5), weblog.NO_NAME),
        (line(b"\x16\x03\x01 /x", 400), weblog.NO_NAME),
        (line(b"HEAD /images/picture0.gif HTTP/1.0", 200, 300), weblog.OTHER_METHOD),
        (line(b"POST /form HTTP/1.0", 200, 300), weblog.OTHER_METHOD),
        (line(b"GET /images/picture0.gif HTTP/1.0", 304), weblog.NOT_MODIFIED),
        (line(b"GET /images HTTP/1.0", 302), weblog.REDIRECTED),
        (line(b"GET /gone.html HTTP/1.0", 404), weblog.FAILED),
        (line(b"GET /broken HTTP/1.0", 500, 12), weblog.FAILED),
        (line(b"GET /images/picture0.gif HTTP/1.1", 206, 10), weblog.OTHER_STATUS),
        (line(b"GET /find?what=a HTTP/1.0", 200, 900), weblog.PROGRAM),
        (line(b"GET /cgi-bin/date HTTP/1.0", 200, 90), weblog.PROGRAM),
        (line(b"GET /empty.html HTTP/1.0", 200), weblog.NO_LENGTH),
        (line(b"GET /empty.html HTTP/1.0", 200, 0), weblog.NO_LENGTH),
    ]
    for turn in range(lines):
        if rng.random() < 0.15 or turn < len(odd):
            log.leave(*odd[turn if turn < len(odd) else rng.randrange(len(odd))])
            continue
        [name] = rng.choices(names, weights)
        whole = sizes[name]
        length = whole if name not in log.lengths else rng.choice([whole, whole, whole // 2, 0])
        request = (
            b"GET "
            + name
            + rng.choice([b" HTTP/1.0", b" HTTP/1.0", b" HTTP/1.1", b"", b"#top HTTP/1.0", b"  HTTP/1.0 "])
        )
        more = rng.choice([b"", b"", b"\r", b' "http://from.example.org/?a=\\"b" "Mozilla/5.0 [en]"'])
        log.ask(line(request, 200, length or "-", more, rng.randrange(999)), name, length)
    return log
