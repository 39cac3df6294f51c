"""Language of a mobile line and a phone: what can be asked, changed, looked at."""

from __future__ import annotations

from turnwise.envs.toolworld.speech.words import Concept

SLOTS = {
    "phone": (
        "phone number", "your number", "mobile number", "telephone number", "cell number", "line number", "msisdn",
        "number you are calling", "callback number", "digits", "number please", "and number", "number and pin", "number and your pin", "what number", "which number",
        "number of the line", "number of your line", "number of the phone", "number of your phone", "customer number",
        "contact number", "number registered", "number associated", "number linked", "is the number", "have the number", "need the number",
        "give me the number", "tell me the number", "know the number",
    ),
    "pin": (
        "pin", "pin code", "4 digit code", "four-digit code", "4-digit code", "security code", "passcode", "secret code",
        "customer code", "account code", "access code", "code", "4 digit", "4-digit pin", "password",
    ),
    "gigabytes": (
        "gigabytes", "gb", "how much data", "how much more data", "amount of data", "how many gigs", "gigs", "data volume",
        "how much extra data", "how much additional data", "what amount", "how much would you",
    ),
    "abroad": (
        "are you abroad", "are you currently abroad", "are you now abroad", "are you still abroad", "are you at the moment abroad",
        "are you presently abroad", "are you right now abroad", "are you travel", "are you currently travel", "are you in another country",
        "are you in a foreign country", "are you currently in another country", "are you outside", "are you currently outside",
        "are you at home", "which country are you", "what country are you", "where are you",
    ),
    "name": (
        "your name", "full name", "first name", "last name", "surname", "account holder", "name of the account", "name on the account",
        "name please", "which name", "what name",
    ),
}  # fmt: skip
IDENTITY = ("phone", "pin")
SENSES = {
    "resume_line": Concept(
        "resume|reactivate|restore|unsuspend|lift|activate|unblock|reinstate|reenable|turn on|switch on|bring back|put back|"
        "reconnect|unlock|enable|resumption|reactivation|wake up|wake|revive|bring to life|get going",
        "line|service|number|suspension|account|block",
    ),
    "add_data": Concept(
        "add|top up|put|give|book|buy|provide|increase|boost|extend|credit|load|purchase|apply|get|include|raise|grant|top-up|"
        "addition|order",
        "gb|gigabyte|gig|data|allowance|volume",
    ),
    "change_plan": Concept(
        "change|switch|move|put|upgrade|downgrade|set|migrate|update|transfer|replace|swap|go|convert|take|choose|pick|be",
        "plan|tariff|package|subscription|contract|max-2|max-5|max-10|max-20|max-40|basic-2|basic-5|basic-10|basic-20|"
        "basic-40|flex-2|flex-5|flex-10|flex-20|flex-40|go-2|go-5|go-10|go-20|go-40|pro-2|pro-5|pro-10|pro-20|pro-40",
    ),
    "set_roaming": Concept(
        "allow|enable|activate|turn on|switch on|set|add|open|permit|unlock|put on|get on|start|activation|have on|"
        "unblock|authorize|set up|disable|deactivate|turn off|switch off|take off|put off|forbid|end|cut off|deactivation|flip",
        "roaming|abroad use|use abroad",
    ),
}  # fmt: skip
SENSES |= {
    "close_line": Concept("close|end|terminate|cancel|shut down|quit|leave|cease|get out|let out|dissolve|termination", "contract|line for good|close line"),
    "set_call_barring": Concept("lift|remove|deactivate|take off|turn off|switch off|cancel|disable|allow|unbar|unblock|end|delete|stop", "barring|bar|incoming call|call block|call barring"),
    "set_tethering": Concept("allow|enable|activate|turn on|switch on|add|permit|unlock|open|book|set up", "tethering|sharing|share|other device"),
    "set_premium_block": Concept(
        "block|bar|stop|disable|forbid|turn off|switch off|set|put|lock|deactivate|prevent", "premium|paid service|paid number|third-party|third party|subscription service|premium service"
    ),
    "set_billing": Concept(
        "change|switch|send|set|move|get|deliver|post|put|mail|email|go", "paper|by post|by email|electronic bill|billing|paper bill|bill by"
    ),
}  # fmt: skip
PATTERNS = {
    "gigabytes": r"\b\d+(?= ?(?:more |extra |additional |further )?(?:gb|gigabytes?|gigs?|gbs)\b)|(?<=[a-z]-)\d+\b",
}


def _things(nouns: str) -> str:
    """Names of things; those of two words also with a hyphen between them.

    >>> _things("vpn|power saving|low data mode")
    'vpn|power saving|low data mode|power-saving|low-data mode'
    """
    ways = nouns.split("|")
    return "|".join([*ways, *(way.replace(" ", "-", 1) for way in ways if " " in way)])


