"""Is a schema what the annotations say, however they are written?"""

from typing import Annotated, NotRequired, TypedDict

import pytest

from mcp_server.model.schema import Is, build_schema


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
    assert build_schema(arguments) == build_schema(Plain)
    assert build_schema(Plain)["properties"]["sizes"]["items"] == build_schema(Size)
    assert build_schema(Plain)["required"] == ["sizes"]


def test_what_is_inherited_is_there() -> None:
    assert list(build_schema(Grown)["properties"]) == ["sizes", "name", "depth"]


def test_what_json_cannot_say_is_refused() -> None:
    class Odd(TypedDict):
        size: set[int]

    with pytest.raises(KeyError):
        build_schema(Odd)
