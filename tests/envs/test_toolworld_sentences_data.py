"""The labelled sentences: every line is whole, consistent, said once and in the right file."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
NEEDS = {  # act: what its label must say
    "courtesy": None,
    "hold": None,
    "ask_fact": "fact",
    "ask_consent": "action",
    "tell_done": "action",
    "refuse": "reason",
    "tell_fact": "fact",
    "ask_deed": "deed",
    "ask_deed_done": "deed",
    "forbid_deed": "deed",
    "nonsense_offer": None,
    "goodbye": None,
    "ask_else": None,
    "transfer": None,
    "mixed": "acts",
}
MUST_NOT = {"end_talk", "skip_request", "consent", "do_deed", "lose_patience"}
SHOULD = {
    "answer_fact",
    "consent",
    "decline",
    "do_deed",
    "report",
    "wait",
    "thank",
    "next_request",
    "ask_back",
}


def lines(name: str, folder: str = "toolworld_sentences") -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (FOLDER / folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


@pytest.mark.parametrize(
    "name",
    [
        "open",
        "sealed",
        "sealed_2",
        "sealed_3",
        "sealed_4",
        "sealed_5",
        "sealed_6",
        "sealed_8",
        "open_2",
        "played",
        "played_2",
        "sealed_9",
        "wild",
    ],
)
def test_every_sentence_is_whole_and_its_label_consistent(name: str) -> None:
    for line in lines(name):
        label, must_not, should = line["label"], set(line["must_not"]), set(line["should"])
        assert set(line) == {"id", "domain", "context", "text", "label", "must_not", "should"}, line["id"]
        assert line["domain"] in {"retail", "airline", "telecom", "apps", "any"}, line["id"]
        assert {"request", "last_user", "proposed"} <= set(line["context"]), line["id"]
        need = NEEDS[label["act"]]
        assert need is None or label.get(need), line["id"]
        assert set(label.get("acts", ["hold"])) < set(NEEDS) - {"mixed"}, line["id"]
        assert should, line["id"]
        assert must_not <= MUST_NOT, line["id"]
        assert should <= SHOULD - must_not, line["id"]


def test_no_sentence_is_said_twice_and_each_lies_in_the_file_that_its_hash_names() -> None:
    said = [(name, line) for name in ("open", "sealed") for line in lines(name)]
    assert len({" ".join(line["text"].casefold().split()) for _, line in said}) == len(said) >= 650
    for name, line in said:
        digest = hashlib.sha256(f"turnwise-sentences-2026-11-22\n{line['text']}".encode()).hexdigest()
        assert line["id"] == f"{line['domain']}-{digest[:8]}"
        assert name == ("open" if int(digest[8:16], 16) % 3 else "sealed"), line["id"]


def test_each_message_of_the_perfect_agent_has_ten_rewordings_open_and_sealed() -> None:
    told = [(name, line) for name in ("open", "sealed") for line in lines(name, "gold_in_other_words")]
    assert len({line["template"] for _, line in told}) == len(told)
    files_of: dict[str, list[str]] = {}
    for name, line in told:
        files_of.setdefault(line["message"], []).append(name)
        assert line["slots"] == list(dict.fromkeys(re.findall(r"\{(\w+)\}", line["template"]))), line["id"]
        assert ("reason" in line) == (line["act"] == "refuse"), line["id"]
    assert len(files_of) >= 40
    for message, names in files_of.items():
        assert len(names) >= 10, message
        assert 0.2 < names.count("sealed") / len(names) < 0.5, message


def test_every_comforting_or_hurting_sentence_has_a_grade_and_a_why() -> None:
    said = [line for name in ("open", "sealed") for line in lines(name, "comfort_sentences")]
    assert len({line["text"].casefold() for line in said}) == len(said) >= 120
    assert {line["grade"] for line in said} == {0, 1, 2, 3, 4}
    for line in said:
        assert line["kind"] in {"kind", "empathetic", "neutral", "silent", "unkind"}, line["id"]
        assert line["why"], line["id"]
