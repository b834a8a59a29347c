"""Is a schema what the annotations say, however they are written?"""

from typing import Annotated, NotRequired, TypedDict

import pytest

from mcp_server.model.schema import Is, schema_of


class Size(TypedDict):
    width: int


class Plain(TypedDict):
    sizes: Annotated[list[Size], "Several", Is(most_items=2)]
    name: NotRequired[str]


class Within(TypedDict):
    sizes: Annotated[list["Size"], "Several", Is(most_items=2)]
    name: NotRequired[str]


class Words(TypedDict):
    sizes: "Annotated[list[Size], 'Several', Is(most_items=2)]"
    name: NotRequired["str"]


class Grown(Plain):
    depth: NotRequired[int]


@pytest.mark.parametrize("arguments", [Within, Words])
def test_a_word_stands_for_what_it_names(arguments: type) -> None:
    assert schema_of(arguments) == schema_of(Plain)
    assert schema_of(Plain)["properties"]["sizes"]["items"] == schema_of(Size)
    assert schema_of(Plain)["required"] == ["sizes"]


def test_what_is_inherited_is_there() -> None:
    assert list(schema_of(Grown)["properties"]) == ["sizes", "name", "depth"]


def test_what_json_cannot_say_is_refused() -> None:
    class Odd(TypedDict):
        size: set[int]

    with pytest.raises(KeyError):
        schema_of(Odd)
