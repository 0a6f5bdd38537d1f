"""Write the pages in docs/rules and the README's table of rules anew; with ``--check``, say what is stale.

python docs/generate.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gpulint import pages
from gpulint.report import every_rule

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- rules: written by `make docs` -->", "<!-- end of rules -->"


def generated(root: Path) -> dict[Path, str]:
    """Every generated file and what it should say."""
    folder = root / "docs" / "rules"
    files = {folder / pages.page_name(rule): pages.markdown(rule) for rule in every_rule()}
    index = pages.markdown_table(every_rule(), "")
    files[folder / "README.md"] = f"# Rules\n\n{index}"
    readme = root / "README.md"
    if readme.exists():
        table = f"{BEGIN}\n{pages.markdown_table(every_rule(), 'docs/rules/')}{END}"
        text = readme.read_text("utf-8")
        files[readme] = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: table, text, flags=re.DOTALL)
    return files


def stale(root: Path) -> list[Path]:
    """Files that differ from what they should say, and pages of rules that are gone."""
    files = generated(root)
    wrong = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    return wrong + [path for path in sorted((root / "docs" / "rules").glob("*.md")) if path not in files]


def main(arguments: list[str]) -> int:
    wrong = stale(ROOT)
    files = generated(ROOT)
    for path in wrong:
        shown = path.relative_to(ROOT)
        if "--check" in arguments:
            sys.stdout.write(f"{shown} is stale: run `make docs`\n")
        elif path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
            sys.stdout.write(f"wrote {shown}\n")
        else:
            path.unlink()
            sys.stdout.write(f"removed {shown}\n")
    return 1 if wrong and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
