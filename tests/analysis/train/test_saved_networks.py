"""What training leaves on disk says under which conditions it was made."""

from dataclasses import asdict
from itertools import combinations, product

import numpy as np

from analysis.train.outcome import load_history
from analysis.train.stage import split_sets
from analysis.train.windows import load_fits, load_windows
from models.trained import load_model

NETWORKS = [(classifier, i) for classifier in ("punzi", "bce") for i in (0, 1)]
FOLDS = (0, 1)


def test_models_say_which_masses_were_trained_on(evaluated):
    """Every second mass, beginning with the first."""
    run, config, _, simulated = evaluated
    assert config.settings.windows.train_every == 2
    for name in NETWORKS:
        for path in (*(run.network(*name, k) for k in FOLDS), run.model(*name)):
            model = load_model(path)
            assert model.windows.mass_gev.tolist() == [1, 2, 3, 4, 5]
            assert model.trained.tolist() == [True, False, True, False, True]
    for k in FOLDS:
        train, _ = split_sets(config, simulated, fold=k)
        assert train.mass_gev.tolist() == [1, 3, 5]


def test_models_carry_the_conditions_of_their_training(evaluated):
    run, config, _, simulated = evaluated
    for (classifier, i), k in product(NETWORKS, FOLDS):
        model = load_model(run.network(classifier, i, k))
        assert model.conditions.classifier == classifier
        assert model.conditions.cut is None
        assert model.conditions.luminosity_inv_fb == config.luminosity_inv_fb == 50
        assert model.conditions.sqrt_s_gev == config.beams.sqrt_s_gev
        assert model.conditions.beams == asdict(config.beams)
        assert model.search.identity == config.definition.identity
        assert model.features == config.definition.feature_names
        assert model.windows.squared is config.definition.axis.squared
        assert model.conditions.training["seed"] == config.settings.training.seed + i
        assert np.array_equal(model.windows.sigma, simulated.windows.sigma)
        assert model.windows.n_sigma == config.settings.windows.n_sigma


def test_networks_of_one_run_have_different_seeds_and_weights(evaluated):
    run, config, _, _ = evaluated
    places = list(product((0, 1), FOLDS))
    models = [load_model(run.network("punzi", *place)) for place in places]
    for one, other in combinations(models, 2):
        assert not np.array_equal(one.networks[0].weights[0], other.networks[0].weights[0])
    for i, k in places:
        assert load_history(run, i, k)["seed"] == config.settings.training.seed + i


def test_a_model_is_the_networks_of_its_folds_in_their_order(evaluated):
    run, _, _, simulated = evaluated
    x = simulated.table.features[:200]
    for name in NETWORKS:
        whole = load_model(run.model(*name))
        assert whole.n_folds == len(FOLDS)
        for k in FOLDS:
            alone = load_model(run.network(*name, k))
            assert np.array_equal(whole.score(x, np.full(200, k)), alone.score(x))


def test_the_punzi_net_begins_as_the_bce_net_of_its_number(evaluated):
    """The last row of the first stage and the first of the second are of the same network.

    The floor of the valley may be found before all iterations of the end are used.
    """
    run, config, _, simulated = evaluated
    (bce_stage, punzi_stage) = config.settings.training_settings().stages
    for i, k in product((0, 1), FOLDS):
        about = load_history(run, i, k)
        assert about["stages"] == ["bce", "punzi"]
        bce, punzi = (load_model(run.network(c, i, k)) for c in ("bce", "punzi"))
        assert np.array_equal(bce.networks[0].feature_min, punzi.networks[0].feature_min)
        x = simulated.table.features[:100]
        assert not np.array_equal(bce.score(x), punzi.score(x))
        rows = about["history"]
        epochs = [bce_stage.rows, rows["stage"].count(1) - 1]
        assert punzi_stage.epochs < epochs[1] <= punzi_stage.rows
        assert rows["stage"] == [0] * (epochs[0] + 1) + [1] * (epochs[1] + 1)
        assert rows["epoch"] == [*range(epochs[0] + 1), *range(epochs[1] + 1)]
        refined = epochs[0] + 1 + punzi_stage.epochs  # no rate from here on
        assert all((rate == 0) is (row == epochs[0] or row >= refined)
                   for row, rate in enumerate(rows["learning_rate"]))  # fmt: skip


def test_windows_come_back_as_they_were_saved(evaluated):
    run, config, _, simulated = evaluated
    windows = load_windows(run.windows)
    for name in ("mass_gev", "sigma", "low", "high"):
        assert np.array_equal(getattr(windows, name), getattr(simulated.windows, name))
    fits, curve = load_fits(run.windows)
    assert [fit.mass_gev for fit in fits] == [1, 2, 3, 4, 5]
    assert np.allclose(curve.sigma(windows.mass_gev), windows.sigma, rtol=1e-12)
    signal = simulated.table.signal_mass_gev
    assert [fit.n_events for fit in fits] == [int(np.sum(signal == m)) for m in range(1, 6)]
    assert windows.n_sigma == config.settings.windows.n_sigma
