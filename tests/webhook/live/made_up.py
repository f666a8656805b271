"""A made-up cluster for tests of live views: objects as an API server lists them, few fields, all that matters.

cluster = MadeUp()
train = cluster.jobset("train", leader=1, workers=2, gpus=4)
cluster.pods_of_jobset(train, node="node-0")
found = cluster.inventory()
"""

import itertools
from collections.abc import Mapping
from typing import Any

from tests.golden.cases import packaged_catalog
from webhook.live.membership import StampReader
from webhook.live.owners import OwnerIndex
from webhook.live.pods import devices_of
from webhook.live.snapshot import Snapshot, Unread
from webhook.live.workloads import Inventory, LiveWorkload, inventory
from webhook.stamps import Policy

Object = dict[str, Any]

_UIDS = itertools.count(1)

NAMESPACE = "team-a"
CREATED = "2026-01-01T00:00:00Z"
READY = [{"type": "Ready", "status": "True"}]
UNSCHEDULABLE = "0/8 nodes are available: 8 Insufficient nvidia.com/gpu."
GVK = {
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "RayJob": "ray.io/v1",
    "RayCluster": "ray.io/v1",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "Widget": "example.com/v1",
}


class MadeUp:
    """The objects of one cluster; each method adds one and gives it back."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.objects: list[Object] = []
        self.owners: list[Object] = []
        self.pods: list[Object] = []
        self.nodes: list[Object] = []
        self.groups: list[Object] = []
        self.unread: list[Unread] = []

    # ------------------------------------------------------------------------------------------- objects

    def add(
        self,
        kind: str,
        name: str,
        spec: Mapping[str, Any] | None = None,
        *,
        owner: Object | None = None,
        status: Mapping[str, Any] | None = None,
        generation: int = 1,
        namespace: str = NAMESPACE,
        **metadata: Any,
    ) -> Object:
        """A described object."""
        obj = self._object(GVK[kind], kind, name, namespace=namespace, owner=owner, **metadata)
        obj["metadata"]["generation"] = generation
        obj |= {"spec": dict(spec or {}), "status": dict(status or {})}
        self.objects.append(obj)
        return obj

    def jobset(self, name: str = "train", *, gpus: int = 4, owner: Object | None = None, **counts: int) -> Object:
        """A JobSet with a replicated job for each count; without any, the contract's example."""
        counts = counts or {"leader": 1, "workers": 2}
        jobs = [
            {"name": job, "replicas": count, "template": {"spec": {"parallelism": 1, "template": template(gpus)}}}
            for job, count in counts.items()
        ]
        return self.add("JobSet", name, {"replicatedJobs": jobs}, owner=owner)

    def pods_of_jobset(self, jobset: Object, *, node: str = "node-0", phase: str = "Running") -> list[Object]:
        """Its Jobs and their pods, all in that phase on that node."""
        found: list[Object] = []
        for entry in jobset["spec"]["replicatedJobs"]:
            for index in range(entry["replicas"]):
                name = f"{jobset['metadata']['name']}-{entry['name']}-{index}"
                job = self.add("Job", name, entry["template"]["spec"], owner=jobset)
                labels = {"jobset.sigs.k8s.io/replicatedjob-name": entry["name"]}
                pod_spec = entry["template"]["spec"]["template"]["spec"]
                found.append(self.pod(f"{name}-0-x", pod_spec, owner=job, labels=labels, node=node, phase=phase))
        return found

    def pod(
        self,
        name: str,
        spec: Mapping[str, Any] | None = None,
        *,
        owner: Object | None = None,
        node: str = "node-0",
        phase: str = "Running",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        namespace: str = NAMESPACE,
        **status: Any,
    ) -> Object:
        """A pod; on its node and ready when it runs."""
        pod = self._object("v1", "Pod", name, namespace=namespace, owner=owner)
        pod["metadata"] |= {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
        pod["spec"] = {**(spec or template(0)["spec"]), **({"nodeName": node} if node else {})}
        pod["status"] = {"phase": phase, **({"conditions": READY} if phase == "Running" else {}), **status}
        self.pods.append(pod)
        return pod

    def node(self, name: str, *, gpus: int = 8, labels: Mapping[str, str] | None = None) -> Object:
        """A ready node."""
        node = self._object("v1", "Node", name, namespace="")
        node["metadata"]["labels"] = {"kubernetes.io/hostname": name, **(labels or {})}
        node["spec"] = {}
        node["status"] = {"allocatable": {"cpu": "8", "nvidia.com/gpu": str(gpus)}, "conditions": READY}
        self.nodes.append(node)
        return node

    def group(self, api_version: str, name: str, spec: Mapping[str, Any], phase: str = "") -> Object:
        """A scheduler's PodGroup."""
        group = self._object(api_version, "PodGroup", name, namespace=NAMESPACE)
        group |= {"spec": dict(spec), "status": {"phase": phase} if phase else {}}
        self.groups.append(group)
        return group

    def _object(
        self, api_version: str, kind: str, name: str, *, namespace: str, owner: Object | None = None, **metadata: Any
    ) -> Object:
        place = {"namespace": namespace} if namespace else {}
        obj: Object = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, **place, "uid": f"uid-{next(_UIDS)}", "creationTimestamp": CREATED, **metadata},
        }
        if owner is not None:
            obj["metadata"]["ownerReferences"] = [reference_to(owner)]
        return obj

    # --------------------------------------------------------------------------------------------- views

    def snapshot(self) -> Snapshot:
        """All of it as a reader would hand it on."""
        return Snapshot(
            objects=tuple(self.objects),
            owners=tuple(self.owners),
            pods=tuple(self.pods),
            nodes=tuple(self.nodes) if self.nodes else None,
            groups=tuple(self.groups),
            unread=tuple(self.unread),
        )

    def index(self) -> OwnerIndex:
        """The owners among it."""
        return OwnerIndex(self.snapshot(), packaged_catalog(), self.policy)

    def inventory(self) -> Inventory:
        """The workloads of it."""
        return inventory(self.snapshot(), self.index())

    def workload(self, name: str) -> LiveWorkload:
        """The one workload of that name."""
        (found,) = [each for each in self.inventory().workloads if each.reference.name == name]
        return found

    def stamp(self, *pods: Object) -> None:
        """Give pods (all of them by default) the stamps that their admission would have given them."""
        index = self.index()
        for pod in pods or self.pods:
            stamps = StampReader(index).stamps(pod, devices_of(pod, index))
            if stamps is not None:
                prefix = self.policy.prefix
                pod["metadata"]["labels"] |= {f"{prefix}/{key}": value for key, value in stamps.labels.items()}
                pod["metadata"]["annotations"] |= {f"{prefix}/{key}": text for key, text in stamps.annotations.items()}


def row(*values: object) -> tuple[object, ...]:
    """Values of several types side by side, to be compared with plain numbers."""
    return values


def template(gpus: int = 0, container: str = "main") -> Object:
    """A pod template whose one container asks for that many GPUs."""
    resources = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    return {"spec": {"containers": [{"name": container, "image": "registry.example/image", **resources}]}}


def reference_to(owner: Object) -> Object:
    """A controller reference to an object."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def condition(kind: str, status: str = "True", **fields: str) -> Object:
    """One entry of `status.conditions`."""
    return {"type": kind, "status": status, **fields}


def unschedulable() -> Object:
    """The status of a pod that the scheduler has found no node for."""
    entry = condition("PodScheduled", "False", reason="Unschedulable", message=UNSCHEDULABLE)
    return {"conditions": [entry]}
