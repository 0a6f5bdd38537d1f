"""``[tool.gpulint]`` → Settings; an unknown key or rule is an error that names the nearest right one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpulint.finding import Confidence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIG_NAMES = ("gpulint.toml", ".gpulint.toml", "pyproject.toml")  # first in a folder wins

# `build` and `dist` count only at the root: deeper ones are often packages (mmengine has a `dist`).
DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
    ".pytest_cache", ".ruff_cache", ".svn", ".tox", ".venv", "/build", "/dist", "__pycache__",
    "__pypackages__", "node_modules", "site-packages", "venv",
)  # fmt: skip

GPU_CHOICES = ("auto", "always", "never")
UNUSED_SUPPRESSION = ("GPU001", "unused-suppression")  # reported by the engine itself, not by a rule file


class ConfigError(Exception):
    """A setting that can't be used: where it stands, which key, and what is wrong, in one sentence."""

    def __init__(self, path: Path | str, key: str, message: str) -> None:
        self.path, self.key, self.message = path, key, message
        super().__init__(path, key, message)

    def __str__(self) -> str:
        key = f"`{self.key}` " if self.key else ""
        return f"{self.path}: {key}{self.message}"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in force for one file; patterns are relative to ``root``, the folder of the config file."""

    select: tuple[str, ...] = ()  # empty: the rules that are on by default
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    step_functions: tuple[str, ...] = ()
    gpu: str = "auto"
    min_confidence: Confidence = Confidence.LIKELY
    allowed_sync: tuple[str, ...] = ()
    respect_gitignore: bool = True
    root: Path = field(default_factory=Path.cwd)
    source: Path | None = None
    origins: tuple[tuple[str, str], ...] = field(default=(), compare=False)  # key → who set it

    def ignored_in(self, path: Path) -> tuple[str, ...]:
        """The selectors that ``per-file-ignores`` switches off in a file."""
        if not self.per_file_ignores:
            return ()
        full = Path(os.path.abspath(path))
        base = self.root if full.is_relative_to(self.root) else Path.cwd()  # a `--config` from elsewhere
        if not full.is_relative_to(base):
            return ()
        relative = full.relative_to(base).as_posix()
        return tuple(
            selector
            for pattern, selectors in self.per_file_ignores
            if _file_pattern(pattern)(relative)
            for selector in selectors
        )

    def origin(self, key: str) -> str:
        return dict(self.origins).get(key, "default")


@lru_cache(maxsize=256)
def _file_pattern(pattern: str) -> Callable[[str], bool]:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern]).match_file


class Loader:
    """Finds the settings for a path: nearest config file upwards, then what the command line says.

    ``config`` holds ``--config`` arguments: a file, or TOML such as ``gpu = "always"``. A ``--select``
    on the command line starts afresh; ``--ignore`` and ``--extend-select`` add to the file's.
    """

    def __init__(
        self,
        *,
        config: Sequence[str] = (),
        isolated: bool = False,
        select: Sequence[str] = (),
        ignore: Sequence[str] = (),
        extend_select: Sequence[str] = (),
        min_confidence: Confidence | None = None,
    ) -> None:
        self._isolated = isolated
        self._file, self._inline = _split_config_arguments(config)
        if isolated and self._file is not None:
            raise ConfigError("--config", "", f"{self._file} can't be used together with --isolated")
        for option, selectors in (
            ("--select", select),
            ("--ignore", ignore),
            ("--extend-select", extend_select),
        ):
            check_selectors(selectors, option, "")
        self._select, self._ignore, self._extend = tuple(select), tuple(ignore), tuple(extend_select)
        self._min_confidence = min_confidence
        self._by_folder: dict[Path, Settings] = {}
        self._by_file: dict[Path | None, Settings] = {}

    def __call__(self, path: Path) -> Settings:
        """The settings for a file or folder; it need not exist."""
        absolute = Path(os.path.abspath(path))
        folder = absolute if absolute.is_dir() else absolute.parent
        return self._for_folder(folder)

    def _for_folder(self, folder: Path) -> Settings:
        known = self._by_folder.get(folder)
        if known is None:
            if self._isolated or self._file is not None:
                known = self._settings(self._file)
            elif (found := config_in(folder)) is not None:
                known = self._settings(found)
            elif folder.parent != folder:
                known = self._for_folder(folder.parent)
            else:
                known = self._settings(None)
            self._by_folder[folder] = known
        return known

    def _settings(self, file: Path | None) -> Settings:
        if file not in self._by_file:
            settings = Settings() if file is None else read_config(file)
            for table in self._inline:
                settings = _apply(settings, table, "--config")
            self._by_file[file] = self._with_options(settings)
        return self._by_file[file]

    def _with_options(self, settings: Settings) -> Settings:
        changes: dict[str, Any] = {}
        if self._select:
            changes |= {"select": self._select, "ignore": (), "extend_select": ()}
        if self._ignore:
            changes["ignore"] = changes.get("ignore", settings.ignore) + self._ignore
        if self._extend:
            changes["extend_select"] = changes.get("extend_select", settings.extend_select) + self._extend
        if self._min_confidence is not None:
            changes["min_confidence"] = self._min_confidence
        origins = dict(settings.origins) | {_key(name): "the command line" for name in changes}
        return replace(settings, **changes, origins=tuple(origins.items()))


def load(path: Path) -> Settings:
    """The settings for one path, as the files on disk say."""
    return Loader()(path)


def config_in(folder: Path) -> Path | None:
    """The config file of a folder, if it has one; a pyproject.toml counts when it has our table."""
    for name in CONFIG_NAMES:
        file = folder / name
        try:
            if name != "pyproject.toml":
                if file.is_file():
                    return file
            elif b"gpulint" in (data := file.read_bytes()) and _our_table(_parse(data, file)) is not None:
                return file
        except OSError:  # not there, or a folder that may not be read: look further up
            continue
    return None


def read_config(file: Path) -> Settings:
    """The settings of one config file, relative to its folder."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(file, "", f"can't be read: {error.strerror}") from None
    table: object = _parse(data, file)
    if file.name == "pyproject.toml" and isinstance(table, dict):
        table = _our_table(table)
        if table is None:
            raise ConfigError(file, "", "has no [tool.gpulint] table")
    file = Path(os.path.abspath(file))
    return _apply(Settings(root=file.parent, source=file), table, file)


