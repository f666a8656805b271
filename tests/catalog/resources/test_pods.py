"""The devices of a pod: effective requests, GPU sharing, what is malformed, and sums over pods."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.definition import Json, JsonObject
from catalog.resources import NO_DEVICES, AcceleratorPolicy, Devices, effective_devices, total

POLICY = AcceleratorPolicy()
GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
NO_QUANTITY = 'is not a Kubernetes quantity such as 4, "500m" or "2Gi"'


def container(gpus: Json = None, *, limits: Any = None, always: bool = False, **other: Json) -> JsonObject:
    """A container that requests GPUs, or states `limits` only."""
    resources: JsonObject = {"requests": {"cpu": "1", "memory": "1Gi"}}
    if gpus is not None:
        resources["requests"][GPU] = gpus
    if limits is not None:
        resources["limits"] = limits
    return {"name": "c", "resources": resources, **({"restartPolicy": "Always"} if always else {}), **other}


def gpus_of(spec: Json, annotations: JsonObject | None = None) -> Decimal | None:
    """GPUs of the pod; fails the test when they are unknown for another reason than the test expects."""
    return effective_devices(spec, annotations or {}, POLICY).gpus


def problem_of(spec: Json, annotations: JsonObject | None = None) -> str | None:
    """Why the pod's devices are unknown, with the promise that nothing else is said then."""
    devices = effective_devices(spec, annotations or {}, POLICY)
    assert (devices.gpus is None) is (devices.problem is not None)
    assert devices.gpus is not None or not devices.accelerators
    return devices.problem


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": []},
        {"containers": None, "initContainers": None, "resources": None, "resourceClaims": None},
        {"containers": [{}, {"resources": None}, {"resources": {}}, {"resources": {"limits": None, "requests": None}}]},
        {"containers": [container(), container(limits={"cpu": "not a quantity"})]},
        {"containers": [container(0), container("0")]},
        {"containers": [container()], "overhead": {GPU: "1"}},
        {"containers": [container()], "ephemeralContainers": [container(4)]},
        {"containers": [{"resources": {"limits": {GPU: None}}}]},
    ],
)
def test_a_pod_that_asks_for_no_accelerator_has_none(spec: JsonObject) -> None:
    """Absent, empty, null and zero are all none; what is no accelerator is not even read."""
    assert effective_devices(spec, {}, POLICY) == NO_DEVICES


def test_containers_are_summed() -> None:
    """All containers run together."""
    assert gpus_of({"containers": [container(4), container("2"), container()]}) == 6


def test_limits_stand_in_for_absent_requests() -> None:
    """Per resource, as the API server defaults them; a stated request wins, even of zero."""
    assert gpus_of({"containers": [container(limits={GPU: 2})]}) == 2
    assert gpus_of({"containers": [container(1, limits={GPU: 2})]}) == 1
    assert gpus_of({"containers": [container(0, limits={GPU: 2})]}) == 0
    assert gpus_of({"containers": [container(limits={"amd.com/gpu": 3}), container(1, limits={"amd.com/gpu": 3})]}) == 7


def test_an_ordinary_init_container_counts_when_it_needs_more() -> None:
    """Init containers run before the others, one after the other."""
    assert gpus_of({"containers": [container(2)], "initContainers": [container(1), container(1)]}) == 2
    assert gpus_of({"containers": [container(2)], "initContainers": [container(3), container(1)]}) == 3
    assert gpus_of({"containers": [], "initContainers": [container(3)]}) == 3


def test_restartable_init_containers_run_on() -> None:
    """They are added to the containers, and to the ordinary init containers after them, not to those before."""
    sidecar = container(1, always=True)

    assert gpus_of({"containers": [container(2)], "initContainers": [sidecar]}) == 3
    assert gpus_of({"containers": [container(2)], "initContainers": [container(4), sidecar]}) == 4
    assert gpus_of({"containers": [container(2)], "initContainers": [sidecar, container(4)]}) == 5
    assert gpus_of({"containers": [container(2)], "initContainers": [sidecar, container(4), sidecar]}) == 5
    assert gpus_of({"containers": [container(5)], "initContainers": [sidecar, container(4), sidecar]}) == 7


def test_each_resource_is_computed_on_its_own() -> None:
    """The largest moment of one accelerator may be another's smallest."""
    spec = {
        "containers": [container(1, limits={"amd.com/gpu": 2})],
        "initContainers": [container(3, limits={"amd.com/gpu": 1})],
    }

    assert effective_devices(spec, {}, POLICY).accelerators == {GPU: 3, "amd.com/gpu": 2}


def test_resources_of_the_pod_replace_those_of_its_containers() -> None:
    """Pod-level resources, for the resources that they name."""
    spec = {
        "containers": [container(4, limits={MIG: 2})],
        "initContainers": [container(8)],
        "resources": {"limits": {GPU: 5}},
    }

    assert effective_devices(spec, {}, POLICY) == Devices(
        gpus=Decimal(5), accelerators={GPU: Decimal(5), MIG: Decimal(2)}
    )


