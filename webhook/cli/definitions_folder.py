"""Definitions from the package, and from a mounted folder that may change while the process runs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from catalog import load
from catalog.definition import Definition
from webhook.definitions import DefinitionsInForce, Source
from webhook.log import Logger
from webhook.settings import SettingsError

POLL_INTERVAL = 1.0
"""Seconds between two looks at the folder; a mounted ConfigMap changes by a symlink, which no file event tells well."""


def packaged_definitions() -> Sequence[Definition]:
    """The catalogue as shipped. Raises SettingsError when the installation is damaged."""
    definitions, problems = load.packaged()
    if problems:
        raise SettingsError(tuple(str(problem) for problem in problems))
    return definitions


async def load_folder(folder: Path, definitions: DefinitionsInForce) -> None:
    """Put the folder's definitions in force. Raises SettingsError with every problem of every file."""
    problems = await _offer(folder, definitions)
    if problems:
        raise SettingsError(tuple(problems))


@asynccontextmanager
async def follow_folder(folder: Path, definitions: DefinitionsInForce, logger: Logger) -> AsyncIterator[None]:
    """Take over changes of the folder until the end of the block; bad ones are logged, the good ones stay."""
    task = asyncio.create_task(_follow(folder, definitions, logger))
    try:
        yield
    finally:
        task.cancel()


async def _follow(folder: Path, definitions: DefinitionsInForce, logger: Logger) -> None:
    told: list[str] = []
    while True:
        await asyncio.sleep(POLL_INTERVAL)
        problems = await _offer(folder, definitions)
        if problems and problems != told:
            logger.error("definitions refused", folder=str(folder), problems=problems)
        told = problems


async def _offer(folder: Path, definitions: DefinitionsInForce) -> list[str]:
    """Offer what has changed and withdraw what is gone; a folder that can't be read withdraws nothing."""
    found, faults = await asyncio.to_thread(load.directory_documents, folder)
    problems = [str(fault) for fault in faults]
    documents = {_key(document, position): document.value for position, document in enumerate(found)}
    for key, document in documents.items():
        entry = definitions.entry(Source.DIRECTORY, key)
        if entry is None or entry.digest != document:
            refused = await definitions.offer(Source.DIRECTORY, key, document, origin=key, digest=document)
            problems.extend(f"{key}: {problem}" for problem in refused)
        elif entry.problems:
            problems.extend(f"{key}: {problem}" for problem in entry.problems)
    if not faults:
        for key in definitions.keys(Source.DIRECTORY) - documents.keys():
            definitions.withdraw(Source.DIRECTORY, key)
    return problems


def _key(document: load.Document, position: int) -> str:
    """A definition's place: its file and its name, so that it is the same one after an edit."""
    metadata = document.value.get("metadata") if isinstance(document.value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.origin} ({name if isinstance(name, str) else position})"
