"""Goods for exercise, the garden, dogs and play."""

from __future__ import annotations

from turnwise.envs.shop.goods.core import Goods
from turnwise.envs.shop.goods.shorthand import DAILY, has, least, measured, most, need

GARDEN = (
    Goods(
        "mat", "sports › fitness", 24, {"rubber": 8, "cork": 14, "foam": 0, "cotton": 5},
        (
            measured("thickness", "thickness", "mm", "2 3 4 5 6 8 10 12 15", 2),
            measured("length", "length", "cm", "170 173 178 183 185 190 200 215", 1, grows=False),
            measured("weight", "weight", "g", "700 900 1100 1400 1800 2200 2800"),
        ),
        ("non-slip", "carry strap", "foldable", "machine washable", "organic"),
        (*DAILY, "strong grip", "smells at first", "easy to clean"),
        (
            need("is kind to sore knees | cushions old joints | spares bony knees on the parquet | pads an arthritic hip", least("thickness", 8.0)),
            need("somebody of 1.95 m can lie on | is long enough for a very tall yogi | leaves no feet on the cold floor for a giant | suits my two-metre frame", least("length", 200.0)),
        ),
        "Rolls out flat at once.",
    ),
    Goods(
        "pump", "sports › wheels", 24, {"aluminium": 6, "plastic": 0, "steel": 4},
        (
            measured("pressure", "pressure", "bar", "4 5 6 7 8 9 10 11 12", 2, grows=False),
            measured("length", "length", "cm", "16 19 22 26 30 55 65 70"),
            measured("weight", "weight", "g", "90 120 150 190 240 700 1100 1500"),
        ),
        ("gauge", "bike mount", "foldable", "rechargeable"),
        (*DAILY, "rattles", "strong grip"),
        (
            need("brings racing tyres to nine bar | is up to thin road tyres at nine bar | gets narrow tyres rock hard, nine bar | handles track tyres at 9 bar", least("pressure", 9.0)),
            need("hides in a jersey pocket | is no longer than my hand | fits a saddle bag | goes in a shirt pocket", most("length", 22.0)),
        ),
        "Fits every common valve.", coloured=False,
    ),
    Goods(
        "drill", "garden › tools", 72, {"plastic": 0, "aluminium": 25},
        (
            measured("torque", "torque", "Nm", "18 25 32 40 50 60 75 90", 9),
            measured("weight", "weight", "kg", "0.9 1.1 1.3 1.5 1.7 2 2.4"),
            measured("gears", "count", "gears", "1 2 3 4", 6, grows=False),
        ),
        ("cordless", "hammer action", "bit set", "travel case", "rechargeable"),
        (*DAILY, "battery weak", "strong grip"),
        (
            need("puts shelves on a brick wall | anchors a cupboard in stone | hangs my TV on masonry and brings its bits | mounts a rail on concrete right out of the box", has("hammer action", "bit set")),
            need("I can hold overhead for long | does not tire my arm on ceilings | is light for work on a ladder | spares my shoulder when I do ceilings", most("weight", 1.3)),
        ),
        "The chuck opens without a key.", coloured=False,
    ),
    Goods(
        "hose", "garden › tools", 28, {"rubber": 12, "vinyl": 0, "latex": 8},
        (
            measured("length", "length", "m", "5 10 15 20 25 30 40 50", 5),
            measured("weight", "weight", "kg", "0.7 1.2 1.8 2.4 3.2 4.2 5.5 7"),
            measured("pressure", "pressure", "bar", "6 8 10 12 16 20 25 30", 2, grows=False),
        ),
        ("spray nozzle", "kink resistant", "self-stretching", "frost proof"),
        (*DAILY, "smells at first", "strong grip"),
        (
            need("gets from the tap to a bed thirty metres away | crosses my whole yard, 30 m | waters what grows 30 m off | stretches the length of two buses and a car, 30 m", least("length", 30.0)),
            need("my grandfather can drag around | is no weight to pull | a child could carry to the lettuce | does not wear out a pensioner", most("weight", 1.8)),
        ),
        "Couplings are brass.", coloured=False,
    ),
    Goods(
        "planter", "garden › decor", 26, {"terracotta": 0, "plastic": -6, "ceramic": 10, "wood": 8, "steel": 14},
        (
            measured("width", "width", "cm", "12 16 20 25 30 38 45 60 80", 5),
            measured("height", "height", "cm", "10 14 18 22 28 34 42 55"),
            measured("weight", "weight", "kg", "0.3 0.6 1 1.6 2.5 4 6 9"),
        ),
        ("frost proof", "water reservoir", "drainage hole", "gift box"),
        (*DAILY, "stains", "colour fades"),
        (
            need("holds a small tree | gives a lemon tree's roots room | is big enough for an olive | could house a young fig", least("width", 45.0)),
            need("stands on a narrow window sill | fits a sill of 16 cm | is for herbs by the kitchen pane | occupies next to nothing on the ledge", most("width", 16.0)),
        ),
        "The rim is rounded.",
    ),
    Goods(
        "leash", "pets › dogs", 16, {"nylon": 0, "leather": 14, "cotton": 3},
        (
            measured("length", "length", "m", "1 1.2 1.5 1.8 2 3 5 8 10", 2),
            measured("maximum load", "load", "kg", "8 12 15 20 30 40 50 60", 2, grows=False),
            measured("weight", "weight", "g", "70 90 120 150 190 240 300"),
        ),
        ("reflective", "retractable", "padded handle", "coated"),
        (*DAILY, "strong grip", "smells at first"),
        (
            need("holds a Great Dane | restrains a dog of 45 kg | is up to my mastiff | a St Bernard cannot snap", least("maximum load", 50.0)),
            need("keeps him close on busy pavements | is a short one for town | holds her at my knee in traffic | allows no more than a step or two", most("length", 1.5)),
        ),
        "The clasp turns freely.",
    ),
    Goods(
        "kennel", "pets › dogs", 64, {"wood": 15, "plastic": 0, "steel": 25, "polyester": -10},
        (
            measured("length", "length", "cm", "45 55 65 75 85 95 110 125", 12),
            measured("height", "height", "cm", "38 45 52 60 68 76 85 95"),
            measured("weight", "weight", "kg", "2 4 6 9 12 16 21 28"),
        ),
        ("foldable", "washable cover", "waterproof", "two doors", "frost proof"),
        (*DAILY, "easy to put up", "bad instructions", "smells at first"),
        (
            need("a Labrador can stretch out in | gives a big dog room, over a metre | houses my shepherd lying down | is long enough for a lanky greyhound", least("length", 110.0)),
            need("I can lift into the car alone | is portable for one person | I can take to shows by myself | a small woman carries with ease", most("weight", 6.0)),
        ),
        "Air comes in from three sides.", coloured=False,
    ),
    Goods(
        "puzzle", "toys › games", 14, {"cardboard": 0, "wood": 14, "cork": 6},
        (
            measured("pieces", "count", "pieces", "24 48 100 200 300 500 750 1000 1500 2000", 1.5),
            measured("minimum age", "age", "years", "3 4 5 6 8 10 12 14"),
            measured("width", "width", "cm", "26 30 36 42 48 55 64 70 98"),
        ),
        ("poster", "storage box", "wordless instructions", "gift box"),
        (*DAILY, "children love it", "bad instructions"),
        (
            need("a four-year-old may have | suits my niece, who just turned four | is allowed for a kindergarten child of four | a preschooler aged 4 can manage", most("minimum age", 4.0)),
            need("keeps a couple busy over the holidays, a thousand parts at least | is a project for a rainy week, 1,000 parts or more | occupies us till New Year with four figures of parts | challenges two adults with over 999 parts", least("pieces", 1000.0)),
        ),
        "Cut so that no two parts are the same.", coloured=False,
    ),
)  # fmt: skip
