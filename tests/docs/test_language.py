"""The language's reference tells the truth: its example is valid, its expressions give what stands beside them."""

import re
from collections.abc import Iterator
from decimal import Decimal

import orjson
import pytest
import yaml

from catalog import load
from catalog.expressions import Program
from catalog.library import CompiledDefinition
from catalog.resources import AcceleratorPolicy
from catalog.structure import resolve
from tests.docs.pages import DOCS

PAGE = (DOCS / "definitions.md").read_text()
CODE = re.compile(r"`([^`]+)`")


def _recipes() -> Iterator[tuple[str, ...]]:
    """The rows of the table of expressions: what is meant, the spec, the expression, the results."""
    table = PAGE.partition("| what is meant |")[2].partition("\n\n")[0]
    for row in table.splitlines()[2:]:
        yield tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1])


@pytest.mark.parametrize("recipe", tuple(_recipes()), ids=lambda recipe: recipe[0])
def test_expression_gives_what_the_page_says(recipe: tuple[str, ...]) -> None:
    """On an object with that spec."""
    _, spec, expression, results = recipe
    document = {"spec": yaml.safe_load(f"{{{CODE.findall(spec)[0]}}}")}

    (found,) = Program.compile((CODE.findall(expression)[0],)).evaluate(document)

    assert isinstance(found, tuple)
    assert list(found) == [orjson.loads(result) for result in CODE.findall(results)]


def test_the_small_definition_means_what_the_page_says() -> None:
    """Pods of one role, one when their number is absent, all of which start together."""
    text = PAGE.partition("```yaml\n")[2].partition("```")[0]
    (definition,), problems = load.definitions(text, "the page")
    template = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 4}}}]}}
    train = {"apiVersion": "example.com/v1", "kind": "Train", "metadata": {"name": "t"}, "spec": {"template": template}}

    structure = resolve(CompiledDefinition(definition), train, AcceleratorPolicy())

    assert problems == ()
    assert [leaf.component.name for leaf in structure.leaves] == ["worker"]
    assert structure.pods_total == 1
    assert structure.gpu_total == Decimal(4)
    assert [gang.sizes.values for gang in structure.gangs] == [{"": 1}]
