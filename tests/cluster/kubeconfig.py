"""Writes kubeconfig files: where the API server is and who asks. Knows nothing of processes."""

import json
from collections.abc import Mapping
from pathlib import Path


def write_kubeconfig(
    path: Path, *, port: int, authority: Path, user: Mapping[str, str], namespace: str = "default"
) -> Path:
    """Write a kubeconfig for the API server on that port of 127.0.0.1; its path.

    `user` is `{"token": …}` or `{"client-certificate": FILE, "client-key": FILE}`. JSON, which is YAML.
    """
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(authority)}
    context = {"cluster": "test", "user": "test", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": dict(user)}],
        "contexts": [{"name": "test", "context": context}],
        "current-context": "test",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))
    return path
