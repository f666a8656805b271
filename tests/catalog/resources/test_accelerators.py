"""What counts as an accelerator, and as how much of a GPU."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.resources import AcceleratorPolicy, PolicyError, UnknownDevices


@pytest.mark.parametrize(
    "name, weight",
    [
        ("nvidia.com/gpu", 1),
        ("amd.com/gpu", 1),
        ("gpu.intel.com/i915", 1),
        ("gpu.intel.com/xe", 1),
        ("habana.ai/gaudi", 1),
        ("example.com/gpu", 1),
        ("nvidia.com/gpu.shared", 0),
        ("nvidia.com/mig-1g.10gb", 0),
        ("google.com/tpu", 0),
        ("aws.amazon.com/neuroncore", 0),
        ("huawei.com/Ascend910", 0),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", 1),
        ("deviceclass.resource.kubernetes.io/mig.nvidia.com", 0),
        ("cpu", None),
        ("memory", None),
        ("hugepages-2Mi", None),
        ("rdma/hca", None),
        ("example.com/gpus", None),
        ("nvidia.com/gpumem", None),
        ("gpu", None),
        ("", None),
        ("x/" + "y" * 10_000 + "/gpu", None),
    ],
)
def test_resources_have_the_default_weights(name: str, weight: int | None) -> None:
    """The contract's section 6; what no pattern matches is no accelerator."""
    policy = AcceleratorPolicy()

    assert policy.resource_weight(name) == weight
    assert policy.resource_weight(name) == weight, "asked again, the answer is the same"


@pytest.mark.parametrize(
    "name, weight",
    [
        ("gpu.nvidia.com", 1),
        ("vfio.gpu.nvidia.com", 1),
        ("gpu.example.com", 1),
        ("mig.nvidia.com", 0),
        ("tpu.google.com", 0),
        ("compute-domain-default-channel.nvidia.com", None),
    ],
)
def test_device_classes_have_the_default_weights(name: str, weight: int | None) -> None:
    """Whole GPUs count, parts and other accelerators do not, channels are no accelerators."""
    assert AcceleratorPolicy().device_class_weight(name) == weight


@pytest.mark.parametrize("name", ["big-device", "example.com", "", "g" * 1000])
def test_an_unknown_device_class_may_be_anything(name: str) -> None:
    """Nothing is guessed about a class that no pattern matches."""
    with pytest.raises(UnknownDevices, match="it is not known whether devices of class"):
        AcceleratorPolicy().device_class_weight(name)
    with pytest.raises(UnknownDevices):
        AcceleratorPolicy().resource_weight("deviceclass.resource.kubernetes.io/" + name[:100])


def test_the_first_pattern_that_matches_decides() -> None:
    """Order is the user's to choose."""
    policy = AcceleratorPolicy.parse("example.com/gpu-half=0.5, example.com/gpu-*=none, example.com/*=2")

    assert policy.resource_weight("example.com/gpu-half") == Decimal("0.5")
    assert policy.resource_weight("example.com/gpu-tool") is None
    assert policy.resource_weight("example.com/x") == 2
    assert policy.resource_weight("nvidia.com/gpu") is None


def test_stars_stand_for_any_characters_and_dots_for_themselves() -> None:
    """A pattern is no regular expression."""
    policy = AcceleratorPolicy.parse("a.b/*-x-*z=1")

    assert policy.resource_weight("a.b/1-x-2-x-3z") == 1
    assert policy.resource_weight("a.b/-x-z") == 1
    assert policy.resource_weight("aXb/1-x-z") is None
    assert policy.resource_weight("a.b/-x-zz9") is None


def test_all_problems_of_both_settings_are_reported_at_once() -> None:
    """Each problem names the entry, what was found and what would be right."""
    with pytest.raises(PolicyError) as refused:
        AcceleratorPolicy.parse("nvidia.com/gpu=x,a b=1,amd.com/gpu,amd.com/gpu=1,*/gpu=-1,x=1.2345", " ")

    assert refused.value.problems == (
        'nvidia.com/gpu=x: the weight is "x", write a number such as 1, 0.5 or 0, or "none"',
        'a b=1: "a b" is no name or pattern of a resource such as nvidia.com/gpu or */gpu',
        'amd.com/gpu=: the weight is "", write a number such as 1, 0.5 or 0, or "none"',
        "amd.com/gpu=1: the pattern is there twice, only its first weight would count",
        '*/gpu=-1: the weight is "-1", write a number such as 1, 0.5 or 0, or "none"',
        'x=1.2345: the weight is "1.2345", write a number such as 1, 0.5 or 0, or "none"',
        'no weights are given; write pattern=weight, or "*=none" to count nothing',
    )


def test_policies_are_values() -> None:
    """Two policies with the same weights are equal, whatever they were asked."""
    asked = AcceleratorPolicy()
    asked.resource_weight("nvidia.com/gpu")

    assert asked == AcceleratorPolicy.parse()
    assert hash(asked) == hash(AcceleratorPolicy())


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=12))
def test_a_pattern_matches_what_a_straightforward_matcher_matches(pattern: str, name: str) -> None:
    """The quick matcher agrees with the recursive definition of a star."""

    def matches(pattern: str, name: str) -> bool:
        if not pattern:
            return not name
        if pattern[0] == "*":
            return matches(pattern[1:], name) or (bool(name) and matches(pattern, name[1:]))
        return name[:1] == pattern[0] and matches(pattern[1:], name[1:])

    policy = AcceleratorPolicy(resources=((pattern, Decimal(1)),))

    assert (policy.resource_weight(name) == 1) is matches(pattern, name)


def test_names_without_number_are_not_remembered_for_ever() -> None:
    """Whoever makes up resource names cannot fill the memory, and the answers stay right."""
    policy = AcceleratorPolicy()
    for number in range(10_000):
        policy.resource_weight(f"example.com/made-up-{number}")

    assert not policy.knows_as_ordinary([f"example.com/made-up-{number}" for number in range(10_000)])
    assert policy.resource_weight("nvidia.com/gpu") == 1
