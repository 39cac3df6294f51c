"""Evaluate a model behind an OpenAI-compatible API; here a local server gives recorded answers in its place.

Run it: ``python examples/evaluate_api_model.py`` (the core alone will do). With a real one, name it and its address:
``turnwise eval shop/easy --policy openai:gpt-x@https://api.openai.com/v1``, the key in OPENAI_API_KEY.
"""

import re
import tempfile

import turnwise
from turnwise.envs.worlds.speaking.server import serve


def recorded(asked: dict[str, turnwise.Json]) -> str:
    """What a hasty model said: search, open the first product, buy it."""
    page = str(asked["messages"][-1]["content"])
    if "Buy Now" in page:
        return "click[buy now]"
    product = re.search(r"B0[A-Z0-9]{8}", page)
    if product:
        return f"click[{product[0].lower()}]"
    wanted = re.search(r"i need an? ([\w ]+?)(?: with| \[SEP\]|$)", page)
    return f"search[{wanted[1] if wanted else 'scarf'}]"


if __name__ == "__main__":
    with serve(recorded) as server, tempfile.TemporaryDirectory() as folder:
        policy = f"openai:some-model@{server.url}"
        log = f"{folder}/episodes.jsonl.zst"
        found = turnwise.evaluate("shop/easy", policy, episodes=20, k=2, log=log)
        print(f"success {found.success:.2f} {found.success_interval}, pass^2 {found.pass_hat_k:.2f}")
        print(f"{found.turns:.1f} turns on average; {dict(found.outcomes)}")
        print(len(server.requests), "requests were sent to", server.url)

        # What a server says depends on the server: so the log has every message, and episodes are played again from it.
        print(turnwise.replay(log))
