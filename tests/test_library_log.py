"""Messages of libraries go to a file; the terminal shows errors alone, and afterwards all is as it was."""

import io
import logging

import pytest

from turnwise.library_log import LIBRARIES, follow, libraries_to


@pytest.fixture
def terminal():
    """A library that writes to the terminal, as transformers and vLLM do."""
    said = io.StringIO()
    logger, handler = logging.getLogger("vllm"), logging.StreamHandler(said)
    before, level, propagates = logger.handlers[:], logger.level, logger.propagate
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.WARNING)
    yield said
    logger.handlers, logger.propagate = before, propagates
    logger.setLevel(level)


def test_a_file_has_what_a_library_says_and_the_terminal_its_errors(tmp_path, terminal):
    file = tmp_path / "libraries.log"
    with libraries_to(file):
        assert not file.exists(), "nothing was said"
        logging.getLogger("vllm.engine").info("%s blocks", 12)
        logging.getLogger("vllm.worker").warning("slow")
        logging.getLogger("vllm").error("broken")
        logging.getLogger("mine").warning("is not theirs")
    lines = [line.split(" ", 2)[2] for line in file.read_text().splitlines()]
    assert lines == ["INFO vllm.engine: 12 blocks", "WARNING vllm.worker: slow", "ERROR vllm: broken"]
    assert terminal.getvalue() == "broken\n"
    logging.getLogger("vllm.worker").warning("after")
    logging.getLogger("vllm.worker").info("too little")
    assert terminal.getvalue() == "broken\nafter\n"
    assert "after" not in file.read_text()


def test_a_library_that_is_imported_within_is_followed(tmp_path, terminal):
    file = tmp_path / "libraries.log"
    with libraries_to(file):
        logger = logging.getLogger("vllm")
        logger.handlers, logger.level = [logging.StreamHandler(terminal)], logging.DEBUG  # as vLLM does
        follow()
        logger.info("started")
    assert "started" in file.read_text()
    assert terminal.getvalue() == ""
    logger.debug("as it wishes")
    assert terminal.getvalue() == "as it wishes\n"


def test_errors_leave_nothing_behind(tmp_path):
    before = [(logging.getLogger(name).level, logging.getLogger(name).handlers[:]) for name in LIBRARIES]
    with pytest.raises(OSError, match="full"), libraries_to(tmp_path / "one"):
        raise OSError("full")
    assert before == [(logging.getLogger(name).level, logging.getLogger(name).handlers) for name in LIBRARIES]
    follow()
    assert before == [(logging.getLogger(name).level, logging.getLogger(name).handlers) for name in LIBRARIES]


def test_parts_of_torch_that_write_to_the_terminal_themselves_are_not_woken(tmp_path):
    said = io.StringIO()
    part = logging.getLogger("torch._a_part")
    part.propagate = False
    part.addHandler(logging.StreamHandler(said))
    with libraries_to(tmp_path / "libraries.log"):
        part.info("guards are made")
    assert said.getvalue() == ""
