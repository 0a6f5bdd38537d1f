"""Paths → the files to lint: Python and notebooks, less what .gitignore and ``exclude`` leave out."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpulint.finding import ParseFailed

if TYPE_CHECKING:
    from gpulint.config import Settings

SUFFIXES = (".py", ".ipynb")
PROJECT_MARKS = ("gpulint.toml", ".gpulint.toml", "pyproject.toml", "setup.py", ".git")

Ignores = Callable[[str, bool], "bool | None"]  # (relative path, is a folder) → ignored, kept, or no opinion


@dataclass(slots=True)
class Discovered:
    """The files to lint, each once, in the order given and then by name; and what could not be read."""

    files: list[Path] = field(default_factory=list)
    failures: list[ParseFailed] = field(default_factory=list)


def discover(paths: Iterable[Path], settings_for: Callable[[Path], Settings]) -> Discovered:
    """Expand files and folders. A path that the user names is always taken, whatever would exclude it.

    Links to folders are not followed (so loops end), links to files are; a file is listed once even
    when several links or arguments lead to it.
    """
    found = Discovered()
    seen: set[str] = set()
    real_folder = cache(os.path.realpath)

    def add(file: Path) -> None:
        real = os.path.realpath(file) if file.is_symlink() else f"{real_folder(file.parent)}/{file.name}"
        if real not in seen:
            seen.add(real)
            found.files.append(file)

    for path in paths:
        try:
            mode = path.stat().st_mode
        except OSError as error:
            found.failures.append(ParseFailed(path, 1, 1, _reason(error)))
            continue
        if stat.S_ISDIR(mode):
            for file in _walk(path, settings_for, found.failures):
                add(file)
        elif stat.S_ISREG(mode):
            add(path)
        else:
            found.failures.append(ParseFailed(path, 1, 1, "neither a file nor a folder"))
    return found


def project_root(file: Path, given: Path | None = None) -> Path:
    """The folder of the project that a file belongs to: the nearest one upwards with a project's mark.

    Without one: the folder that the user gave, or else the file's own.
    """
    folder = Path(os.path.abspath(file)).parent
    marked = _marked(folder)
    if marked is not None:
        return marked
    if given is None:
        return folder
    given = Path(os.path.abspath(given))
    return given if given.is_dir() else given.parent


@cache
def _marked(folder: Path) -> Path | None:
    if any(os.path.lexists(folder / mark) for mark in PROJECT_MARKS):
        return folder
    return None if folder.parent == folder else _marked(folder.parent)


def _walk(top: Path, settings_for: Callable[[Path], Settings], failures: list[ParseFailed]) -> Iterator[Path]:
    """The files below a folder, by name; an explicit stack, so that depth costs no recursion."""
    absolute_top = os.path.abspath(top)
    above = _gitignores_above(Path(absolute_top)) if settings_for(top).respect_gitignore else ()
    stack = [(top, absolute_top, above)]
    while stack:
        folder, absolute, gitignores = stack.pop()
        try:
            with os.scandir(folder) as entries:
                children = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            failures.append(ParseFailed(folder, 1, 1, _reason(error)))
            continue
        settings = settings_for(folder)
        if settings.respect_gitignore and absolute != absolute_top:
            gitignores = (*gitignores, *_gitignore_in(Path(absolute)))
        excluded = _exclusion(settings, Path(absolute_top), Path(absolute))
        folders: list[tuple[Path, str, tuple[tuple[str, Ignores], ...]]] = []
        for child in children:
            is_folder = child.is_dir(follow_symlinks=False)
            if not is_folder and not _is_source(child):
                continue
            full = os.path.join(absolute, child.name)
            if excluded(full, is_folder) or _gitignored(full, is_folder, gitignores):
                continue
            if is_folder:
                folders.append((folder / child.name, full, gitignores))
            else:
                yield folder / child.name
        stack.extend(reversed(folders))


def _is_source(entry: os.DirEntry[str]) -> bool:
    if not entry.name.endswith(SUFFIXES) or entry.name.startswith(".#"):  # .#x.py: an editor's lock
        return False
    try:
        if entry.is_file():
            return True
        return entry.is_symlink() and not entry.is_dir()  # broken: reported when it is read
    except OSError:  # links in a circle: likewise
        return True


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return f"can't be read: {error.strerror or error}"


# --- exclude and extend-exclude --------------------------------------------------------------------


def _exclusion(settings: Settings, top: Path, folder: Path) -> Callable[[str, bool], bool]:
    """Whether a path in ``folder`` is excluded; ``top`` itself was asked for, so it never counts."""
    ignores = compiled(settings.exclude + settings.extend_exclude)
    root = settings.root
    if not folder.is_relative_to(root) or (
        top.is_relative_to(root) and ignored_with_parents(ignores, top.relative_to(root), is_folder=True)
    ):
        root = top
    start = len(_prefix(root))
    return lambda path, is_folder: bool(ignores(path[start:].replace(os.sep, "/"), is_folder))


def ignored_with_parents(ignores: Ignores, relative: Path, *, is_folder: bool) -> bool:
    """Whether a path, or a folder that it lies in, is ignored."""
    parts = relative.parts
    return any(ignores("/".join(parts[:end]), is_folder or end < len(parts)) for end in range(1, len(parts) + 1))


@lru_cache(maxsize=1024)
def compiled(patterns: tuple[str, ...]) -> Ignores:
    """A matcher for .gitignore patterns. Plain names, most of them, need neither pathspec nor a regex."""
    ordered = any(pattern.startswith("!") for pattern in patterns)  # then the last match decides
    plain = [] if ordered else [p for p in patterns if _is_plain(p.removeprefix("/"))]
    names = {p for p in plain if not p.startswith("/")}
    anchored = {p[1:] for p in plain if p.startswith("/")}
    rest = [p for p in patterns if p not in set(plain)]
    if rest:
        from pathspec import GitIgnoreSpec

        spec = GitIgnoreSpec.from_lines(rest)

    def ignores(path: str, is_folder: bool) -> bool | None:
        if path.rpartition("/")[2] in names or path in anchored:
            return True
        return spec.check_file(f"{path}/" if is_folder else path).include if rest else None

    return ignores


def _is_plain(pattern: str) -> bool:
    return bool(pattern) and not set(pattern) & set("/*?[]!#\\ \t\r")


# --- .gitignore ------------------------------------------------------------------------------------


def _gitignored(path: str, is_folder: bool, gitignores: tuple[tuple[str, Ignores], ...]) -> bool:
    """The verdict of the nearest .gitignore that has an opinion."""
    for prefix, ignores in reversed(gitignores):
        verdict = ignores(path[len(prefix) :].replace(os.sep, "/"), is_folder)
        if verdict is not None:
            return verdict
    return False


def _gitignores_above(top: Path) -> tuple[tuple[str, Ignores], ...]:
    """The .gitignore files from the repository down to ``top``, seen from ``top`` if they ignore it."""
    repository = next((p for p in (top, *top.parents) if os.path.lexists(p / ".git")), top)
    below = [p for p in (top, *top.parents) if p.is_relative_to(repository)]
    found: list[tuple[str, Ignores]] = []
    for folder in reversed(below):
        files = [".gitignore"] if folder != repository else [".git/info/exclude", ".gitignore"]
        for name in files:
            for prefix, ignores in _gitignore_in(folder, name):
                if ignored_with_parents(ignores, top.relative_to(folder), is_folder=True):
                    prefix = _prefix(top)
                found.append((prefix, ignores))
    return tuple(found)


def _gitignore_in(folder: Path, name: str = ".gitignore") -> Iterator[tuple[str, Ignores]]:
    try:
        text = (folder / name).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return
    patterns = tuple(line for line in text.split("\n") if line.strip() and not line.startswith("#"))
    if patterns:
        yield _prefix(folder), compiled(patterns)


def _prefix(folder: Path) -> str:
    return str(folder).rstrip(os.sep) + os.sep
