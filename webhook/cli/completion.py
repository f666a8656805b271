"""`workload-stamp completion`: the script with which a shell completes commands, options and files."""

import click
from click.shell_completion import get_completion_class

PROGRAM = "workload-stamp"
VARIABLE = "_WORKLOAD_STAMP_COMPLETE"
"""The script sets it when it asks for completions; click looks for it under this name, made of the program's."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash, in ~/.bashrc:  eval "$(workload-stamp completion bash)"
    zsh, in ~/.zshrc after compinit:  eval "$(workload-stamp completion zsh)"
    fish, in ~/.config/fish/config.fish:  workload-stamp completion fish | source
    """  # noqa: D301 - click keeps the lines after this mark as they are
    completion = get_completion_class(shell)
    assert completion is not None, "click has all three"
    click.echo(completion(context.find_root().command, {}, PROGRAM, VARIABLE).source())
