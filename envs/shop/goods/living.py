"""Goods for living, sleeping and bathing."""

from __future__ import annotations

from turnwise.envs.shop.goods.core import Goods
from turnwise.envs.shop.goods.shorthand import DAILY, has, least, measured, most, need

LIVING = (
    Goods(
        "lamp", "home › living", 36, {"steel": 0, "wood": 10, "glass": 12, "bamboo": 6},
        (
            measured("height", "height", "cm", "22 28 34 40 46 55 120 140 155", 4),
            measured("brightness", "light", "lm", "200 300 400 500 650 800 1000 1300", 2, grows=False),
            measured("weight", "weight", "kg", "0.6 0.9 1.2 1.6 2.1 2.8 3.6 4.8"),
        ),
        ("dimmable", "rechargeable", "motion sensor", "app control", "auto shut-off"),
        (*DAILY, "easy to put up", "bad instructions"),
        (
            need("stands beside the sofa and looks over it | is a floor model | rises from the floor to above an armchair | towers next to a reading chair", least("height", 120.0)),
            need("sits on a bedside table | fits on a nightstand | is small enough beside a bed | may stand near my pillow", most("height", 40.0)),
            need("is bright enough to sew by | helps my tired eyes with fine work | lights up needlework | makes model building possible at night", least("brightness", 800.0)),
        ),
        "The switch is on the cable.",
    ),
    Goods(
        "rug", "home › living", 58, {"wool": 50, "cotton": 10, "polypropylene": 0, "jute": 6},
        (
            measured("length", "length", "cm", "90 120 150 180 200 230 250 300", 16),
            measured("width", "width", "cm", "50 60 80 100 120 140 160 200"),
            measured("pile", "thickness", "mm", "3 5 7 9 12 16 22 30", 3, grows=False, said="pile height"),
        ),
        ("non-slip", "machine washable", "hypoallergenic", "organic"),
        (*DAILY, "sheds", "colour fades", "smells at first"),
        (
            need("lies under a door without blocking it | lets a door sweep over it | is flat enough for a robot to climb | a door with a narrow gap clears", most("pile", 7.0)),
            need("my toes sink into | feels deep and soft | is thick enough to sit on for games | makes the floor a cushion", least("pile", 16.0)),
        ),
        "Edges are bound.",
    ),
    Goods(
        "pillow", "home › bedroom", 30, {"down": 40, "polyester": 0, "latex": 25, "wool": 22},
        (
            measured("height", "thickness", "cm", "7 8 9 10 11 12 14 16", 1, grows=False),
            measured("width", "width", "cm", "40 45 50 60 70 80", 4),
            measured("weight", "weight", "g", "400 500 650 800 950 1100 1300"),
        ),
        ("machine washable", "hypoallergenic", "organic", "washable cover", "storage bag"),
        (*DAILY, "comfortable for hours", "smells at first"),
        (
            need("suits somebody who sleeps on the stomach | is flat for belly sleepers | does not bend a stomach sleeper's neck | stays low for somebody lying face down", most("height", 9.0)),
            need("fills the gap for side sleepers | is high enough for broad shoulders | props up a side sleeper | suits lying on the shoulder", least("height", 12.0)),
        ),
        "The seam is piped.", coloured=False,
    ),
    Goods(
        "duvet", "home › bedroom", 62, {"down": 70, "polyester": 0, "wool": 45, "cotton": 15},
        (
            measured("width", "width", "cm", "135 140 155 180 200 220 240", 11),
            measured("weight", "weight", "g", "700 900 1100 1400 1700 2000 2400 2900", 2, grows=False),
            measured("length", "length", "cm", "190 200 210 220 230 240"),
        ),
        ("machine washable", "tumble dry", "hypoallergenic", "organic", "storage bag"),
        (*DAILY, "warm", "smells at first"),
        (
            need("covers two without fighting | is wide enough for a couple | ends tugging at night between us | spans a double bed", least("width", 200.0)),
            need("does not make me sweat in July | is airy for summer nights | suits a tropical bedroom | weighs next to nothing in a heat wave", most("weight", 1100.0)),
        ),
        "Quilted in squares.", coloured=False,
    ),
    Goods(
        "towel", "home › bath", 16, {"cotton": 0, "bamboo": 4, "linen": 9, "polyester": -3},
        (
            measured("length", "length", "cm", "50 70 90 100 120 140 160 180", 2),
            measured("pieces", "count", "pieces", "1 2 3 4 6 8", 7, grows=False),
            measured("weight", "weight", "g", "120 160 210 280 350 450 560 700"),
        ),
        ("tumble dry", "organic", "foldable", "carry strap", "gift box"),
        (*DAILY, "sheds", "colour fades"),
        (
            need("wraps a tall person | covers me from the armpits down | is big enough to lie on at the lake | goes all round a basketball player", least("length", 140.0)),
            need("barely adds to a gym bag | is for hand luggage | travels without weight | a backpacker would pick", most("weight", 210.0)),
        ),
        "Hems are stitched twice.",
    ),
    Goods(
        "chair", "office › furniture", 120, {"mesh": 20, "polyester": 0, "leather": 90},
        (
            measured("seat height", "height", "cm", "46 48 50 52 54 56 58", 4),
            measured("maximum load", "load", "kg", "90 100 110 120 130 150 180", 12),
            measured("weight", "weight", "kg", "9 11 13 15 17 19 22"),
        ),
        ("armrests", "headrest", "lumbar support", "wheels", "foldable"),
        (*DAILY, "comfortable for hours", "easy to put up", "bad instructions", "rattles"),
        (
            need("bears somebody of 140 kg | is made for a big man, 300 pounds | will not crack under a heavyweight | carries my 142 kg safely", least("maximum load", 150.0)),
            need("helps with my slipped disc and stiff neck | supports me from loins to skull | keeps back and head upright all day | my physiotherapist wants: spine and nape held", has("lumbar support", "headrest")),
        ),
        "A gas spring sets the height.",
    ),
    Goods(
        "vacuum", "home › cleaning", 110, {"plastic": 0, "aluminium": 25},
        (
            measured("power", "power", "W", "120 200 350 450 600 700 850 900", 7),
            measured("noise", "noise", "dB", "58 62 65 68 71 74 77 80", grows=False),
            measured("weight", "weight", "kg", "1.4 1.9 2.4 3 3.8 4.6 5.4 6.5"),
            measured("bin", "volume", "L", "0.3 0.5 0.7 1 1.5 2 2.5 3.5", 3, said="bin size"),
        ),
        ("bagless", "pet brush", "cordless", "hypoallergenic", "app control"),
        (*DAILY, "quiet in use", "battery weak", "easy to clean"),
        (
            need("an elderly lady can carry upstairs | is no burden on the stairs | my aunt can lift to the attic | one hand brings up three floors", most("weight", 2.4)),
            need("is up to a flat with two cats and no free socket | deals with fur far from any outlet | handles dog hair in the car, without power there | gathers fur in the caravan off the grid", has("pet brush", "cordless")),
        ),
        "The head turns to both sides.",
    ),
    Goods(
        "toothbrush", "home › bath", 32, {"plastic": 0, "aluminium": 20},
        (
            measured("runtime", "runtime", "h", "1 1.5 2 2.5 3 4 5 6", 4),
            measured("modes", "count", "modes", "1 2 3 4 5 6", 5, grows=False),
            measured("weight", "weight", "g", "90 100 110 120 135 150"),
        ),
        ("pressure sensor", "travel case", "app control", "splash proof"),
        (*DAILY, "quiet in use", "battery two days", "children love it"),
        (
            need("is for bleeding gums and for hotel stays | protects the gums and goes on tour | minds my gums and packs safely | looks after tender gums on the road", has("pressure sensor", "travel case")),
            need("goes on a two-week trip without its charger | lasts me a fortnight in the wild | needs no power on a long journey, so four hours of brushing | survives a month at sea at four hours", least("runtime", 4.0)),
        ),
        "Two heads are included.",
    ),
)  # fmt: skip
