"""The shell completes what the program takes: every command, every option, the words of a choice."""

import re
import subprocess

import pytest
import typer

from analysis.cli import PANELS, app
from analysis.terminal.completion import completion_script
from analysis.terminal.options import Executor

CLICK = typer.main.get_command(app)
CHOICES = {"--executor": list(Executor)}


def completed(tmp_path, *words):
    """What bash offers for the last word."""
    script = tmp_path / "punzi.sh"
    script.write_text(completion_script("bash", CLICK, CHOICES))
    line = " ".join(f"'{word}'" for word in ("punzi", *words))
    ask = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _punzi; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert not done.stderr
    return done.stdout.split()


def test_every_command_is_offered(tmp_path):
    assert set(CLICK.commands) < set(completed(tmp_path, ""))
    assert completed(tmp_path, "eval") == ["evaluate"]


@pytest.mark.parametrize("name", ["run", "select", "apply", "init", "doctor"])
def test_every_option_of_a_command_is_offered_and_no_other(tmp_path, name):
    known = {o for p in CLICK.commands[name].params for o in p.opts if o.startswith("-")}
    assert set(completed(tmp_path, "-q", name, "-")) == known | {"--help"}


def test_the_words_of_a_choice_and_the_runs_of_the_folder_are_offered(tmp_path):
    assert set(completed(tmp_path, "select", "--executor", "")) == {
        *("auto", "iterative", "threads", "processes", "dask"),
    }
    (tmp_path / "runs/mine").mkdir(parents=True)
    (tmp_path / "mine.yaml").touch()
    assert completed(tmp_path, "plot", "-r", "") == ["mine"]
    assert completed(tmp_path, "plot", "-c", "") == ["mine.yaml"]


def test_where_a_file_is_meant_the_shell_completes_files(tmp_path):
    assert completed(tmp_path, "apply", "runs") == []  # -o default: bash goes on by itself


def test_zsh_gets_the_same_after_one_line_more():
    bash, zsh = (completion_script(shell, CLICK, CHOICES) for shell in ("bash", "zsh"))
    assert "bashcompinit\n_punzi()" in zsh
    assert zsh[zsh.index("_punzi()") :] == bash[bash.index("_punzi()") :]


def test_every_command_stands_in_one_panel_and_in_the_order_of_the_work():
    listed = [name for names in PANELS.values() for name in names]
    assert list(CLICK.commands) == listed
    assert re.fullmatch(r".*select.*train.*evaluate.*limit.*plot.*report.*run.*", " ".join(listed))
