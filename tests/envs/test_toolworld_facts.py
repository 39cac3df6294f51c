"""What counts as told: an answer in any usual form, and none that is asked, denied or left open."""

import pytest

from turnwise.envs.toolworld.facts import Fact, firm_amounts, stated

LEFT = Fact("count", "4654")
PRICE = Fact("money", "799")
DAY = Fact("date", "2026-07-12")
STATUS = Fact("word", "scheduled", ("scheduled", "delayed", "cancelled", "landed"))


@pytest.mark.parametrize(("fact", "text"), [
    (LEFT, "You have 4,654 MB left."),
    (LEFT, "4654MB"),
    (LEFT, "You've used 346 MB of your 5,000 MB this month, so you have 4,654 MB left."),
    (PRICE, "Hearthcook ($7.99) is active. Lumio ($11.99) and Ledgerly ($8.99) are paused, Skywatch ($149.90) is yearly. So the total is $7.99."),
    (PRICE, "It was $12.00 and is $7.99 now."),
    (PRICE, "Shall I add it for $7.99?"),
    (PRICE, "$5.00 + $2.99 = $7.99"),
    (PRICE, "Is $7.99 okay for you?"),
    (DAY, "It renews on 12 July 2026."),
    (DAY, "Jul 12, 2026"),
    (DAY, "July 12."),
    (DAY, "2026/07/12"),
    (STATUS, "It's not delayed and not cancelled, so it's scheduled."),
    (STATUS, "The flight is on time."),
    (Fact("count", "1"), "One seat in business."),
])  # fmt: skip
def test_the_right_value_is_told_in_any_usual_form(fact, text):
    assert stated(fact, text) is True


@pytest.mark.parametrize(("fact", "text"), [
    (LEFT, "It is 4654, 346 or 5000 MB."),
    (LEFT, "It's either 346 MB or 4654 MB."),
    (PRICE, "$7.99, $11.99 or $8.99."),
    (PRICE, "$7.99 $8.99"),
    (PRICE, "Your balance is not $7.99."),
    (PRICE, "Is your balance $7.99?"),
    (PRICE, "So the total is $7.99. So the total is $8.99. So the total is $9.99. So the total is $6.99."),
    (DAY, "It renews on 2026-07-12 or 2026-08-22."),
    (STATUS, "It's not scheduled."),
    (Fact("count", "1"), "One moment, please."),
    (STATUS, "Is it scheduled?"),
    (STATUS, "It's scheduled or delayed."),
])  # fmt: skip
def test_what_is_left_open_asked_or_denied_is_not_told(fact, text):
    assert not stated(fact, text)


def test_what_a_change_has_cost_takes_no_other_price_back():
    assert stated(PRICE, "It is premium now, and $40.00 were charged.") is False
    assert stated(PRICE, "It is premium now, and $40.00 were charged.", {"4000"}) is None


def test_a_price_that_is_left_open_is_no_price():
    assert firm_amounts("for $0.00, $50.00, $100.00 or $150.00?") == set()
    assert firm_amounts("Two bags at $50.00 each, $100.00 in total.") == {5000, 10000}
