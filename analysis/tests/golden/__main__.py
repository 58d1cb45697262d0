# SPDX-License-Identifier: BSD-3-Clause
"""Compare the outputs of all scenes with those that are kept, write them anew, or put them into a folder.

python -m golden check [SCENE...]      which outputs are other ones than those kept
python -m golden write                 keep what comes of the code as it is: sums.txt, sentences.txt
python -m golden out DIR [SCENE...]    the outputs themselves, a file each
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from golden import kept
from golden.scenes import SCENES


def made(name: str) -> dict[str, str]:
    """Return the outputs of a scene, made in a folder of its own, with a cache of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        return SCENES[name](Path(folder) / "scene")


def main(verb: str, *given: str) -> int:
    folder, *names = given if verb == "out" else ("", *given)
    outputs = {}
    for name in names or SCENES:
        print(name, file=sys.stderr)
        outputs[name] = made(name)
    if verb == "write":
        kept.SUMS.write_text(kept.sums(outputs), encoding="utf-8")
        kept.SENTENCES.write_text(kept.sentences(outputs), encoding="utf-8")
        return 0
    if verb == "out":
        for name, parts in outputs.items():
            for part, text in parts.items():
                path = Path(folder) / name / part
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        return 0
    other = [one for name in outputs for one in kept.differing(name, outputs[name])]
    print(*other, sep="\n")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
