"""An endpoint's message as a `Reply`: content, native tool calls, reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lme_v2_env.actions import Reply, ToolCall
from rewards.errors import UserError


class NoReply(UserError):
    """An endpoint's message holds nothing that the protocol could take."""


def reply_of(message: Mapping[str, Any]) -> Reply:
    """The reply in a chat completion's message. Raises `NoReply`: then the rollout is unscored.

    Null content without tool calls, or reasoning alone, is the endpoint's failure to give a reply. An empty text by
    itself is a reply, a malformed one.
    """
    calls = tuple(_call(raw) for raw in message.get("tool_calls") or ())
    content, reasoning = message.get("content"), message.get("reasoning_content") or message.get("reasoning")
    if not calls and not content:
        if reasoning:
            raise NoReply("the reply is reasoning only: raise the token limit, or turn thinking off")
        if content is None:
            raise NoReply("the endpoint answered without content")
    return Reply(content, calls, reasoning or None)


def _call(raw: Mapping[str, Any]) -> ToolCall:
    function = raw.get("function") or raw
    arguments = function.get("arguments")
    return ToolCall(str(raw.get("id") or "call"), str(function.get("name") or ""), str(arguments or ""))
