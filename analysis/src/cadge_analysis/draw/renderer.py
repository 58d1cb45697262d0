# SPDX-License-Identifier: BSD-3-Clause
"""The renderer as a process beside ours: vl-convert brings V8, which ends its process where it gets no memory.

V8 reserves gigabytes of addresses when it starts. Under `ulimit -v`, or in a container with little memory, it does not
raise an error but aborts. What ends then is the child; the page says that it has no pictures, and why.

    draw("vegalite", specification)  ->  the SVG

One child serves a process of ours, and ends with it. It reads a request a line, {"kind", "text"}, and answers with a
line, {"bytes", "error"}, and so many bytes.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import IO, Literal

from cadge_analysis import messages
from cadge_analysis.errors import NoRendererError, PictureError

say = partial(messages.say, "draw")

Kind = Literal["vegalite", "pdf", "png"]
VEGA_LITE = "5.20"
PNG_SCALE = 3
"""Pixels of a PNG for one of the page: 288 to the inch, where the page has 96."""
_SAID_MOST = 200


class Renderer:
    """One child, started when it is first asked. Once it has ended it stays ended: whatever ended it is still there."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self.trouble = ""
        """Why there are no pictures; "" as long as there are."""

    def draw(self, kind: Kind, text: str) -> bytes:
        """Return a picture. Raises PictureError where the text is refused, NoRendererError where nothing is drawn."""
        if self.trouble:
            raise NoRendererError(self.trouble)
        try:
            return self._ask(self._child or self._start(), kind, text)
        except (OSError, EOFError) as error:
            self.trouble = self._why(error)
            self.close()
            raise NoRendererError(self.trouble) from error

    def _start(self) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-P", "-m", "cadge_analysis.draw.renderer"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the child
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=self._stderr, env=environment, start_new_session=True
        )
        return self._child

    @staticmethod
    def _ask(child: subprocess.Popen[bytes], kind: Kind, text: str) -> bytes:
        assert child.stdin is not None  # noqa: S101 - asked for above
        assert child.stdout is not None  # noqa: S101
        child.stdin.write(json.dumps({"kind": kind, "text": text}).encode() + b"\n")
        child.stdin.flush()
        head = child.stdout.readline()
        if not head.endswith(b"\n"):
            raise EOFError
        answer = json.loads(head)
        content = child.stdout.read(answer["bytes"])
        if len(content) < answer["bytes"]:
            raise EOFError
        if answer["error"] is not None:
            raise PictureError(answer["error"])
        return content

    def _why(self, error: Exception) -> str:
        """Say how the child ended, and what it said last."""
        if self._child is None or self._stderr is None:
            return say("renderer.not_started", error=getattr(error, "strerror", None) or error)
        with contextlib.suppress(OSError):
            self._child.stdin.close()  # type: ignore[union-attr]
        code = self._child.wait()
        ended = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit status {code}"
        self._stderr.seek(0)
        lines = [line.strip() for line in self._stderr.read().decode(errors="replace").splitlines()]
        said = next((line.strip("# ") for line in lines if "fatal" in line.lower() or "memory" in line.lower()), "")
        return f"the renderer ended {ended}{f': {said[:_SAID_MOST]}' if said else ''}"

    def close(self) -> None:
        """End the child. May be called twice."""
        child, self._child = self._child, None
        if child is not None:
            for stream in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
            child.wait()  # it reads the end of its input
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None


RENDERER = Renderer()
atexit.register(RENDERER.close)


def draw(kind: Kind, text: str) -> bytes:
    """Return a picture by the one renderer of this process. Raises PictureError, NoRendererError."""
    return RENDERER.draw(kind, text)


def _makers() -> dict[Kind, Callable[[str], bytes]]:
    import vl_convert  # here alone: an import brings V8 into the process

    def vegalite(text: str) -> bytes:
        svg: str = vl_convert.vegalite_to_svg(text, vl_version=VEGA_LITE)
        return svg.encode()

    def pdf(text: str) -> bytes:
        made: bytes = vl_convert.svg_to_pdf(text)
        return made

    def png(text: str) -> bytes:
        made: bytes = vl_convert.svg_to_png(text, scale=PNG_SCALE)
        return made

    return {"vegalite": vegalite, "pdf": pdf, "png": png}


def main() -> None:
    """Answer until the input ends."""
    makers = _makers()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        content, error = b"", None
        try:
            content = makers[request["kind"]](request["text"])
        except (RuntimeError, ValueError) as refused:
            error = str(refused)
        sys.stdout.buffer.write(json.dumps({"bytes": len(content), "error": error}).encode() + b"\n" + content)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
