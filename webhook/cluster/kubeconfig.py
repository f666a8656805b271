"""Which API server, and as whom: kubeconfig files as kubectl finds and merges them, or the pod's own service account.

The library reads what it is given; this module finds the files and the context by kubectl's rules, and says in one
sentence what is wrong with them.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kubernetes_asyncio import client as kubernetes
from kubernetes_asyncio import config as library

from catalog import load
from catalog.definition import JsonObject

DEFAULT_FILE = Path("~/.kube/config")
VARIABLE = "KUBECONFIG"
ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
"""Kubernetes sets it in every container."""

# What the library logs about a plugin or a file is in the exception too, which is told to people in one line.
logging.getLogger("kubernetes_asyncio").addHandler(logging.NullHandler())


class Unusable(Exception):
    """No configuration, or one that can't be used. One sentence."""


class Loaded(NamedTuple):
    """The library's configuration, and the namespace that the context or the account names, if any."""

    configuration: kubernetes.Configuration
    namespace: str


def files(given: Path | None, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The kubeconfig files that kubectl would read: the given one, those of `KUBECONFIG`, or the one at home.

    Of the latter those that exist; a given file stands as it is.
    """
    if given is not None:
        return (given,)
    listed = [part for part in environ.get(VARIABLE, "").split(os.pathsep) if part]
    found = [Path(part).expanduser() for part in listed] or [DEFAULT_FILE.expanduser()]
    return tuple(path for path in found if path.exists())


def is_in_cluster(given: Path | None, environ: Mapping[str, str]) -> bool:
    """Whether a command without a kubeconfig runs in a pod, and so has the pod's own account."""
    return not files(given, environ) and bool(environ.get(IN_CLUSTER))


async def of_files(given: Path | None, context: str | None, environ: Mapping[str, str]) -> Loaded:
    """The configuration of a context, the current one by default. Raises `Unusable`."""
    paths = files(given, environ)
    if not paths:
        wanted = environ.get(VARIABLE) or DEFAULT_FILE
        raise Unusable(f"there is no kubeconfig: {wanted} does not exist; give --kubeconfig or set {VARIABLE}")
    documents = [_document(path) for path in paths]
    named = " and ".join(map(str, paths))
    chosen = _context(documents, context, named)
    configuration = kubernetes.Configuration()
    try:
        await library.load_kube_config(
            config_file=os.pathsep.join(map(str, paths)),
            context=chosen["name"],
            client_configuration=configuration,
            persist_config=False,
        )
    except Exception as error:  # whatever the library meets in the files, or in a plugin, is their fault
        raise Unusable(f"{named} is not usable: {_words(error)}") from error
    namespace = chosen["context"].get("namespace")
    return Loaded(configuration, namespace if isinstance(namespace, str) else "")


def of_account() -> Loaded:
    """The configuration of the pod's own service account. Raises `Unusable`."""
    configuration = kubernetes.Configuration()
    try:
        library.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        namespace = ACCOUNT_NAMESPACE.read_text().strip() if ACCOUNT_NAMESPACE.exists() else ""
    except (library.ConfigException, OSError) as error:
        raise Unusable(f"the pod's service account is not usable: {_words(error)}") from error
    return Loaded(configuration, namespace)


def _document(path: Path) -> JsonObject:
    found, problems = load.documents_of_file(path)
    if problems:
        raise Unusable(f"{problems[0]}")
    document = found[0].value if found else None
    if not isinstance(document, dict) or not isinstance(document.get("clusters", []), list | None):
        raise Unusable(f"{path}: is no kubeconfig: it has no list of clusters")
    return document


def _context(documents: Sequence[JsonObject], wanted: str | None, files_named: str) -> JsonObject:
    """The entry of the wanted context; by kubectl's rule the first file that says something wins."""
    contexts: dict[str, JsonObject] = {}
    for document in documents:
        for entry in document.get("contexts") or ():
            if isinstance(entry, dict) and isinstance(entry.get("context"), dict):
                contexts.setdefault(str(entry.get("name")), entry)
    current = (document.get("current-context") for document in documents)
    name = wanted or next((each for each in current if each), None)
    there_are = f"there are: {', '.join(sorted(contexts))}" if contexts else "there are none"
    if not name:
        raise Unusable(f"{files_named} has no current context, and --context is not given; {there_are}")
    if name not in contexts:
        raise Unusable(f"{files_named} has no context {name}; {there_are}")
    return contexts[name]


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
