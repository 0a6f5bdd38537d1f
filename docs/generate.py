"""Write what is generated in the documentation anew; with ``--check``, say what is stale.

python docs/generate.py [--check]

Generated are the pages and the list in docs/rules, and in the README the table of rules and the finding
at its top, which is the real output of the demo project.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

from gpulint import pages
from gpulint.report import every_rule
from gpulint.rule import Rule

ROOT = Path(__file__).resolve().parent.parent
DEMO = ("fixtures/demo", "--select", "graph-retained", "--explain")


def generated(root: Path) -> dict[Path, str]:
    """Every generated file and what it should say."""
    folder = root / "docs" / "rules"
    files = {folder / pages.page_name(rule): page(rule) for rule in every_rule()}
    files[folder / "README.md"] = f"# Rules\n\n{pages.markdown_table(every_rule(), '')}"
    readme = root / "README.md"
    if readme.exists():
        text = readme.read_text("utf-8")
        text = replaced(text, "rules", pages.markdown_table(every_rule(), "docs/rules/"))
        files[readme] = replaced(text, "demo", demo(root))
    return files


def page(rule: Rule) -> str:
    """A rule's page: what its record says, and how to live with it."""
    file = inspect.getsourcefile(rule.check) or ""
    parts = [pages.markdown(rule)]
    if rule.code == "GPU001":
        source = "../../gpulint/suppress.py"
    else:
        source = f"../../rules/{rule.group}/{Path(file).name}"
        comment = f"# gpulint: ignore[{rule.code}] the reason"
        parts.append(f"## Suppress it\n\nAt the end of the line, with the reason:\n\n```python\n{comment}\n```\n")
    parts.append(f"Source: [{source.removeprefix('../../')}]({source}). All rules: [list](README.md).\n")
    return "\n".join(parts)


def demo(root: Path) -> str:
    """A finding as it looks: the real output for the demo project."""
    done = subprocess.run(
        [sys.executable, "-m", "gpulint", *DEMO, "--color", "never"],
        cwd=root,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 1:
        raise SystemExit(f"the demo project has no finding to show: {done.stderr}")
    return f"```console\n$ gpulint {' '.join(DEMO)}\n{done.stdout.strip()}\n```\n"


def replaced(text: str, what: str, new: str) -> str:
    """The text with what stands between a pair of markers replaced."""
    begin, end = f"<!-- {what}: written by `make docs` -->", f"<!-- end of {what} -->"
    return re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n{new}{end}", text, flags=re.DOTALL)


def stale(root: Path) -> dict[Path, str | None]:
    """Files that differ from what they should say; None for pages of rules that are gone."""
    files = generated(root)
    wrong: dict[Path, str | None] = {
        path: text for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text
    }
    return wrong | {path: None for path in sorted((root / "docs" / "rules").glob("*.md")) if path not in files}


def main(arguments: list[str]) -> int:
    wrong = stale(ROOT)
    for path, text in wrong.items():
        shown = path.relative_to(ROOT)
        if "--check" in arguments:
            sys.stdout.write(f"{shown} is stale: run `make docs`\n")
        elif text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {shown}\n")
        else:
            path.unlink()
            sys.stdout.write(f"removed {shown}\n")
    return 1 if wrong and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
