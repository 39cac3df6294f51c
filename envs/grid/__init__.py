"""Games on a grid, told as text: Sokoban, mazes of keys and doors, frozen lakes.

Every level can be solved: Sokoban is made by playing backwards from the end, a maze's keys lie before their
doors, a lake's holes leave a way free; where the ice is slippery, a way that is safe whatever happens.
Sokoban's mistakes are irreversible, a lake's are fatal, a maze's cost turns.

    env        GridEnv                          tasks     knobs → levels that can be solved
    knobs      what a suite may set             levels    how levels are made
    state      levels, states                   actions   moves: how they are read, what they do
    render     what is told                     pixels    a level as a picture
    solver     the shortest way, expected on slippery ice; an imperfect policy
    vocabulary
"""
