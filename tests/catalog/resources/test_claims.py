"""Devices asked for through Dynamic Resource Allocation."""

from decimal import Decimal
from typing import Any

import pytest

from catalog.definition import Json, JsonObject
from catalog.resources import NO_DEVICES, AcceleratorPolicy, Devices, effective_devices

POLICY = AcceleratorPolicy()


def pod(*claims: JsonObject, uses: Json = None) -> JsonObject:
    """A pod spec with claims, whose container uses some of them."""
    resources = {} if uses is None else {"claims": uses}
    return {"containers": [{"name": "main", "resources": resources}], "resourceClaims": list(claims)}


def claim(name: str = "gpu", template: Json = "one") -> JsonObject:
    """A claim that names a template."""
    return {"name": name, "resourceClaimTemplateName": template}


def exactly(device_class: Json = "gpu.nvidia.com", **more: Json) -> JsonObject:
    """A request of resource.k8s.io/v1 for devices of one class."""
    return {"name": "r", "exactly": {"deviceClassName": device_class, **more}}


def template(*requests: Json, name: str = "one") -> JsonObject:
    """The short form of a template: its name and the claim's spec."""
    return {"name": name, "spec": {"devices": {"requests": list(requests)}}}


def problem_of(spec: JsonObject, *templates: Any) -> str | None:
    """Why the pod's devices are unknown."""
    return effective_devices(spec, {}, POLICY, templates).problem


def test_a_claim_of_a_template_in_the_object_is_counted() -> None:
    """Each claim gets the devices of its template, whether or not a container uses it."""
    spec = pod(claim("a"), claim("b"), claim("c", "two"), uses=[{"name": "a"}])
    templates = [template(exactly()), template(exactly(count=2), exactly("mig.nvidia.com"), name="two")]

    devices = effective_devices(spec, {}, POLICY, templates)

    assert devices == Devices(
        gpus=Decimal(4), accelerators={"gpu.nvidia.com": Decimal(4), "mig.nvidia.com": Decimal(1)}
    )


@pytest.mark.parametrize(
    "wrapped",
    [
        {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [exactly()]}}}},
        {"name": "one", "spec": {"devices": {"requests": [exactly()]}}},
        {"name": "one", "templateSpec": {"spec": {"devices": {"requests": [exactly()]}}}},
        {"name": "one", "template": {"spec": {"devices": {"requests": [exactly()]}}}},
        {"name": "one", "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu.nvidia.com"}]}}},
    ],
    ids=["ResourceClaimTemplate", "spec", "templateSpec", "template", "v1beta1"],
)
def test_templates_are_found_in_every_form(wrapped: JsonObject) -> None:
    """The resource itself, and the forms in which workloads carry it."""
    assert effective_devices(pod(claim()), {}, POLICY, [wrapped]).gpus == 1


def test_devices_of_resources_and_of_claims_are_added() -> None:
    """A pod may ask in both ways."""
    spec = {**pod(claim()), "initContainers": [{"resources": {"limits": {"nvidia.com/gpu": 2}}}]}

    assert effective_devices(spec, {}, POLICY, [template(exactly())]).gpus == 3


def test_old_claims_name_their_template_below_source() -> None:
    """Kubernetes 1.30 and before."""
    spec = pod({"name": "gpu", "source": {"resourceClaimTemplateName": "one"}})

    assert effective_devices(spec, {}, POLICY, [template(exactly())]).gpus == 1


@pytest.mark.parametrize("count", [None, 0])
def test_one_device_is_asked_for_when_no_count_is_stated(count: Json) -> None:
    """The API server's default, which also replaces zero."""
    assert effective_devices(pod(claim()), {}, POLICY, [template(exactly(count=count))]).gpus == 1


def test_requests_that_take_no_accelerator_count_nothing() -> None:
    """Administrative access, channels, and a claim without requests."""
    channel = exactly("compute-domain-default-channel.nvidia.com")
    watcher = exactly(adminAccess=True, allocationMode="All")

    assert effective_devices(pod(claim()), {}, POLICY, [template(channel, watcher)]) == NO_DEVICES
    assert effective_devices(pod(claim()), {}, POLICY, [{"name": "one", "spec": {"devices": {}}}]) == NO_DEVICES


