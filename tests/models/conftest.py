"""Small event tables with the structure of the search: peaks in M_rec^2 over a flat background."""

import numpy as np
import pytest

from models.training.training_set import training_sets
from selection.table import EventTable, Folds
from selection.windows import MassWindows

ONE_FOLD = Folds(1, 0.2)
MASSES = np.array([0.5, 1.0, 1.5, 2.0, 2.2, 3.0])


@pytest.fixture(scope="session")
def toy_windows():
    """Six windows; neighbours overlap."""
    return MassWindows(MASSES, np.full(6, 0.35), 2.0, squared=True)


@pytest.fixture(scope="session")
def toy_table():
    """Makes a table; signal has larger first and last features, differently for each mass."""

    def make(*, n_background=4000, n_signal=300, seed=1):
        rng = np.random.default_rng(seed)
        mass = np.append(np.repeat(MASSES, n_signal), np.full(n_background, np.nan))
        signal, n = np.isfinite(mass), len(mass)
        mass2 = np.where(signal, mass**2 + rng.normal(0, 0.3, n), rng.uniform(-1, 11, n))
        features = rng.normal(0, 1, (n, 4))
        features[signal, 3] += 2.0
        features[signal, 0] += 1.0 - 0.3 * mass[signal]
        weight = np.where(signal, 0.5 / n_signal, rng.exponential(3000 / n_background, n))
        key = rng.integers(0, 2**64, n, dtype=np.uint64)
        return EventTable(
            features=features.astype(np.float32),
            axis=mass2,
            weight=weight,
            signal_mass_gev=mass,
            sample=(~signal).astype(np.int16),
            key=key,
            identity=(key >> np.uint64(32)).astype(np.uint32),
            sample_names=("signal", "background"),
            feature_names=("pt_thrust", "pt_max_wrt_min", "pl_max_wrt_min", "pt_mumu"),
        )

    return make


@pytest.fixture(scope="session")
def toy_sets(toy_table, toy_windows):
    """Makes training and validation set of a toy table."""

    def make(table=None, *, folds=ONE_FOLD, fold=0, **options):
        events = toy_table(**options) if table is None else table
        return training_sets(events, toy_windows, luminosity_inv_fb=50.0, folds=folds, fold=fold)

    return make
