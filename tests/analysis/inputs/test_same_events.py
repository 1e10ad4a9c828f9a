"""Events that stand in two data sets, against the slow definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.findings import SAME_EVENTS, same_event_findings


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 40), max_size=60)))
def test_equal_events_are_counted_once_for_each_two_data_sets_that_follow_each_other(contents):
    bits = {name: np.array(events, np.uint64) for name, events in contents.items()}
    names, wanted = list(contents), set()
    for j, later in enumerate(names):
        for i, earlier in enumerate(names[:j]):
            between = {event for name in names[i + 1 : j] for event in contents[name]}
            n = len((set(contents[earlier]) & set(contents[later])) - between)
            if n >= max(1, min(SAME_EVENTS, len(contents[earlier]), len(contents[later]))):
                text = f"{n} selected events are events of {earlier} too; each counts twice"
                wanted.add((later, text))
    assert {(found.dataset, found.text) for found in same_event_findings(bits)} == wanted
