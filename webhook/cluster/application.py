"""Writes stamps on objects that exist already: server-side apply, our keys only, under our own field manager."""

from catalog.definition import JsonObject
from webhook.cluster.client import APPLY, MERGE, ApiServer
from webhook.cluster.discovery import Resource
from webhook.patch import stamp_patch
from webhook.stamps import IGNORE_KEY, Stamps

FIELD_MANAGER = "workload-stamp"


async def apply_stamps(
    server: ApiServer, resource: Resource, obj: JsonObject, stamps: Stamps, prefix: str, *, dry_run: bool = False
) -> JsonObject:
    """Bring an object's own keys to `stamps`; the object as it is then. Nothing else of it is sent.

    Keys under the prefix that are not among the stamps are removed. Raises `ApiError` (409 when the object was
    replaced by another of its name meanwhile) or `ConnectionFault`.
    """
    metadata = obj["metadata"]
    version = obj.get("apiVersion", "").rpartition("/")[2] or resource.version
    path = resource.path(metadata.get("namespace", ""), metadata["name"], version)
    query = {"fieldManager": FIELD_MANAGER, "force": "true", **({"dryRun": "All"} if dry_run else {})}
    applied = await server.request(
        "PATCH", path, query=query, body=_configuration(obj, resource, version, stamps, prefix), content_type=APPLY
    )
    left = _left_over(applied, stamps, prefix)
    if not left:
        return applied
    query.pop("force")
    body = {"metadata": {"uid": metadata["uid"], **left}}
    return await server.request("PATCH", path, query=query, body=body, content_type=MERGE)


def _configuration(obj: JsonObject, resource: Resource, version: str, stamps: Stamps, prefix: str) -> JsonObject:
    metadata = obj["metadata"]
    return {
        "apiVersion": f"{resource.group}/{version}" if resource.group else version,
        "kind": resource.kind,
        "metadata": {
            "name": metadata["name"],
            **({"namespace": metadata["namespace"]} if metadata.get("namespace") else {}),
            # An object that was deleted meanwhile must not come back as an empty shell.
            "uid": metadata["uid"],
            "labels": {f"{prefix}/{key}": value for key, value in stamps.labels.items()},
            "annotations": {f"{prefix}/{key}": value for key, value in stamps.annotations.items()},
        },
    }


def _left_over(applied: JsonObject, stamps: Stamps, prefix: str) -> JsonObject:
    """Keys that applying left: what a webhook added has no owner, so leaving it out does not remove it."""
    left: JsonObject = {}
    for field, wanted in (("labels", stamps.labels), ("annotations", stamps.annotations)):
        present = applied["metadata"].get(field) or {}
        extra = {
            key: None
            for key in present
            if key.startswith(f"{prefix}/")
            and key != f"{prefix}/{IGNORE_KEY}"
            and key.removeprefix(f"{prefix}/") not in wanted
        }
        if extra:
            left[field] = extra
    return left


def is_due(obj: JsonObject, stamps: Stamps, prefix: str) -> bool:
    """Whether the object lacks any of the stamps, or carries others."""
    return bool(stamp_patch(obj, stamps, prefix).operations)
