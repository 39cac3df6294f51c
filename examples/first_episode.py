"""A first episode: a task, an environment, a policy that plays it, and what is recorded of it.

Run it: ``python examples/first_episode.py``
"""

import turnwise

# A suite is a name for generated tasks in splits that share none; a task is data.
suite = turnwise.get_suite("shop/easy")
task = turnwise.suite_task(suite, turnwise.Split.TRAIN, 0)
print("The task:", task.prompt)

# An environment is a gymnasium.Env whose observations and actions are chat messages.
env = turnwise.make(suite.env)
observation, info = env.reset(seed=0, options={"task": task})
step = env.step("search[scarf]")
print("What the shop answers:", str(step.observation)[:80], "…")
print("What it pays:", step.info.get("rewards"))

# States are immutable, so that trying something out costs a microsecond and changes nothing.
other = env.fork()
other.step("click[back to search]")
env.close()

# A policy plays whole episodes; scripted:gold is the environment's own solution.
(episode,) = turnwise.rollout([task], "scripted:gold")
for number, turn in enumerate(episode.trajectory.turns, 1):
    print(f"{number}. {turn.action.content}  →  {turn.reward:+.2f}")
print("It ended with", episode.end, "and the score", episode.score)
