"""Edits of calls, statements and imports: what they write, and that they change nothing else."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulint import edits
from gpulint.edits import Edits
from gpulint.finding import Edit, Span
from gpulint.fix import apply_edits
from gpulint.source import compiles, from_text

PATH = Path("train.py")
quick = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def span_of(text: str, node: ast.AST) -> Span:
    source = from_text(PATH, text)
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Span(source.offset(node.lineno, node.col_offset), source.offset(node.end_lineno, node.end_col_offset))


def call_of(text: str) -> tuple[ast.Call, Span]:
    """The call of ``f`` in a text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "f":
            return node, span_of(text, node)
    raise AssertionError("no call")


def applied(text: str, made: Edits | None) -> str | None:
    return None if made is None else apply_edits(text, made)


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(re.sub(r"\r\n?", "\n", text)).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


# ---- keywords --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(k=1)"),
        ("f( )", "f( k=1)"),
        ("f(a)", "f(a, k=1)"),
        ("f(a,)", "f(a, k=1)"),
        ("f(a, (b))", "f(a, (b), k=1)"),
        ("f(a, b=(c))", "f(a, b=(c), k=1)"),
        ("f((f))(a)", "f((f), k=1)(a)"),
        ("f(*a)", "f(*a, k=1)"),
        ("f(a, **b)", "f(a, **b, k=1)"),
        ("f(x for x in y)", "f((x for x in y), k=1)"),
        ("f((x for x in y))", "f((x for x in y), k=1)"),
        ("f('é😀', g(b)) + 'é'", "f('é😀', g(b), k=1) + 'é'"),
        ("f('''\n''', b)", "f('''\n''', b, k=1)"),
        ("f(\n)", "f(\n    k=1,\n)"),
        ("\tf(\n\t)", "\tf(\n\t\tk=1,\n\t)"),
        ("f(\n    a\n)", "f(\n    a, k=1\n)"),
        ("f(\n    a,\n)", "f(\n    a,\n    k=1,\n)"),
        ("f(\n    a, b,\n    c, d,\n)", "f(\n    a, b,\n    c, d, k=1,\n)"),
        ("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    k=1\n)"),
        ("f(\n\ta,\n\tb\n)", "f(\n\ta,\n\tb,\n\tk=1\n)"),
        ("f(\n    a,\n    b)", "f(\n    a,\n    b,\n    k=1)"),
        ("f(\n    a,\n    b,)", "f(\n    a,\n    b,\n    k=1,)"),
        ("f(\r\n    a,\r\n    b,\r\n)", "f(\r\n    a,\r\n    b,\r\n    k=1,\r\n)"),
        ("f(\n    a,\n    b,  # b\n)", "f(\n    a,\n    b,  # b\n    k=1,\n)"),
        ("f(\n    a,\n    b  # b\n)", "f(\n    a,\n    b,  # b\n    k=1\n)"),
        ("f(\n    a,\n    b  # b, then\n    ,\n)", "f(\n    a,\n    b  # b, then\n    ,\n    k=1,\n)"),
        ("f(a,\n  # last\n)", "f(a, k=1,\n  # last\n)"),
        ("f(k=2)", "f(k=1)"),
        ("f(a, k=(2), b=3)", "f(a, k=(1), b=3)"),
        ("f(\n    k=2,  # why\n)", "f(\n    k=1,  # why\n)"),
        ("f(k='#fff')", "f(k=1)"),
        ("f(k=g(\n    2,  # why\n))", None),
        ("f(  # nothing to give\n)", None),
    ],
)
def test_set_keyword(before: str, after: str | None) -> None:
    text = f"if x:\n{before}" if before.startswith("\t") else before
    expected = f"if x:\n{after}" if before.startswith("\t") else after
    assert applied(text, edits.set_keyword(text, call_of(text)[1], "k", "1")) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(v)"),
        ("f(a, b=1)", "f(v, a, b=1)"),
        ("f(\n    a,\n)", "f(\n    v, a,\n)"),
        ("f(**a)", "f(v, **a)"),
        ("f((x for x in y))", "f(v, (x for x in y))"),
        ("f(x for x in y)", None),
        ("f(  # none\n)", None),
    ],
)
def test_insert_positional(before: str, after: str | None) -> None:
    assert applied(before, edits.insert_positional(before, call_of(before)[1], "v")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(k=1)", "f()"),
        ("f(k=1,)", "f()"),
        ("f( k=1 , )", "f(  )"),
        ("f((a), k=(1))", "f((a))"),
        ("f(a, k=1,)", "f(a,)"),
        ("f((a), k=(1), b=2)", "f((a), b=2)"),
        ("f(k=1, **b)", "f(**b)"),
        ("f(\n    k=1,\n)", "f(\n)"),
        ("f(\n    k=1,\n    b=2\n)", "f(\n    b=2\n)"),
        ("f(\n    a,  # a\n    k=g(\n        1\n    )\n)", "f(\n    a,  # a\n)"),
        ("f(a,\n    k=1)", "f(a)"),
        ("f(a,\n    k=1); b\n", "f(a); b\n"),
        ("f(\n    a,\n    k=1\n    )", "f(\n    a,\n    )"),
        ("(\nf)(k=1,\n    b=2)", "(\nf)(b=2)"),
        ("f(a, k=1,\n  b=2)", "f(a, b=2)"),
        ("f(a,  # a\n    k=1)", None),
        ("f(\n    k=1,  # why\n)", None),
        ("f(k=1,  # why\n  b=2)", None),
        ("f(a, k=1  # why\n    , b=2)", None),
        ("f(a, b=1)", None),
    ],
)
def test_remove_keyword(before: str, after: str | None) -> None:
    assert applied(before, edits.remove_keyword(before, call_of(before)[1], "k")) == after


