# SPDX-License-Identifier: BSD-3-Clause
"""Lines and files of each adapter: what adding a layer takes."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Print one row a layer, counting lines as `wc -l` does."""
    print(f"{'layer':16} {'files':>5} {'adapter':>8} {'.mk':>4} {'.layer.yml':>10}")
    for layer in sorted((ROOT / "layers").glob("*/*.layer.yml")):
        stem = layer.name.removesuffix(".layer.yml")
        files = [path for path in layer.parent.glob(f"{stem}.*") if path.suffix in {".c", ".cc", ".mk", ".yml"}]
        lines = {path.suffix: path.read_text(encoding="utf-8").count("\n") for path in files}
        source = lines.get(".c", lines.get(".cc", 0))
        print(
            f"{layer.parent.name + '-' + stem:16} {len(files):5} {source:8} {lines.get('.mk', 0):4} {lines['.yml']:10}"
        )


if __name__ == "__main__":
    main()
