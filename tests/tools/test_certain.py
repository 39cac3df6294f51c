"""What certainly fits a schema fits it, as a validator says; and what plainly fits is certain."""

import random

import pytest
from jsonschema import Draft202012Validator, SchemaError

from turnwise.tools.certain import certainly, is_well_formed

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "A name."},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
        "amount": {"type": "number", "minimum": 0},
        "on": {"type": "boolean"},
        "people": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1},
        "inner": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
    "required": ["name", "count"],
    "additionalProperties": False,
}
VALUES = [
    "a", "x", "", 1, 5, 6, 0, -1, 2.0, 2.5, float("nan"), float("inf"), True, False, None, [], ["a"], ["a", "a"], ["a", "b"], [1], {}, {"n": 1},
    {"n": "1"}, {"n": 1, "m": 2}, {"m": 2}, {"n": True},
]  # fmt: skip


@pytest.mark.parametrize("closed", [True, False])
def test_whatever_is_certain_is_valid(closed):
    schema = (
        SCHEMA if closed else {key: value for key, value in SCHEMA.items() if key != "additionalProperties"}
    )
    test, validator, rng = certainly(schema), Draft202012Validator(schema), random.Random(5)
    assert test is not None
    sure = 0
    for _ in range(6000):
        names = rng.sample([*SCHEMA["properties"], "other"], rng.randint(1, 5))
        value = {
            **{name: rng.choice(VALUES) for name in names},
            **({"name": "x", "count": 2} if rng.random() < 0.7 else {}),
        }
        if test(value):
            sure += 1
            assert validator.is_valid(value), value
    assert sure > 100
    assert not any(test(value) for value in VALUES)


@pytest.mark.parametrize(("field", "right", "wrong"), [
    ("name", "x", 1), ("kind", "b", "c"), ("count", 5, 6), ("count", 1, 0), ("count", 3, True), ("count", 3, "3"), ("amount", 0, -0.5),
    ("amount", 2.5, float("nan")), ("on", False, 0), ("people", ["a", "b"], ["a", "a"]), ("people", ["a"], []), ("inner", {"n": 1}, {}),
])  # fmt: skip
def test_plain_values_are_certain_and_wrong_ones_are_not(field, right, wrong):
    test, base = certainly(SCHEMA), {"name": "x", "count": 2}
    assert test is not None
    assert test({**base, field: right})
    assert not test({**base, field: wrong})
    assert not test({"name": "x"})
    assert not test({**base, "other": 1})


@pytest.mark.parametrize("schema", [
    True, {}, {"type": ["string", "null"]}, {"enum": ["a"]}, {"type": "string", "pattern": "a"}, {"type": "string", "minLength": 1},
    {"type": "integer", "multipleOf": 2}, {"type": "array"}, {"type": "array", "items": {"$ref": "#/x"}}, {"$ref": "#"},
    {"type": "array", "items": {"type": "number"}, "uniqueItems": True}, {"type": "object", "additionalProperties": {"type": "string"}},
    {"type": "object", "properties": {"x": {"anyOf": []}}}, {"type": "string", "const": "a"}, {"type": "integer", "minimum": "1"},
])  # fmt: skip
def test_schemas_that_are_not_plain_are_left_to_the_validator(schema):
    assert certainly(schema) is None


PARTS = [
    "string", "object", "int", "", ["string", "null"], ["string", "string"], ["no", 3], [], None, True, False, 0, 3, -1, 2.5, {}, "n", ["n"], ["n", "n"], [3],
    {"n": {"type": "integer"}}, {"n": {"type": "no"}}, {"n": 3}, [{}], [{"type": "no"}], {"type": "number"}, {"type": ["no"]},
]  # fmt: skip
KEYWORDS = [
    "type", "title", "description", "format", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "anyOf", "oneOf", "allOf", "items",
    "additionalProperties", "properties", "$defs", "default", "const", "required", "enum", "pattern", "not", "optional",
]  # fmt: skip


def test_a_schema_that_is_certainly_well_formed_keeps_the_meta_schema():
    rng, sure, broken = random.Random(7), 0, 0
    single = [{keyword: part} for keyword in KEYWORDS for part in PARTS]
    drawn = [{name: rng.choice(PARTS) for name in rng.sample(KEYWORDS, 2)} for _ in range(600)]
    for schema in [*single, *({"properties": {"x": one}} for one in drawn), *PARTS]:
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError:
            broken += 1
            assert not is_well_formed(schema), schema
        else:
            sure += is_well_formed(schema)
    assert sure > 100
    assert broken > 300


def test_plain_schemas_are_certainly_well_formed():
    assert is_well_formed(SCHEMA)
    assert is_well_formed(
        {"anyOf": [SCHEMA, {"type": ["null", "string"], "enum": [None]}], "$defs": {"a": True}}
    )
    assert not is_well_formed({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"})
