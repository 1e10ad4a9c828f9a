"""How the trainings of a run ended, and which of them make a network.

    training j = i n + s      s = 0 .. n-1: the seeds of network i, n of them (training.seeds)
    seed of training j        training.seed + j

In each fold a network is the mean of its seeds before the sigmoid. A training that failed its
checks is left out of the mean of its fold; where all of a fold failed, there is nothing to leave
out, and the network has failed: it leaves the averages of the ensemble as a whole, because its sums
over folds would mix good and bad.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.config.settings import TrainingSection
    from analysis.run.folder import RunFolder


def trainings(network: int, section: TrainingSection) -> range:
    """Numbers of the trainings of a network."""
    return range(network * section.seeds, (network + 1) * section.seeds)


def load_history(run: RunFolder, training: int, fold: int = 0) -> dict[str, Any]:
    from analysis.run.folder import read_json

    content: dict[str, Any] = read_json(run.history(training, fold))
    return content


def averaged(run: RunFolder, network: int, fold: int, section: TrainingSection) -> list[int]:
    """The trainings whose mean is the Punzi-net of a fold: the good ones, or all if none is."""
    every = list(trainings(network, section))
    good = [j for j in every if load_history(run, j, fold)["status"] != "failed"]
    return good or every


def failed_networks(run: RunFolder, section: TrainingSection) -> dict[int, list[str]]:
    """Networks with a fold in which every seed failed, with the reasons."""
    return _texts(run, section, all_of_them=True)


def left_out_seeds(run: RunFolder, section: TrainingSection) -> dict[int, list[str]]:
    """Networks with a fold in which some seeds failed and are not in the mean, with the reasons."""
    return _texts(run, section, all_of_them=False)


def _texts(run: RunFolder, section: TrainingSection, *, all_of_them: bool) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for i in range(section.networks):
        for fold in range(section.folds):
            ended = [load_history(run, j, fold) for j in trainings(i, section)]
            failed = [about for about in ended if about["status"] == "failed"]
            if not failed or (len(failed) == len(ended)) != all_of_them:
                continue
            for about in failed:
                where = _where(about["seed"], fold, section)
                found.setdefault(i, []).extend(f"{where}{reason}" for reason in about["reasons"])
    return found


def _where(seed: int, fold: int, section: TrainingSection) -> str:
    """`fold 3 (seed 7): `; nothing where there is one training only."""
    if section.folds > 1:
        return f"fold {fold} (seed {seed}): "
    return f"seed {seed}: " if section.seeds > 1 else ""


def remarks(run: RunFolder, section: TrainingSection) -> dict[int, list[str]]:
    """What is worth knowing of each network: notes of its first fold, and seeds left out."""
    left_out = left_out_seeds(run, section)
    found = {}
    for i in range(section.networks):
        notes = [note for j in trainings(i, section) for note in load_history(run, j)["notes"]]
        out = [f"left out of the mean over seeds: {text}" for text in left_out.get(i, ())]
        found[i] = [*dict.fromkeys(notes), *out]
    return found
