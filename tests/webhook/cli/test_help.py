"""What the command says of itself: help, version, what was mistyped, and completion in shells."""

import importlib
from importlib.metadata import version

import click
import pytest

from tests.webhook.cli.command import run
from webhook.cli.main import COMMANDS, SECTIONS
from webhook.settings import OPTIONS

OURS = [name for title, names in SECTIONS.items() if title != "In a cluster" for name in names]
NESTED = [("definitions", "list"), ("definitions", "show"), ("definitions", "validate")]
NESTED += [("certs", "issue"), ("certs", "check")]


def completions(words: str) -> list[str]:
    """What a shell is offered at the end of `words`."""
    typed = words.split(" ")
    environ = {
        "_WORKLOAD_STAMP_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(typed) - 1),
    }
    return run(environ=environ).out.split()


def test_the_help_names_every_command_once() -> None:
    """Each subcommand stands under one heading, with a line about it."""
    ended = run("--help")
    assert ended.code == 0
    assert sorted(COMMANDS) == sorted(name for names in SECTIONS.values() for name in names)
    for name, (_, text) in COMMANDS.items():
        assert f"  {name} " in ended.out
        assert text in ended.out


def test_the_table_says_what_the_commands_say() -> None:
    """A command's own help begins where the table's line ends: each has one, and it is a sentence."""
    for name, (module, text) in COMMANDS.items():
        command = importlib.import_module(module).command
        assert command.name == name
        assert command.help, name
        assert text.endswith("."), name


@pytest.mark.parametrize("words", [*((name,) for name in COMMANDS), *NESTED], ids=" ".join)
def test_every_command_has_help_that_fits_a_terminal(words: tuple[str, ...]) -> None:
    """`-h` and `--help` show it within 80 columns."""
    ended = run(*words, "--help", environ={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert ended.code == 0
    assert ended.out.startswith(f"Usage: workload-stamp {' '.join(words)}")
    assert max(map(len, ended.out.splitlines())) <= 80
    assert run(*words, "-h").out == run(*words, "--help").out


@pytest.mark.parametrize("words", [*((name,) for name in OURS), *NESTED], ids=" ".join)
def test_every_option_has_a_text(words: tuple[str, ...]) -> None:
    """Nobody has to guess what an option is for."""
    for parameter in _command(words).params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.name


def _command(words: tuple[str, ...]) -> click.Command:
    command: click.Command = importlib.import_module(COMMANDS[words[0]][0]).command
    for word in words[1:]:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    return command


def test_serve_shows_every_option_with_its_variable_and_default() -> None:
    """The help is made from the one table of settings, under its headings."""
    shown = " ".join(run("serve", "--help", environ={"COLUMNS": "300"}).out.split())
    for option in OPTIONS:
        assert f"{option.flag} " in shown
        assert f"[{option.env}]" in shown
        assert f"{option.group}:" in shown
        if option.shown_default and len(option.shown_default) < 40:
            assert f"[default: {option.shown_default}]" in shown


def test_the_version_is_the_installed_one() -> None:
    """`--version` tells which release this is."""
    assert run("--version").out == f"workload-stamp, version {version('workload-stamp')}\n"


@pytest.mark.parametrize(
    "words, meant",
    [
        (("reslove",), "Did you mean 'resolve'?"),
        (("definition",), "Did you mean 'definitions'?"),
        (("definitions", "lst"), "Did you mean 'list'?"),
        (("resolve", "--outptu", "json"), "--output"),
    ],
)
def test_what_was_mistyped_is_guessed(words: tuple[str, ...], meant: str) -> None:
    """An unknown command or option is wrong use, with the nearest name."""
    ended = run(*words)
    assert ended.code == 2
    assert meant in ended.err


def test_an_unknown_command_is_wrong_use() -> None:
    """Even when nothing is near."""
    ended = run("xyzzy")
    assert ended.code == 2
    assert "No such command 'xyzzy'." in ended.err


def test_without_a_command_the_help_is_shown() -> None:
    """As wrong use: nothing was asked for."""
    ended = run()
    assert ended.code == 2
    assert "Without a cluster:" in ended.out + ended.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(shell: str) -> None:
    """The script asks the command itself, through the variable that it looks for."""
    ended = run("completion", shell)
    assert ended.code == 0
    assert f"_WORKLOAD_STAMP_COMPLETE={shell}_complete" in ended.out


def test_another_shell_is_wrong_use() -> None:
    """There are three."""
    assert run("completion", "tcsh").code == 2
    assert run("completion").code == 2


@pytest.mark.parametrize(
    "words, offered",
    [
        ("workload-stamp re", {"plain,resolve"}),
        ("workload-stamp ", {f"plain,{name}" for name in COMMANDS}),
        ("workload-stamp definitions ", {"plain,list", "plain,show", "plain,validate"}),
        ("workload-stamp resolve -o ", {f"plain,{name}" for name in ("tree", "table", "wide", "json", "yaml")}),
        ("workload-stamp resolve job", {"file,job"}),
        ("workload-stamp admit --owners ", {"file,"}),
        ("workload-stamp serve --cert-file x", {"file,x"}),
        ("workload-stamp certs issue --out x", {"dir,x"}),
        ("workload-stamp definitions show jobset", {"plain,jobset-x-k8s-io-jobset-v1alpha2"}),
        ("workload-stamp completion ", {"plain,bash", "plain,zsh", "plain,fish"}),
    ],
)
def test_words_are_completed(words: str, offered: set[str]) -> None:
    """Commands, options' values, files and packaged definitions."""
    assert set(completions(words)) == offered
