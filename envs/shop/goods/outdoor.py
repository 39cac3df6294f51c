"""Goods for camping and for wheels."""

from __future__ import annotations

from turnwise.envs.shop.goods.core import Goods
from turnwise.envs.shop.goods.shorthand import DAILY, has, least, measured, most, need

OUTDOOR = (
    Goods(
        "backpack", "outdoor › bags", 32, {"nylon": 0, "polyester": -5, "canvas": 6, "leather": 60},
        (
            measured("capacity", "volume", "L", "16 18 20 22 25 28 30 35 40 45 50 60", 3),
            measured("weight", "weight", "g", "420 480 550 640 720 850 980 1100 1300 1500 1750"),
            measured("height", "height", "cm", "40 43 46 48 50 52 55 58 62 68"),
        ),
        ("waterproof", "reflective", "laptop sleeve", "hip belt", "rain cover", "bottle pocket", "foldable"),
        (*DAILY, "comfortable for hours", "presses", "smells at first"),
        (
            need("takes a week's clothes | swallows what I need for seven days away | holds enough for a long trek | carries me through ten days on the trail", least("capacity", 45.0)),
            need("is small enough for a school day | carries just lunch and a book | is a daypack and no more | suits short city walks", most("capacity", 22.0)),
            need("goes to the office by bicycle, with my computer, in any weather | brings a computer to work through the rain | commutes with a notebook in wet weather | keeps my work machine dry on the ride", has("laptop sleeve", "waterproof")),
        ),
        "The back panel is ventilated and the straps are curved.",
    ),
    Goods(
        "tent", "outdoor › camping", 95, {"nylon": 20, "polyester": 0, "cotton": 45},
        (
            measured("sleeps", "count", "persons", "1 2 3 4 5 6 8", 38),
            measured("weight", "weight", "g", "1200 1500 1900 2400 2900 3600 4800 6500 9000"),
            measured("inner height", "height", "cm", "95 105 115 125 140 160 180 195"),
        ),
        ("waterproof", "vestibule", "two doors", "mosquito net", "reflective", "windproof"),
        (*DAILY, "easy to put up", "bad instructions", "smells at first"),
        (
            need("sleeps two adults and three children | is big enough for the five of us | has beds for a couple with three kids | houses mum, dad and triplets", least("sleeps", 5.0)),
            need("a hiker can carry alone | goes on my back for days | I can take on a solo trek | suits somebody who walks with everything on the shoulders", most("weight", 2000.0)),
            need("I can stand up in | lets a tall man stand upright | does not make grown-ups crawl | is not for crouching, as I am 1.75 m", least("inner height", 175.0)),
        ),
        "Poles are colour-coded and slide in from the outside.",
    ),
    Goods(
        "headlamp", "outdoor › camping", 22, {"plastic": 0, "aluminium": 12},
        (
            measured("brightness", "light", "lm", "120 160 200 250 300 350 400 500 600 800", 3),
            measured("runtime", "runtime", "h", "3 4 5 6 8 10 12 15 20 30", 2, grows=False),
            measured("weight", "weight", "g", "38 45 52 60 72 85 95 110 130"),
        ),
        ("rechargeable", "red light", "motion sensor", "dimmable", "splash proof", "reflective"),
        (*DAILY, "battery weak", "comfortable for hours", "presses"),
        (
            need("lights a whole night's walk | is still on at dawn after a night march | burns from dusk till morning | outlasts a winter night", least("runtime", 10.0)),
            need("an ultralight runner forgets about | hardly adds anything on the forehead | is for runners who count grams | sits like a feather", most("weight", 60.0)),
            need("I can read star charts with, topped up from a cable | helps an amateur astronomer and needs no cells | charges by cable and spares night vision | suits nights at the telescope without spare cells", has("red light", "rechargeable")),
        ),
        "The beam tilts in five steps.",
    ),
    Goods(
        "hammock", "outdoor › camping", 30, {"nylon": 5, "cotton": 0, "polyester": -4},
        (
            measured("length", "length", "cm", "200 220 240 260 275 290 300 320", 3),
            measured("maximum load", "load", "kg", "100 120 150 180 200 230 250 300", 3),
            measured("weight", "weight", "g", "320 400 480 560 650 800 1100 1500"),
        ),
        ("mosquito net", "tree straps", "machine washable", "foldable", "gift box"),
        (*DAILY, "comfortable for hours", "colour fades", "easy to put up"),
        (
            need("holds two grown-ups at once | my husband and I can lie in together | bears a couple | is safe for both of us, 170 kg in all", least("maximum load", 180.0)),
            need("I can hang in a swampy forest | is for a mosquito-ridden jungle, trees and all | makes sense by a buggy lake with only trees around | suits the Amazon", has("mosquito net", "tree straps")),
        ),
        "The edges are double-stitched.",
    ),
    Goods(
        "cooler", "outdoor › camping", 38, {"plastic": 0, "steel": 60, "polyester": -8},
        (
            measured("capacity", "volume", "L", "6 9 12 16 20 25 30 35 45 55", 6),
            measured("weight", "weight", "kg", "0.8 1.1 1.5 2 2.6 3.2 4 5 6.5 8"),
            measured("keeps ice for", "keeping", "h", "6 8 12 16 24 36 48 72 96", 7, grows=False, said="ice-holding time"),
        ),
        ("bottle opener", "drain plug", "wheels", "leakproof", "carry strap"),
        (*DAILY, "keeps heat", "easy to clean", "smells at first"),
        (
            need("gets us through a long weekend without new ice | keeps a picnic cold for two days | holds the cold from Friday till Sunday | spares us the ice run for 48 hours", least("keeps ice for", 48.0)),
            need("one person can take on the bus | I can carry to the beach on one arm | is light enough for grandma | will not strain my wrist", most("weight", 2.0)),
        ),
        "The rim is sealed all round.",
    ),
    Goods(
        "scooter", "sports › wheels", 70, {"aluminium": 20, "steel": 0},
        (
            measured("maximum load", "load", "kg", "50 60 70 80 100 110 120 150", 9),
            measured("weight", "weight", "kg", "2.4 2.9 3.4 3.9 4.5 5 5.8 6.6"),
            measured("handlebar", "height", "cm", "62 70 78 85 92 98 104 108", said="handlebar height"),
        ),
        ("foldable", "rear light", "reflective", "carry strap", "bottle pocket"),
        (*DAILY, "rattles", "children love it", "bad instructions"),
        (
            need("a grown man of 95 kg can ride | carries a heavy adult | is not only for kids, I weigh 97 kg | bears a big fellow like me", least("maximum load", 100.0)),
            need("a small child can steer | suits my little one, who needs low bars | has bars a preschooler can reach | fits someone just over a metre tall", most("handlebar", 78.0)),
        ),
        "Wheels have sealed bearings.",
    ),
    Goods(
        "helmet", "sports › wheels", 36, {"plastic": 0, "carbon fibre": 70},
        (
            measured("weight", "weight", "g", "220 250 270 290 320 350 390 430"),
            measured("vents", "count", "vents", "6 8 10 12 14 16 18 22", 2, grows=False),
        ),
        ("visor", "rear light", "reflective", "washable cover", "mosquito net"),
        (*DAILY, "true to size", "runs small", "comfortable for hours", "presses"),
        (
            need("stays cool on hot climbs | lets plenty of air to my scalp | is airy enough for August | will not cook my head", least("vents", 14.0)),
            need("I can commute with in the dark | gets me home at night alive | keeps me seen after sunset | is for a rider who starts before sunrise", has("rear light", "reflective")),
        ),
        "A dial at the back sets the fit.", ("s", "m", "l", "xl"),
    ),
    Goods(
        "lock", "sports › wheels", 26, {"steel": 0, "titanium": 60},
        (
            measured("length", "length", "cm", "20 23 30 60 75 85 100 120 150", 2),
            measured("weight", "weight", "g", "450 600 800 950 1100 1300 1600 1900"),
            measured("thickness", "thickness", "mm", "6 8 10 12 14 16 18", 5, grows=False),
        ),
        ("bike mount", "alarm", "key spare", "number code", "splash proof"),
        (*DAILY, "rattles"),
        (
            need("goes round a lamp post | reaches around a thick tree | spans a fat railing | wraps about a broad pillar", least("length", 85.0)),
            need("bolt cutters fail on | takes a thief more than a minute to cut | resists a saw for long | a burglar gives up on", least("thickness", 14.0)),
        ),
        "The core resists drilling.", coloured=False,
    ),
)  # fmt: skip
