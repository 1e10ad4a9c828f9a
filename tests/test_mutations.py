"""The mistakes made by hand are mistakes in lines that are still there."""

from tests.mutations import EQUIVALENT, ROOT, WIRING, is_python, wiring


def test_every_mistake_of_wiring_changes_one_place_and_is_python():
    made = wiring()  # ends the process where a text is not there exactly once
    assert len(made) == len(WIRING)
    assert all(is_python(mutant) for mutant in made)
    assert all((ROOT / m.file).read_text(encoding="utf-8") != m.text for m in made)


def test_lines_called_equivalent_to_their_mutants_are_lines_of_the_code():
    for file, line, _ in EQUIVALENT:
        assert line in (ROOT / file).read_text(encoding="utf-8"), file