def test_what_is_no_call_is_left_alone() -> None:
    for text in ("a + f", "(f()", "lambda: f()", "\udce4()"):
        whole = Span(0, len(text))
        assert edits.set_keyword(text, whole, "k", "1") is None
        assert edits.insert_positional(text, whole, "v") is None
        assert edits.remove_keyword(text, whole, "k") is None


_ARGUMENTS = ["a", "(b)", "g(c)", "'é,#'", "lambda: 0", "*d", "[1,\n  2]", "'''x\ny'''", "k=0", "k = (0)", "m=2", "**e"]
_GAPS = ["", " ", "\n    ", "  # why, (so)\n    ", "\n\n", "\n    # of its own\n    "]


@st.composite
def calls(draw: st.DrawFn) -> str:
    """A call with arguments of all kinds, and blanks, newlines and comments at random between them."""
    chosen = draw(st.lists(st.sampled_from(_ARGUMENTS), max_size=4, unique_by=lambda a: a.split("=")[0].strip()))
    ordered = sorted(chosen, key=lambda a: ("**" in a, bool(re.match(r"\w+ ?=", a))))
    gap = draw(st.sampled_from([st.just("\n    "), st.sampled_from(_GAPS)]))
    parts = [draw(gap) + argument + draw(st.sampled_from(["", " ", "  # c\n"])) for argument in ordered]
    comma = draw(st.sampled_from(["", ","])) if parts else ""
    text = f"é = f({','.join(parts)}{comma}{draw(gap)})  # end"
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"])))


