"""A command with many options, whose help lists them under headings."""

from collections.abc import Sequence
from typing import Any

import click


class SectionedOption(click.Option):
    """An option that stands under a heading of the help."""

    def __init__(self, declarations: Sequence[str], *, section: str, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.section = section


class SectionedCommand(click.Command):
    """Shows its options under their headings, in the order in which these first appear; others come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, heading by heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        others: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, SectionedOption):
                sections.setdefault(parameter.section, []).append(record)
            elif record is not None:
                others.append(record)
        for title, records in (*sections.items(), ("Other options", others)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
