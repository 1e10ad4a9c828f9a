"""Boosted trees on the same events: what a network trained on Punzi's figure is compared with.

    weights as in the BCE stage: both classes weigh the same in total, mean 1
    stopped on every tenth training event: those that it is judged by decide nothing
    score = estimated signal probability, cut per mass by the reader

The other baseline, the network trained with BCE alone, is a by-product of every training:
`TrainedNetworks.after["bce"]`. XGBoost is optional (extra `baselines`, package xgboost-cpu).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from models.training.bce_epoch import bce_weights
from models.training.training_set import TrainingSet
from selection.table import BoolArray

STOPPING = 10


@dataclass(frozen=True)
class BoostedTrees:
    """A trained booster; features (n, n_features) -> scores (n,) in (0, 1)."""

    booster: Any
    n_rounds: int

    def scores(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        scores: npt.NDArray[np.float32] = self.booster.inplace_predict(
            np.ascontiguousarray(features, np.float32)
        )
        return scores


def train_boosted_trees(
    data: TrainingSet,
    *,
    seed: int,
    threads: int = 1,
    max_rounds: int = 400,
    depth: int = 6,
    learning_rate: float = 0.1,
    given_up: Callable[[], bool] = lambda: False,
) -> BoostedTrees:
    """Weighted log-loss, stopped after 20 rounds without gain on a tenth of the events.

    given_up: asked after each round, for who trains in a thread that nothing interrupts.
    """
    xgboost = _xgboost()
    stopping = np.arange(len(data)) % STOPPING == 0  # of every group: they stand in order
    train = _matrix(xgboost, data, ~stopping, threads=threads)
    watched = _matrix(xgboost, data, stopping, threads=threads, ref=train)
    parameters = {
        "objective": "binary:logistic",
        "eval_metric": "logloss",
        "tree_method": "hist",
        "max_depth": depth,
        "eta": learning_rate,
        "seed": seed,
        "nthread": threads,
        "verbosity": 0,
    }
    booster = xgboost.train(
        parameters,
        train,
        num_boost_round=max_rounds,
        evals=[(watched, "stopping")],
        early_stopping_rounds=20,
        callbacks=[_stop_when(xgboost, given_up)],
        verbose_eval=False,
    )
    rounds = booster.best_iteration + 1
    return BoostedTrees(booster[:rounds], rounds)


def _stop_when(xgboost: Any, given_up: Callable[[], bool]) -> Any:
    class Stop(xgboost.callback.TrainingCallback):
        """Between two rounds."""

        def after_iteration(self, *_: Any) -> bool:
            return given_up()

    return Stop()


def _xgboost() -> Any:
    try:
        import xgboost
    except ImportError as error:
        msg = "XGBoost is not installed; install the extra 'baselines' (package xgboost-cpu)"
        raise ImportError(msg) from error
    return xgboost


def _matrix(
    xgboost: Any, data: TrainingSet, rows: BoolArray, *, threads: int, ref: Any = None
) -> Any:
    target = np.repeat(data.target, np.diff(data.group_start))[rows]
    weight = np.clip(bce_weights(data), 0, None)[rows]  # trees take no negative weights
    features = data.features[:, rows].T
    return xgboost.QuantileDMatrix(features, target, weight=weight, nthread=threads, ref=ref)
