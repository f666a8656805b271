"""The service: answers the API server's admission reviews with stamps. Stands on `catalog`; is imported by nobody."""


def version() -> str:
    """The version of the installed distribution."""
    from importlib import metadata  # noqa: PLC0415 - it takes a quarter of the time in which the command says its help

    return metadata.version("workload-stamp")
