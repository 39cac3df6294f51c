"""Goods for the kitchen."""

from __future__ import annotations

from turnwise.envs.shop.goods.core import Goods
from turnwise.envs.shop.goods.shorthand import DAILY, has, least, measured, most, need

KITCHEN = (
    Goods(
        "kettle", "home › kitchen", 34, {"stainless steel": 6, "glass": 10, "plastic": -8, "enamel": 4},
        (
            measured("capacity", "volume", "L", "0.5 0.8 1 1.2 1.5 1.7 2 2.3", 3),
            measured("power", "power", "W", "800 1000 1350 1500 1850 2200 2400 3000", 2),
            measured("noise", "noise", "dB", "48 52 56 60 64 68 72 76", grows=False),
        ),
        ("temperature control", "keep warm", "auto shut-off", "gift box", "app control"),
        (*DAILY, "quiet in use", "easy to clean", "smells at first"),
        (
            need("makes tea for eight at once | fills eight cups in one go | serves a whole meeting | brews for a crowd of eight", least("capacity", 2.0)),
            need("is meant for green tea without watching it | takes care of oolong by itself and then stops | respects delicate leaves and then switches off | lets a distracted tea lover wander away", has("temperature control", "auto shut-off")),
            need("does not wake my wife at five | is discreet in a studio flat | lets the household sleep on | I can use beside a cot", most("noise", 56.0)),
        ),
        "The spout pours without dripping.",
    ),
    Goods(
        "blender", "home › kitchen", 48, {"glass": 12, "plastic": 0, "stainless steel": 18},
        (
            measured("jug", "volume", "L", "0.4 0.6 0.8 1 1.2 1.5 1.8 2.2", 4, said="jug size"),
            measured("power", "power", "W", "300 450 600 750 900 1200 1500 1800", 9),
            measured("noise", "noise", "dB", "62 66 70 74 78 82 86 90", grows=False),
        ),
        ("dishwasher safe", "drinking lid", "rechargeable", "travel case", "non-slip", "auto shut-off"),
        (*DAILY, "quiet in use", "easy to clean", "rattles"),
        (
            need("crushes ice without stalling | makes frozen margaritas | pulverises nuts and ice | is not stopped by frozen mango", least("power", 1200.0)),
            need("makes a smoothie for one | does a single glass | suits someone who lives alone | mixes one portion, not a bucket", most("jug", 0.6)),
        ),
        "Six blades at two heights.",
    ),
    Goods(
        "skillet", "home › kitchen", 30, {"cast iron": 4, "carbon steel": 8, "stainless steel": 14, "aluminium": -4},
        (
            measured("diameter", "width", "cm", "16 18 20 22 24 26 28 30 32", 3),
            measured("weight", "weight", "g", "650 800 950 1150 1400 1800 2200 2700"),
        ),
        ("induction", "oven safe", "lid", "dishwasher safe", "gift box"),
        (*DAILY, "easy to clean", "stains"),
        (
            need("somebody with weak wrists can lift | my grandmother can handle | is easy on arthritic hands | does not need a bodybuilder", most("weight", 1150.0)),
            need("fries for a whole family | takes four steaks side by side | has room for eight eggs | cooks for a full table", least("diameter", 28.0)),
            need("goes from my magnetic hob under the grill | starts on coils and finishes below the broiler | works on a modern glass hob and in the stove's belly | lives on magnetic heat and then bakes", has("induction", "oven safe")),
        ),
        "The handle is riveted.", coloured=False,
    ),
    Goods(
        "mug", "home › kitchen", 12, {"porcelain": 2, "stoneware": 0, "glass": 3, "enamel": 1, "steel": 6},
        (
            measured("capacity", "volume", "ml", "180 220 250 280 300 330 350 400 450 500", 0.8),
            measured("pieces", "count", "pieces", "1 2 4 6 8 12", 5, grows=False),
            measured("height", "height", "cm", "7 8 8.5 9 9.5 10 11 12"),
        ),
        ("dishwasher safe", "microwave safe", "lid", "unbreakable", "gift box"),
        (*DAILY, "stains", "easy to clean", "keeps heat"),
        (
            need("gives each of the six of us our own | serves six guests | equips half a dozen colleagues | is enough for a table of six", least("pieces", 6.0)),
            need("takes a big breakfast coffee | holds more than a diner pours | is for somebody who drinks half a litre at once | swallows a giant latte", least("capacity", 450.0)),
        ),
        "Glazed twice and fired at high heat.",
    ),
    Goods(
        "flask", "home › kitchen", 22, {"stainless steel": 0, "titanium": 35, "glass": 4},
        (
            measured("capacity", "volume", "ml", "250 350 500 600 750 900 1000 1200 1500", 2),
            measured("keeps hot for", "keeping", "h", "4 6 8 10 12 16 20 24", 3, grows=False, said="heat-holding time"),
            measured("weight", "weight", "g", "180 230 280 330 390 450 520 640"),
        ),
        ("leakproof", "straw", "dishwasher safe", "carry strap", "gift box"),
        (*DAILY, "keeps heat", "easy to clean", "smells at first"),
        (
            need("keeps soup hot through a double shift | has warm tea sixteen hours on | stays hot from breakfast till late | is still steaming after a night and a morning", least("keeps hot for", 16.0)),
            need("fits my daughter's little hands and bag | is a small one for a school bag | carries just one cup | a child can carry, hardly more than a quarter litre", most("capacity", 350.0)),
        ),
        "Two walls with a vacuum between.",
    ),
    Goods(
        "toaster", "home › kitchen", 36, {"stainless steel": 8, "plastic": -4, "enamel": 6},
        (
            measured("slots", "count", "slots", "1 2 3 4 6", 9),
            measured("power", "power", "W", "700 800 900 1000 1200 1400 1600 1800", 1),
            measured("width", "width", "cm", "17 19 22 26 29 32 36"),
        ),
        ("crumb tray", "bagel setting", "keep warm", "auto shut-off", "app control"),
        (*DAILY, "easy to clean", "rattles"),
        (
            need("does four slices in one go | feeds four at once | browns enough for the family in one push | makes four pieces together", least("slots", 4.0)),
            need("squeezes into a caravan kitchen | leaves room on a tiny counter | stands on a ledge of 23 cm | occupies barely a hand and a half", most("width", 22.0)),
        ),
        "Seven levels of browning.",
    ),
    Goods(
        "knife", "home › kitchen", 35, {"carbon steel": 10, "stainless steel": 0, "ceramic": 6},
        (
            measured("blade", "length", "cm", "8 10 12 15 18 20 22 25", 4, said="blade length"),
            measured("weight", "weight", "g", "60 80 110 140 170 200 230 260"),
        ),
        ("sheath", "gift box", "dishwasher safe", "soft grip"),
        (*DAILY, "sharp for months", "strong grip", "stains"),
        (
            need("goes through a pumpkin | copes with a watermelon | halves a cabbage in a stroke | deals with a big squash", least("blade", 20.0)),
            need("peels and trims small fruit | is for strawberries and garlic | does the fiddly jobs | pares apples in the hand", most("blade", 10.0)),
        ),
        "Full tang, ground by hand.", coloured=False,
    ),
)  # fmt: skip
