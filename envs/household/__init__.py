"""A household in text, with the task types of ALFWorld (Shridhar et al. 2021, arXiv 2010.03768).

Pick and place, examine in light, clean, heat, cool, pick two; and, in the spirit of VirtualHome (Puig et
al. 2018, arXiv 1806.07011), routines of several such goals through several rooms. Facts and rules carry
over, no text and no code. As there: one object in the hands at a time; what is closed hides what is in it;
one sees only what is where one stands; heating in a microwave, cooling in a fridge, cleaning in a sink.

Different: houses are procedural and as large as wished; lamps stand firmly; ``view: known`` tells where
everything is; what is put into a bin or burnt can be lost for good (``irreversible``); actions may fail
(``slip``).

    env          HouseholdEnv                            tasks     knobs → houses with goals
    knobs        what a suite may set                    state     houses and their states
    actions      commands: what they mean and do         render    what is told
    solver       gold, distance, an imperfect policy     vocabulary  rooms, receptacles, objects, verbs
    orders       days of orders that refer to earlier ones
"""
