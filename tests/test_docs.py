"""The documentation says what the program does."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from analysis.cli import app
from analysis.config.configuration import load, parse
from analysis.config.reference import reference

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def test_the_configuration_reference_is_that_of_the_models():
    written = (ROOT / "docs" / "configuration.md").read_text()
    assert written == reference(), "python -m analysis.config.reference > docs/configuration.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_example_in_the_readme_is_a_valid_configuration():
    text = (ROOT / "README.md").read_text()
    (example,) = [b for b in re.findall(r"```yaml\n(.*?)```", text, re.S) if "samples:" in b]
    config = parse(example, where="README")
    assert config.settings.training.networks == 5
    assert len(config.masses_gev) == 89


@pytest.mark.parametrize("name", ["datasets.yaml", "paper.yaml", "paper-fresh.yaml"])
def test_the_shipped_configurations_are_valid(name):
    assert len(load(ROOT / name).masses_gev) == 89


def commands():
    """Of the pages that tests/test_tutorial.py does not run: these want a cluster."""
    for page in PAGES:
        if page.name in ("README.md", "tutorial.md", "apply.md"):
            continue
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.S):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["punzi"]:
                    yield pytest.param(words[1:], id=f"{page.name}:{' '.join(words)[:60]}")


@pytest.mark.parametrize("words", list(commands()))
def test_every_command_in_the_documentation_exists_with_its_options(words):
    click = typer.main.get_command(app)
    command = click.commands[words[0]]
    known = {name for p in command.params for name in [*p.opts, *p.secondary_opts]} | {"--help"}
    used = {word.split("=")[0] for word in words[1:] if word.startswith("-")}
    assert used <= known
