"""The service: answers the API server's admission reviews with stamps. Stands on `catalog`; is imported by nobody."""

from importlib import metadata


def version() -> str:
    """The version of the installed distribution."""
    return metadata.version("workload-stamp")
