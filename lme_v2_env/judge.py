"""The judge of wrong premises and gotchas, behind any OpenAI-compatible endpoint."""

from __future__ import annotations

from typing import Any

from lme_v2_env import chat
from lme_v2_env.trajectory import Question
from rewards import lme_v2, lme_v2_judge
from rewards.judge import EndpointError, Judge, Messages

PUBLISHED_TOKENS = 4096


class LmeJudge:
    """Asks with the published parameters: medium effort and 4,096 tokens for reasoning models, else temperature 0."""

    def __init__(self, endpoint: chat.Endpoint) -> None:
        self.endpoint = endpoint
        reasons = endpoint.model.startswith(("gpt-5", "o3", "o4"))
        self.sampling: dict[str, Any] = (
            {"reasoning_effort": "medium", "max_completion_tokens": PUBLISHED_TOKENS}
            if reasons
            else {"temperature": 0.0, "max_tokens": PUBLISHED_TOKENS}
        )

    @property
    def settings(self) -> dict[str, Any]:
        prompts = {name: lme_v2_judge.prompt_hash(name) for name in sorted(lme_v2_judge.JUDGED)}
        return {"model": self.endpoint.model, **self.sampling, "prompts": prompts}

    def graded(self, question: Question, response: str) -> dict[str, Any]:
        """The grade's fields of a row; a judge that fails or gives no verdict leaves it unscored."""
        asked = Judge(self._complete, self.endpoint.model)
        grade = lme_v2_judge.judge(question.eval_function, response, question.gold, asked, question=question.text)
        head = {"unknown": grade.unknown, "answer": grade.answer, "explanation": grade.explanation}
        if not grade.scored:
            return head | {"unscored_reason": grade.explanation}
        return head | {
            "scored": True,
            "correct": grade.correct,
            "strict_correct": grade.correct,
            "strict_explanation": grade.explanation,
            "judge": grade.model or None,
            "judge_prompt_hash": grade.prompt_hash,
            "grader_version": lme_v2.GRADER_VERSION,
        }

    def _complete(self, messages: Messages) -> str:
        try:
            return self.endpoint.complete(list(messages), **self.sampling).text
        except chat.EndpointError as error:
            raise EndpointError(str(error)) from error
