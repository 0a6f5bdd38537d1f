"""Notebooks: their code as one text, and edits of it back into the JSON."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from gpulint.notebook import Notebook, mask, read_notebook
from gpulint.source import SourceError, encode, read, replaced

PATH = Path("demo.ipynb")


def notebook(*cells: str | dict[str, Any], indent: int | None = 1, **metadata: Any) -> bytes:
    def cell(source: str | dict[str, Any]) -> dict[str, Any]:
        if isinstance(source, dict):
            return source
        return {
            "cell_type": "code",
            "metadata": {},
            "outputs": [{"data": 1.50}],
            "source": source.splitlines(True),
        }

    document = {"cells": [cell(c) for c in cells], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(document, indent=indent, ensure_ascii=False) + "\n").encode()


def loaded(*cells: str | dict[str, Any], **options: Any) -> Notebook:
    return read_notebook(PATH, notebook(*cells, **options))


MARKDOWN = {"cell_type": "markdown", "metadata": {}, "source": ["# x = slow\n"]}


# ---- the joined text -------------------------------------------------------------------------------


def test_only_code_cells_are_joined() -> None:
    source = loaded("import torch\n\nx = 1", MARKDOWN, "y = x")
    assert source.text == "# %% cell 1\nimport torch\n\nx = 1\n# %% cell 3\ny = x\n"
    assert [source.cell(n) for n in range(1, 7)] == [(1, 1), (1, 1), (1, 2), (1, 3), (3, 1), (3, 1)]


def test_a_cell_that_looks_like_a_marker() -> None:
    source = loaded("a = 1", "# %% cell 2\nb = 2")
    assert encode(source, source.text.replace("b", "c")) == notebook("a = 1", "# %% cell 2\nc = 2")


def test_a_notebook_in_another_language_has_no_code() -> None:
    assert loaded("println(1)", language_info={"name": "julia"}).text == ""
    assert loaded("x <- 1", kernelspec={"language": "R"}).text == ""
    assert loaded("x = 1", kernelspec={"language": "python"}).text != ""


def test_read_knows_notebooks(tmp_path: Path) -> None:
    path = tmp_path / "demo.ipynb"
    path.write_bytes(notebook("x = 1"))
    assert isinstance(read(path), Notebook)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is not a notebook: Expecting value"),
        (b"[1]", "it has no list of cells"),
        (b'{"worksheets": []}', "version 3 or older"),
        (b'{"cells": [\xff]}', "byte 11 is not UTF-8"),
        (b"[" * 100_000, "is not a notebook: "),
    ],
)
def test_what_is_no_notebook_is_one_sentence(raw: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_notebook(PATH, raw)


def test_strange_cells_are_passed_over() -> None:
    odd: list[Any] = [
        3, {}, {"cell_type": "code"}, {"cell_type": "code", "source": [1]}, {"cell_type": "code", "source": "x"}
    ]  # fmt: skip
    raw = json.dumps({"cells": odd, "metadata": None}).encode()
    assert read_notebook(PATH, raw).text == "# %% cell 5\nx\n"


# ---- IPython's lines -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("%matplotlib inline\nx = 1", "#matplotlib inline\nx = 1"),
        ("!pip install torch", "#pip install torch"),
        ("!", "#"),
        ("?print\nprint??", "#print\n#rint??"),
        ("if x:\n    !ls\n    %x", "if x:\n    _#s\n    _#"),
        ("if x:\n    !", "if x:\n    _"),
        ("files = !ls\ny, z = %env A", "files = _#s\ny, z = _#nv A"),
        ("!pip \\\n  install x \\\n  y\nz = 1", "#pip \\\n# install x \\\n# y\nz = 1"),
        ("%%bash\necho $x\n\nls", "#%bash\n#cho $x\n\n#s"),
        ("\n%%html\n<b>", "\n#%html\n#b>"),
        ("%%time\nx = 1", "#%time\nx = 1"),
    ],
)
def test_what_only_ipython_understands_is_masked(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert len(masked) == len(text)
    ast.parse(masked)


@pytest.mark.parametrize(
    "text",
    [
        "x = (a\n     % b)",
        "x = a \\\n  % b",
        "x = '''\n%s\n!ls\n'''\ny = [\n  1\n  % 2]",
        'x = "(" # (\ny = a != b\nz = a % b == c\nw = """\\"""\n%d"""',
        "x = {\n  '%a': '''\n}''',\n  1\n  % 2: 3}",
    ],
)
def test_python_is_left_alone(text: str) -> None:
    ast.parse(text)
    assert mask(text) == text


# ---- writing back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_an_edit_changes_its_cell_and_nothing_else(indent: int | None) -> None:
    cells: list[Any] = ["%time slow()\nx = 'é'\nif x:\n    !ls", MARKDOWN, "y = 1\n", "", "z = slow()"]
    source = loaded(*cells, indent=indent)
    assert encode(source, source.text) == source.raw
    text = source.text.replace("z = slow()", "z = fast()").replace("x = 'é'", "import fast\nx = 'é'")
    cells[0], cells[4] = "%time slow()\nimport fast\nx = 'é'\nif x:\n    !ls", "z = fast()"
    assert encode(source, text) == notebook(*cells, indent=indent)


def test_a_source_that_is_one_string_stays_one() -> None:
    raw = b'{"cells":[{"source":"x = \\u00e9 # \\"]","cell_type":"code"}, {"source":"a","cell_type":"raw"}],"metadata":{"cells":[{"source":1}]}}'  # noqa: E501
    source = read_notebook(PATH, raw)
    assert source.text == '# %% cell 1\nx = é # "]\n'
    assert encode(source, source.text.replace("x", "y")) == raw.replace(b"x = ", b"y = ")


def test_what_is_inserted_on_top_goes_into_the_first_cell() -> None:
    source = loaded("x = 1", "y = 2")
    assert encode(source, "import os\n" + source.text) == notebook("import os\nx = 1", "y = 2")


def test_a_second_round_of_edits() -> None:
    source = replaced(loaded("x = 1", "y = 2"), "# %% cell 1\na = 1\nx = 1\n# %% cell 2\ny = 2\n")
    assert isinstance(source, Notebook)
    assert source.cell(3) == (1, 2)
    assert encode(source, source.text.replace("y", "z")) == notebook("a = 1\nx = 1", "z = 2")


def test_a_byte_order_mark_stays() -> None:
    raw = b"\xef\xbb\xbf" + notebook("x = 1")
    source = read_notebook(PATH, raw)
    assert encode(source, source.text.replace("x", "y")) == raw.replace(b"x = 1", b"y = 1")


@pytest.mark.parametrize("old", ["# %% cell 2\n", "#time x", "z = 3\n# %% cell 2"])
def test_an_edit_that_has_no_place_in_the_notebook_is_refused(old: str) -> None:
    source = loaded("%time x\nz = 3", "y = 2")
    with pytest.raises(SourceError, match="cannot be written"):
        encode(source, source.text.replace(old, ""))