_OFF = "turn off|switch off|disable|deactivate|take off|set off|stop|turn it off|shut off|toggle off|off|flip off|remove|end|leave"
_ON = "turn on|switch on|enable|activate|set on|put on|turn it on|flip on|start|open"
_DATA_SWITCH = _things(
    "mobile data|cellular data|cell data|data connection|data switch|mobile internet|data toggle|data setting"
)
_ROAMING_SWITCH = _things(
    "data roaming|roaming on your phone|roaming in your phone|roaming on the phone|roaming on your device|roaming in the settings|"
    "roaming in your settings"
)
"""Roaming alone may be the line's (hearing.py)."""
STATUS = Concept(
    "show|look|check|see|tell|read|open|view|go|describe|say|report|list|glance|give|send",
    "status|status screen|phone show|screen|settings|phone status|status bar|phone settings|network settings|connection settings|"
    "what your phone say|indicators|icons|phone display|top of your",
)
AIRPLANE = Concept(
    "turn off|switch off|disable|deactivate|toggle|take off|take out|leave|exit|set off|put off|off|get out|shut off|turn it off|"
    "come out|toggle off|flip off|uncheck|end|knock off|pop off|flick off|slide off|go off|get off|tap off|move out|kill|lift|swipe off|push off|out of|off with",
    _things(
        "airplane|airplane mode|aeroplane mode|flight mode|plane mode|aeroplane|plane symbol|plane icon|little plane"
    ),
)
DATA = Concept(
    "turn on|switch on|enable|activate|toggle|set on|put on|turn it on|flip on|on again|back on|reenable|get on|toggle on|tap|pop on|flick on|slide on|move on|push on|bring on|go on|swipe on|switch back on|turn back on|flip back on|flick|slide",
    _DATA_SWITCH,
)
DATA_OFF = Concept(_OFF, _DATA_SWITCH)
ROAMING = Concept(
    "turn on|switch on|enable|activate|toggle|allow|set on|put on|turn it on|flip on|permit|toggle on|pop on|flick on|slide on|move on|push on|bring on|go on|swipe on|switch back on|turn back on|flip back on|flick|slide",
    _ROAMING_SWITCH,
)
ROAMING_OFF = Concept(_OFF, _ROAMING_SWITCH)
SAVER = Concept(
    "turn off|switch off|disable|deactivate|toggle|take off|set off|stop|turn it off|shut off|toggle off|off|flip off|remove|uncheck|knock off|pop off|flick off|slide off|go off|get off|off with|go|kill",
    _things("data saver|saver|data saving|data saving mode|low data mode|saving mode"),
)
SIM = Concept(
    "take out|remove|put|reinsert|reseat|insert|eject|pull|pop|pop out|reset|take|slot|swap|push|slide|re-insert|re-seat|put back|pop open|lift|seat|slide out|press|press in|click|pull out|want",
    "sim|sim card|sim tray|tray|card",
)
APN = Concept(
    "reset|restore|set|put back|clear|revert|change|default|put|take back|return|go back|roll back|tap",
    _things("apn|access point|access point name|apn setting|access point setting"),
)
RESTART = Concept(
    "restart|reboot|power cycle|turn off and on|turn off and back on|switch off and on|switch off and back on|power down|power-cycle|"
    "shut down|turn off and turn on|turn off then on|start again|hold the power button|hold down the power button|press and hold the power|start it up|start up again|on and off again|off and on again|turn it off and on|switch it off and on|power back up|back up again|power it down|power down and up|power the phone off|power your phone off|power off your phone|power off the phone|power phone off|power the device off|power off and on|fresh start",
    "",
)
PAY = Concept(
    "pay|settle|accept|approve|clear|complete|take care of|square|pay off",
    "bill|payment request|invoice|overdue amount|payment|amount due|due|outstanding|balance|overdue|arrears|open amount",
)
LIMIT = Concept(
    f"{_OFF}|lift|delete|raise|clear|cancel|reset",
    _things("data limit|limit on the phone|data warning|data cap"),
)
OPERATOR = Concept(
    "set|choose|select|put|change|switch|turn on|let|pick",
    _things("operator|carrier|network selection|network operator|network provider"),
)
WIFI = Concept(f"{_OFF}|disconnect", "wi-fi|wifi|wlan|wireless")
FORWARDING = Concept(
    f"{_OFF}|cancel|clear|delete", _things("forwarding|call forward|diversion|divert|redirection")
)
SILENT = Concept(_OFF, _things("do not disturb|silent mode|dnd|not disturb|quiet mode|focus mode"))
BLOCKED = Concept(
    f"{_OFF}|clear|empty|unblock|delete|take",
    _things(
        "block list|blocklist|blocked number|blacklist|blocked caller|blocked contact|list of blocked|block all number|all number|unblock number|unblock all the number"
    ),
)
WIFI_CALLING = Concept(_OFF, "wi-fi calling|wifi calling|wi-fi call|wifi call|calls over wi-fi")
MESSAGES = Concept(
    "give|allow|grant|permit|enable|turn on|switch on|let|activate|restore",
    "messaging app|message app|messages app|app permission|messaging permission|message permission|permission for messages|permission to send",
)
MMS = Concept(
    "reset|restore|correct|set|clear|fix|change|put",
    "picture message|mms|message address|mmsc|message setting|messaging setting",
)
NETWORK = Concept(
    "set|choose|select|put|change|switch|let|pick",
    _things("preferred network|network mode|network type|2g|4g|5g|mobile network mode"),
)
VPN = Concept(f"{_OFF}|disconnect|close|quit", "vpn")
POWER = Concept(
    _OFF,
    _things(
        "power saving|power saver|battery saver|battery saving|saving mode for the battery|low power|power save"
    ),
)
HOTSPOT = Concept(_ON, _things("hotspot|hot spot|personal hotspot"))
HOTSPOT_OFF = Concept(_OFF, _things("hotspot|hot spot|personal hotspot"))
TEST_CALL = Concept(
    "have|ask|let|get|try|make|do|receive",
    _things(
        "test call|friend call|friend to call|somebody call|somebody to call|someone call|someone to call|call yourself|call you|ring you|phone you|a call|another phone"
    ),
)
TEST_PICTURE = Concept("send|try|make|do", "picture|photo|test message|picture message|image")
SPEED = Concept(
    "run|do|make|perform|start|try|take|test|check|give",
    "speed test|speedtest|speed check|connection test|connection speed|another go|test your connection|test the connection|check your connection|check the connection|try your connection|try the connection",
)
