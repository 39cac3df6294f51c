"""Making things from recipes, in the spirit of TextCraft (Prasad et al. 2023, ADaPT, arXiv 2311.05772).

A goal stands at the root of a recipe tree of chosen depth; raw materials are fetched, things are made of
others, one per turn. Recipes are drawn per task, so none can be learned by heart. Where material is scarce,
making the wrong thing is irreversible; where recipes must be asked for, nothing tells the tree at first.
In a day of orders recipes are told one after the other, once each, and later orders build on earlier ones.

    env          CraftEnv                                        tasks     recipe trees by knobs
    knobs        what a suite may set                            state     recipes, states
    actions      commands: how they are read, what they do       render    what is told
    solver       the shortest plan, an imperfect policy          orders    a day of them
    vocabulary
"""
