"""Clothes, luggage and electronics."""

from __future__ import annotations

from turnwise.envs.shop.goods.core import Goods
from turnwise.envs.shop.goods.shorthand import DAILY, has, least, measured, most, need

WORN = (
    Goods(
        "jacket", "clothing › outerwear", 70, {"polyester": 0, "cotton": 8, "wool": 40, "leather": 120, "nylon": 10},
        (
            measured("weight", "weight", "g", "220 300 380 470 560 680 820 1000 1300"),
            measured("pockets", "count", "pockets", "2 3 4 5 6 8", 4, grows=False),
            measured("back length", "length", "cm", "58 62 66 70 74 80 90 100", 3),
        ),
        ("waterproof", "windproof", "hood", "inside pocket", "reflective", "machine washable"),
        (*DAILY, "true to size", "runs small", "warm", "colour fades"),
        (
            need("keeps me dry on a ridge in wind and rain | stands up to a storm at sea | defies squalls and showers alike | lets neither gust nor drop through", has("waterproof", "windproof")),
            need("covers my thighs on the bike | reaches well below the hips | is long, more a coat | warms half my legs", least("back length", 90.0)),
            need("stuffs into a running vest | adds hardly any weight to a climber | goes along just in case, weighing nothing | an alpinist would call featherweight", most("weight", 380.0)),
        ),
        "The cuffs can be tightened.", ("s", "m", "l", "xl", "xxl"),
    ),
    Goods(
        "scarf", "clothing › accessories", 20, {"wool": 10, "silk": 18, "cotton": 0, "acrylic": -4},
        (
            measured("length", "length", "cm", "120 140 160 170 180 190 200 220", 2),
            measured("width", "width", "cm", "18 25 30 35 45 60 70", 1, grows=False),
            measured("weight", "weight", "g", "50 80 110 140 180 230 290"),
        ),
        ("machine washable", "organic", "gift box", "hypoallergenic"),
        (*DAILY, "warm", "sheds", "colour fades"),
        (
            need("goes round the neck three times | loops several times and still hangs down | is endless enough to wind and wind | reaches my knees when it is wound once", least("length", 190.0)),
            need("doubles as a shawl over a dress | covers the shoulders at the opera | opens out over my back like a stole | turns into a wrap for the evening", least("width", 60.0)),
        ),
        "Finished with a hand-rolled edge.",
    ),
    Goods(
        "shirt", "clothing › tops", 28, {"cotton": 0, "linen": 12, "silk": 45, "polyester": -5},
        (
            measured("fabric weight", "weight", "g", "110 120 130 145 160 180 200 240", grows=False),
            measured("back length", "length", "cm", "66 70 72 74 76 78 82 86", 2),
        ),
        ("machine washable", "tumble dry", "organic", "inside pocket", "reflective"),
        (*DAILY, "true to size", "runs small", "colour fades"),
        (
            need("stays tucked in on a tall man | is long enough for somebody of two metres | does not slip out of the trousers of a giant | reaches far enough on my lanky son", least("back length", 78.0)),
            need("I can wear in the tropics | is thin enough for forty degrees | breathes in a Delhi summer | feels like nothing on a scorching day", most("fabric weight", 130.0)),
        ),
        "Buttons are sewn on crosswise.", ("s", "m", "l", "xl", "xxl"),
    ),
    Goods(
        "wallet", "clothing › accessories", 26, {"leather": 18, "canvas": 0, "nylon": -5, "cork": 4},
        (
            measured("cards", "count", "card slots", "4 6 8 10 12 16 20", 2),
            measured("thickness", "thickness", "mm", "6 8 10 13 16 20 25"),
            measured("weight", "weight", "g", "30 45 60 75 95 120 150"),
        ),
        ("RFID protection", "coin pocket", "gift box", "waterproof", "carry strap"),
        (*DAILY, "smells at first", "stains"),
        (
            need("takes all my fifteen cards | has room for a stack of memberships | sorts sixteen pieces of plastic | houses a collector of loyalty programmes", least("cards", 16.0)),
            need("does not show in suit trousers | is flat in a front pocket | leaves no bulge in slim jeans | vanishes in tight pants", most("thickness", 10.0)),
        ),
        "Edges are painted and polished.",
    ),
    Goods(
        "umbrella", "clothing › accessories", 22, {"polyester": 0, "nylon": 5, "cotton": 14},
        (
            measured("diameter", "width", "cm", "85 90 95 100 105 112 120 130", 2),
            measured("folded length", "length", "cm", "17 20 23 26 29 35 60 88"),
            measured("weight", "weight", "g", "160 200 250 300 350 420 520 680"),
        ),
        ("automatic opening", "windproof", "reflective", "gift box", "carry strap"),
        (*DAILY, "strong grip", "rattles"),
        (
            need("shelters two of us | keeps a couple dry | is broad enough to share with my date | roofs over a pair arm in arm", least("diameter", 112.0)),
            need("lives in a handbag | vanishes in a coat pocket | is short enough for my clutch when closed | hides in a glove compartment", most("folded length", 23.0)),
        ),
        "Ribs are made to flex.",
    ),
    Goods(
        "suitcase", "outdoor › bags", 85, {"polycarbonate": 15, "aluminium": 130, "polyester": 0, "leather": 150},
        (
            measured("capacity", "volume", "L", "28 32 36 40 52 62 75 90 105", 9),
            measured("weight", "weight", "kg", "1.9 2.2 2.5 2.9 3.3 3.8 4.4 5.2"),
            measured("height", "height", "cm", "48 52 55 58 65 68 75 80"),
        ),
        ("wheels", "combination lock", "expandable", "laptop sleeve", "waterproof"),
        (*DAILY, "smells at first", "rattles"),
        (
            need("goes in the cabin, where 55 cm of height are allowed | may come on board with me, 55 cm at most | airlines let me take to my seat, up to 55 cm | spares me the baggage belt at 55 cm", most("height", 55.0)),
            need("holds a fortnight's clothes | is for two weeks with evening dresses | packs for half a month | moves me abroad for sixteen days", least("capacity", 75.0)),
        ),
        "The handle locks at two heights.",
    ),
    Goods(
        "headset", "electronics › audio", 60, {"plastic": 0, "aluminium": 25},
        (
            measured("runtime", "runtime", "h", "8 12 16 20 25 30 40 50 60", 5),
            measured("weight", "weight", "g", "150 180 210 240 270 300 340", grows=False),
            measured("cable", "length", "m", "0.8 1 1.2 1.5 2 2.5 3", said="cable length"),
        ),
        ("bluetooth", "noise cancelling", "detachable microphone", "foldable", "travel case", "splash proof"),
        (*DAILY, "great sound", "comfortable for hours", "presses", "battery two days"),
        (
            need("gets me from Sydney to Paris on one charge, a day and a half of music | plays for a working week without a socket, thirty hours | lasts thirty hours on the road | survives a 30-hour train ride", least("runtime", 30.0)),
            need("I can forget is on my head | hardly weighs on the skull | is light for a migraine sufferer | spares a sensitive head | does not squash my hairdo by its weight", most("weight", 210.0)),
            need("tames a noisy plane and packs safely | is for frequent flyers who hate engines | silences the cabin and travels protected | rides in my hand luggage and mutes the turbines", has("noise cancelling", "travel case")),
        ),
        "Ear pads can be replaced.",
    ),
    Goods(
        "speaker", "electronics › audio", 52, {"plastic": 0, "wood": 25, "aluminium": 20},
        (
            measured("power", "power", "W", "5 8 10 15 20 30 40 60 80", 8),
            measured("runtime", "runtime", "h", "5 7 9 12 15 18 24 30", 3, grows=False),
            measured("weight", "weight", "g", "250 400 550 750 1000 1400 1900 2800"),
        ),
        ("bluetooth", "splash proof", "floats", "app control", "carry strap", "rechargeable"),
        (*DAILY, "great sound", "battery weak", "rattles"),
        (
            need("fills a garden party | is powerful enough for dancing outdoors | gets forty guests moving | entertains the whole backyard", least("power", 40.0)),
            need("plays through a whole day at the beach | keeps the music on from breakfast to midnight | lasts from sunrise to long past sunset, 18 hours | outlives a wedding", least("runtime", 18.0)),
        ),
        "Tuned by ear and by measurement.",
    ),
    Goods(
        "keyboard", "electronics › computing", 45, {"plastic": 0, "aluminium": 40, "wood": 35},
        (
            measured("keys", "count", "keys", "61 68 75 84 87 98 104 108", 4),
            measured("weight", "weight", "g", "380 480 600 750 900 1050 1300"),
            measured("noise", "noise", "dB", "34 38 42 46 50 54 58", grows=False),
        ),
        ("backlight", "number pad", "bluetooth", "hot-swap switches", "splash proof", "rechargeable"),
        (*DAILY, "quiet in use", "easy to clean", "comfortable for hours"),
        (
            need("does not annoy an open-plan office | lets me type during calls | a library would allow | spares my colleagues the clatter", most("noise", 42.0)),
            need("leaves my desk to the mouse | is as small as it gets without losing letters | is tiny, below seventy keys | saves a hand's width of table", most("keys", 68.0)),
        ),
        "Feet set three angles.",
    ),
)  # fmt: skip
