# SPDX-License-Identifier: BSD-3-Clause
"""The check over what is to be published: a name or a secret that is left, with its file and line."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from html.parser import HTMLParser
from pathlib import Path

from cadge_analysis import messages
from cadge_analysis.errors import AnalysisError
from cadge_results.publish.redact import Key, Redactor, texts
from cadge_results.publish.secrets_found import secret_in

say = partial(messages.say, "publish")

_FEED_ID = re.compile(r"<id>urn:uuid:[0-9a-f-]{36}</id>")
"""Made of a campaign's id; text cannot look so, as its `<` is escaped."""
_WORD = re.compile(r"[A-Za-z]+")
_TEXTS = {".html", ".json", ".jsonl", ".csv", ".md", ".yml", ".log", ".cff", ".xml", ".svg", ".sh", ".gz", ""}
_ATTRIBUTES = {"title", "alt", "aria-label", "content", "href", "placeholder", "value"}


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that must not go out. The thing itself is not repeated where it is a secret."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


class LeakError(AnalysisError):
    """Something that must not go out was found; nothing was published."""

    exit_code = 10

    def __init__(self, leaks: list[Leak]) -> None:
        shown = "\n".join(f"  {leak}" for leak in leaks[:20])
        more = f"\n  and {len(leaks) - 20} more" if len(leaks) > 20 else ""
        super().__init__(say("leaks.found", shown=shown, more=more))
        self.leaks = leaks


@lru_cache(maxsize=1)
def own_words() -> frozenset[str]:
    """Return the words of our own programs and pages: a host of such a name cannot be told from them."""
    package = Path(__file__).parent.parent
    files = (path for pattern in ("*.py", "*.j2") for path in package.rglob(pattern))
    return frozenset(word for path in files for word in _WORD.findall(path.read_text(encoding="utf-8")))


def checker(redactor: Redactor) -> Redactor:
    """Return a redactor that changes only what was left; a host that is called as a pseudonym is none of it."""
    given = {new for _, _, new in redactor.places}
    hosts = tuple(name for name in redactor.names.hosts if name not in given)
    aliases = {alias: name for alias, name in redactor.names.aliases.items() if alias not in given}
    return Redactor(replace(redactor.names, hosts=hosts, aliases=aliases), redactor.keep)


def leaks(root: Path, files: Iterable[Path], redactor: Redactor | None) -> list[Leak]:
    """Look at files below `root`; without a redactor for secrets alone. Checksums and archives of ours are skipped."""
    found = []
    for path in files:
        if path.suffix in _TEXTS and path.name != ".lock":
            name = str(path.relative_to(root))
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            if path.name.endswith(".tar.gz"):
                continue  # made of files that were looked at one by one
            suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
            for line, text, key in _pieces(suffix, content.decode("utf-8", "replace")):
                if what := wrong(text, key, redactor):
                    found.append(Leak(name, line, what))
    return found


def wrong(text: str, key: Key, redactor: Redactor | None) -> str | None:
    """Return what is in a text that must not go out, or None."""
    if what := secret_in(text):
        return f"it looks like {what}"
    left = redactor.told(text, key) if redactor is not None else ()
    return f"{left[0][1]} ({left[0][0]})" if left else None


def _pieces(suffix: str, text: str) -> Iterator[tuple[int, str, Key]]:
    """Yield what people and programs read in a file, with its line, and the key that it stands under if it is fixed."""
    match suffix:
        case ".html":
            reader = _Reader()
            reader.feed(text)
            yield from reader.found
        case ".json":
            yield from _of_json(text, 1)
        case ".xml":
            yield from _lines(_FEED_ID.sub("", text), 1)
        case ".jsonl":
            for number, line in enumerate(text.splitlines(), 1):
                for _, piece, key in _of_json(line, number):
                    yield number, piece, key
        case _:
            yield from _lines(text, 1)


def _lines(text: str, first: int) -> Iterator[tuple[int, str, Key]]:
    for number, line in enumerate(text.splitlines(), first):
        yield number, line, None


def _of_json(text: str, first: int) -> Iterator[tuple[int, str, Key]]:
    try:
        document = json.loads(text)
    except ValueError:
        yield from _lines(text, first)
        return
    strings = dict.fromkeys(texts(document))
    for pair in dict.fromkeys(_pairs(document)):  # what a value is, its key may say alone
        if secret_in(pair):
            yield first, pair, None
    # They come in the order of the text, so that the next is looked for behind the last: a large summary has a
    # hundred thousand.
    line, at = first, 0
    for one, key in strings:
        found = text.find(json.dumps(one, ensure_ascii=False)[1:-1], at)
        if found > at:
            line, at = line + text.count("\n", at, found), found
        yield line, one, key


def _pairs(value: object) -> Iterator[str]:
    """Yield each text that stands under a key, as an environment would have both."""
    if isinstance(value, dict):
        yield from (f"{key}={one}" for key, one in value.items() if isinstance(one, str))
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _pairs(one)


class _Reader(HTMLParser):
    """Reads the text of a page, attributes that are read out, and data; not its style and its own programs."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, str, Key]] = []
        self._skip = self._json = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read attributes."""
        given = dict(attrs)
        self._json = tag == "script" and (given.get("type") or "").endswith("json")
        self._skip = tag == "style" or (tag == "script" and not self._json)
        line = self.getpos()[0]
        self.found += [(line, value, None) for name, value in attrs if name in _ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        """Leave style or script."""
        if tag in ("style", "script"):
            self._skip = self._json = False

    def handle_data(self, data: str) -> None:
        """Read text."""
        line = self.getpos()[0]
        if self._json:
            self.found += list(_of_json(data, line))
        elif not self._skip and data.strip():
            self.found += list(_lines(data, line))
