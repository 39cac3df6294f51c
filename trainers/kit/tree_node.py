"""A node of a tree that is grown by values, of searches and of training alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

State = TypeVar("State")


@dataclass(eq=False)
class TreeNode(Generic[State]):
    """A node of a tree that is grown.

    Attributes:
        node: the state.
        parent, children: in the tree.
        prior: of being chosen, by the policy.
        visits, total: how many values were counted here, and their sum.
        closed: nothing below is left to try.
    """

    node: State
    parent: TreeNode[State] | None = None
    prior: float = 1.0
    children: list[TreeNode[State]] = field(default_factory=list["TreeNode[State]"])
    visits: int = 0
    total: float = 0.0
    closed: bool = False

    @property
    def mean(self) -> float:
        """The mean of the values that were counted here; 0 if none was."""
        return self.total / self.visits if self.visits else 0.0

    def count(self, value: float) -> None:
        """Count a value here and in all states before."""
        at: TreeNode[State] | None = self
        while at is not None:
            at.visits += 1
            at.total += value
            at = at.parent

    def close(self) -> None:
        """Close it, and what has only closed children before it."""
        self.closed = True
        at = self.parent
        while at is not None and all(child.closed for child in at.children):
            at.closed = True
            at = at.parent
