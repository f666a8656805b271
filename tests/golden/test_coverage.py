"""The golden cases show every definition from each side; what no case can show is listed here with its reason."""

import re
from collections.abc import Mapping
from functools import cache

import pytest

from catalog.definition import Expression
from catalog.library import CompiledDefinition
from tests.golden.cases import Case, all_cases, packaged_catalog
from tests.golden.shown import Exhibits, exhibits, is_absent_somewhere, stated_numbers
from webhook.stamps import Policy

DEFINITIONS = sorted(packaged_catalog(), key=lambda compiled: compiled.definition.name)

each_definition = pytest.mark.parametrize(
    "compiled", DEFINITIONS, ids=[compiled.definition.name for compiled in DEFINITIONS]
)


@cache
def _shown() -> Mapping[str, Exhibits]:
    return exhibits(all_cases(), packaged_catalog(), Policy())


def _of(compiled: CompiledDefinition) -> Exhibits:
    return _shown()[compiled.definition.name]


_NO_CONTROLLER = "the schedule is no controller of its applications: none of their pods has it among its owners"
_REQUIRED = "the API requires it"
_ANSWERED_BELOW: Mapping[str, str] = {
    "trainer-kubeflow-org-trainjob-v1alpha1": "its JobSet answers for GPUs",
    "workload-codeflare-dev-appwrapper-v1beta2": "what is wrapped answers for GPUs",
}

NO_PODS: Mapping[str, str] = {
    "sparkoperator-k8s-io-scheduledsparkapplication-v1beta2 driver": _NO_CONTROLLER,
    "sparkoperator-k8s-io-scheduledsparkapplication-v1beta2 executor": _NO_CONTROLLER,
    "workload-codeflare-dev-appwrapper-v1beta2 component": "what is wrapped answers for its pods",
}
"""`definition component` → why no pod is ever attributed to it."""

ALWAYS_THERE: Mapping[str, str] = {
    "kubeflow-org-jaxjob-v1 worker": "training-operator's webhook refuses a JAXJob without workers",
    "kubeflow-org-mpijob-v1 launcher": "training-operator fails an MPIJob without a launcher at once",
}
"""`definition component` → why it is never absent, though an expression says when it exists."""

ALWAYS_STATED: Mapping[str, str] = {
    "grove-io-podclique-v1alpha1 clique spec.replicas": _REQUIRED,
    "leaderworkerset-x-k8s-io-leaderworkerset-v1 worker spec.leaderWorkerTemplate.size": "without a size: no workers",
    **{
        f"milvus-io-milvus-v1beta1 {component.lower()} spec.components.{component}.groups.[].replicas": _REQUIRED
        for component in ("dataNode", "proxy", "queryNode", "streamingNode")
    },
    "orchestration-aibrix-ai-podset-v1alpha1 podset spec.podGroupSize": _REQUIRED,
}
"""`definition component field` → why the number is never absent."""

NEVER_GPUS: Mapping[str, str] = {
    "apps-nvidia-com-nimcache-v1alpha1": "the Job that fills a cache asks for CPU and memory",
    "production-stack-vllm-ai-vllmrouter-v1alpha1": "a router serves no model",
    **_ANSWERED_BELOW,
}
"""Definition → why no object or pod of it shows GPUs."""

ALWAYS_GPUS: Mapping[str, str] = {
    **_ANSWERED_BELOW,
}
"""Definition → why no object or pod of it shows that there are none."""


@each_definition
def test_each_component_has_a_pod(compiled: CompiledDefinition) -> None:
    """For every component that bears pods some case admits a pod that its selector chooses."""
    name = compiled.definition.name
    missing = {leaf.name for leaf in compiled.leaves} - _of(compiled).attributed

    assert {f"{name} {component}" for component in missing} == {key for key in NO_PODS if key.startswith(f"{name} ")}


@each_definition
def test_each_optional_component_is_absent_once(compiled: CompiledDefinition) -> None:
    """For every component that exists only sometimes there is an object with it and one without."""
    name = compiled.definition.name
    optional = [leaf.name for leaf in compiled.leaves if leaf.is_enabled is not None]
    objects = _of(compiled).objects
    always = {component for component in optional if len(_of(compiled).with_component(component)) == len(objects)}

    assert [component for component in optional if not _of(compiled).with_component(component)] == []
    assert {f"{name} {component}" for component in always} == {
        key for key in ALWAYS_THERE if key.startswith(f"{name} ")
    }


@each_definition
def test_each_number_of_pods_is_left_to_its_default_once(compiled: CompiledDefinition) -> None:
    """For every field that states a number of pods there is an object that lacks it."""
    name = compiled.definition.name
    missing = {
        f"{name} {leaf.name} {'.'.join(path)}"
        for leaf in compiled.leaves
        for path in stated_numbers(leaf)
        if not any(is_absent_somewhere(shown.obj, path) for shown in _of(compiled).with_component(leaf.name))
    }

    assert missing == {key for key in ALWAYS_STATED if key.startswith(f"{name} ")}


@each_definition
def test_each_kind_is_shown_with_and_without_gpus(compiled: CompiledDefinition) -> None:
    """There is an object, or a pod where the object can't tell, with GPUs and one without."""
    name = compiled.definition.name
    amounts = _of(compiled).gpu_amounts()

    assert any(amount > 0 for amount in amounts) is (name not in NEVER_GPUS)
    assert any(amount == 0 for amount in amounts) is (name not in ALWAYS_GPUS)


@each_definition
def test_what_is_not_known_has_a_reason_of_its_own(compiled: CompiledDefinition) -> None:
    """Where an object does not state a number or has not the whole pod spec, the definition says who does."""
    unexplained = [
        leaf.name
        for leaf in compiled.leaves
        if (leaf.is_complete is not None and leaf.incomplete_reason is None)
        or (leaf.scale is not None and leaf.scale.unknown_reason is None and _may_be_null(leaf.scale.replicas))
    ]

    assert unexplained == []


GENERAL_REASON = re.compile("the number of pods is not stated|its pod spec is (not in|completed outside)")


def _may_be_null(expression: Expression | None) -> bool:
    """Whether the text has a branch that gives null."""
    return expression is None or re.search(r"(^|then |else |\|) *null\b", expression.text) is not None


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: f"{case.path.parent.name}/{case.path.stem}")
def test_no_reason_is_a_general_one(case: Case) -> None:
    """What is left out says who decides it, in the definition's own words."""
    for step, decision in case.decisions(packaged_catalog(), Policy()):
        for reason in decision.stamps.unresolved.values() if decision.stamps is not None else ():
            assert GENERAL_REASON.search(reason) is None, f"{step.what}: {reason}"


def test_reasons_name_definitions() -> None:
    """Every reason stands for a definition that is there."""
    keys = [key for table in (NO_PODS, ALWAYS_THERE, ALWAYS_STATED, NEVER_GPUS, ALWAYS_GPUS) for key in table]

    assert {key.split()[0] for key in keys} <= {compiled.definition.name for compiled in DEFINITIONS}
