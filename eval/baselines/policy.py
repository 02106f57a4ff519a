"""Policies as memory systems: a trained model, any endpoint's model, or the scripted search, each playing the protocol.

Inserting is the retrieval memory's; a query plays one `RetrievalRollout` and returns its submission, so that what is
measured here is what was trained. Latency is the whole rollout's. A policy that gives no reply leaves the question
unscored; its prompt is the protocol's whitelist, so it sees the question and the memory alone.
"""

from __future__ import annotations

import argparse
import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from eval.baselines import Kit
from lme_v2_env.actions import Reply
from lme_v2_env.chat import Endpoint
from lme_v2_env.explore import Explorer
from lme_v2_env.memory.api import ContextItem, Gathered, RetrievalConfig, RetrievalMemory
from lme_v2_env.memory.library import library_settings
from lme_v2_env.messages import reply_of
from lme_v2_env.policies import SCRIPTED
from lme_v2_env.protocol import ProtocolConfig, RetrievalRollout
from lme_v2_env.scoring import Outcome, submission
from lme_v2_env.trajectory import Question, QuestionView
from rewards.errors import UserError
from rewards.options import build as build_options

if TYPE_CHECKING:
    from train.policy import LocalPolicy

SEARCH = "search"
"""The system of the scripted search policy; `policy` is a model."""


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Which model acts, and how.

    Attributes:
        model: of `base_url`, or a local model (`smollm2-135m`, a folder, a hub name).
        base_url: an OpenAI-compatible endpoint; None: the model runs here, in train.policy's engine.
        api_key_var: environment variable with the endpoint's key.
        adapter: a LoRA adapter's folder, for a local model.
        temperature: 0 is greedy.
        max_tokens: longest reply.
        protocol: actions, wording, limits.
    """

    model: str = "smollm2-135m"
    base_url: str | None = None
    api_key_var: str = "OPENAI_API_KEY"
    adapter: str | None = None
    temperature: float = 0.0
    max_tokens: int = 256
    protocol: ProtocolConfig = ProtocolConfig()  # noqa: RUF009  (frozen)

    def __post_init__(self) -> None:
        if self.base_url and self.adapter:
            raise UserError("--adapter is for a local model: leave out --policy-base-url")

    @property
    def endpoint(self) -> Endpoint | None:
        return Endpoint(self.base_url, self.model, self.api_key_var) if self.base_url else None


Actor = Callable[[RetrievalRollout], Reply]
"""Replies to a rollout's prompt."""


class PolicyMemory(RetrievalMemory):
    """A retrieval memory that a policy searches for every query."""

    def __init__(self, kit: Kit, config: RetrievalConfig, protocol: ProtocolConfig, actor: Actor) -> None:
        super().__init__(kit.library(), config, kit.picture())
        self.protocol, self.actor = protocol, actor
        self._explorer: Explorer | None = None

    def subset(self, ids: Iterable[str]) -> Self:
        part = super().subset(ids)
        part._explorer = Explorer(part)
        len(part._explorer.summary)  # made now: the first query would pay for it
        return part

    def query(self, question: str, image: bytes | None = None) -> list[ContextItem]:
        if self._explorer is None:
            self._explorer = Explorer(self)
        rollout = RetrievalRollout(QuestionView(question, image), self._explorer, self.protocol)
        while not rollout.done:
            rollout.step(self.actor(rollout))
        outcome = Outcome.of(rollout)
        items = submission(self._explorer, outcome, markdown=not self.protocol.spans_only)
        return Gathered(items, {"rollout": outcome.to_record()})


class PolicySystem:
    queries = inserts = True

    def __init__(self, name: str, kit: Kit) -> None:
        self.name, self.kit = name, kit
        self.options = kit.policy or PolicyOptions()
        # the whole memory, however little of it the retrieval baselines show
        self.config = RetrievalConfig(mode=kit.retrieval.mode, slices=1, notes=1, events=1)
        self._actor: Actor | None = None

    @property
    def settings(self) -> dict[str, Any]:
        common = {"mode": self.config.mode, "library": library_settings(self.kit.library())}
        played = common | {"protocol": asdict(self.options.protocol), "prompt_hash": self.options.protocol.hash}
        if self.name == SEARCH:
            return played | {"policy": "scripted search"}
        chosen = asdict(self.options)
        names = ("model", "temperature", "max_tokens")
        return played | {name: chosen[name] for name in names} | {"adapter": adapter_hash(self.options.adapter)}

    def covers(self, question: Question) -> bool:
        return True

    def memory(self) -> PolicyMemory:
        if self._actor is None:
            self._actor = self._make_actor()
        return PolicyMemory(self.kit, self.config, self.options.protocol, self._actor)

    def _make_actor(self) -> Actor:
        if self.name == SEARCH:
            return lambda rollout: Reply(SCRIPTED["search"](rollout.prompt()))
        endpoint = self.options.endpoint
        if endpoint is None:
            return local_actor(load_policy(self.options), self.options)
        return endpoint_actor(endpoint, self.options)


