"""The words of the tracker's projects: people, labels, what is wrong and what is said about it."""

PEOPLE = [
    "ada", "bao", "carmen", "dmitri", "edda", "farid", "greta", "hugo", "imani", "jonas", "kenji", "lucia",
    "mateo", "nadia", "olga", "pavel", "quinn", "rosa", "samir", "tove", "umar", "vera", "wanda", "xenia",
    "yusuf", "zora",
]  # fmt: skip


LABELS = (
    ("bug", "Something is broken"),
    ("feature", "Something new"),
    ("docs", "Manuals and help"),
    ("design", "How it looks"),
    ("speed", "It takes too long"),
    ("security", "It may harm someone"),
    ("mobile", "On small screens"),
    ("install", "Getting it to run"),
)


PARTS = (
    "export dialog", "calendar view", "login page", "search field", "sync service", "photo gallery",
    "backup job", "settings menu", "invoice printer", "map layer", "chat window", "audio player",
    "spell checker", "file picker", "report builder", "user directory",
)  # fmt: skip


FAULTS = (
    "freezes", "shows an empty list", "forgets its settings", "asks twice for a password",
    "prints the wrong date", "loses the last line", "needs a minute to open", "overlaps the footer",
    "ignores the keyboard", "rejects long names",
)  # fmt: skip


WHENS = (
    "after a restart", "on slow networks", "in dark mode", "with many accounts", "when offline", "for guests",
    "in February", "behind a proxy",
)  # fmt: skip


SEEN = (
    "I see this too.",
    "Same here.",
    "It happens about once a day.",
    "Not on my machine.",
    "Still there today.",
)


TRIED = ("A restart does not help.", "Clearing the cache helps for an hour.", "An older version works.")


SPAM = (
    "Cheap watches, visit watch-{n}.example now",
    "You have won {n} coins, write to prize-{n}.example",
    "Best casino bonus {n}, no deposit at lucky-{n}.example",
    "Grow your followers by {n} a day: boost-{n}.example",
)
