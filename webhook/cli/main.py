"""The command's entry: one group, its subcommands by name, and how failures look to a person."""

import contextlib
import difflib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import CompletionItem

from webhook.cli.printable import printable

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "resolve": ("webhook.cli.resolve", "Show what a manifest is: roles, pods, GPUs, gangs."),
        "admit": ("webhook.cli.admit", "Show what admission would stamp, and why."),
        "definitions": ("webhook.cli.definitions", "List, show and validate definitions."),
        "demo": ("webhook.cli.demo", "Watch a running webhook stamp an example."),
        "get": ("webhook.cli.get", "Show what is running, one row a workload."),
        "describe": ("webhook.cli.describe", "Show one workload in full: pods, places, gangs, status, events."),
        "tree": ("webhook.cli.tree", "Show who owns whom, from a workload down to its pods."),
        "top": ("webhook.cli.top", "Show GPUs asked for, placed, running and idle."),
        "gangs": ("webhook.cli.gangs", "Show gangs, and what they lack to be whole."),
        "audit": ("webhook.cli.audit", "Compare stamps with what they should be."),
        "backfill": ("webhook.cli.backfill", "Give existing pods and workloads their stamps."),
        "serve": ("webhook.cli.serve", "Answer admission reviews over TLS."),
        "certs": ("webhook.cli.certificates", "Issue and check certificates in files."),
        "uninstall": ("webhook.cli.uninstall", "Remove the webhook, and stamps when asked, from a cluster."),
        "completion": ("webhook.cli.completion", "Print the completion script of a shell."),
    }
)
"""Subcommand → its module and one line of help; a module is loaded when its command is used."""

SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Without a cluster": ("resolve", "admit", "definitions", "demo"),
        "In a cluster": ("get", "describe", "tree", "top", "gangs", "audit", "backfill"),
        "The webhook": ("serve", "certs", "uninstall"),
        "Your shell": ("completion",),
    }
)
"""How the help arranges the subcommands."""


class ReaderGone(Exception):
    """Whoever read our output has had enough of it, as `head` has."""


@contextlib.contextmanager
def _reader_may_go() -> Iterator[None]:
    """Tell a closed pipe by an exception that click does not know: it would call that a failure."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None


class LazyGroup(click.Group):
    """A group that loads a subcommand's module when it is needed: completion and help stay quick."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context, or the help or the version instead."""
        with _reader_may_go():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        with _reader_may_go():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The subcommands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The subcommand of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that is asked for; for an unknown one, the name that may be meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Subcommands and options that begin so, without loading any module."""
        found = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The tables of subcommands, without loading any."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="workload-stamp")
def group() -> None:
    """Tell every tool in a Kubernetes cluster what a pod belongs to.

    Workload Stamp describes workloads (JobSet, RayCluster, Deployment and many more): what their pods are for, how many
    there are, which start together as a gang, how many GPUs they ask for. Its webhook writes that onto every object and
    pod as labels and annotations, the stamps. Begin with `demo`, or with `resolve` and a manifest of your own.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit: 0 good, 1 the input has problems, 2 wrong use. A person sees no traceback."""
    _prepare_streams()
    try:
        result: Any = group.main(arguments, prog_name=_program(), standalone_mode=False)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except ReaderGone:
        _discard_output()
        sys.exit(0)
    except OSError as error:
        _discard_output()
        click.echo(printable(f"{error.filename or 'the output'}: {error.strerror or error}"), err=True)
        sys.exit(1)
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        click.echo(_internal(error), err=True)
        sys.exit(1)
    sys.exit(result if isinstance(result, int) else 0)


def _program() -> str:
    """What we are called: kubectl finds its plugins by the names of their files."""
    return "kubectl workload" if Path(sys.argv[0]).name.startswith("kubectl-workload") else "workload-stamp"


def _prepare_streams() -> None:
    """Let no character that an output can't hold, nor an output that is closed, end in a traceback."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open for as long as the process runs
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Have what is still to be written go nowhere, so that the interpreter does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _internal(error: Exception) -> str:
    """A fault of ours, in one line: what, and where in our code."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    what = printable(f"{type(error).__name__}: {error}")
    return f"internal error: {what}{place}. That is a bug in workload-stamp; PYTHONDEVMODE=1 shows where it comes from."
