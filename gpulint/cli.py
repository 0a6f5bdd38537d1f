"""The command line: click commands without logic of their own. Heavy imports stay inside the commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gpulint import __version__

if TYPE_CHECKING:
    from gpulint.config import Loader
    from gpulint.rule import Rule

CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130
FORMATS = ("text", "concise", "json", "sarif", "github")


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`gpulint PATH...` is short for `gpulint check PATH...`.",
)
@click.version_option(__version__, "--version", "-V", message="gpulint %(version)s")
def cli() -> None:
    """Find, explain and fix GPU anti-patterns in PyTorch code."""


def _selectors(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """``--select GPU1,memory --select GPU502`` → each by itself."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _confidence(_: click.Context, __: click.Parameter, value: str | None) -> object:
    from gpulint.finding import Confidence

    return None if value is None else Confidence[value.upper()]


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_settings_options = _options(
    click.option("--select", multiple=True, callback=_selectors, metavar="RULES",
                 help="Run these rules only: codes, prefixes, names or groups, or ALL."),
    click.option("--ignore", multiple=True, callback=_selectors, metavar="RULES",
                 help="Leave these rules out."),
    click.option("--extend-select", multiple=True, callback=_selectors, metavar="RULES",
                 help="Run these rules as well."),
    click.option("--min-confidence", type=click.Choice(["possible", "likely", "certain"]),
                 callback=_confidence, help="Show findings from this confidence up (default: likely)."),
    click.option("--config", "config", multiple=True, metavar="FILE|SETTING",
                 help="Use this config file; or set one setting, such as 'gpu = \"always\"'."),
    click.option("--isolated", is_flag=True, help="Ignore all config files."),
)  # fmt: skip
_loudness_options = _options(
    click.option("--quiet", "-q", is_flag=True, help="Print findings and errors only."),
    click.option("--verbose", "-v", is_flag=True, help="Say more: what is read, and where an error arose."),
)


def _loader(options: dict[str, Any]) -> Loader:
    from gpulint.config import Loader

    names = ("config", "isolated", "select", "ignore", "extend_select", "min_confidence")
    return Loader(**{name: options.pop(name) for name in names})


