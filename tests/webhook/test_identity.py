"""Workload ids and safe label values: legal, stable, distinct."""

import re
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.identity import label_safe, workload_id

LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", fullmatch=True)


def test_id_is_the_name_and_ten_digits_of_the_hash_of_group_kind_namespace_name() -> None:
    """The formula of the contract, section 3."""
    digits = sha256(b"jobset.x-k8s.io/JobSet/team-a/train").hexdigest()[:10]

    assert f"train-{digits}" == workload_id("jobset.x-k8s.io", "JobSet", "team-a", "train")


@pytest.mark.parametrize("length", [1, 51, 52, 53, 63, 64, 253])
def test_long_names_are_cut_so_that_the_whole_is_a_label_value(length: int) -> None:
    """A name may have 253 characters, a label value 63."""
    found = workload_id("", "Pod", "team-a", "a" * length)

    assert len(found) == min(length, 52) + 11


def test_a_cut_that_ends_in_a_separator_is_trimmed_again() -> None:
    """Names are cut at a dot or a dash too."""
    found = workload_id("", "Pod", "team-a", "a" * 49 + ".-.b")

    assert found.startswith("a" * 49 + "-")
    assert LABEL_VALUE.fullmatch(found)


@given(NAMES, st.text(max_size=20))
def test_every_id_is_a_legal_label_value(name: str, kind: str) -> None:
    """Whatever the name, the API server takes the value."""
    found = workload_id("example.com", kind, "team-a", name)

    assert LABEL_VALUE.fullmatch(found)
    assert len(found) <= 63


@given(st.text(max_size=100))
def test_every_safe_value_is_a_legal_label_value(text: str) -> None:
    """Whatever the text, the API server takes the value."""
    found = label_safe(text)

    assert LABEL_VALUE.fullmatch(found)
    assert len(found) <= 63


@given(st.lists(st.text(max_size=80), min_size=2, max_size=2, unique=True))
def test_different_texts_give_different_values(texts: list[str]) -> None:
    """Sanitising loses no distinctness."""
    first, second = texts

    assert label_safe(first) != label_safe(second)


@given(st.from_regex(LABEL_VALUE, fullmatch=True).filter(lambda text: 0 < len(text) <= 63))
def test_a_legal_value_stays_as_it_is(text: str) -> None:
    """Roles are spelled as the framework spells them."""
    assert text == label_safe(text)