@quick
@given(calls())
def test_a_keyword_is_all_that_comes_or_goes(text: str) -> None:
    call, span = call_of(text)
    before = [ast.dump(k) for k in call.keywords if k.arg != "k"]
    made = edits.set_keyword(text, span, "k", "1")
    has = any(k.arg == "k" for k in call.keywords)
    assert made is not None or not (call.args or call.keywords)
    if made is not None:
        new = apply_edits(text, made)
        assert compiles(new, PATH)
        after, _ = call_of(new)
        assert [ast.unparse(k) for k in after.keywords if k.arg == "k"] == ["k=1"]
        assert [ast.dump(k) for k in after.keywords if k.arg != "k"] == before
        assert [ast.dump(a) for a in after.args] == [ast.dump(a) for a in call.args]
        assert comments(new) == comments(text)
        assert has or all(edit.start == edit.end for edit in made)  # nothing is taken away
        assert set(re.findall(r"\r\n?|\n", new)) <= set(re.findall(r"\r\n?|\n", text)) | {"\n"}
    gone = edits.remove_keyword(text, span, "k")
    assert has or gone is None
    if gone is not None:
        new = apply_edits(text, gone)
        assert compiles(new, PATH)
        after, _ = call_of(new)
        assert [ast.dump(k) for k in after.keywords] == before
        assert [ast.dump(a) for a in after.args] == [ast.dump(a) for a in call.args]
        assert comments(new) == comments(text)


# ---- statements ------------------------------------------------------------------------------------

_SIMPLE = [
    "S(1)",
    "x = 'é'  # why",
    "x = [\n  1,\n]",
    "x = 1 + \\\n  2",
    "x = '\u2028\f'",
    "x = '''a\n  b'''",
    "S(1); x = 2",
    "x = 1; S(2); x = 3  # why",
    "S(1);",
    "if a: S(1)",
    "while a: S(1); x = 2",
    "if a: \\\n   S(1)",
    "# of its own",
    "",
]
_HEADERS = [
    ("if a:", "elif b:", "else:"),
    ("if a:",),
    ("for i in a:  # each", "else:"),
    ("try:", "except E:", "finally:"),
    ("with a:",),
    ("@d\n@d(\n  1,\n)\ndef g(x):",),
    ("@d\n# about it\nclass A:",),
]


