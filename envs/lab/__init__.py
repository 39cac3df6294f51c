"""An elementary-science laboratory in text, in the spirit of ScienceWorld (Wang et al. 2022, arXiv 2203.07540).

Thirty-five kinds of lessons: boil, melt, freeze, thaw, condense, heat and chill to a degree, boil dry; measure a
temperature and a melting point; weigh, find a density, a speed, a current; acids, magnets, minerals, pendulums; mix
chemicals and paint; light a lamp, with the sun too; test what conducts; grow plants and fruit; tell the living from the
lifeless, orders of animals, what they eat, the stages of their lives; compare slopes; find the dominant trait. Facts carry
over, no text and no code. As there: one names what one works on with ``focus``, and a wrong or hasty focus fails; devices
work on what lies in them as time goes by; a score of 100 points is kept, and can be a part of the reward.

Different: laboratories are procedural; a task is a list of sub-goals that are reached one after the other (the
potential is the share of them that is behind); one planner knows how to reach each kind of sub-goal, so there is
a scripted solution from every state that has one.

    env          LabEnv                              tasks     knobs → a lesson made ready
    knobs        what a suite may set                lessons   the kinds of tasks
    plan         what a lesson is                  experiments  those with instruments
    state        laboratories and their states       clock     what time does to things
    matter       substances, mixtures                circuit   what is connected with what
    actions      commands: what they mean and do     goals     sub-goals: which hold, what focus
    render       what is told                        solver    gold, distance, an imperfect policy
    vocabulary   kinds of things, rooms, verbs       ways      the steps that plans are made of
"""
