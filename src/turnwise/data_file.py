"""Tables that ship beside the code, as YAML: phrases, names, kinds of things.

A table is read when it is first wanted, checked against the type that the code gives it, and kept. Importing reads nothing.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any, TypeVar

import yaml

from turnwise.errors import FileError
from turnwise.plain_yaml import read_yaml

Table = TypeVar("Table")
_REMEDY = "It ships with the package: install the package anew, or mend the file where you changed it."


def data_file(package: str, name: str, kind: type[Table]) -> Table:
    """Read the table ``name`` (a path in the folder of ``package``, without ``.yaml``) as a ``kind``.

    Named tuples of the kind are written as mappings, :class:`~turnwise.envs.wordings.Wordings` as lists.

    Raises:
        FileError: the file is missing, is no YAML, or holds something else; the error names the place in it.
    """
    return _checked(package, name, kind)


@functools.cache
def text_file(package: str, name: str) -> str:
    """Return the text of a file in the folder of a package.

    Raises:
        FileError: it is missing.
    """
    return _text(package, name)


def _text(package: str, name: str) -> str:
    try:
        return files(package).joinpath(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{package}: {name} cannot be read ({error}).", _REMEDY) from None


@functools.cache
def _checked(package: str, name: str, kind: Any) -> Any:
    import pydantic

    file = f"{name}.yaml"
    try:
        found = read_yaml(_text(package, file), quick=True)
        return pydantic.TypeAdapter(kind).validate_python(found)
    except yaml.YAMLError as error:
        raise FileError(f"{package}: {file} is no YAML: {error}.", _REMEDY) from None
    except pydantic.ValidationError as error:
        deepest = max(error.errors(), key=lambda one: len(one["loc"]))  # of the forms that a value may have
        place = [str(part) for part in deepest["loc"] if "[" not in str(part)]  # without the names of forms
        where = " › ".join(place) or "the whole"
        said = f"{package}: {file}, {where}: {deepest['msg']}, not {deepest['input']!r:.80}."
        raise FileError(said, _REMEDY) from None
