"""Objects of cert-manager and the Prometheus operator can be judged by the server without those projects running."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.kubectl import Kubectl, KubectlError

CERTIFICATE = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Certificate",
    "metadata": {"name": "serving"},
    "spec": {"secretName": "serving", "issuerRef": {"name": "any"}, "dnsNames": ["localhost"]},
}
SERVICE_MONITOR = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "ServiceMonitor",
    "metadata": {"name": "webhook"},
    "spec": {"selector": {"matchLabels": {"app": "webhook"}}, "endpoints": [{"port": "metrics"}]},
}


@pytest.mark.parametrize(
    "project,document",
    [("cert-manager", CERTIFICATE), ("prometheus-operator", SERVICE_MONITOR)],
    ids=["cert-manager", "prometheus-operator"],
)
def test_objects_of_the_project_are_validated(
    project: str, document: dict[str, Any], definitions: Callable[[str], None], kubectl: Kubectl, namespace: str
) -> None:
    """A right object is accepted, one with a field that the definition does not know is not."""
    definitions(project)
    apply = ("apply", "--server-side", "--dry-run=server", "-n", namespace, "-f", "-")

    assert "serverside-applied" in kubectl(*apply, stdin=document)
    with pytest.raises(KubectlError, match="nonsense"):
        kubectl(*apply, stdin={**document, "spec": {**document["spec"], "nonsense": 1}})
