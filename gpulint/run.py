"""One run of ``gpulint check``: discover, lint, fix, report; returns the exit code."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulint.cli import CLEAN, ERROR, FINDINGS, emit, warn
from gpulint.config import Loader
from gpulint.discover import discover
from gpulint.engine import Outcome, Project, check, projects
from gpulint.finding import Finding, ParseFailed, RuleCrashed
from gpulint.fix import unified_diff, write_atomic
from gpulint.source import SourceError, decode, encode

PARALLEL_FROM = 200_000  # characters of source from which a second process pays


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``gpulint check``, as the command line gives them."""

    paths: tuple[Path, ...] = ()
    explain: bool = False
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    output_format: str = "text"
    output_file: Path | None = None
    statistics: bool = False
    exit_zero: bool = False
    stdin_filename: Path | None = None
    jobs: int | None = None
    color: bool = False
    quiet: bool = False
    verbose: bool = False


def run(settings_for: Loader, options: Options) -> int:
    """Lint and report. The exit code: 0 clean, 1 findings (or a diff), 2 something was not linted."""
    started = time.perf_counter()
    gc.disable()  # a short run that builds large trees: the collector would only walk them
    if Path("-") in options.paths:
        return _stdin(settings_for, options, started)
    paths = options.paths or (Path(),)
    found = discover(paths, settings_for)
    if not found.files and not found.failures:
        warn(f"warning: no Python file under {', '.join(map(str, paths))}")
    groups, failures = projects(found.files, settings_for, paths)
    outcomes = _lint(groups, settings_for, options)
    outcome = _merged(outcomes, [*found.failures, *failures])
    if options.fix and not options.diff:
        _write(outcome)
    return _finish(outcome, options, started)


def _lint(groups: Sequence[Project], settings_for: Loader, options: Options) -> list[Outcome]:
    """Each project by itself, in several processes where there are several large ones."""
    fixing = options.fix or options.diff
    jobs = min(options.jobs or os.cpu_count() or 1, len(groups))
    size = sum(len(source.text) for project in groups for source in project.asked)
    if jobs > 1 and size >= PARALLEL_FROM:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(jobs, initializer=_die_quietly) as pool:
            tasks = [pool.submit(_one, group, settings_for, fixing, options.unsafe_fixes) for group in groups]
            return [task.result() for task in tasks]
    return [_one(group, settings_for, fixing, options.unsafe_fixes) for group in groups]


def _die_quietly() -> None:
    """In a worker: Ctrl-C ends it without a traceback; the parent process says what is to be said."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _one(group: Project, settings_for: Loader, fix: bool, unsafe: bool) -> Outcome:
    return check(group, settings_for, fix=fix, unsafe=unsafe)


def _merged(outcomes: Sequence[Outcome], failures: Sequence[ParseFailed]) -> Outcome:
    whole = Outcome(results=list(failures))
    for outcome in outcomes:
        whole.results.extend(outcome.results)
        whole.sources.update(outcome.sources)
        whole.originals.update(outcome.originals)
        whole.statistics.update(outcome.statistics)
        whole.fixed.extend(outcome.fixed)
        for phase, seconds in outcome.seconds.items():
            whole.seconds[phase] = whole.seconds.get(phase, 0.0) + seconds
    whole.results.sort(key=lambda result: str(result.path))
    return whole


def _write(outcome: Outcome) -> None:
    """Replace the changed files; one that cannot be written is reported and keeps its findings."""
    for path, original in outcome.originals.items():
        try:
            write_atomic(original, outcome.sources[path].text)
        except SourceError as error:
            outcome.results.append(ParseFailed(path, 1, 1, error.message))
            outcome.fixed = [f for f in outcome.fixed if f.path != path]


def _stdin(settings_for: Loader, options: Options, started: float) -> int:
    name = options.stdin_filename or Path("<stdin>")
    try:
        source = decode(name, sys.stdin.buffer.read())
    except SourceError as error:
        return _finish(Outcome(results=[ParseFailed(name, 1, 1, error.message)]), options, started)
    root = name.parent if options.stdin_filename else Path.cwd()
    outcome = check(
        Project(Path(os.path.abspath(root)), (source,)),
        settings_for,
        fix=options.fix or options.diff,
        unsafe=options.unsafe_fixes,
    )
    if options.fix and not options.diff:
        sys.stdout.buffer.write(encode(source, outcome.sources[name].text))
        sys.stdout.buffer.flush()
        return _code(outcome, options)
    return _finish(outcome, options, started)


def _finish(outcome: Outcome, options: Options, started: float) -> int:
    from gpulint.report import Report, Style, render
    from gpulint.report.summary import count

    if options.diff:
        text = "".join(
            unified_diff(original.text, outcome.sources[path].text, _shown(path))
            for path, original in outcome.originals.items()
        )
        _deliver(text, options)
        for problem in Report(outcome.results, root=Path.cwd()).problems:
            warn(f"error: {_shown(problem.path)}:{problem.line}: {problem.message}")
        if outcome.fixed and not options.quiet:
            fixed, files = len(outcome.fixed), len(outcome.originals)
            warn(f"would fix {count(fixed, 'finding')} in {count(files, 'file')}")
        return _code(outcome, options)
    report = Report(
        results=tuple(outcome.results),
        sources=outcome.sources,
        fixed=len(outcome.fixed),
        statistics=dict(outcome.statistics) | {f"seconds: {k}": round(v, 3) for k, v in outcome.seconds.items()},
        elapsed=time.perf_counter() - started,
        root=Path.cwd(),
    )
    style = Style(
        color=options.color,
        width=_width(options),
        explain=options.explain,
        quiet=options.quiet,
        verbose=options.verbose,
        statistics=options.statistics,
    )
    _deliver(render(report, options.output_format, style), options)
    return _code(outcome, options)


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.is_absolute() and path.is_relative_to(Path.cwd()) else str(path)


def _width(options: Options) -> int:
    """The terminal's width, within what is good to read; 80 columns for a file or a pipe."""
    if options.output_file is not None or not sys.stdout.isatty():
        return 80
    return min(max(shutil.get_terminal_size().columns, 60), 120)


def _deliver(text: str, options: Options) -> None:
    if options.output_file is None:
        emit(text)
        return
    try:
        options.output_file.write_text(text, encoding="utf-8")
    except OSError as error:
        from click import ClickException

        raise ClickException(f"{options.output_file} cannot be written: {error.strerror or error}") from None


def _code(outcome: Outcome, options: Options) -> int:
    if any(isinstance(result, ParseFailed | RuleCrashed) for result in outcome.results):
        return ERROR
    pending: Sequence[Finding] = outcome.fixed if options.diff else outcome.findings
    return FINDINGS if pending and not options.exit_zero else CLEAN