def endpoint_actor(endpoint: Endpoint, options: PolicyOptions) -> Actor:
    """A model behind an endpoint, by text or native tool calls."""

    def act(rollout: RetrievalRollout) -> Reply:
        tools = {"tools": rollout.tools} if rollout.tools else {}
        sampling = {"temperature": options.temperature, "max_tokens": options.max_tokens}
        return reply_of(endpoint.exchange(rollout.prompt(), **sampling, **tools).message)

    return act


class _Generates(Protocol):
    def fits(self, messages: Any, max_new_tokens: int) -> bool: ...

    def generate(self, prompts: Any, max_new_tokens: Any, *, temperature: float, seed: int) -> Any: ...


def local_actor(policy: _Generates, options: PolicyOptions) -> Actor:
    """The local engine, one prompt at a time: questions asked at once take turns."""
    lock = threading.Lock()

    def act(rollout: RetrievalRollout) -> Reply:
        prompt = rollout.prompt()
        with lock:
            if not policy.fits(prompt, options.max_tokens):
                raise UserError("over window")
            key = hashlib.sha256(prompt[-1]["content"].encode()).digest()[:4]
            seed = int.from_bytes(key, "big")
            (completion,) = policy.generate([prompt], [options.max_tokens], temperature=options.temperature, seed=seed)
        return Reply(completion.text)

    return act


def load_policy(options: PolicyOptions) -> LocalPolicy:
    """Raises `UserError` when torch or the model is missing."""
    try:
        from train.policy import LocalPolicy
    except ModuleNotFoundError as error:
        raise UserError(
            f"a local policy needs {error.name}: pip install 'supersede-envs[local]'; for an endpoint give "
            "--policy-base-url"
        ) from error
    if options.protocol.actions == "tools":
        raise UserError("a local policy acts by text: leave out --policy-actions tools")
    return LocalPolicy.load(options.model, adapter=options.adapter)


def adapter_hash(adapter: str | None) -> str | None:
    """First 12 hex digits of the adapter's weights."""
    from eval.local_model import adapter_sha256

    return adapter_sha256(adapter)


def add_policy_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m eval lme-v2` that concern the systems search and policy."""
    add = parser.add_argument_group("policies (systems search and policy)").add_argument
    add("--policy-model", default="smollm2-135m", help="the model that acts: of --policy-base-url, or a local one")
    add("--policy-base-url", help="its OpenAI-compatible endpoint; without one the model runs here")
    add("--policy-api-key-var", default="OPENAI_API_KEY", help="environment variable that holds the endpoint's key")
    add("--adapter", help="a trained LoRA adapter's folder, for a local model")
    add("--policy-temperature", type=float, default=0.0, help="0 (default) is greedy")
    add("--policy-max-tokens", type=int, default=256, help="longest reply")
    add("--protocol", default="", help="how it acts: wording=plain,max_actions=6,chat_tokens=4000...")


def policy_from(options: argparse.Namespace) -> PolicyOptions:
    """Raises `UserError`."""
    pairs = [part.partition("=") for part in options.protocol.split(",") if part.strip()]
    protocol = build_options(ProtocolConfig, {name.strip(): value.strip() for name, _, value in pairs})
    return PolicyOptions(
        model=options.policy_model,
        base_url=options.policy_base_url,
        api_key_var=options.policy_api_key_var,
        adapter=options.adapter,
        temperature=options.policy_temperature,
        max_tokens=options.policy_max_tokens,
        protocol=protocol,
    )


def build(name: str, kit: Kit) -> PolicySystem:
    return PolicySystem(name, kit)
