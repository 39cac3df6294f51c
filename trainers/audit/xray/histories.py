"""Answers in the history of a repository that a task's image holds: an agent that looks at other branches or older commits finds them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from turnwise.trainers.audit.xray.folder_desk import FolderDesk
from turnwise.trainers.audit.xray.making import StartedTask

_LEAST = 20
"""Characters from which a text is not in a history by chance."""
_ASK = """export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
find /work -maxdepth 6 -name .git -not -path '/work/tests/*' | head -20 | while read -r place; do
  cd "$place/.." || continue
  printf '%s\\n' HASHES | git cat-file --batch-check | while read -r hash kind size; do
    if [ "$kind" = blob ]; then
      echo "$hash $(git log --all --reflog --format=%h --find-object=$hash -1) $(git log --all --reflog --format=%s --find-object=$hash -1)"
    fi
  done
done; true
"""


def in_history(
    desk: FolderDesk, start: StartedTask, before: Mapping[str, str], products: Mapping[str, str]
) -> str:
    """The commit in which a file stands as the solution leaves it; "" where no history holds one."""
    known = {*before.values()}
    wanted = {
        _blob(text): path
        for path, text in products.items()
        if len(text.strip()) >= _LEAST and text not in known
    }
    told = desk.look(start, _ASK.replace("HASHES", " ".join(wanted))) if wanted else ""
    for line in told.split("\n"):
        found, _, commit = line.partition(" ")
        if found in wanted:
            where = f"in commit {commit.strip()}" if commit.strip() else "in an object that no branch names"
            return f"the repository's history holds {wanted[found]} as the solution leaves it, {where}"
    return ""


def _blob(text: str) -> str:
    """The name by which git knows a file of this text."""
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
