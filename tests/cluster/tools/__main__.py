"""The command `python -m tests.cluster.tools`: build the cluster tools, list them, tell where one lies.

Exit codes: 0 good, 1 a required tool could not be built, 2 wrong use. Only reads arguments and prints.
"""

import argparse
import sys

from tests.cluster.tools.building import GoMissingError, Outcome, build
from tests.cluster.tools.table import TOOLS, Tool, UnknownToolError, tools


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        match chosen.command:
            case "build":
                return _build(_chosen(chosen.names), _chosen(chosen.require, otherwise=()), chosen.budget_seconds)
            case "path":
                return _path(_chosen([chosen.name]))
            case _:
                return _list(TOOLS)
    except UnknownToolError as problem:
        parser.error(str(problem))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.tools", description="The cluster tests' programs.")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build what is missing, one after the other, by importance")
    building.add_argument("names", nargs="*", help="tools and groups to build; all when none is named")
    building.add_argument("--require", default="", metavar="NAMES", help="comma-separated: exit 1 when one is missing")
    building.add_argument("--budget-seconds", type=float, metavar="N", help="stop then; the next run goes on")
    commands.add_parser("list", help="tell which tools are built")
    commands.add_parser("path", help="print where a built tool lies").add_argument("name")
    return parser


def _chosen(names: str | list[str], *, otherwise: tuple[Tool, ...] = TOOLS) -> tuple[Tool, ...]:
    words = names.split(",") if isinstance(names, str) else names
    return tools([word for word in words if word]) if any(words) else otherwise


def _build(wanted: tuple[Tool, ...], required: tuple[Tool, ...], budget_seconds: float | None) -> int:
    wanted = tuple(tool for tool in TOOLS if tool in wanted or tool in required)
    missing = []
    try:
        for outcome in build(wanted, budget_seconds=budget_seconds):
            print(_line(outcome), flush=True)
            if outcome.problem and outcome.tool in required:
                missing.append(outcome.tool.name)
    except GoMissingError as problem:
        print(problem, file=sys.stderr)
        missing = [tool.name for tool in required if not tool.built]
    if missing:
        print(f"required and not built: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


def _line(outcome: Outcome) -> str:
    state = f"NOT BUILT: {outcome.problem}" if outcome.problem else "built" if outcome.seconds else "there already"
    return f"{outcome.tool.name:24} {outcome.tool.version:10} {outcome.seconds:6.0f} s  {state}"


def _list(all_tools: tuple[Tool, ...]) -> int:
    for tool in all_tools:
        print(f"{tool.name:24} {tool.version:10} {tool.group:14} {tool.binary if tool.built else 'not built'}")
    return 0


def _path(found: tuple[Tool, ...]) -> int:
    for tool in found:
        print(tool.binary)
    return 0 if all(tool.built for tool in found) else 1


if __name__ == "__main__":
    sys.exit(main())
