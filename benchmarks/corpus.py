"""Texts, chats and fill plans of the benchmark: the same for every system, on every machine.

Each text has about 400 bytes and ends with a unique token, so that a check can tell which texts a store has. Nine of ten
texts consist of Latin words, every tenth is Chinese. In both alphabets, one word occurs in every second text and one in
about every twenty thousandth.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Plan = Iterator[tuple[str, list[tuple[str, str]]]]

RARE, COMMON = "zyzzyva", "deploy"
# The rare Chinese word consists of two characters that are each common: 文件 and 方法 are in the vocabulary, 文法 is not.
RARE_ZH, COMMON_ZH = "文法", "部署"

SEARCH_WORDS: dict[str, str] = {"rare": RARE, "common": COMMON, "rare_zh": RARE_ZH, "common_zh": COMMON_ZH}

BASE_TEXT_COUNT = 4096  # number of different texts, not counting the token
TEXT_BYTES = 372

# No character both starts one of these words and ends another, so joining two words never forms a third.
_VOCABULARY_ZH = (
    "时间 问题 方法 结果 服务 系统 数据 文件 消息 会话 配置 测试 错误 用户 语言 模型"
    " 工具 计划 记录 网络 安全 缓存 队列 索引 线程 请求 响应 变量 权限 目标"
).split()


@cache
def _build_vocabulary() -> list[str]:
    rng = random.Random(7)
    consonants, vowels = "bcdfghjklmnprstvw", "aeiou"
    words: set[str] = set()
    while len(words) < 2000:
        words.add("".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(rng.randint(2, 4))))
    return sorted(words)


@cache
def _build_latin_texts() -> list[str]:
    vocabulary = _build_vocabulary()
    rng = random.Random(11)
    texts = []
    for _ in range(BASE_TEXT_COUNT):
        words: list[str] = []
        size = 0
        while size < TEXT_BYTES:
            word = rng.choice(vocabulary)
            words.append(word)
            size += len(word) + 1
        if rng.random() < 0.5:
            words[rng.randrange(len(words))] = COMMON
        texts.append(" ".join(words))
    return texts


@cache
def _build_chinese_texts() -> list[str]:
    rng = random.Random(13)
    texts = []
    for _ in range(BASE_TEXT_COUNT):
        words = [rng.choice(_VOCABULARY_ZH) for _ in range(TEXT_BYTES // 6)]
        if rng.random() < 0.5:
            words[rng.randrange(len(words))] = COMMON_ZH
        texts.append("，".join("".join(words[i : i + 8]) for i in range(0, len(words), 8)))
    return texts


def make_text(i: int, tag: str = "") -> str:
    """Return text number `i`. Its token is the tag and the number."""
    if i % 10 == 3:
        rare = RARE_ZH if i // 10 % 2003 == 1 else ""
        return f"{_build_chinese_texts()[i // 10 % BASE_TEXT_COUNT]}{rare}。 <{tag}{i}>"
    rare = f" {RARE}" if i % 20011 == 7 else ""
    return f"{_build_latin_texts()[i % BASE_TEXT_COUNT]}{rare} <{tag}{i}>"


def extract_tokens(messages: Iterable[Mapping[str, str | None]]) -> list[str]:
    contents = (message["content"] or "" for message in messages)
    return [content.rsplit("<", 1)[1].rstrip(">") for content in contents if "<" in content]


def count_texts_with(word: str, text_count: int, max_count: int) -> int:
    """Count the texts with this word among the first `text_count`, up to `max_count`."""
    return sum(1 for _ in islice((i for i in range(text_count) if word in make_text(i)), max_count))


def make_key(i: int) -> str:
    return f"chat{i:07d}"


def make_plan(sessions: int, messages: int) -> Plan:
    """Yield the chats to fill a store with: all of equal length, with alternating roles."""
    number = 0
    for chat_number in range(sessions):
        chat = []
        for index in range(messages):
            chat.append(("user" if index % 2 == 0 else "assistant", make_text(number)))
            number += 1
        yield make_key(chat_number), chat
