"""The dimuon search for tests: whole, with other cuts, and without any."""

from analysis.config.searches import shipped_search
from selection.definition import search_from, with_changes
from selection.kernel import event_quantities

SEARCH = shipped_search("dimuon_recoil")
FEATURES = SEARCH.feature_names


def with_cuts(**cuts):
    """The search with cuts replaced, or left out where None."""
    return search_from(with_changes(SEARCH.plain(), features={}, cuts=cuts))


NO_CUTS = with_cuts(**dict.fromkeys(SEARCH.cuts))


def event_kinematics(columns, beams, **options):
    """Axis and features of events that need no other column than momenta."""
    return event_quantities(NO_CUTS, columns, beams, **options)
