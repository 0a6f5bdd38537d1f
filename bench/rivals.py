"""Run another GPU linter and print what it finds in the shape of gpulint's JSON.

    python bench/rivals.py torch-preflight check --output-format json PATH...
    python bench/rivals.py hotpath-ai check --output-format json PATH...

so that whatever reads gpulint's reports reads theirs. Each of their rules is mapped to the
gpulint rule closest in meaning; reports with no counterpart (a missing seed, no torch.compile)
are left out: they are no false alarms, they are about something else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import BenchError, tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFLIGHT = {
    "TG001": "graph-retained",
    "TG002": "eval-without-no-grad",
    "TG011": "train-mode-not-restored",
    "TG012": "ddp-sampler",
    "TG014": "accumulation-not-scaled",
}
HOTPATH = {
    "KP001": "loader-workers",
    "KP002": "loader-pin-memory",
    "KP003": "item-in-step-loop",
    "KP005": "host-alloc-then-move",
    "KP009": "tensor-loop",
    "KP010": "set-to-none",
    "KP011": "empty-cache-in-loop",
    "KP012": "eval-without-no-grad",
    "KP014": "persistent-workers",
    "KP015": "blocking-transfer",
    "KP017": "copy-to-host-in-step-loop",
}


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    end_line: int
    name: str
    message: str
    code: str  # the rival's own


def torch_preflight(paths: Sequence[Path]) -> tuple[list[Finding], list[dict[str, object]]]:
    command: list[str | Path] = [
        tool("torch-preflight") / "torch-preflight",
        "check",
        "--format",
        "json",
        *paths,
    ]
    report = output_of(command)
    findings = [
        Finding(item["path"], item["line"], item["end_line"], name, item["message"], item["code"])
        for item in report["diagnostics"]
        if (name := preflight_name(item["code"], item["message"]))
    ]
    errors: list[dict[str, object]] = [
        {"path": item["path"], "line": 1, "message": item["error"]} for item in report["failures"]
    ]
    return findings, errors


def preflight_name(code: str, message: str) -> str | None:
    """Some of its codes cover several of our rules; the message tells which."""
    if code == "TG004":
        return "loader-workers" if "num_workers" in message else "loader-pin-memory"
    if code == "TG007":
        if "synchronize()" in message:
            return "synchronize-in-loop"
        to_host = ".cpu()" in message or ".numpy()" in message
        return "copy-to-host-in-step-loop" if to_host else "item-in-step-loop"
    if code == "TG013":
        return "host-alloc-then-move" if "built on the host" in message else "rebuild-constant-tensor"
    return PREFLIGHT.get(code)


def hotpath(paths: Sequence[Path]) -> tuple[list[Finding], list[dict[str, object]]]:
    findings: list[Finding] = []
    errors: list[dict[str, object]] = []
    for path in paths:  # it takes one path at a time
        report = output_of([tool("hotpath-ai") / "hotpath", "analyze", "--format", "json", path])
        for file in report["files"]:
            for item in file["findings"]:
                if item["rule_id"] == "syntax-error":
                    errors.append({"path": file["path"], "line": item["line"], "message": item["message"]})
                # Its text report hides these unless asked; its JSON report does not.
                elif item["confidence"] != "heuristic" and (name := hotpath_name(item)):
                    line = item["line"]
                    findings.append(Finding(file["path"], line, line, name, item["message"], item["rule_id"]))
    return list(once_a_line(findings)), errors


def hotpath_name(item: dict[str, Any]) -> str | None:
    if item["rule_id"] == "KP004":
        to_host = item["message"].split(" ")[0].endswith("cpu")
        return "copy-to-host-in-step-loop" if to_host else "blocking-transfer"
    return HOTPATH.get(item["rule_id"])


def once_a_line(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Two of its rules report the same transfer; counting both would be unkind."""
    seen: set[tuple[str, int, str]] = set()
    for finding in findings:
        key = (finding.path, finding.line, finding.name)
        if key not in seen:
            seen.add(key)
            yield finding


def output_of(command: Sequence[str | Path]) -> Any:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        raise BenchError(f"{command[0]} ended with {done.returncode} and no report: {last[0]}") from None


RIVALS = {"torch-preflight": torch_preflight, "hotpath-ai": hotpath}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("rival", choices=sorted(RIVALS))
    parser.add_argument("command", choices=["check"], help="as gpulint has it")
    parser.add_argument("--output-format", choices=["json"], default="json")
    parser.add_argument("paths", nargs="+", type=Path)
    options = parser.parse_args()
    try:
        findings, errors = RIVALS[options.rival](options.paths)
    except BenchError as error:
        sys.stderr.write(f"rivals: {error}\n")
        return 2
    report = {"version": 1, "findings": [asdict(finding) for finding in findings], "errors": errors}
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
