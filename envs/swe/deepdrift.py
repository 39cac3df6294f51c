"""Bugs between functions: an interface that changed under a caller, the wrong helper, a helper that is gone around."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from turnwise.envs.swe.whole import BugPlace, FunctionNode, Spot, WholePackage, own_arguments

Made = Iterator[tuple[str, list[Spot]]]


def drifted_arguments(package: WholePackage) -> Made:
    """A function takes its first two arguments the other way round; all callers were told but those in one function."""
    for path, node, calls in _called(package):
        method = _is_method(package, path, node)
        names = own_arguments(node, method=method)
        plain = names[: len(node.args.args) - method - len(node.args.defaults)]
        if len(plain) < 2 or node.args.posonlyargs or node.decorator_list or node.name in package.used:
            continue
        known = {plain[0].arg, plain[1].arg}
        if not all(_is_plain(call.node, known) for call in calls):
            continue
        for path_of, owner in sorted(package.owners(calls)):
            told, untold = _parted(package, calls, path_of, owner)
            spots = package.swapped(path, plain[0], plain[1]) + untold
            for call in told:
                assert isinstance(call.node, ast.Call)
                spots += package.swapped(call.path, call.node.args[0], call.node.args[1])
            if told and not _unused(node, plain):
                yield owner, spots


def drifted_results(package: WholePackage) -> Made:
    """A function returns its pair the other way round; all callers were told but those in one function."""
    for path, node, calls in _called(package):
        returned = [item for item in ast.walk(node) if isinstance(item, ast.Return)]
        pairs = [item.value for item in returned if isinstance(item.value, ast.Tuple)]
        if not pairs or len(pairs) != len(returned) or len({len(pair.elts) for pair in pairs}) != 1:
            continue
        if len(pairs[0].elts) < 2 or _has_inner(node) or node.name in package.used:
            continue
        targets = {call: _unpacked(package, call, len(pairs[0].elts)) for call in calls}
        if not all(targets.values()):
            continue
        for path_of, owner in sorted(package.owners(calls)):
            told, untold = _parted(package, calls, path_of, owner)
            spots = [spot for pair in pairs for spot in package.swapped(path, pair.elts[0], pair.elts[1])]
            spots += untold
            for call in told:
                target = targets[call]
                assert target
                spots += package.swapped(call.path, target.elts[0], target.elts[1])
            if told:
                yield owner, spots


def drifted_defaults(package: WholePackage) -> Made:
    """A default is another now; all callers that rely on the old one say so but those in one function."""
    for path, node, calls in _called(package):
        names = own_arguments(node, method=_is_method(package, path, node))
        optional = names[len(names) - len(node.args.defaults) :]
        if node.name in package.used or any(not _is_plain(call.node, set(), least=0) for call in calls):
            continue
        for arg, default in zip(optional, node.args.defaults, strict=False):
            other = _other(default)
            relying = [call for call in calls if other and _relies(call.node, names.index(arg), arg.arg)]
            for path_of, owner in sorted(package.owners(relying)):
                told, untold = _parted(package, relying, path_of, owner)
                spots = [package.spot(BugPlace(path, default), other), *untold]
                said = f"{arg.arg}={package.text(BugPlace(path, default))}"
                if told:
                    yield owner, spots + [_saying(package, call, said) for call in told]


def mistaken_helpers(package: WholePackage) -> Made:
    """Two functions or more call a helper's sibling instead of it: one of the same class or file with as many parameters."""
    for path, node, calls in _called(package):
        source, method = package.sources[path], _is_method(package, path, node)
        shape = len(own_arguments(node, method=method)), len(node.args.defaults), bool(node.decorator_list)
        for other in source.siblings(node):
            if not isinstance(other, ast.FunctionDef) or other is node or other.name.startswith("__"):
                continue
            is_like = (
                len(own_arguments(other, method=method)),
                len(other.args.defaults),
                bool(other.decorator_list),
            ) == shape
            sites = [
                call
                for call in calls
                if package.owner(call).rpartition(".")[2] not in (other.name, node.name)
            ]
            if is_like and len(package.owners(sites)) > 1:
                yield source.name_of(node), [_renamed(package, call, other.name) for call in sites]


