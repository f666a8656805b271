"""Views of an object as the API server shows them: at which version it is read, which of two is newer, what differs.

Pure functions of the documents; knows nothing of who asks.
"""

import re
from functools import lru_cache

from catalog.definition import GroupVersionKind, JsonObject
from catalog.library import CompiledDefinition
from webhook.cluster.discovery import Resource
from webhook.lineage import controller_reference, kind_named

_READS_STATUS = re.compile(r"(?<![\w\]])\.status\b|\[\s*\"status\"\s*\]")


def readable_version(resource: Resource, kind: GroupVersionKind, compiled: CompiledDefinition | None) -> str:
    """The version to read at: the definition's where it is served, else the reference's, else the preferred one."""
    wanted = (compiled.definition.describes.version if compiled is not None else "", kind.version)
    return next((version for version in wanted if version in resource.versions), resource.version)


def watched_kind(obj: JsonObject, resource: Resource, version: str) -> GroupVersionKind:
    """The kind of an object of a list that was read at `version`; items carry no apiVersion of their own."""
    named = kind_named(obj.get("apiVersion"), obj.get("kind"))
    return named or GroupVersionKind(resource.group, version, resource.kind)


def fingerprint(obj: JsonObject, compiled: CompiledDefinition | None) -> tuple[object, ...]:
    """What of an object changes whenever its structure or its owner may: status updates leave it as it is."""
    metadata = obj.get("metadata") or {}
    generation = metadata.get("generation")
    if generation is None or (compiled is not None and _reads_status(compiled.structure.sources)):
        generation = metadata.get("resourceVersion")
    return generation, controller_reference(obj), _texts(metadata, "labels"), _texts(metadata, "annotations")


def fingerprint_number(obj: JsonObject) -> int:
    """A number that differs whenever the specification, the owner, a label or an annotation does."""
    return hash(fingerprint(obj, None))


def _texts(metadata: JsonObject, field: str) -> tuple[tuple[str, str], ...]:
    found = metadata.get(field) or {}
    return tuple(sorted((str(key), str(value)) for key, value in found.items() if _may_matter(key)))


def _may_matter(key: str) -> bool:
    return not key.startswith(("kubectl.kubernetes.io/", "deployment.kubernetes.io/"))


@lru_cache(maxsize=1024)
def _reads_status(sources: tuple[str, ...]) -> bool:
    """Whether an expression may read the status, which changes without the generation."""
    return any(_READS_STATUS.search(source) for source in sources)


def version_number(obj: JsonObject) -> int:
    """The resource version, which orders views of one object (Kubernetes 1.35, KEP-5504); 0 when it is no number."""
    text = str((obj.get("metadata") or {}).get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() else 0
