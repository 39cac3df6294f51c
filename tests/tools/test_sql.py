"""SQL: what is asked is answered; what reaches further, lasts too long or half happens is refused."""

import pytest

from turnwise.tools.core import ToolError
from turnwise.tools.sql import SqlTool

SCRIPT = """
CREATE TABLE city (name TEXT PRIMARY KEY, people INTEGER CHECK (people > 0));
INSERT INTO city VALUES ('Aral', 10), ('Brim', 30), ('Corr', 20);
"""


@pytest.fixture(params=["read", "write"])
def base(request):
    made = SqlTool(SCRIPT, access=request.param, most_rows=2, seconds=60)
    yield made
    made.close()


def test_rows_are_told_and_cut(base):
    said = base.query("SELECT name, people FROM city ORDER BY people DESC")
    assert said == "name | people\nBrim | 30\nCorr | 20\n[the first 2 rows; there are more]"
    assert base.query("SELECT sum(people) AS all_of_them FROM city") == "all_of_them\n60\n[1 rows]"
    assert base.run("SELECT people FROM city WHERE name = ?", ["Aral"]).rows == ((10,),)
    assert "CREATE TABLE city" in base.schema()


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE city",
        "CREATE TABLE t (x)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "ALTER TABLE city ADD COLUMN x",
        "ATTACH 'file.db' AS other",
        "PRAGMA writable_schema = 1",
        "SELECT * FROM pragma_database_list",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "SELECT random()",
        "SELECT datetime('now')",
        "BEGIN",
        "SELECT 1; DROP TABLE city",
        "SELEC name FROM city",
        "SELECT nothing FROM city",
        "SELECT '\ud800'",
        "SELECT 1\0",
        "",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT '" + "x" * 100_000 + "'",
    ],
)
def test_what_is_not_a_question_is_refused(base, sql):
    before = base.run("SELECT count(*), sum(people) FROM city").rows
    if sql:
        with pytest.raises(ToolError):
            base.query(sql)
    else:
        assert base.query(sql) == "0 rows changed."
    assert base.run("SELECT count(*), sum(people) FROM city").rows == before


def test_only_with_write_access_is_anything_changed():
    reader, writer = SqlTool(SCRIPT), SqlTool(SCRIPT, access="write")
    with pytest.raises(ToolError, match="Only SELECT are allowed"):
        reader.query("DELETE FROM city")
    assert writer.query("UPDATE city SET people = people + 1") == "3 rows changed."
    assert writer.run("SELECT sum(people) FROM city").rows == ((63,),)


def test_a_statement_happens_wholly_or_not_at_all():
    base = SqlTool(SCRIPT, access="write")
    with pytest.raises(ToolError, match="CHECK constraint"):
        base.query("UPDATE city SET people = people - 15")  # Brim would do, Aral not
    assert base.run("SELECT sum(people) FROM city").rows == ((60,),)
    kept = base.dump()
    base.query("DELETE FROM city")
    base.load(kept)
    assert base.run("SELECT count(*) FROM city").rows == ((3,),)
    with pytest.raises(ToolError):
        base.query("DROP TABLE city")  # the authorizer outlives the copy


def test_what_never_ends_is_ended(base):
    base.seconds = 0.3
    for endless in (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
        f"SELECT count(*) FROM {', '.join(f'city c{number}' for number in range(24))}",
    ):
        with pytest.raises(ToolError, match="took more than"):
            base.query(endless)
    base.seconds = 60
    assert base.run("SELECT 1").rows == ((1,),)


@pytest.mark.parametrize(
    "flood",
    [
        "SELECT hex(zeroblob(1000000000))",
        "SELECT zeroblob(1000000)",
        "SELECT randomblob(1000000000)",
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT format('%1000000000d', 1)",
        "SELECT replace(hex(zeroblob(80000)), '0', 'xxxxxxxxxxxxxxxx')",
        "SELECT group_concat(hex(zeroblob(50000)), '') FROM city a, city b, city c",
        "SELECT instr(hex(zeroblob(8000000)), hex(zeroblob(4000000)) || '1')",
        "SELECT 'x' LIKE '" + "%" * 6_000 + "'",
        f"SELECT hex(zeroblob(20000)) GLOB '{'*0' * 4000}1'",
    ],
)
def test_what_would_flood_is_refused(base, flood):
    with pytest.raises(ToolError):
        base.query(flood)
    assert base.run("SELECT 1").rows == ((1,),)


@pytest.mark.parametrize(
    "hard",
    [
        "SELECT instr(hex(zeroblob(90000)), hex(zeroblob(45000)) || '1')",
        f"SELECT hex(zeroblob(90000)) LIKE '{'%0' * 400}1'",
    ],
)
def test_what_is_hard_but_small_is_answered(base, hard):
    assert base.run(hard).rows == ((0,),)


def test_printf_is_sqlites_own(base):
    assert base.run("SELECT printf('%.2f|%5d|%-4s|%,d|%q', 2.345, 7, 'ab', 1234567, 'it''s')").rows == (
        ("2.35|    7|ab  |1,234,567|it''s",),
    )
    assert base.run("SELECT printf('%d%%', 5), printf(NULL), format('%s', NULL)").rows == (("5%", None, ""),)


def test_a_long_answer_is_cut(base):
    said = base.query("SELECT hex(zeroblob(90000)) FROM city")
    assert len(said) < 5000
    assert "there are more" in said
