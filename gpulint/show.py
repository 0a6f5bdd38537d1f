"""What ``gpulint config`` and ``gpulint reveal`` print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpulint.config import Loader, Settings, describe
from gpulint.discover import discover, project_root
from gpulint.finding import Confidence
from gpulint.rule import select


def settings_text(settings: Settings, path: Path) -> str:
    """The settings in force for a path, in TOML, each with who set it; then the rules that run."""
    lines = [f"# settings for {path}", f"# from {settings.source or 'no config file'}", ""]
    for key, value, origin in describe(settings):
        setting = f"{key} = {_toml(value)}"
        if key == "select" and not value:
            setting = "# select is not set: the rules that are on by default"
        lines.append(setting if origin == "default" else f"{setting}  # set by {origin}")
    return "\n".join([*lines, "", f"# rules: {' '.join(_codes(settings)) or 'none'}"]) + "\n"


def settings_json(settings: Settings, path: Path) -> str:
    """The same as one JSON object."""
    report = {
        "path": str(path),
        "source": None if settings.source is None else str(settings.source),
        "root": str(settings.root),
        "settings": {key: {"value": _plain(value), "origin": origin} for key, value, origin in describe(settings)},
        "rules": _codes(settings),
    }
    return json.dumps(report, indent=2) + "\n"


def revealed(path: Path, line: int, load: Loader) -> str:
    """What the analysis knows at a line of a file, seen together with the rest of its project."""
    from gpulint.model import reveal
    from gpulint.source import SourceError, read

    sources = [read(path)]
    for other in discover([project_root(path)], load).files:
        try:
            if not other.samefile(path):
                sources.append(read(other))
        except (OSError, SourceError):  # the file asked about matters; another that can't be read doesn't
            continue
    facts = reveal(path, line, load(path), sources)
    if not facts:
        return f"nothing is known at {path}:{line}: no call or value there that the analysis reached\n"
    width = max(len(expression) for expression, _ in facts)
    return "".join(f"{expression:<{width}}  {value}\n" for expression, value in facts)


def _codes(settings: Settings) -> list[str]:
    return [rule.code for rule in select(settings.select, settings.ignore, settings.extend_select)]


def _plain(value: object) -> Any:
    """A setting as JSON and TOML write it."""
    if isinstance(value, Confidence):
        return value.label
    return value


def _toml(value: object) -> str:
    plain = _plain(value)
    if isinstance(plain, dict):
        pairs = (f"{json.dumps(key)} = {_toml(item)}" for key, item in plain.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(plain, tuple):
        return "[" + ", ".join(map(_toml, plain)) + "]"
    return json.dumps(plain, ensure_ascii=False)