def test_alternatives_count_when_they_ask_for_the_same() -> None:
    """`firstAvailable` is known when it does not matter which one is taken."""
    same = {"firstAvailable": [{"deviceClassName": "gpu.nvidia.com", "count": 2}] * 2}

    assert effective_devices(pod(claim()), {}, POLICY, [template(same)]).gpus == 2


NOT_HERE = 'devices asked for through resourceClaim "gpu" are not in this object'


@pytest.mark.parametrize(
    "spec, problem",
    [
        (pod(claim(template="elsewhere")), NOT_HERE),
        (pod({"name": "gpu", "resourceClaimName": "shared"}), NOT_HERE),
        (pod({"name": "gpu"}), NOT_HERE),
        (pod(uses=[{"name": "gpu"}]), NOT_HERE),
        (pod(claim("other"), uses=[{"name": "other"}, {"name": "gpu"}]), NOT_HERE),
        (pod(uses=["gpu"]), NOT_HERE),
        (pod(uses={"gpu": 1}), "resources.claims of a container is an object with 1 field, not a list"),
        (
            pod(uses=[{"name": ["x"]}]),
            "devices asked for through resourceClaim a list with 1 entry are not in this object",
        ),
        ({"resourceClaims": "gpu"}, 'resourceClaims is "gpu", not a list'),
        ({"resourceClaims": ["gpu"]}, 'resourceClaims[0] is "gpu", not an object'),
    ],
)
def test_claims_that_are_not_in_the_object_make_devices_unknown(spec: JsonObject, problem: str) -> None:
    """A claim made elsewhere may be anything, and may be shared."""
    assert problem_of(spec, template(exactly())) == problem


@pytest.mark.parametrize(
    "request_, reason",
    [
        (exactly("nic.example.com"), 'it is not known whether devices of class "nic.example.com" are GPUs'),
        (exactly(allocationMode="All"), 'allocationMode is "All": how many devices that is depends on the node'),
        (
            exactly(capacity={"requests": {"memory": "10Gi"}}),
            "it asks for a part of a device's capacity: how large a part depends on the device",
        ),
        (exactly(count=-1), "count is -1, not a number of devices"),
        (exactly(count=1.5), "count is 1.5, not a number of devices"),
        (exactly(count="2"), 'count is "2", not a number of devices'),
        (exactly(count=True), "count is true, not a number of devices"),
        (exactly(None), "deviceClassName is null, not a name"),
        ("gpu", 'a request is "gpu", not an object'),
        ({"exactly": 1}, "a request is 1, not an object"),
        ({"firstAvailable": []}, "firstAvailable is a list with 0 entries, not a list of requests"),
        (
            {
                "firstAvailable": [
                    {"deviceClassName": "gpu.nvidia.com"},
                    {"deviceClassName": "gpu.nvidia.com", "count": 2},
                ]
            },
            "the alternatives of firstAvailable ask for different devices",
        ),
    ],
)
def test_requests_that_cannot_be_counted_make_devices_unknown(request_: Json, reason: str) -> None:
    """What depends on the node or on the device is not guessed, what is malformed is named."""
    assert problem_of(pod(claim()), template(request_)) == f'resourceClaim "gpu": {reason}'


def test_templates_without_devices_make_devices_unknown() -> None:
    """The claims of the time before device classes say nothing that could be counted."""
    old = {"name": "one", "spec": {"resourceClassName": "gpu"}}
    malformed = {"name": "one", "spec": {"devices": {"requests": {"a": 1}}}}

    assert problem_of(pod(claim()), old) == 'resourceClaim "gpu": its template "one" has no spec.devices'
    assert (
        problem_of(pod(claim()), "one", malformed)
        == 'resourceClaim "gpu": requests of its template is an object with 1 field, not a list'
    )


def test_a_fraction_beside_a_claimed_gpu_is_unknown() -> None:
    """A whole GPU and a part of one, whichever way the whole one is asked for."""
    devices = effective_devices(pod(claim()), {"gpu-fraction": "0.5"}, POLICY, [template(exactly())])

    assert devices.problem == "the pod asks for whole GPUs and, by annotation gpu-fraction, for a part of one"