def test_accelerators_that_are_no_gpus_are_listed_and_not_counted() -> None:
    """MIG slices, shared GPUs and TPUs; of which there are none is not listed."""
    limits = {MIG: "2", "google.com/tpu": 4, "nvidia.com/gpu.shared": 1, "amd.com/gpu": 0, "rdma/hca": 1}
    devices = effective_devices({"containers": [container(1, limits=limits)]}, {}, POLICY)

    assert devices.gpus == 1
    assert devices.accelerators == {GPU: 1, MIG: 2, "google.com/tpu": 4, "nvidia.com/gpu.shared": 1}


def test_weights_come_from_the_policy() -> None:
    """A user may count a slice as a part of a GPU."""
    policy = AcceleratorPolicy.parse("nvidia.com/mig-1g.*=0.125,nvidia.com/gpu=2")
    spec = {"containers": [container(1, limits={MIG: 3})]}

    assert effective_devices(spec, {}, policy).gpus == Decimal("2.375")


def test_device_classes_asked_for_as_a_resource_count() -> None:
    """The implicit extended resource of a device class, Kubernetes 1.34 and later."""
    known = {"containers": [container(limits={"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 2})]}
    unknown = {"containers": [container(limits={"deviceclass.resource.kubernetes.io/nic": 1})]}

    assert gpus_of(known) == 2
    assert problem_of(unknown) == (
        'containers[0].resources.limits["deviceclass.resource.kubernetes.io/nic"]: '
        'it is not known whether devices of class "nic" are GPUs'
    )


@pytest.mark.parametrize(
    "annotations, gpus",
    [
        ({"gpu-fraction": "0.5"}, "0.5"),
        ({"gpu-fraction": ".25"}, "0.25"),
        ({"gpu-fraction": "5e-1"}, "0.5"),
        ({"gpu-fraction": "1.0"}, "1"),
        ({"gpu-fraction": "0.3", "gpu-fraction-num-devices": "3"}, "0.9"),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "", "gpu-memory": ""}, "0.5"),
        ({"gpu-fraction": "", "gpu-memory": None}, "0"),
        ({"gpu-fraction-num-devices": "2", "other": "x"}, "0"),
    ],
)
def test_a_fraction_of_a_gpu_is_counted(annotations: JsonObject, gpus: str) -> None:
    """The annotations of KAI Scheduler and Run:ai, of each of several devices."""
    assert gpus_of({"containers": [container()]}, annotations) == Decimal(gpus)


def test_a_fraction_beside_a_slice_is_counted() -> None:
    """A resource that is no GPU does not contradict the fraction."""
    devices = effective_devices({"containers": [container(limits={MIG: 1})]}, {"gpu-fraction": "0.5"}, POLICY)

    assert devices == Devices(gpus=Decimal("0.5"), accelerators={MIG: Decimal(1)})


@pytest.mark.parametrize(
    "annotations, gpus, problem",
    [
        (
            {"gpu-fraction": "0.5"},
            1,
            "the pod asks for whole GPUs and, by annotation gpu-fraction, for a part of one",
        ),
        (
            {"gpu-memory": "2000"},
            None,
            "annotation gpu-memory asks for GPU memory: how many GPUs that is depends on the node",
        ),
        (
            {"nvidia.com/container.main.gpu-memory.request": "4Gi"},
            None,
            (
                "annotation nvidia.com/container.main.gpu-memory.request asks for GPU memory: "
                "how many GPUs that is depends on the node"
            ),
        ),
        ({"gpu-fraction": "half"}, None, 'annotation gpu-fraction is "half", not a text such as 0.5'),
        ({"gpu-fraction": 0.5}, None, "annotation gpu-fraction is 0.5, not a text such as 0.5"),
        ({"gpu-fraction": "0"}, None, 'annotation gpu-fraction is "0", not a text such as 0.5'),
        ({"gpu-fraction": "1.5"}, None, 'annotation gpu-fraction is "1.5", not a text such as 0.5'),
        (
            {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"},
            None,
            'annotation gpu-fraction-num-devices is "0", not a number of devices',
        ),
    ],
)
def test_sharing_that_cannot_be_counted_is_unknown(annotations: JsonObject, gpus: Json, problem: str) -> None:
    """Memory depends on the node, contradictions and malformed values on nothing we know."""
    assert problem_of({"containers": [container(gpus)]}, annotations) == problem


@pytest.mark.parametrize(
    "spec, problem",
    [
        (None, "the pod spec is null, not an object"),
        ([1], "the pod spec is a list with 1 entry, not an object"),
        ({"containers": {"a": 1}}, "containers is an object with 1 field, not a list"),
        ({"containers": ["x"]}, 'containers[0] is "x", not an object'),
        ({"initContainers": 1}, "initContainers is 1, not a list"),
        ({"initContainers": [None]}, "initContainers[0] is null, not an object"),
        (
            {"containers": [{}, {"resources": [1, 2]}]},
            "containers[1].resources is a list with 2 entries, not an object",
        ),
        ({"containers": [{"resources": ""}]}, 'containers[0].resources is "", not an object'),
        ({"containers": [{"resources": {"limits": 4}}]}, "containers[0].resources.limits is 4, not an object"),
        (
            {"containers": [container("four")]},
            f'containers[0].resources.requests["nvidia.com/gpu"]: "four" {NO_QUANTITY}',
        ),
        (
            {"initContainers": [container(limits={GPU: -1})]},
            'initContainers[0].resources.limits["nvidia.com/gpu"]: -1 is less than none',
        ),
        (
            {"containers": [container(gpus=True)]},
            f'containers[0].resources.requests["nvidia.com/gpu"]: true {NO_QUANTITY}',
        ),
        (
            {"resources": {"requests": {GPU: "1x"}}},
            f'resources.requests["nvidia.com/gpu"]: "1x" {NO_QUANTITY}',
        ),
    ],
)
def test_malformed_specs_make_devices_unknown(spec: Json, problem: str) -> None:
    """The problem says what, where, and the value."""
    assert problem_of(spec) == problem


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([GPU, MIG, "cpu", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"])
AMOUNTS = st.integers(0, 8) | st.sampled_from(["1", "500m", "0"])
RESOURCES = st.fixed_dictionaries(
    {}, optional={"limits": st.dictionaries(NAMES, AMOUNTS), "requests": st.dictionaries(NAMES, AMOUNTS)}
)
CONTAINERS = st.lists(
    st.fixed_dictionaries({}, optional={"resources": RESOURCES, "restartPolicy": st.just("Always")}), max_size=4
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "containers": JSON_VALUES | st.lists(st.fixed_dictionaries({"resources": JSON_VALUES})),
            "initContainers": JSON_VALUES,
            "resources": JSON_VALUES | st.fixed_dictionaries({"limits": st.dictionaries(NAMES, JSON_VALUES)}),
            "resourceClaims": JSON_VALUES | st.lists(st.dictionaries(st.sampled_from(["name", "source"]), JSON_VALUES)),
        },
    )
    | JSON_VALUES,
    st.dictionaries(st.sampled_from(["gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"]), JSON_VALUES),
    st.lists(JSON_VALUES),
)
def test_no_spec_makes_it_raise(spec: Json, annotations: JsonObject, templates: list[Json]) -> None:
    """Any JSON has an answer: a number of GPUs that is not negative, or the reason why there is none."""
    devices = effective_devices(spec, annotations, POLICY, templates)

    assert (devices.gpus is None) is (devices.problem is not None)
    assert devices.gpus is None or devices.gpus >= 0


@given(CONTAINERS, CONTAINERS)
def test_the_effective_request_is_the_largest_need_of_any_moment(
    containers: list[JsonObject], init_containers: list[JsonObject]
) -> None:
    """Told as a story: init containers start one by one, the restartable ones stay, then the containers start."""
    policy = AcceleratorPolicy.parse("nvidia.com/gpu=1", "*=none")

    def need(each: JsonObject) -> Decimal:
        alone = {key: value for key, value in each.items() if key == "resources"}
        return effective_devices({"containers": [alone]}, {}, policy).gpus or Decimal(0)

    running, moments = Decimal(0), [Decimal(0)]
    for each in init_containers:
        moments.append(running + need(each))
        if "restartPolicy" in each:
            running += need(each)
    moments.append(running + sum((need(each) for each in containers), Decimal(0)))

    spec = {"containers": containers, "initContainers": init_containers}
    assert effective_devices(spec, {}, policy).gpus == max(moments)


def test_devices_of_several_pods_are_added() -> None:
    """Pods times devices of one, per accelerator; the contract's example has twelve GPUs."""
    leader = Devices(gpus=Decimal(4), accelerators={GPU: Decimal(4)})
    worker = Devices(gpus=Decimal("4.5"), accelerators={GPU: Decimal(4), MIG: Decimal(1)})

    assert total([(1, leader), (2, worker)]) == Devices(
        gpus=Decimal(13), accelerators={GPU: Decimal(12), MIG: Decimal(2)}
    )
    assert total([]) == NO_DEVICES


def test_one_unknown_part_makes_the_total_unknown_unless_it_has_no_pods() -> None:
    """A part is never given for the whole, and no pods have no devices."""
    unknown = Devices(gpus=None, problem="who knows")

    assert total([(1, NO_DEVICES), (2, unknown)]) == unknown
    assert total([(1, NO_DEVICES), (0, unknown)]) == NO_DEVICES