@cli.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@_settings_options
@click.option("--explain", is_flag=True, help="Show the evidence behind each finding.")
@click.option("--fix", is_flag=True, help="Apply the fixes that keep the program's behaviour.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also those that may change it.")
@click.option("--diff", is_flag=True, help="Print the fixes as a diff and write nothing.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output-file", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write the report there.")
@click.option("--statistics", is_flag=True, help="Count findings by rule, and what the analysis met.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when there are findings.")
@click.option("--stdin-filename", type=click.Path(path_type=Path), help="The name of what `-` reads.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Worker processes (default: one per core).")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@_loudness_options
def check(**options: Any) -> None:
    """Lint files and folders.

    Without PATHS: the current folder. `-` reads from standard input.

    Exit codes: 0 nothing found, 1 findings, 2 an error (usage, configuration, or a file that can't be
    read or parsed; the others are linted all the same).
    """
    from gpulint.run import Options, run

    loader = _loader(options)
    options["color"] = _wants_color(options["color"], to_file=options["output_file"] is not None)
    raise click.exceptions.Exit(run(loader, Options(**options)))


@cli.command()
@click.argument("code", required=False)
@click.option("--all", "every", is_flag=True, help="All rules.")
@click.option("--output-format", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def rule(code: str | None, every: bool, output_format: str) -> None:
    """Explain a rule, named by code or name."""
    if (code is None) is not every:
        raise click.UsageError("name one rule, or say --all.")
    from gpulint import pages
    from gpulint.report import every_rule

    rules = every_rule() if code is None else (_find_rule(code),)
    if output_format == "json":
        import json

        records = [pages.record(rule) for rule in rules]
        emit(json.dumps(records if every else records[0], indent=2) + "\n")
    elif output_format == "markdown":
        emit("\n".join(map(pages.markdown, rules)))
    else:
        emit(pages.table(rules) if every else pages.text(rules[0]))


def _find_rule(code: str) -> Rule:
    from gpulint.config import did_you_mean
    from gpulint.report import every_rule

    by_selector = {key: rule for rule in every_rule() for key in (rule.code, rule.name)}
    found = by_selector.get(code) or by_selector.get(code.upper())
    if found is None:
        raise click.UsageError(f"there is no rule {code!r}{did_you_mean(code, by_selector)}")
    return found


@cli.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@_settings_options
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def config(path: Path, output_format: str, **options: Any) -> None:
    """Show the settings in force for a path.

    Says where each of them comes from, and which rules run.
    """
    from gpulint import show

    settings = _loader(options)(path)
    render = show.settings_json if output_format == "json" else show.settings_text
    emit(render(settings, path))


@cli.command()
@click.argument("place", metavar="FILE:LINE")
@_settings_options
def reveal(place: str, **options: Any) -> None:
    """Show what the analysis knows of a line's values.

    For rule authors and bug reports.
    """
    file, colon, number = place.rpartition(":")
    if not colon or not number.isdecimal():
        raise click.UsageError(f"{place!r} is not of the form FILE:LINE, such as train.py:42.")
    from gpulint.show import revealed
    from gpulint.source import SourceError

    try:
        emit(revealed(Path(file), int(number), _loader(options)))
    except SourceError as error:
        raise click.ClickException(str(error)) from None


@cli.command()
@click.argument("name", metavar="GROUP/NAME")
@click.option("--code", help="The rule's code (default: the next free one of the group).")
def new_rule(name: str, code: str | None) -> None:
    """Write the stub of a new rule.

    And its fixtures and page, in a checkout of gpulint. No existing file is touched.
    """
    from gpulint.new_rule import NewRuleError, create

    try:
        made = create(name, __version__.rpartition(".")[0], code)
    except NewRuleError as error:
        raise click.UsageError(f"{error}.") from None
    shown = [os.path.relpath(path) for path in made.files]
    emit(f"{made.code} {name.partition('/')[2]}:\n" + "".join(f"  {path}\n" for path in shown))
    emit(f"Next: write fixtures/{name.partition('/')[2]}, then {shown[0]}, then `make docs` and `make test`.\n")


# --- output ----------------------------------------------------------------------------------------


def emit(text: str) -> None:
    """Write to standard output; when its reader has gone (``| head``), the rest is silently dropped."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def warn(text: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"gpulint: {text}\n")


def _wants_color(choice: str, *, to_file: bool) -> bool:
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return not to_file and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


# --- the outermost layer ---------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code; no user ever sees a traceback unasked."""
    arguments = with_default_command(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what the terminal can't show is shown as \u escapes
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    try:
        code = cli.main(args=arguments, prog_name="gpulint", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return ERROR
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        from gpulint.config import ConfigError

        if isinstance(error, ConfigError):
            warn(f"error: {error}")
            return ERROR
        return _internal_error(error, verbose=not {"-v", "--verbose"}.isdisjoint(arguments))
    return code if isinstance(code, int) else CLEAN


def _internal_error(error: Exception, *, verbose: bool) -> int:
    if verbose:
        import traceback

        traceback.print_exception(error)
    hint = "the traceback above" if verbose else "the output of --verbose"
    message = f"{type(error).__name__}: {error}".partition("\n")[0]
    warn(f"internal error ({message}). This is a defect of gpulint: please report it with {hint}.")
    return ERROR


def with_default_command(arguments: Sequence[str]) -> list[str]:
    """``PATH...`` → ``check PATH...``; a folder that is named like a command is written ``./config``."""
    arguments = list(arguments)
    if not arguments:
        return ["--help"]
    if arguments[0] in cli.commands or arguments[0] in ("-h", "--help", "-V", "--version"):
        return arguments
    return ["check", *arguments]
