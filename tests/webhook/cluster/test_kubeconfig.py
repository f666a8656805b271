"""Kubeconfigs found and judged by kubectl's rules."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from webhook.cluster import kubeconfig
from webhook.cluster.kubeconfig import Unusable, files, is_in_cluster, of_account, of_files


def document(*contexts: str, current: str = "", namespace: str = "") -> dict[str, Any]:
    """A kubeconfig whose contexts reach a cluster of their own name."""
    place = {"namespace": namespace} if namespace else {}
    return {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com"}} for name in contexts],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "ada", **place}} for name in contexts],
        "users": [{"name": "ada", "user": {"token": "token"}}],
        **({"current-context": current} if current else {}),
    }


def write(folder: Path, name: str, content: Any) -> Path:
    """Write a file."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


async def test_the_current_context_is_used_and_another_on_demand(tmp_path: Path) -> None:
    """Address and namespace are the context's."""
    file = write(tmp_path, "config", document("a", "b", current="a", namespace="team-a"))

    current = await of_files(file, None, {})
    other = await of_files(file, "b", {})

    assert (current.configuration.host, current.namespace) == ("https://a.example.com", "team-a")
    assert other.configuration.host == "https://b.example.com"


async def test_of_several_files_the_first_that_says_something_wins(tmp_path: Path) -> None:
    """As kubectl merges what KUBECONFIG lists; files that are not there are passed over."""
    one = write(tmp_path, "one", document("a", current="b"))
    two = write(tmp_path, "two", document("b", current="c"))
    listed = os.pathsep.join(["", str(tmp_path / "absent"), str(one), str(two)])

    found = await of_files(None, None, {"KUBECONFIG": listed})

    assert found.configuration.host == "https://b.example.com"
    assert found.namespace == ""


@pytest.mark.parametrize(
    "content, told",
    [
        ("- 1", "is no kubeconfig: it has no list of clusters"),
        ({"clusters": "many"}, "is no kubeconfig: it has no list of clusters"),
        ("", "is no kubeconfig: it has no list of clusters"),
        ("a: [", "config:2:"),
        (document("a"), "has no current context, and --context is not given; there are: a"),
        (document("a", current="x"), "has no context x; there are: a"),
        ({**document("a", current="a"), "clusters": []}, "is not usable: Invalid kube-config file"),
        ({**document("a", current="a"), "users": [{"name": "ada", "user": {"exec": {}}}]}, "is not usable"),
    ],
)
async def test_what_is_wrong_with_a_file_is_one_sentence(content: Any, told: str, tmp_path: Path) -> None:
    """The file, and what is wrong with it."""
    file = write(tmp_path, "config", content)

    with pytest.raises(Unusable) as fault:
        await of_files(file, None, {})

    assert str(fault.value).startswith(str(file))
    assert told in str(fault.value)
    assert "\n" not in str(fault.value)


async def test_no_file_at_all_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Which one was looked for."""
    monkeypatch.setattr(kubeconfig, "DEFAULT_FILE", tmp_path / "none")

    with pytest.raises(Unusable, match=r"there is no kubeconfig: .*none does not exist; give --kubeconfig"):
        await of_files(None, None, {})


def test_a_pod_has_its_own_account_unless_a_kubeconfig_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A command in a container needs no file."""
    monkeypatch.setattr(kubeconfig, "DEFAULT_FILE", tmp_path / "none")
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}

    assert is_in_cluster(None, inside)
    assert not is_in_cluster(tmp_path / "given", inside)
    assert not is_in_cluster(None, {})
    assert files(tmp_path / "given", inside) == (tmp_path / "given",)


def test_an_account_that_is_not_there_is_one_sentence() -> None:
    """Outside a pod there is none."""
    with pytest.raises(Unusable, match=r"^the pod's service account is not usable: .*\S$"):
        of_account()
