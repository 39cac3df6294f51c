"""How many example configurations of other trainers `turnwise explain --from` reads, and how many it can say in a recipe of ours.

    python benchmarks/other_trainers.py trl=DIR/examples verl=DIR/examples prime-rl=DIR/configs nemo=DIR/examples

Folders are checkouts of the trainers' repositories; nothing is fetched. A file that holds no reinforcement is counted with the
reason. other-trainers.json has the result, docs/how-to/other-trainers.md the table.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from turnwise.errors import TurnwiseError
from turnwise.trainers.others.explained import as_recipe, explain_other, text_of
from turnwise.trainers.recipe.load import load_recipe

RESULT = Path(__file__).with_name("other-trainers.json")
ENDINGS = {
    "trl": (".py", ".ipynb", ".yaml"),
    "verl": (".sh", ".yaml"),
    "prime-rl": (".toml",),
    "nemo": (".yaml",),
}


def look(trainer: str, folder: Path) -> dict[str, Any]:
    """Read every file below a folder that may be a configuration."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS[trainer] and path.is_file())
    said, refused, accepted, kinds = 0, Counter[str](), dict[str, bool](), Counter[str]()
    for file in files:
        try:
            found = explain_other(trainer, file)
        except TurnwiseError as error:
            refused[error.cause.replace(str(file), "FILE").split(":")[0]] += 1
            continue
        text_of(found)
        said += 1
        kinds.update(
            {
                statement.text.split(":")[0].split(",")[0]
                for statement in found.statements
                if statement.kind != "note"
            }
        )
        if found.choices.learns:
            key = json.dumps(found.recipe, sort_keys=True)
            accepted[key] = accepted[key] if key in accepted else _accepted(found)
    return {
        "files": len(files), "explained": said, "refused": dict(refused.most_common()), "objectives": len(accepted),
        "objectives_of_ours": sum(accepted.values()), "statements": dict(kinds.most_common(12)),
    }  # fmt: skip


def _accepted(found: Any) -> bool:
    """Say whether the recipe that means the same is one."""
    try:
        load_recipe(as_recipe(found))
    except TurnwiseError:
        return False
    return True


def main() -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for word in sys.argv[1:]:
        trainer, _, folder = word.partition("=")
        found[trainer] = [*found.get(trainer, []), look(trainer, Path(folder))]
    RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for trainer, looked in found.items():
        for one in looked:
            print(
                trainer,
                one["files"],
                "files,",
                one["explained"],
                "explained;",
                one["objectives"],
                "objectives,",
                one["objectives_of_ours"],
                "of ours",
            )


if __name__ == "__main__":
    main()