def _our_table(pyproject: Mapping[str, Any]) -> object | None:
    tool = pyproject.get("tool")
    return tool.get("gpulint") if isinstance(tool, dict) else None


def _parse(data: bytes, file: Path) -> dict[str, Any]:
    try:
        table: dict[str, Any] = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
        return table
    except UnicodeDecodeError:
        raise ConfigError(file, "", "is not valid TOML: it is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(file, "", f"is not valid TOML: {error}") from None


def _split_config_arguments(arguments: Sequence[str]) -> tuple[Path | None, list[dict[str, Any]]]:
    file: Path | None = None
    inline: list[dict[str, Any]] = []
    for argument in arguments:
        path = Path(argument)
        if "=" in argument and not path.exists():
            try:
                inline.append(tomllib.loads(argument))
            except tomllib.TOMLDecodeError as error:
                raise ConfigError("--config", "", f"{argument!r} is not valid TOML: {error}") from None
        elif not path.is_file():
            raise ConfigError("--config", "", f"{argument} is neither a file nor a setting like 'gpu = \"always\"'")
        elif file is not None:
            raise ConfigError("--config", "", f"names two files, {file} and {argument}")
        else:
            file = path
    return file, inline


def _apply(settings: Settings, table: object, where: Path | str) -> Settings:
    """The settings with a table's keys in place of the old values."""
    if not isinstance(table, dict):
        raise ConfigError(where, "tool.gpulint", f"must be a table, not {_kind(table)}")
    changes: dict[str, Any] = {}
    for key, value in table.items():
        parse = _KEYS.get(key)
        if parse is None:
            raise ConfigError(where, key, f"is no setting of gpulint{did_you_mean(_fold(key), _KEYS)}")
        changes[key.replace("-", "_")] = parse(value, where, key)
    origins = dict(settings.origins) | {key: str(where) for key in table}
    return replace(settings, **changes, origins=tuple(origins.items()))


# --- one parser per kind of value; each gives a frozen value or raises ConfigError -----------------


def _strings(value: object, where: Path | str, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ConfigError(where, key, f"must be a list of strings, not {_kind(value)}")
    for item in value:
        if not isinstance(item, str) or not item.strip():
            raise ConfigError(where, key, f"must hold strings only, but has {_kind(item)}")
    return tuple(value)


def _names(value: object, where: Path | str, key: str) -> tuple[str, ...]:
    names = _strings(value, where, key)
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigError(where, key, f"must hold names such as `package.module.name`, but has {name!r}")
    return names


def _selectors(value: object, where: Path | str, key: str) -> tuple[str, ...]:
    selectors = _strings(value, where, key)
    if key == "select" and not selectors:
        raise ConfigError(where, key, "is empty: leave it out to get the rules that are on by default")
    check_selectors(selectors, where, key)
    return selectors


def _per_file(value: object, where: Path | str, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ConfigError(where, key, f"must be a table of pattern = [rules], not {_kind(value)}")
    return tuple((pattern, _selectors(rules, where, f"{key}.{pattern}")) for pattern, rules in value.items())


def _boolean(value: object, where: Path | str, key: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(where, key, f"must be true or false, not {_kind(value)}")
    return value


def _choice(value: object, where: Path | str, key: str, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        said = repr(value) if isinstance(value, str) else _kind(value)
        raise ConfigError(where, key, f"must be one of {', '.join(choices)}, not {said}")
    return value


def _gpu(value: object, where: Path | str, key: str) -> str:
    return _choice(value, where, key, GPU_CHOICES)


def _confidence(value: object, where: Path | str, key: str) -> Confidence:
    return Confidence[_choice(value, where, key, [c.label for c in Confidence]).upper()]


_KEYS: dict[str, Callable[[object, Path | str, str], object]] = {
    "select": _selectors,
    "ignore": _selectors,
    "extend-select": _selectors,
    "per-file-ignores": _per_file,
    "exclude": _strings,
    "extend-exclude": _strings,
    "step-functions": _names,
    "gpu": _gpu,
    "min-confidence": _confidence,
    "allowed-sync": _names,
    "respect-gitignore": _boolean,
}


def _kind(value: object) -> str:
    for kind, name in (
        (bool, "a boolean"),
        (str, "a string"),
        ((int, float), "a number"),
        (list, "a list"),
        (dict, "a table"),
    ):
        if isinstance(value, kind):
            return "an empty string" if value == "" else name
    return f"a {type(value).__name__}"


def _key(name: str) -> str:
    return name.replace("_", "-")


def _fold(key: str) -> str:
    return _key(key).lower()


# --- rules -----------------------------------------------------------------------------------------


def check_selectors(selectors: Iterable[str], where: Path | str, key: str) -> None:
    """Raise ConfigError for a selector that names no rule."""
    for selector in selectors:
        known = _known_selectors()
        if selector not in known:
            hint = did_you_mean(selector, known, upper=selector.upper() in known)
            raise ConfigError(where, key, f"names no rule: {selector!r}{hint}")


@lru_cache(maxsize=1)
def _known_selectors() -> dict[str, None]:
    """Every selector that means something: ALL, codes, their prefixes, names and groups, in order."""
    from gpulint.rule import all_rules

    known: dict[str, None] = {}
    for code, name, group in (
        (*UNUSED_SUPPRESSION, ""),
        *((rule.code, rule.name, rule.group) for rule in all_rules()),
    ):
        known |= dict.fromkeys(filter(None, (code, name, group)))
        known |= dict.fromkeys(code[:length] for length in range(len("GPU"), len(code)))
    return known | dict.fromkeys(("ALL", "GPU"))


def did_you_mean(word: str, known: Iterable[str], upper: bool = False) -> str:
    """``"; did you mean …?"`` with the nearest known word, or nothing."""
    from difflib import get_close_matches

    near = [word.upper()] if upper else get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean `{near[0]}`?" if near else ""


def describe(settings: Settings) -> list[tuple[str, object, str]]:
    """Key, value and origin of every setting, for ``gpulint config``."""
    internal = {"root", "source", "origins"}
    rows: list[tuple[str, object, str]] = []
    for item in fields(settings):
        if item.name not in internal:
            key = _key(item.name)
            value = getattr(settings, item.name)
            rows.append((key, dict(value) if key == "per-file-ignores" else value, settings.origin(key)))
    return rows
