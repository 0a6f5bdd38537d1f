"""Settings: where they are found, what they may say, and what a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Tree

from gpulint.config import DEFAULT_EXCLUDE, ConfigError, Loader, Settings, describe, load, read_config
from gpulint.finding import Confidence

pytestmark = pytest.mark.usefixtures("fake_rules")

EVERYTHING = """
select = ["GPU1", "heavy-word"]
ignore = ["GPU102"]
extend-select = ["memory"]
exclude = ["third_party"]
extend-exclude = ["*_pb2.py"]
step-functions = ["my_step", "pkg.engine.one_step"]
gpu = "always"
min-confidence = "certain"
allowed-sync = ["pkg.utils.sync_allowed"]
respect-gitignore = false

[per-file-ignores]
"tests/**" = ["GPU1"]
"*.ipynb" = ["ALL"]
"""


def test_every_key(tree: Tree) -> None:
    root = tree({"gpulint.toml": EVERYTHING})
    assert load(root / "sub" / "x.py") == Settings(
        select=("GPU1", "heavy-word"),
        ignore=("GPU102",),
        extend_select=("memory",),
        per_file_ignores=(("tests/**", ("GPU1",)), ("*.ipynb", ("ALL",))),
        exclude=("third_party",),
        extend_exclude=("*_pb2.py",),
        step_functions=("my_step", "pkg.engine.one_step"),
        gpu="always",
        min_confidence=Confidence.CERTAIN,
        allowed_sync=("pkg.utils.sync_allowed",),
        respect_gitignore=False,
        root=root,
        source=root / "gpulint.toml",
    )


def test_the_defaults_without_a_file(tree: Tree) -> None:
    root = tree({})
    assert load(root / "x.py") == Settings(root=root)
    assert Settings().exclude == DEFAULT_EXCLUDE


def test_settings_can_be_told_apart_by_hash(tree: Tree) -> None:
    root = tree({"gpulint.toml": EVERYTHING})
    assert hash(load(root)) == hash(load(root / "x.py"))


def test_the_nearest_file_upwards_wins_alone(tree: Tree) -> None:
    root = tree(
        {
            "pyproject.toml": '[tool.gpulint]\ngpu = "always"\nselect = ["GPU1"]\n',
            "a/gpulint.toml": 'gpu = "never"\n',
            "a/b/pyproject.toml": "[project]\nname = 'no gpulint table here'\n",
        }
    )
    loader = Loader()
    assert loader(root / "x.py").gpu == "always"
    assert loader(root / "a/b/x.py").gpu == "never"
    assert loader(root / "a/b/x.py").select == ()
    assert loader(root / "a/b/x.py").root == root / "a"


def test_gpulint_toml_goes_before_pyproject(tree: Tree) -> None:
    root = tree({"pyproject.toml": '[tool.gpulint]\ngpu = "always"\n', ".gpulint.toml": 'gpu = "never"\n'})
    assert load(root).source == root / ".gpulint.toml"


def test_a_broken_pyproject_that_does_not_mention_gpulint_is_no_concern_of_ours(tree: Tree) -> None:
    root = tree({"pyproject.toml": "[project\n", "gpulint.toml": "", "a/pyproject.toml": "= = ="})
    assert load(root / "a").source == root / "gpulint.toml"


def test_windows_newlines_and_a_byte_order_mark(tree: Tree) -> None:
    root = tree({})
    (root / "gpulint.toml").write_bytes(b'\xef\xbb\xbfgpu = "never"\r\nselect = ["GPU1"]\r\n')
    assert load(root).gpu == "never"


MISTAKES = {
    'selct = ["GPU1"]': "`selct` is no setting of gpulint; did you mean `select`?",
    "step_functions = []": "`step_functions` is no setting of gpulint; did you mean `step-functions`?",
    "zzz = 1": "`zzz` is no setting of gpulint",
    'select = ["GPU111"]': "`select` names no rule: 'GPU111'; did you mean `GPU1",
    'select = ["slow-wrd"]': "`select` names no rule: 'slow-wrd'; did you mean `slow-word`?",
    'ignore = ["gpu101"]': "`ignore` names no rule: 'gpu101'; did you mean `GPU101`?",
    'select = ["ruff"]': "`select` names no rule: 'ruff'",
    "select = []": "`select` is empty: leave it out to get the rules that are on by default",
    'select = "GPU1"': "`select` must be a list of strings, not a string",
    "select = [1]": "`select` must hold strings only, but has a number",
    'exclude = [""]': "`exclude` must hold strings only, but has an empty string",
    'gpu = "maybe"': "`gpu` must be one of auto, always, never, not 'maybe'",
    "gpu = true": "`gpu` must be one of auto, always, never, not a boolean",
    "min-confidence = 3": "`min-confidence` must be one of possible, likely, certain, not a number",
    'allowed-sync = ["a b"]': "`allowed-sync` must hold names such as `package.module.name`, but has 'a b'",
    'respect-gitignore = "no"': "`respect-gitignore` must be true or false, not a string",
    "per-file-ignores = []": "`per-file-ignores` must be a table of pattern = [rules], not a list",
    "per-file-ignores = {'a' = ['GPU9']}": "`per-file-ignores.a` names no rule: 'GPU9'",
    "gpu = ": "is not valid TOML: ",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_told_in_one_sentence(tree: Tree, text: str, message: str) -> None:
    root = tree({"gpulint.toml": text + "\n"})
    with pytest.raises(ConfigError) as caught:
        load(root)
    assert str(caught.value).startswith(f"{root / 'gpulint.toml'}: {message}")
    assert "\n" not in str(caught.value)


def test_the_table_must_be_a_table(tree: Tree) -> None:
    root = tree({"pyproject.toml": "[tool]\ngpulint = 3\n"})
    with pytest.raises(ConfigError, match="must be a table, not a number"):
        load(root)


def test_every_kind_of_selector_is_known(tree: Tree) -> None:
    selectors = ["ALL", "GPU", "GPU1", "GPU10", "GPU101", "slow-word", "sync", "GPU001", "unused-suppression"]
    root = tree({"gpulint.toml": f"select = {selectors}\n"})
    assert load(root).select == tuple(selectors)


# --- the command line's say ------------------------------------------------------------------------


def test_select_on_the_command_line_starts_afresh(tree: Tree) -> None:
    root = tree({"gpulint.toml": EVERYTHING})
    settings = Loader(select=["GPU3"], min_confidence=Confidence.POSSIBLE)(root)
    assert (settings.select, settings.ignore, settings.extend_select) == (("GPU3",), (), ())
    assert settings.min_confidence is Confidence.POSSIBLE
    assert settings.per_file_ignores


def test_ignore_and_extend_select_add_to_the_file(tree: Tree) -> None:
    root = tree({"gpulint.toml": EVERYTHING})
    settings = Loader(ignore=["slow-word"], extend_select=["ALL"])(root)
    assert settings.select == ("GPU1", "heavy-word")
    assert settings.ignore == ("GPU102", "slow-word")
    assert settings.extend_select == ("memory", "ALL")


def test_a_wrong_rule_on_the_command_line(tree: Tree) -> None:
    tree({})
    with pytest.raises(ConfigError, match=r"^--ignore: names no rule: 'slow-wurd'; did you mean `slow-word`"):
        Loader(ignore=["slow-wurd"])


def test_config_names_a_file(tree: Tree) -> None:
    root = tree({"gpulint.toml": 'gpu = "never"\n', "ci/strict.toml": 'gpu = "always"\n'})
    settings = Loader(config=["ci/strict.toml"])(root / "x.py")
    assert (settings.gpu, settings.root) == ("always", root / "ci")


def test_config_names_a_pyproject_without_our_table(tree: Tree) -> None:
    tree({"pyproject.toml": "[project]\n"})
    with pytest.raises(ConfigError, match=r"pyproject\.toml: has no \[tool\.gpulint\] table"):
        Loader(config=["pyproject.toml"])(Path("x.py"))


def test_config_holds_a_setting(tree: Tree) -> None:
    root = tree({"gpulint.toml": 'gpu = "never"\nselect = ["GPU1"]\n'})
    settings = Loader(config=['gpu = "always"', 'min-confidence = "possible"'])(root)
    assert (settings.gpu, settings.select) == ("always", ("GPU1",))
    assert settings.origin("gpu") == "--config"
    assert settings.origin("select") == str(root / "gpulint.toml")
    assert settings.origin("exclude") == "default"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.toml"], "nowhere.toml is neither a file nor a setting like"),
        (["gpu = maybe"], "'gpu = maybe' is not valid TOML"),
        (["gpulint.toml", "gpulint.toml"], "names two files"),
        (["gpu = 1"], "`gpu` must be one of"),
    ],
)
def test_a_wrong_config_argument(tree: Tree, arguments: list[str], message: str) -> None:
    tree({"gpulint.toml": ""})
    with pytest.raises(ConfigError, match=r"^--config: ") as caught:
        Loader(config=arguments)(Path("x.py"))
    assert message in str(caught.value)


def test_isolated_ignores_files(tree: Tree) -> None:
    root = tree({"gpulint.toml": 'gpu = "never"\n'})
    assert Loader(isolated=True)(root).gpu == "auto"
    assert Loader(isolated=True, config=['gpu = "always"'])(root).gpu == "always"
    with pytest.raises(ConfigError, match="can't be used together with --isolated"):
        Loader(isolated=True, config=["gpulint.toml"])


# --- per-file-ignores ------------------------------------------------------------------------------


def test_per_file_ignores_are_relative_to_the_config_file(tree: Tree) -> None:
    root = tree({"gpulint.toml": '[per-file-ignores]\n"/tests/**" = ["GPU1"]\n"*.ipynb" = ["sync"]\n'})
    settings = load(root)
    assert settings.ignored_in(root / "tests/a/x.py") == ("GPU1",)
    assert settings.ignored_in(Path("tests/x.ipynb")) == ("GPU1", "sync")
    assert settings.ignored_in(root / "src/tests/x.py") == ()
    assert settings.ignored_in(root.parent / "x.ipynb") == ()


def test_per_file_ignores_of_a_config_from_elsewhere_are_relative_to_the_current_folder(tree: Tree) -> None:
    tree({"ci/strict.toml": '[per-file-ignores]\n"/tests/**" = ["GPU1"]\n'})
    assert Loader(config=["ci/strict.toml"])(Path("x.py")).ignored_in(Path("tests/x.py")) == ("GPU1",)


def test_describe_lists_every_setting_once(tree: Tree) -> None:
    root = tree({"gpulint.toml": EVERYTHING})
    rows = describe(read_config(root / "gpulint.toml"))
    assert len({key for key, _, _ in rows}) == len(rows) == 11
    assert all(origin == str(root / "gpulint.toml") for _, _, origin in rows)
