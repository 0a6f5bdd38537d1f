"""What the tests of rules and of the model share: analyse texts in memory, compare with comments, fix.

A program under test says itself what should be found, in trailing comments:

    total += loss.item()      # expect: GPU101
    reveal(total)             # revealed: Tensor[gpu, attached]
    probe()                   # step: training
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from textwrap import dedent

from gpulint.config import Settings
from gpulint.finding import Applicability, Confidence, Finding
from gpulint.fix import MAX_ROUNDS, apply_fixes
from gpulint.model import Model, analyse
from gpulint.rule import Rule, all_rules
from gpulint.source import Source, compiles, from_text, replaced

REPOSITORY = Path(__file__).resolve().parents[1]
FIXTURES = REPOSITORY / "fixtures"
FLOW = Path(__file__).resolve().parent / "flow"
ROOT = Path("/project")  # where programs written in tests are said to lie; nothing is there

Places = Counter[tuple[int, str]]  # how often each (line, code)

_EXPECT = re.compile(r"#\s*expect:\s*(GPU\d{3}(?:\s*,\s*GPU\d{3})*)\s*$")


@dataclass(frozen=True)
class Project:
    """Some files, analysed together, with every rule's findings."""

    sources: Mapping[str, Source]
    models: Mapping[str, Model]
    findings: tuple[Finding, ...]

    def of(self, name: str) -> list[Finding]:
        return [f for f in self.findings if f.path == self.sources[name].path]

    def places(self, name: str) -> Places:
        source = self.sources[name]
        return Counter((source.position(f.span.start)[0], f.code) for f in self.of(name))


def settings(**options: object) -> Settings:
    return replace(Settings(root=ROOT), **options)  # type: ignore[arg-type]


def project(
    files: Mapping[str, str] | str, config: Settings | None = None, rules: Iterable[Rule] | None = None
) -> Project:
    """Analyse texts as one project; a lone text is its ``main.py``. No file is read or written."""
    texts = {"main.py": files} if isinstance(files, str) else dict(files)
    sources = {name: from_text(ROOT / name, text) for name, text in texts.items()}
    config = config or settings()
    analysis = analyse(list(sources.values()), config)
    assert not analysis.failures, [f.message for f in analysis.failures.values()]
    models = {name: analysis.models[source.path] for name, source in sources.items()}
    found = [f for model in models.values() for f in findings_in(model, rules, config.min_confidence)]
    return Project(sources, models, tuple(found))


def findings_in(
    model: Model, rules: Iterable[Rule] | None = None, least: Confidence = Confidence.LIKELY
) -> list[Finding]:
    """What every rule says about a file, in the order of the text."""
    found = [
        replace(finding, code=rule.code, path=model.path)
        for rule in (all_rules() if rules is None else rules)
        for finding in rule.check(model)
        if finding.confidence >= least
    ]
    return sorted(found, key=lambda f: (f.span, f.code))


def expected(text: str) -> Places:
    """What the ``# expect:`` comments of a text ask for."""
    wanted: Places = Counter()
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        match = _EXPECT.search(line)
        if match is not None:
            wanted.update((number, code) for code in re.split(r"\s*,\s*", match[1]))
    return wanted


def check(files: Mapping[str, str] | str, *codes: str, config: Settings | None = None) -> Project:
    """Findings and ``# expect:`` comments agree, in every file; with codes, as to these rules only."""
    texts = {"main.py": files} if isinstance(files, str) else dict(files)
    texts = {name: dedent(text) for name, text in texts.items()}
    analysed = project(texts, config)
    for name, text in texts.items():
        assert_places(text, only(analysed.places(name), codes), only(expected(text), codes), name)
    return analysed


def only(places: Places, codes: Iterable[str]) -> Places:
    wanted = set(codes)
    return Counter({k: n for k, n in places.items() if not wanted or k[1] in wanted})


def assert_places(text: str, found: Places, wanted: Places, name: str) -> None:
    """Fail with the source lines that were reported and should not be, and the other way round."""
    if found == wanted:
        return
    lines = re.split(r"\r\n|\r|\n", text)

    def shown(places: Places) -> str:
        return "".join(f"\n    {line}: {code}  {lines[line - 1].strip()}" for line, code in sorted(places))

    raise AssertionError(
        f"{name}\n  not found, but expected:{shown(wanted - found)}\n  found, not expected:{shown(found - wanted)}"
    )


# ---- fixes -----------------------------------------------------------------------------------------------


def relint(source: Source) -> list[Finding]:
    """Findings of every rule in one text that is a project of its own: what a fix loop asks for."""
    return list(_relint(source.path, source.text))


@lru_cache(maxsize=4096)
def _relint(path: Path, text: str) -> tuple[Finding, ...]:
    source = from_text(path, text)
    analysis = analyse([source], settings())
    assert not analysis.failures, f"{path} does not parse"
    return tuple(findings_in(analysis.models[path]))


def fixed(source: Source, *codes: str, unsafe: bool = True) -> tuple[Source, list[Finding], int]:
    """The text after all rounds of the fixes, what was mended on the way, and how many rounds it took.

    With codes, the fixes of these rules only. The text compiles after every round.
    """
    mended: list[Finding] = []
    for rounds in range(MAX_ROUNDS + 1):
        findings = [f for f in relint(source) if not codes or f.code in codes]
        text, chosen = apply_fixes(source, findings, unsafe)
        if text == source.text:
            return source, mended, rounds
        assert compiles(text, source.path)
        source = replaced(source, text)
        mended += chosen
    raise AssertionError("the fixes do not converge")


def codes_of(findings: Iterable[Finding]) -> list[str]:
    return sorted(f.code for f in findings)


def fixable(finding: Finding, unsafe: bool = True) -> bool:
    """Whether ``--fix`` (with ``--unsafe-fixes``) would change something for the finding."""
    if finding.fix is None or not finding.fix.edits:
        return False
    return unsafe or finding.fix.applicability is Applicability.SAFE


# ---- steps -----------------------------------------------------------------------------------------------

_STEP = re.compile(r"#\s*step:\s*(none|training|evaluation|evaluation and training)\s*$")


def check_steps(files: Mapping[str, str] | str, config: Settings | None = None) -> None:
    """Each ``probe()  # step: training`` runs once per step of that phase, or on none."""
    texts = {"main.py": files} if isinstance(files, str) else dict(files)
    texts = {name: dedent(text) for name, text in texts.items()}
    analysed = project(texts, config, rules=())
    wanted: dict[tuple[str, int], str] = {}
    found: dict[tuple[str, int], str] = {}
    for name, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            if (match := _STEP.search(line)) is not None:
                wanted[name, number] = match[1]
        for group in analysed.models[name].calls("probe"):
            steps = {analysed.models[name].step(site) for site in group}
            phases = {step.phase.value for step in steps if step is not None}
            found[name, group[0].line] = " and ".join(sorted(phases)) or "none"
    wrong = [
        f"{name}:{line}: {found.get((name, line), 'none')}, not {wanted.get((name, line))}"
        for name, line in sorted(set(found) | set(wanted))  # what no analysis reached runs on no step
        if found.get((name, line), "none") != wanted.get((name, line))
    ]
    assert not wrong, "\n".join(["", *wrong])
