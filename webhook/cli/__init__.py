"""The `workload-stamp` command."""

from webhook.cli.main import main

__all__ = ["main"]
