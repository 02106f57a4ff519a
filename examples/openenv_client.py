"""Play episodes of a running OpenEnv server with a model behind an OpenAI-compatible endpoint.

    python -m supersede_env.openenv --port 8000 --data validation --preset quick &
    python examples/openenv_client.py http://127.0.0.1:8000 --base-url http://127.0.0.1:8901/v1 --model m --episodes 3

Works for supersede-env and lme-v2-env: an observation holds the messages to send, the action is what the model said.
"""

import argparse
import json
import os
import sys
from typing import Any

import httpx

try:
    from openenv.core import GenericEnvClient
except ModuleNotFoundError:
    sys.exit("openenv_client: this needs OpenEnv: pip install 'openenv-core>=0.2.1'")


def session(url: str) -> Any:
    """A blocking client; from 0.3 on OpenEnv's own is asynchronous and has a blocking twin."""
    client: Any = GenericEnvClient(base_url=url)
    return client.sync() if hasattr(client, "sync") else client


def ask(http: httpx.Client, model: str, observation: dict[str, Any]) -> dict[str, Any]:
    """The model's message as an action."""
    body = {"model": model, "messages": observation["messages"]}
    body |= {"tools": observation["tools"]} if observation.get("tools") else {}
    response = http.post("chat/completions", json=body).raise_for_status()
    message = response.json()["choices"][0]["message"]
    action = {"reply": message["content"]}
    if "tools" in observation:  # lme-v2-env keeps the whole message in its conversation
        action |= {"tool_calls": message.get("tool_calls") or [], "reasoning": message.get("reasoning_content")}
    return action


def play(env: Any, http: httpx.Client, model: str, seed: int) -> dict[str, Any]:
    result = env.reset(seed=seed)
    while not result.done:
        result = env.step(ask(http, model, result.observation))
    return {"seed": seed, "reward": result.reward, "metrics": result.observation["metrics"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="where the OpenEnv server is, such as http://127.0.0.1:8000")
    parser.add_argument("--base-url", required=True, help="the model's OpenAI-compatible endpoint")
    parser.add_argument("--model", required=True)
    parser.add_argument("--episodes", type=int, default=3)
    args = parser.parse_args()
    key = os.environ.get("OPENAI_API_KEY", "none")
    headers = {"Authorization": f"Bearer {key}"}
    with session(args.server) as env, httpx.Client(base_url=args.base_url, headers=headers, timeout=600) as http:
        for seed in range(args.episodes):
            print(json.dumps(play(env, http, args.model, seed)), flush=True)


if __name__ == "__main__":
    main()
