"""What somebody wants done in the apps and with the account behind them."""

from __future__ import annotations

from turnwise.envs.toolworld.apps import errands
from turnwise.envs.toolworld.apps.account import keeping, language, paying, questions, sharing, traps
from turnwise.envs.toolworld.apps.account.parts import enter
from turnwise.envs.toolworld.apps.actions import ACTS
from turnwise.envs.toolworld.apps.policy import POLICY
from turnwise.envs.toolworld.apps.rules import rules
from turnwise.envs.toolworld.apps.state import build
from turnwise.envs.toolworld.domain import Domain

DOMAIN = Domain(
    name="apps",
    policy=POLICY,
    build=build,
    acts=ACTS,
    requests={
        "pay": errands.pay, "decline": errands.decline, "send": errands.send, "mail": errands.invite_group, "mails": errands.file_mails,
        "number": errands.new_number, "calendar": errands.reschedule, "files": errands.clean_up, "delete_file": errands.delete_file, "share": errands.share, "likes": errands.like_songs,
        "playlist": errands.playlist, "note": errands.pin, "spent": errands.spent,
        "cancel": paying.cancel, "tier": paying.tier, "period": paying.period, "pause": paying.pause, "resume": paying.resume,
        "subscribe": paying.take_out, "refund": paying.refund, "child_refund": paying.child_refund, "dispute": paying.dispute,
        "redeem": paying.redeem, "gift": paying.gift, "card": paying.card, "storage": paying.storage,
        "device": keeping.remove, "lost": keeping.lock, "export": keeping.export, "erase": keeping.erase, "close": keeping.close,
        "email": keeping.email, "devices": keeping.devices_known,
        "share_subscription": sharing.share, "add_member": sharing.add_member, "remove_member": sharing.remove_member,
        "age_limit": sharing.age_limit, "allowance": sharing.allowance, "more_seats": sharing.more_seats, "fewer_seats": sharing.fewer_seats,
        "assign": sharing.assign, "free": sharing.free, "free_seats": sharing.unassigned, "allowed": sharing.allowed,
        "renewal": questions.renewal, "monthly_sum": questions.monthly_sum, "bought_at": questions.bought_at, "credit": questions.credit,
        "app_price": questions.app_price, "code_worth": questions.code_worth,
    },
    traps={
        "send_limit": errands.too_much_money, "shared_file": errands.shared_file,
        "transfer": traps.transfer, "refund_period": traps.too_late, "opened": traps.opened, "refund_to": traps.to_the_card,
        "child_too_late": traps.child_too_late, "known_device": traps.known_device, "no_duplicate": traps.no_duplicate,
        "dispute_period": traps.dispute_late, "period_lock": traps.locked_period, "pause_rules": traps.no_pause,
        "not_active": traps.paused_tier, "already_covered": traps.covered_already, "not_shareable": traps.not_shareable,
        "bad_code": traps.bad_code, "no_cash": traps.pay_out, "gift_limit": traps.gift_too_large, "storage_full": traps.too_small,
        "organizer_only": traps.not_the_organizer, "other_family": traps.family_full, "child_member": traps.child_out,
        "age_limit": traps.too_old, "allowance_limit": traps.too_rich, "last_device": traps.last_device, "not_owner": traps.not_mine,
        "export_period": traps.exported, "active_subscription": traps.still_running, "not_closed": traps.not_closed,
        "seats": traps.seats, "outsider": traps.outsider, "minor": traps.minor,
    },
    enter=enter,
    slots=language.SLOTS,
    identity=language.IDENTITY,
    senses=language.SENSES,
    patterns=language.PATTERNS,
    rules=rules,
    tells_cost=True,
)  # fmt: skip
