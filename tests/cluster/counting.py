"""Counts the pods that exist in a namespace, their GPUs and what their stamps say, as an outsider would.

Nothing here is computed by the webhook: stamps are read, GPUs are added up from what the pods request.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.cluster.api_client import ApiClient, ApiError, api_path
from tests.cluster.jobsets import stamps

Object = dict[str, Any]


class Counted:
    """The pods of one namespace as they exist, with the objects above them; nothing here is computed by the webhook.

    With `below` only the pods that have the object with this uid among their owners.
    """

    def __init__(self, client: ApiClient, namespace: str, *, below: str = "") -> None:
        self._client = client
        self._namespace = namespace
        pods: list[Object] = client.get(api_path("v1", "pods", namespace=namespace))["items"]
        self.pods = [
            pod for pod in pods if not below or below in {each["metadata"]["uid"] for each in self._above(pod)}
        ]

    @property
    def gpus_by_role(self) -> dict[str, tuple[int, ...]]:
        """The GPUs that each pod really asks for, by the role on its label; most first."""
        found: dict[str, list[int]] = {}
        for pod in self.pods:
            found.setdefault(stamps(pod).get("role", "(none)"), []).append(gpus_of(pod))
        return {role: tuple(sorted(gpus, reverse=True)) for role, gpus in found.items()}

    @property
    def gpus(self) -> int:
        """The GPUs of all pods together."""
        return sum(gpus_of(pod) for pod in self.pods)

    @property
    def gangs(self) -> Counter[str]:
        """How many pods share each gang."""
        return Counter(stamps(pod)["gang"] for pod in self.pods if "gang" in stamps(pod))

    def values(self, key: str) -> set[str | None]:
        """The values of one stamp on all pods."""
        return {stamps(pod).get(key) for pod in self.pods}

    def owners(self) -> Iterator[Object]:
        """The objects above the pods, each once; leader Pods of a LeaderWorkerSet are pods."""
        above = {owner["metadata"]["uid"]: owner for pod in self.pods for owner in self._above(pod)}
        return (owner for owner in above.values() if owner["kind"] != "Pod")

    def _above(self, obj: Object) -> Iterator[Object]:
        """The controllers of an object, nearest first; one that has gone meanwhile ends them."""
        for reference in obj["metadata"].get("ownerReferences", ()):
            if reference.get("controller"):
                try:
                    owner = self._client.get(self._path(reference))
                except ApiError:
                    return
                yield owner
                yield from self._above(owner)

    def _path(self, reference: Object) -> str:
        plural = f"{reference['kind'].lower()}s"
        return api_path(reference["apiVersion"], plural, namespace=self._namespace, name=reference["name"])


def gpus_of(pod: Object) -> int:
    """GPUs that the stored pod requests: here containers alone have any."""
    requests = (each.get("resources", {}).get("requests", {}) for each in pod["spec"]["containers"])
    return sum(int(each.get("nvidia.com/gpu", 0)) for each in requests)