@st.composite
def blocks(draw: st.DrawFn, step: str = "    ", depth: int = 0) -> list[str]:
    """The lines of a block; lines within a statement are not indented beyond what they have."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if depth < 2 and draw(st.booleans()):
            for header in draw(st.sampled_from(_HEADERS)):
                lines += header.split("\n")
                lines += [step + line for line in draw(blocks(step, depth + 1))]
        else:
            lines += draw(st.sampled_from(_SIMPLE)).split("\n")
    return [*lines, "S(0)"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    step = draw(st.sampled_from(["  ", "    ", "\t"]))
    lines = draw(blocks(step))
    newline = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    return newline.join(lines) + draw(st.sampled_from(["", newline]))


def statement_lists(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(node, name, None)
            if isinstance(found, list) and found:
                yield found


DONE: Counter[str] = Counter()


def same(text: str, made: Edits | None, expected: ast.Module, what: str) -> None:
    """The edited text means what the tree says, if there are edits at all."""
    DONE[what] += 1
    if made is None:
        DONE[f"no {what}"] += 1
        return
    new = apply_edits(text, made)
    assert ast.dump(ast.parse(new)) == ast.dump(expected), (what, new)


@quick
@given(programs(), st.data())
def test_edits_of_statements_mean_what_they_say(text: str, data: st.DataObject) -> None:
    """Every edit is compared with the same change of the tree."""
    number = len(list(statement_lists(ast.parse(text))))
    which = data.draw(st.integers(0, number - 1))
    size = len(list(statement_lists(ast.parse(text)))[which])
    first = data.draw(st.integers(0, size - 1))
    last = data.draw(st.integers(first, size - 1))

    def fresh() -> tuple[ast.Module, list[ast.stmt]]:
        tree = ast.parse(text)
        return tree, list(statement_lists(tree))[which]

    tree, body = fresh()
    span = span_of(text, body[first])
    new = ast.parse("new = 1").body

    body[first:first] = new
    same(text, edits.insert_before(text, span, ["new = 1"]), tree, "insert before")
    tree, body = fresh()
    body[first + 1 : first + 1] = new
    same(text, edits.insert_after(text, span, ["new = 1"]), tree, "insert after")
    tree, body = fresh()
    del body[first]
    if not body and body is not tree.body:
        body.append(ast.Pass())
    same(text, edits.remove_statement(text, span), tree, "remove")
    tree, body = fresh()
    several = Span(span.start, span_of(text, body[last]).end)
    block = ast.parse("with h(): pass").body[0]
    assert isinstance(block, ast.With)
    block.body = body[first : last + 1]
    body[first : last + 1] = [block]
    same(text, edits.wrap_in_with(text, several, "h()"), tree, "wrap")
    for n in range(sum(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))):
        tree = ast.parse(text)
        function = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)][n]
        function.decorator_list.append(ast.Name("new", ast.Load()))
        same(text, edits.decorate(text, span_of(text, function), "@new"), tree, "decorate")


def test_the_statements_are_worth_drawing() -> None:
    if DONE["remove"] < 100:
        pytest.skip("the property did not run before this test")
    enough = {"insert before": 0.4, "insert after": 0.4, "remove": 0.6, "wrap": 0.3, "decorate": 0.9}
    for what, least in enough.items():
        assert 1 - DONE[f"no {what}"] / max(DONE[what], 1) > least, what


def at(text: str, part: str = "S(1)") -> Span:
    start = text.index(part)
    return Span(start, start + len(part))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("S(1)\n", ""),
        ("x = 1\r\n  \r\nS(1)  # why\r\ny = 2", "x = 1\r\n  \r\ny = 2"),
        ("x = 1\nS(1)", "x = 1\n"),
        ("if a:\n\tS(1)  # why\n", "if a:\n\tpass  # why\n"),
        ("if a:\n    S(1)\nelse:\n    b\n", "if a:\n    pass\nelse:\n    b\n"),
        ("if a: S(1)\n", "if a: pass\n"),
        ("if a: S(1); b\n", "if a: b\n"),
        ("S(1); b\n", "b\n"),
        ("a; S(1); b  # why\n", "a; b  # why\n"),
        ("a; S(1);\n", "a;\n"),
        ("a; S(1)  # why\n", "a  # why\n"),
        ("S(1);\n", ""),
        ("if a: \\\n    S(1)\nb\n", None),
        ("a; \\\nS(1)\n", None),
        ("S(1); \\\nb\n", None),
    ],
)
def test_remove_statement(before: str, after: str | None) -> None:
    assert applied(before, edits.remove_statement(before, at(before))) == after


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("if a:\r\n\tS(1)  # why\r\n", "if a:\r\n\tn\r\n\tS(1)  # why\r\n", "if a:\r\n\tS(1)  # why\r\n\tn\r\n"),
        ("S(1)", "n\nS(1)", "S(1)\nn"),
        ("if a: S(1)\n", None, None),
        ("S(1); b\n", None, None),
        ("a; S(1)\n", None, None),
        ("if a: \\\n  S(1)\n", None, None),
    ],
)
def test_insert_statements(text: str, before: str | None, after: str | None) -> None:
    assert applied(text, edits.insert_before(text, at(text), ["n"])) == before
    assert applied(text, edits.insert_after(text, at(text), ["n"])) == after


def test_several_lines_are_inserted_in_order() -> None:
    assert applied("S(1)\n", edits.insert_before("S(1)\n", at("S(1)\n"), ["a", "b"])) == "a\nb\nS(1)\n"


@pytest.mark.parametrize("part", ["elif b:\n    y", "def g(): pass", "class A: pass", "async def h(): pass"])
def test_what_belongs_to_the_lines_above_is_not_torn_off(part: str) -> None:
    above = "if a:\n    x\n" if part.startswith("elif") else "@d(\n    1,\n)\n\n# about it\n"
    text = above + part + "\n"
    assert edits.insert_before(text, at(text, part), ["n"]) is None
    assert (edits.insert_after(text, at(text, part), ["n"]) is None) is part.startswith("elif")
    assert edits.remove_statement(text, at(text, part)) is None
    assert edits.wrap_in_with(text, at(text, part), "h()") is None


def test_decorate() -> None:
    text = "class A:\n    @d\n    def g(self):\n        pass\n"
    made = edits.decorate(text, at(text, "def g(self):\n        pass"), "@n")
    assert applied(text, made) == "class A:\n    @d\n    @n\n    def g(self):\n        pass\n"
    assert edits.decorate("if a: x", Span(6, 7), "@n") is None


@pytest.mark.parametrize(
    ("text", "part", "after"),
    [
        ("a\nb  # why\nc\n", "a\nb", "with h():\n    a\n    b  # why\nc\n"),
        ("if x:\r\n\ta\r\n\r\n\tb", "a\r\n\r\n\tb", "if x:\r\n\twith h():\r\n\t\ta\r\n\r\n\t\tb"),
        ("x = ['\f\x1c\u2028',\n 2]", "x = ['\f\x1c\u2028',\n 2]", "with h():\n    x = ['\f\x1c\u2028',\n     2]"),
        ("x = '''\n'''", "x = '''\n'''", None),
        ('x = """\n"""', 'x = """\n"""', None),
        ("x = 'a\\\nb'", "x = 'a\\\nb'", None),
        ("a; b\n", "a", None),
        ("a; b\n", "b", None),
    ],
)
def test_wrap_in_with(text: str, part: str, after: str | None) -> None:
    assert applied(text, edits.wrap_in_with(text, at(text, part), "h()")) == after


# ---- imports ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "import torch\n"),
        ("#!/bin/python\n\nimport os\r\n", "#!/bin/python\n\nimport torch\nimport os\r\n"),
        ("'''doc'''", "'''doc'''\nimport torch\n"),
        ("'''\u2028\f'''\r\nimport os\r\n", "'''\u2028\f'''\r\nimport torch\r\nimport os\r\n"),
        ("'''doc'''; import os\n", "'''doc'''; import torch; import os\n"),
        ("b'no doc'\n", "import torch\nb'no doc'\n"),
        ("@é\ndef f(): pass\n", "import torch\n@é\ndef f(): pass\n"),
        ("def f():\n    import torch\n", "import torch\ndef f():\n    import torch\n"),
        ("'''\nimport torch\n'''\nx\n", "'''\nimport torch\n'''\nimport torch\nx\n"),
        ("import torch as t\n", "import torch\nimport torch as t\n"),
        ("import torchvision\n", "import torch\nimport torchvision\n"),
        ("import os, torch\n", "import os, torch\n"),
        ("import torch.nn\n", "import torch.nn\n"),
    ],
)
def test_add_import(before: str, after: str) -> None:
    assert applied(before, edits.add_import(before, "import torch")) == after


def test_add_import_of_a_name() -> None:
    assert edits.add_import("from torch import nn\n", "from torch import nn") == ()
    assert edits.add_import("import torch\n", "from torch import nn") == (Edit(0, 0, "from torch import nn\n"),)


_HEAD = st.tuples(
    st.sampled_from(["", "'''doc\n'''", "# -*- coding: utf-8 -*-\n\n'doc'"]),
    st.lists(st.just("from __future__ import annotations"), max_size=2),
    st.lists(st.sampled_from(["import os", "x = '\u2028'", "# c", "from a import b"]), max_size=3),
)


@quick
@given(_HEAD, st.sampled_from(["\n", "; ", "\r\n", "; \\\n", "\n\n"]), st.sampled_from(["", "\n"]))
def test_an_import_stands_before_all_code(head: tuple[str, list[str], list[str]], between: str, end: str) -> None:
    text = between.join([part for part in [head[0], *head[1], *head[2]] if part]) + end
    if not compiles(text, PATH):
        return
    new = apply_edits(text, edits.add_import(text, "import torch"))
    tree, old = ast.parse(new), ast.parse(text)
    assert compiles(new, PATH)
    assert ast.get_docstring(tree) == ast.get_docstring(old)
    position = next(n for n, s in enumerate(tree.body) if isinstance(s, ast.Import) and s.names[0].name == "torch")
    assert position == len(head[1]) + (ast.get_docstring(old) is not None)
    del tree.body[position]
    assert ast.dump(tree) == ast.dump(old)
    assert edits.add_import(new, "import torch") == ()
