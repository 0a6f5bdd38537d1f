"""Lint and fix the pinned source of well-known projects, and check that nothing breaks.

For every project in ecosystem.toml: ``gpulint check`` must report no error but for files that
this Python can't compile either; after ``--fix --unsafe-fixes`` every changed file must compile,
and a second ``--fix --unsafe-fixes`` must change nothing. Ends with 1 when any of that fails.
The wheels are kept in ``$GPULINT_ECOSYSTEM`` (default: bench/.cache).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import measure
from tools import CACHE, BenchError, copies, count, say, source_tree, table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent


@dataclass
class Outcome:
    project: str
    files: int
    lines: int
    seconds: float = 0.0
    peak_mib: float = 0.0
    findings: Counter[str] = field(default_factory=Counter)
    changed: int = 0
    fixed: int = 0
    failures: list[str] = field(default_factory=list)


def check_project(name: str, version: str, tree: Path, gpulint: list[str]) -> Outcome:
    """Lint, fix, fix again, on a copy of ``tree``."""
    with copies(tree) as folder:
        sources = sorted(folder.rglob("*.py"))
        outcome = Outcome(f"{name} {version}", *count(sources))
        report = lint(gpulint, folder, [], outcome)
        if report is None:
            return outcome
        outcome.findings.update(finding["name"] for finding in report["findings"])
        check_errors(report["errors"], folder, outcome)

        before = digests(folder)
        if (fixed := lint(gpulint, folder, ["--fix", "--unsafe-fixes"], outcome)) is None:
            return outcome
        outcome.fixed = len(report["findings"]) - len(fixed["findings"])
        after = digests(folder)
        changed = [path for path, digest in after.items() if digest != before[path]]
        outcome.changed = len(changed)
        for path in changed:
            if complaint := does_not_compile(path):
                outcome.failures.append(f"{path.relative_to(folder)} is broken by its fix: {complaint}")

        lint(gpulint, folder, ["--fix", "--unsafe-fixes"], outcome)
        again = digests(folder)
        restless = [path for path, digest in again.items() if digest != after[path]]
        outcome.failures += [f"{path.relative_to(folder)}: a second --fix changes it" for path in restless]
    return outcome


def lint(gpulint: list[str], folder: Path, options: list[str], outcome: Outcome) -> Any:
    """One run's JSON report; None, and a failure noted, when there is none."""
    run = measure([*gpulint, "check", "--output-format", "json", "--exit-zero", *options, folder], limit=1800)
    outcome.peak_mib = max(outcome.peak_mib, run.peak_mib)
    if not options:
        outcome.seconds = run.seconds
    try:
        report = json.loads(run.stdout)
    except ValueError:
        report = None
    if report is None or "Traceback" in run.stderr:
        last = run.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        what = " ".join(["check", *options])
        outcome.failures.append(f"`gpulint {what}` ended with {run.returncode}: {last[0]}")
    return report


def check_errors(errors: list[Any], folder: Path, outcome: Outcome) -> None:
    """An error is right only about a file that Python itself refuses."""
    for error in errors:
        path = Path(error["path"])
        if not path.is_file() or not does_not_compile(path):
            shown = path.relative_to(folder) if path.is_relative_to(folder) else path
            outcome.failures.append(f"{shown}:{error.get('line')}: {error['message']}")


def does_not_compile(path: Path) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in their code are not our concern
            compile(path.read_bytes(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def digests(folder: Path) -> dict[Path, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in files}


def show(outcomes: list[Outcome]) -> str:
    rules = sorted({name for outcome in outcomes for name in outcome.findings})
    rows = [["", *(outcome.project for outcome in outcomes)]]
    rows.append(["files", *(f"{outcome.files:,}" for outcome in outcomes)])
    rows.append(["lines", *(f"{outcome.lines:,}" for outcome in outcomes)])
    rows.append(["findings", *(str(outcome.findings.total()) for outcome in outcomes)])
    rows += [[f"  {rule}", *(str(outcome.findings[rule] or "") for outcome in outcomes)] for rule in rules]
    rows.append(["gone after --fix", *(str(outcome.fixed) for outcome in outcomes)])
    rows.append(["files changed", *(str(outcome.changed) for outcome in outcomes)])
    rows.append(["seconds", *(f"{outcome.seconds:.1f}" for outcome in outcomes)])
    rows.append(["peak MiB", *(f"{outcome.peak_mib:.0f}" for outcome in outcomes)])
    rows.append(["failures", *(str(len(outcome.failures)) for outcome in outcomes)])
    return table(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("projects", nargs="*", help="only these (default: all)")
    parser.add_argument("--gpulint", default=f"{shlex.quote(sys.executable)} -m gpulint", metavar="COMMAND")
    options = parser.parse_args()
    cache = Path(os.environ.get("GPULINT_ECOSYSTEM") or CACHE)
    outcomes = []
    for entry in tomllib.loads((HERE / "ecosystem.toml").read_text())["project"]:
        name, version = entry["name"], entry["version"]
        if options.projects and name not in options.projects:
            continue
        try:
            tree = source_tree(name, version, cache)
        except BenchError as error:
            sys.stderr.write(f"ecosystem: {error}\n")
            return 1
        outcomes.append(check_project(name, version, tree, shlex.split(options.gpulint)))
    if not outcomes:
        parser.error("none of these projects is in ecosystem.toml")
    say(show(outcomes))
    failures = [f"{outcome.project}: {failure}" for outcome in outcomes for failure in outcome.failures]
    for failure in failures:
        say(f"FAILED {failure}")
    say(f"{len(outcomes)} projects, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
