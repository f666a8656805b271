"""The command's entry: one group, its subcommands by name, and how failures look to a person."""

import importlib
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from webhook.cli.failures import InputProblems

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "serve": ("webhook.cli.serve", "Answer admission reviews over TLS."),
        "get": ("webhook.cli.get", "Show what is running, one row a workload."),
        "describe": ("webhook.cli.describe", "Show one workload in full: pods, places, gangs, status, events."),
        "tree": ("webhook.cli.tree", "Show who owns whom, from a workload down to its pods."),
        "top": ("webhook.cli.top", "Show GPUs asked for, placed, running and idle."),
        "gangs": ("webhook.cli.gangs", "Show gangs, and what they lack to be whole."),
        "audit": ("webhook.cli.audit", "Compare stamps with what they should be."),
        "backfill": ("webhook.cli.backfill", "Give existing pods and workloads their stamps."),
        "resolve": ("webhook.cli.resolve", "Show what a manifest is: roles, pods, GPUs, gangs."),
        "admit": ("webhook.cli.admit", "Show what admission would stamp, without a cluster."),
        "definitions": ("webhook.cli.definitions", "List, show and validate definitions."),
        "certs": ("webhook.cli.certificates", "Issue certificates."),
        "uninstall": ("webhook.cli.uninstall", "Remove the webhook, and stamps when asked, from a cluster."),
        "demo": ("webhook.cli.demo", "Watch a running webhook stamp an example."),
    }
)
"""Subcommand → its module and one line of help; a module is loaded when its command is used."""


class LazyGroup(click.Group):
    """A group that loads a subcommand's module when it is needed: completion and help stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The subcommands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The subcommand of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table of subcommands, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(version("workload-stamp"))
def group() -> None:
    """Tell every tool in a Kubernetes cluster what a pod belongs to."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit: 0 good, 1 the input has problems, 2 wrong use. A person sees no traceback."""
    try:
        result: Any = group.main(arguments, prog_name=_program(), standalone_mode=False)
    except InputProblems as problems:
        for problem in problems.problems:
            click.echo(problem, err=True)
        sys.exit(problems.exit_code)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away: nothing more to say, to nobody
        sys.exit(0)
    sys.exit(result if isinstance(result, int) else 0)


def _program() -> str:
    """What we are called: kubectl finds its plugins by the names of their files."""
    return "kubectl workload" if Path(sys.argv[0]).name.startswith("kubectl-workload") else "workload-stamp"
