"""Small ntuples and configurations to make mistakes with."""

import logging
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import uproot

from analysis.run.code import PACKAGES
from selection.beams import MUON_MASS_GEV, SUPERKEKB
from selection.ntuple import MOMENTA

# a shell starts background jobs with Ctrl-C ignored, and what they start inherits that
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """The longest first: two workers then end together; then all that look at the same finished
    run: each worker begins with a half of the list, so that only one of them makes it."""
    items.sort(
        key=lambda item: (
            item.get_closest_marker("slow") is None,
            "evaluated" not in item.fixturenames,
        )
    )


@pytest.fixture(autouse=True)
def keep_the_hook_of_pytest(monkeypatch):
    """`main` is made for a process of its own: it replaces what notices errors in destructors."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)


@pytest.fixture(autouse=True)
def keep_the_levels_of_logging():
    """`main` sets them for its process: a quiet call would silence the tests after it."""
    loggers = [logging.getLogger(name) for name in ("", *PACKAGES)]
    levels, handlers = [logger.level for logger in loggers], loggers[0].handlers[:]
    yield
    loggers[0].handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def muon_pairs(rng, mass_gev, n, *, share=(0.3, 0.95), smear=0.004):
    """Lab momenta (8, n) of pairs recoiling against `mass_gev`, smeared; isotropic, no dynamics.

    share: of the energy beside the recoil that is mass of the pair; it is what a network can learn.
    """
    root_s = SUPERKEKB.sqrt_s_gev
    m = rng.uniform(*share, n) * (root_s - mass_gev)
    p = np.sqrt((root_s**2 - (m + mass_gev) ** 2) * (root_s**2 - (m - mass_gev) ** 2)) / 2 / root_s
    axis = rng.normal(size=(3, n))
    axis /= np.linalg.norm(axis, axis=0)
    inner = rng.normal(size=(3, n))
    k = np.sqrt(m**2 / 4 - MUON_MASS_GEV**2)
    inner *= k / np.linalg.norm(inner, axis=0)
    import vector

    pair = vector.array({"px": p * axis[0], "py": p * axis[1], "pz": p * axis[2], "M": m})
    muons = []
    for sign in (1, -1):
        muon = vector.array(
            {
                "px": sign * inner[0],
                "py": sign * inner[1],
                "pz": sign * inner[2],
                "M": np.full(n, MUON_MASS_GEV),
            }
        )
        lab = muon.boost_p4(pair).boost_p4(SUPERKEKB.p4)
        factor = 1 + rng.normal(0, smear, n)
        px, py, pz = lab.px * factor, lab.py * factor, lab.pz * factor
        muons += [px, py, pz, np.sqrt(px**2 + py**2 + pz**2 + MUON_MASS_GEV**2)]
    return np.array(muons)


def ntuple_columns(n, *, seed=1, mass_gev=None, dtype=np.float32, run=1, smear=0.004):
    """Columns of a signal-like (mass) or background-like (no mass) ntuple."""
    rng = np.random.default_rng(seed)
    mass = np.full(n, mass_gev) if mass_gev is not None else rng.uniform(0.05, 8.5, n)
    share = (0.15, 0.9) if mass_gev is None else (0.4, 0.95)
    pairs = muon_pairs(rng, mass, n, share=share, smear=smear).astype(dtype)
    momenta = dict(zip(MOMENTA, pairs, strict=True))
    return {
        "__experiment__": np.full(n, 1003, np.int32),
        "__run__": np.full(n, run, np.int32),
        "__event__": np.arange(n, dtype=np.uint32),
        "__production__": np.zeros(n, np.uint32),
        "__candidate__": np.zeros(n, np.int32),
        "__ncandidates__": np.ones(n, np.int32),
        **momenta,
        "mu_plus_id": np.ones(n, dtype),
        "mu_minus_id": np.ones(n, dtype),
        "extra_energy": rng.exponential(0.1, n).astype(dtype),
        "photon_recoil_angle": np.full(n, np.nan, dtype),
        "weight": rng.uniform(0.1, 0.4, n),
    }


def save_ntuple(path: Path, columns, *, tree="variables", metadata=None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with uproot.recreate(path, compression=uproot.ZSTD(1)) as file:
        file.mktree(tree, {k: v.dtype for k, v in columns.items()}).extend(columns)
        if metadata:
            file.mktree("metadata", dict.fromkeys(metadata, np.float64)).extend(
                {k: np.array([float(v)]) for k, v in metadata.items()}
            )
    return path


CONFIG = """\
luminosity_inv_fb: 50
samples:
  signal:
    kind: signal
    files: signal_{mass}.root
    masses_gev: [1, 2, 3, 4, 5]
    n_generated: 1200
  background:
    kind: background
    files: background_*.root
    weight: weight
"""


@pytest.fixture
def save():
    return save_ntuple


@pytest.fixture
def columns():
    return ntuple_columns


@pytest.fixture(scope="session")
def small_inputs(tmp_path_factory):
    """A folder with five masses, two background files and their configuration; do not change it."""
    folder = tmp_path_factory.mktemp("inputs")
    for i, mass in enumerate((1, 2, 3, 4, 5)):
        cols = ntuple_columns(1000, seed=10 + i, mass_gev=float(mass))
        save_ntuple(folder / f"signal_{mass}.root", cols, metadata={"n_generated": 1200})
    for i in (0, 1):
        save_ntuple(folder / f"background_{i}.root", ntuple_columns(12_345, seed=50 + i, run=i))
    (folder / "datasets.yaml").write_text(CONFIG)
    return folder


@pytest.fixture
def own_inputs(small_inputs, tmp_path):
    """A private copy of `small_inputs` to damage."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    for file in small_inputs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory):
    """A small model for the beams of SuperKEKB, untrained; do not change its file."""
    from dataclasses import asdict

    from models.network import PunziNet
    from models.trained import Conditions, from_network, save_model
    from selection.windows import MassWindows
    from tests.dimuon import SEARCH

    net = PunziNet(np.array([0, 0, -6, 0.0]), np.array([5, 6, 2, 5.0]), seed=1)
    conditions = Conditions(
        classifier="punzi",
        cut=0.5,
        sqrt_s_gev=SUPERKEKB.sqrt_s_gev,
        luminosity_inv_fb=50.0,
        beams=asdict(SUPERKEKB),
        training={"seed": 1},
        provenance={},
    )
    windows = MassWindows(np.array([1.0, 2.0, 3.0]), np.full(3, 0.6), 2.0, squared=True)
    path = tmp_path_factory.mktemp("model") / "net-00.safetensors"
    save_model(
        from_network(
            net, search=SEARCH, windows=windows, trained=np.ones(3, bool), conditions=conditions
        ),
        path,
    )
    return path
