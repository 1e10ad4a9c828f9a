"""Sums in arrays are the histograms that boost-histogram fills, to the last bit."""

import hist
import numpy as np
import pytest

from analysis.config.searches import shipped_search
from analysis.select.histogram_sums import skim_histograms
from analysis.select.histograms import quantity_axes, quantity_values

SEARCH = shipped_search("dimuon_recoil")


@pytest.fixture(scope="module")
def skim():
    """Values inside, outside, on every edge, and none at all."""
    rng = np.random.default_rng(5)
    edges = {n: a.edges for n, a in quantity_axes(SEARCH).items()}
    odd = [np.nan, np.inf, -np.inf, -0.0]
    of = lambda e: np.concatenate([e, odd, rng.uniform(e[0] - 1, e[-1] + 1, 2000)])[:2100]  # noqa: E731
    columns = {n: of(e).astype(np.float32) for n, e in edges.items()}
    columns["axis"] = of(edges[SEARCH.axis.name])
    return {name: values[:1900] for name, values in columns.items()}


@pytest.mark.parametrize("weighted", [True, False])
def test_sums_are_those_of_boost_histogram_to_the_last_bit(skim, weighted):
    n = len(skim["axis"])
    weight = np.random.default_rng(6).normal(0.3, 1.0, n) if weighted else np.full(n, 0.3)
    found = skim_histograms({**skim, "weight": weight}, SEARCH)
    for name, axis in quantity_axes(SEARCH).items():
        value = quantity_values(name, SEARCH, skim)
        raw = hist.Hist(axis, storage=hist.storage.Int64()).fill(value).view(flow=True)
        assert np.array_equal(found[f"{name}_raw"].view(flow=True), raw)
        wanted = hist.Hist(axis, storage=hist.storage.Weight()).fill(value, weight=weight)
        for part in ("value", "variance"):
            ours = getattr(found[name].view(flow=True), part)
            theirs = getattr(wanted.view(flow=True), part)
            if weighted:
                assert np.array_equal(ours, theirs)
            else:  # n w is the better sum of n equal weights
                assert np.array_equal(ours, raw * (0.3 if part == "value" else 0.3**2))
                assert np.allclose(ours, theirs, rtol=1e-12)
