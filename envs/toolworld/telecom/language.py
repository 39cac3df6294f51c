"""How people speak of a mobile line and a phone: what can be asked, changed, looked at."""

from __future__ import annotations

from turnwise.envs.toolworld.speech.words import Concept

SLOTS = {
    "phone": (
        "phone number", "number", "mobile number", "telephone number", "cell number", "line number", "msisdn",
        "number you are calling", "callback number", "digits",
    ),
    "pin": (
        "pin", "pin code", "4 digit code", "four-digit code", "4-digit code", "security code", "passcode", "secret code",
        "customer code", "account code", "access code", "code", "4 digit", "4-digit pin", "password",
    ),
    "gigabytes": (
        "gigabytes", "gb", "how much data", "how much more data", "amount of data", "how many gigs", "gigs", "data volume",
        "how much extra data", "how much additional data", "what amount", "how much would you",
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
    "set_call_barring": Concept("lift|remove|take off|turn off|switch off|cancel|disable|allow|unbar|unblock|end|delete|stop", "barring|bar|incoming call|call block|call barring"),
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
STATUS = Concept(
    "show|look|check|see|tell|read|open|view|go|describe|say|report|list|glance|give|send",
    "status|status screen|phone show|screen|settings|phone status|status bar|phone settings|network settings|connection settings|"
    "what your phone say|indicators|icons|phone display|top of your",
)
AIRPLANE = Concept(
    "turn off|switch off|disable|deactivate|toggle|take off|take out|leave|exit|set off|put off|off|get out|shut off|turn it off|"
    "come out|toggle off|flip off|uncheck|end|knock off|pop off|flick off|slide off|go off|get off|tap off|move out|kill|lift|swipe off|push off|out of|off with",
    "airplane|airplane mode|aeroplane mode|flight mode|plane mode|aeroplane|plane symbol|plane icon|little plane",
)
DATA = Concept(
    "turn on|switch on|enable|activate|toggle|set on|put on|turn it on|flip on|reenable|check|get on|toggle on|tap|pop on|flick on|slide on|move on|push on|bring on|go on|swipe on|switch back on|turn back on|flip back on|flick|slide",
    "mobile data|cellular data|cell data|data connection|data switch|mobile internet|data toggle|data setting",
)
ROAMING = Concept(
    "turn on|switch on|enable|activate|toggle|allow|set on|put on|turn it on|flip on|permit|toggle on|check|pop on|flick on|slide on|move on|push on|bring on|go on|swipe on|switch back on|turn back on|flip back on|flick|slide",
    "data roaming|roaming",
)
SAVER = Concept(
    "turn off|switch off|disable|deactivate|toggle|take off|set off|stop|turn it off|shut off|toggle off|off|flip off|remove|uncheck|knock off|pop off|flick off|slide off|go off|get off|off with|go|kill",
    "data saver|saver|data saving|data saving mode|low data mode|saving mode",
)
SIM = Concept(
    "take out|remove|put|reinsert|reseat|insert|eject|pull|pop|pop out|reset|take|slot|swap|push|slide|re-insert|re-seat|check|put back|pop open|lift|seat|slide out|press|press in|click|pull out|want",
    "sim|sim card|sim tray|tray|card",
)
APN = Concept(
    "reset|restore|set|put back|clear|revert|change|default|put|take back|return|go back|roll back|tap",
    "apn|access point|access point name|apn setting|access point setting",
)
RESTART = Concept(
    "restart|reboot|power cycle|power off|turn off and on|turn off and back on|switch off and on|switch off and back on|power down|power-cycle|"
    "shut down|turn off and turn on|turn off then on|start again|power on|hold the power button|hold down the power button|press and hold the power|start it up|start up again|on and off again|off and on again|turn it off and on|switch it off and on|power back up|back up again|power it down|power down and up|fresh start",
    "",
)
PAY = Concept(
    "pay|settle|accept|approve|clear|complete|take care of|square|pay off",
    "bill|payment request|invoice|overdue amount|payment|amount due|due|outstanding|balance|overdue|arrears|open amount",
)
_OFF = "turn off|switch off|disable|deactivate|toggle|take off|set off|stop|turn it off|shut off|toggle off|off|flip off|remove|end|leave"
_ON = "turn on|switch on|enable|activate|set on|put on|turn it on|flip on|start|open"
LIMIT = Concept(
    f"{_OFF}|lift|delete|raise|clear|cancel|reset", "data limit|limit on the phone|data warning|data cap"
)
OPERATOR = Concept(
    "set|choose|select|put|change|switch|turn on|let|pick",
    "operator|carrier|network selection|network operator|network provider",
)
WIFI = Concept(f"{_OFF}|disconnect", "wi-fi|wifi|wlan|wireless")
FORWARDING = Concept(f"{_OFF}|cancel|clear|delete", "forwarding|call forward|diversion|divert|redirection")
SILENT = Concept(_OFF, "do not disturb|silent mode|dnd|not disturb|quiet mode|focus mode")
BLOCKED = Concept(
    f"{_OFF}|clear|empty|unblock|delete|take",
    "block list|blocklist|blocked number|blacklist|blocked caller|blocked contact",
)
WIFI_CALLING = Concept(_OFF, "wi-fi calling|wifi calling|wi-fi call|wifi call|calls over wi-fi")
MESSAGES = Concept(
    "give|allow|grant|permit|enable|turn on|switch on|let|activate|restore",
    "permission|messaging app|message app|messages app",
)
MMS = Concept(
    "reset|restore|correct|set|clear|fix|change|put",
    "picture message|mms|message address|mmsc|message setting|messaging setting",
)
NETWORK = Concept(
    "set|choose|select|put|change|switch|let|pick",
    "preferred network|network mode|network type|2g|4g|5g|mobile network mode",
)
VPN = Concept(f"{_OFF}|disconnect|close|quit", "vpn")
POWER = Concept(
    _OFF,
    "power saving|power saver|battery saver|battery saving|saving mode for the battery|low power|power save",
)
HOTSPOT = Concept(_ON, "hotspot|hot spot|personal hotspot")
HOTSPOT_OFF = Concept(_OFF, "hotspot|hot spot|personal hotspot")
TEST_CALL = Concept(
    "have|ask|let|get|try|make|do|receive",
    "test call|friend|somebody|someone|call yourself|ring you|another phone",
)
TEST_PICTURE = Concept("send|try|make|do", "picture|photo|test message|picture message|image")
SPEED = Concept(
    "run|do|make|perform|start|try|take|test|check|give",
    "speed test|speedtest|speed check|connection|another go",
)
