"""Properties: programs composed of the rules' own vocabulary, and any Python at all."""

from __future__ import annotations

import sysconfig
from collections import Counter
from pathlib import Path

import pytest
from harness import fixable, relint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulint.config import Settings
from gpulint.fix import MAX_ROUNDS, apply_fixes
from gpulint.model import analyse
from gpulint.source import compiles, from_text, replaced

HEAD = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n"
)
MOVES = ["", ".cuda()", ".to(device)", ".cuda(non_blocking=True)", '.to("cuda", non_blocking=True)']
GUARDS = ["", "if step % 10 == 0: ", "if rank == 0: ", "if step == 0: "]
LINES = [
    "total += loss.item()",
    "total += loss",
    "losses.append(loss)",
    "losses.append(loss.detach().cpu())",
    "kept.append(out)",
    "print(step, loss)",
    "print(float(loss))",
    "noise = torch.randn(4, 4).to(device)",
    "ones = torch.ones(len(x), 1).cuda()",
    "assert torch.isfinite(loss)",
    "accuracy = (out.argmax(1) == y).float().mean().item()",
    "meter.update(loss)",
    "x = x.detach()",
    "del out",
    "pass",
]
OPTIONS = ["batch_size=4", "num_workers=2", "pin_memory=True", "pin_memory=False", "num_workers=0"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A training function: a loader, moves, a step, and lines that a rule may have a word on."""
    options = draw(st.lists(st.sampled_from(OPTIONS), max_size=3, unique_by=lambda o: o.partition("=")[0]))
    moves = draw(st.tuples(st.sampled_from(MOVES), st.sampled_from(MOVES)))
    lines = draw(st.lists(st.tuples(st.sampled_from(GUARDS), st.sampled_from(LINES)), min_size=1, max_size=5))
    step = draw(st.sampled_from([["optimizer.zero_grad()", "loss.backward()", "optimizer.step()"], []]))
    indent = draw(st.sampled_from(["    ", "\t"]))
    shell = draw(st.sampled_from(["", "with torch.no_grad():"]))
    body = [
        f"x, y = x{moves[0]}, y{moves[1]}",
        "out = model(x)",
        "loss = F.cross_entropy(out, y)",
        *step,
        *(f"{guard}{line}" for guard, line in lines),
    ]
    name = draw(st.sampled_from(["train", "evaluate", "run"]))
    after = draw(st.sampled_from(["return total", "return torch.cat(kept).cpu()", "return losses", "print(total)"]))
    depth = indent * (2 if shell else 1)
    return "\n".join(
        [
            HEAD + f"def {name}(model, dataset, optimizer, meter, rank):",
            f'{indent}device = torch.device("cuda")',
            f"{indent}model.to(device)",
            f"{indent}loader = DataLoader({', '.join(['dataset', *options])})",
            f"{indent}total, losses, kept = 0.0, [], []",
            *([indent + shell] if shell else []),
            f"{depth}for step, (x, y) in enumerate(loader):",
            *(f"{depth}{indent}{line}" for line in body),
            f"{indent}{after}",
            "",
        ]
    )


SEEN: Counter[str] = Counter()
quick = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(programs())
def test_findings_lie_in_the_text_and_fixes_settle(text: str) -> None:
    source = from_text(Path("/project/main.py"), text)
    findings = relint(source)
    SEEN["programs"] += 1
    SEEN["with findings"] += bool(findings)
    for finding in findings:
        assert 0 <= finding.span.start < finding.span.end <= len(text)
    for _ in range(MAX_ROUNDS):
        new, _ = apply_fixes(source, relint(source), unsafe=True)
        assert compiles(new, source.path)
        if new == source.text:
            break
        source = replaced(source, new)
    else:
        raise AssertionError("the fixes do not converge")
    assert not [f for f in relint(source) if fixable(f)]


def test_the_programs_are_worth_drawing() -> None:
    if SEEN["programs"] < 50:
        pytest.skip("the property did not run before this test")
    assert SEEN["with findings"] > 0.3 * SEEN["programs"]


@quick
@given(programs(), st.integers(0, 3))
def test_comments_and_dead_code_change_nothing(text: str, blank: int) -> None:
    source = from_text(Path("/project/main.py"), text)
    other = from_text(Path("/project/main.py"), "# a comment\n" + "\n" * blank + text + "# another\n")
    shift = 1 + blank
    before = [(source.position(f.span.start)[0] + shift, f.code) for f in relint(source)]
    assert [(other.position(f.span.start)[0], f.code) for f in relint(other)] == before


def library() -> list[Path]:
    """Every eighth module of the standard library: Python that nobody wrote for us."""
    folder = Path(sysconfig.get_path("stdlib"))
    return sorted(path for path in folder.glob("*.py") if path.stat().st_size < 60_000)[::8]


@pytest.mark.parametrize("path", library(), ids=lambda path: path.name)
def test_no_python_makes_it_crash(path: Path) -> None:
    text = "import torch\nmodel.cuda()\n" + path.read_text(encoding="utf-8", errors="replace")
    if not compiles(text, path):
        pytest.skip("not for this Python")
    source = from_text(Path("/project") / path.name, text)
    assert not analyse([source], Settings(root=Path("/project"))).crashes
    relint(source)