def skipped_helpers(package: WholePackage) -> Made:
    """Leave out what a helper of one argument does, wherever it is called."""
    for path, node, calls in _called(package):
        if len(own_arguments(node, method=_is_method(package, path, node))) != 1:
            continue
        sites = [call for call in calls if _is_single(call.node)]
        if len(sites) == len(calls):
            spots: list[Spot] = []
            for call in sites:
                assert isinstance(call.node, ast.Call)
                text = package.text(BugPlace(call.path, call.node.args[0]))
                spots.append(package.spot(call, f"({text})" if " " in text else text))
            yield package.sources[path].name_of(node), spots


def _called(package: WholePackage) -> Iterator[tuple[str, FunctionNode, list[BugPlace]]]:
    """Functions of a name that only one has, and their calls, if at least two others call them and nothing else uses the name."""
    for name, places in sorted(package.functions.items()):
        calls = [
            call for call in package.calls.get(name, []) if package.owner(call).rpartition(".")[2] != name
        ]
        if len(places) != 1 or name.startswith("__") or len(package.owners(calls)) < 2:
            continue
        node = places[0].node
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if package.mentions.get(name, 0) <= len(package.calls[name]):
            yield places[0].path, node, calls


def _is_method(package: WholePackage, path: str, node: FunctionNode) -> bool:
    inside = isinstance(package.sources[path].parents.get(node), ast.ClassDef)
    return inside and not any(getattr(one, "id", "") == "staticmethod" for one in node.decorator_list)


def _parted(
    package: WholePackage, calls: list[BugPlace], path: str, owner: str
) -> tuple[list[BugPlace], list[Spot]]:
    """The calls that are not in this function, and those that are: as spots that change nothing, but whose tests count."""
    told = [call for call in calls if (call.path, package.owner(call)) != (path, owner)]
    return told, [package.spot(call, package.text(call)) for call in calls if call not in told]


def _other(default: ast.expr) -> str:
    """Another value of the same type; nothing where there is none that says something."""
    match default:
        case ast.Constant(value=bool(value)):
            return str(not value)
        case ast.Constant(value=int(value)):
            return str(value + 1)
        case _:
            return ""


def _relies(node: ast.AST, at: int, name: str) -> bool:
    """Say whether a call leaves a parameter to its default."""
    assert isinstance(node, ast.Call)
    return len(node.args) <= at and not any(one.arg == name for one in node.keywords)


def _saying(package: WholePackage, call: BugPlace, argument: str) -> Spot:
    """A call with one more argument."""
    assert isinstance(call.node, ast.Call)
    head = package.text(call)[:-1].rstrip().rstrip(",")
    comma = ", " if call.node.args or call.node.keywords else ""
    return package.spot(call, f"{head}{comma}{argument})")


def _is_plain(node: ast.AST, names: set[str], *, least: int = 2) -> bool:
    """Say whether a call gives its first two arguments by position.

    With ``least`` 0, say whether all that it gives can be read.
    """
    return (
        isinstance(node, ast.Call)
        and len(node.args) >= least
        and not any(isinstance(one, ast.Starred) for one in node.args[: least or None])
        and not any(one.arg is None or one.arg in names for one in node.keywords)
    )


def _is_single(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    )


def _unused(node: FunctionNode, names: list[ast.arg]) -> bool:
    """Say whether the order of two parameters means nothing, since they have no use."""
    used = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
    return not {one.arg for one in names[:2]} & used


def _has_inner(node: FunctionNode) -> bool:
    return any(
        isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and item is not node
        for item in ast.walk(node)
    )


def _unpacked(package: WholePackage, call: BugPlace, count: int) -> ast.Tuple | None:
    """The names that a call's result is unpacked into."""
    match package.sources[call.path].parents.get(call.node):
        case ast.Assign(targets=[ast.Tuple(elts=elts) as target]) if len(elts) == count:
            return target
        case _:
            return None


def _renamed(package: WholePackage, call: BugPlace, name: str) -> Spot:
    assert isinstance(call.node, ast.Call)
    function = call.node.func
    if isinstance(function, ast.Attribute):
        return package.spot(
            BugPlace(call.path, function), f"{package.text(BugPlace(call.path, function.value))}.{name}"
        )
    return package.spot(BugPlace(call.path, function), name)
