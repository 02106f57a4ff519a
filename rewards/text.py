"""Text normalisation shared by graders and protocols."""

import re

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


def strip_thinking(reply: str) -> str:
    """Remove reasoning: closed and unclosed `<think>` blocks, and all before a `</think>` whose opening the chat
    template had already written into the prompt."""
    return _THINKING.sub("", reply).rsplit("</think>", 1)[-1]
