"""Games on a grid, told as text: Sokoban, mazes of keys and doors, frozen lakes.

Every level can be solved: Sokoban is made by playing backwards from the end, a maze's keys lie before their
doors, a lake's holes leave a way free; where the ice is slippery, a way that is safe whatever happens.
Sokoban's mistakes are irreversible, a lake's are fatal, a maze's cost turns.

    board    levels, states, and what a move does      levels   how levels are made
    plans    the shortest way, expected on slippery ice
    tasks    knobs, and how tasks are made             env      GridEnv
"""
