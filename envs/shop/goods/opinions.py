"""What only reviews tell: what people praise and complain of, and how it is asked for (clauses after "one that")."""

from __future__ import annotations

from collections.abc import Mapping

from turnwise.envs.shop.goods.core import Opinion
from turnwise.envs.wordings import ways


def _praise(said: str, wants: str) -> Opinion:
    return Opinion(True, tuple(said.split(" | ")), ways(wants))


def _complaint(said: str, wants: str) -> Opinion:
    return Opinion(False, tuple(said.split(" | ")), ways(wants))


OPINIONS: Mapping[str, Opinion] = {
    "true to size": _praise("Fits exactly as the chart says. | I took my usual size and it sits perfectly. | The size is spot on.", "fits buyers as they expected | people did not have to send back for another size | turned out the right fit for others | matched its size chart for those who own it"),
    "runs small": _complaint("Runs small, go one up. | Much tighter than my other things in this size. | I had to exchange it for the next size.", "nobody found too tight for its label | is not tighter than its label says, if I may believe buyers | did not have to be exchanged for a bigger one | owners do not call tight"),
    "battery two days": _praise("The battery lasts me two full days. | I charge it every other day and use it a lot. | Two days between charges, easily.", "people say runs from Monday to Tuesday night on one charge | somebody used for two days without charging | owners need not charge every night | buyers report skips a night on the charger"),
    "battery weak": _complaint("The battery was flat by lunch. | After a month it barely holds a charge. | Dies long before they promise.", "nobody says dies early | has no reports of a poor battery | owners do not find flat by noon | buyers do not see fade within weeks"),
    "quiet in use": _praise("You hardly hear it. | My baby slept right through it. | Surprisingly quiet.", "owners barely hear | did not wake anybody's baby | people find pleasantly silent | a sleeping household puts up with, as buyers tell"),
    "rattles": _complaint("Something rattles inside. | It rattles more every week. | Makes a rattling sound when moved.", "does not rattle, as far as buyers tell | nobody hears loose parts in | has no stories of things rattling | buyers do not hear clatter"),
    "easy to clean": _praise("Cleaning takes me ten seconds. | Wipes clean in no time. | Nothing sticks to it.", "owners clean in a moment | people say is no work to keep clean | buyers wipe down and are done | cost nobody an evening of scrubbing"),
    "stains": _complaint("Stains at once and they stay. | Tomato left a mark that never came out. | Looks dirty after two weeks.", "has kept its looks with those who use it | shows no lasting marks, according to buyers | nobody calls a magnet for marks | still looks fresh to its owners"),
    "still good after a year": _praise("A year of daily use and still like new. | I bought it last spring and nothing is worn. | Has survived fourteen months with us.", "somebody has used for a year without trouble | has proved itself over many months | lasts, going by people who have had it long | aged well in other homes"),
    "broke early": _complaint("Broke after three weeks. | The first one fell apart within a month. | Did not last the summer.", "did not break on anybody early | nobody had to bin within weeks | has no story of an early death | outlived its first season with everybody"),
    "smells at first": _complaint("It smelled of glue for a week. | Strong chemical smell out of the box. | I had to air it on the balcony for days.", "nobody had to air out first | does not stink when unpacked | buyers found free of fumes | needed no days on the balcony"),
    "colour as shown": _praise("The colour is exactly as in the picture. | Looks just like the photo. | Lovely shade, as shown.", "looks like its picture, going by buyers | comes in the shade that is shown, as others confirm | did not disappoint anybody by its shade | matches its photo in real life"),
    "colour fades": _complaint("The colour faded after two washes. | Washed out within a month. | The sun bleached it.", "keeps its shade with those who have it | nobody saw go pale | has not bleached on anyone | stayed vivid for others"),
    "easy to put up": _praise("Up in five minutes, alone. | I put it together without the manual. | Assembly was child's play.", "one person set up quickly | people assembled without swearing | buyers had ready in minutes | needed no second pair of hands, so they say"),
    "bad instructions": _complaint("The instructions make no sense. | Step four is missing from the manual. | I gave up on the manual and watched a video.", "has a manual that people understood | nobody despaired over the instructions of | made sense to those who put it together | caused no head-scratching over its manual"),
    "comfortable for hours": _praise("I wear it for hours and forget it is there. | Eight hours and no sore spot. | So comfortable that I do not notice it.", "people use for a whole day without soreness | nobody's body complains of after hours | owners forget they are using | stayed pleasant through long days for others"),
    "presses": _complaint("Presses after an hour. | It dug into my skin. | Left red marks on me.", "does not pinch, as others tell | left no marks on anybody | nobody found sore to use | spares people bruises"),
    "children love it": _praise("My daughter will not let go of it. | Both kids fight over it. | Our son asks for it every day.", "other people's kids adored | went down well with children | little ones ask for again | was a hit in other nurseries"),
    "good present": _praise("Gave it to my mother and she was in tears of joy. | The perfect present. | My brother said it was his best gift.", "somebody gave with success | people like to give away | was well received as a gift | delighted those who were given it"),
    "smaller than expected": _complaint("Much smaller than I thought. | Looks big in the photo, it is tiny. | I expected more for its size.", "nobody was surprised to find tiny | is as big as people thought | did not shrink compared to its photo | met expectations on how big it is"),
    "sheds": _complaint("Leaves fluff everywhere. | I find fibres on everything. | Sheds like a cat in May.", "leaves no fluff behind with others | nobody finds fibres from | keeps its threads to itself, as buyers say | did not cover anybody's clothes in lint"),
    "warm": _praise("So warm, even at ten below. | Kept me warm all winter. | Best thing against the cold I own.", "kept others from freezing | people praise on icy mornings | buyers trust in deep winter | owners call toasty"),
    "strong grip": _praise("Holds like glue. | It has not slipped once. | Great grip, even when wet.", "never slips out of anyone's hand | others say holds firmly | people trust not to slide | stays where owners put it"),
    "sharp for months": _praise("Still sharp after half a year. | Has not needed sharpening since I got it. | The edge simply stays.", "owners have not had to sharpen | keeps its edge for months, by all accounts | went half a year without a whetstone | held its bite in other kitchens"),
    "great sound": _praise("The bass is astonishing. | Voices are crystal clear. | Sounds like something three times the price.", "music lovers were impressed by | people say makes voices clear | listeners compare with dearer ones | wowed other ears"),
    "keeps heat": _praise("Tea from the morning was still hot at five. | Ice was left after a whole day. | Keeps its temperature forever.", "kept other people's tea hot till evening | held ice all day for somebody | people trust for a long shift | passed the all-day test with buyers"),
}  # fmt: skip
