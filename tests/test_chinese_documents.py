"""The README and the tutorial in Traditional Chinese: what they show is what the English pages show.

Both are parsed as Markdown. Code, links, pictures, numbers in tables and marks of figures are compared section by
section. Of the sentences only the writing is tested: Taiwan's characters and words, full-width punctuation, a space
between Chinese and Latin letters. What the sentences say, no test reads.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

PAIRS = [
    (Path("README.md"), Path("docs/readme.zh-TW.md")),
    (Path("docs/tutorial.md"), Path("docs/tutorial.zh-TW.md")),
]
TRANSLATED = [chinese for _, chinese in PAIRS]
GLOSSARY = "\n## 詞彙表\n"  # only the Chinese page has one
LANGUAGES = re.compile(r"^\[(?:English|繁體中文)\]\(.*\n\n", re.MULTILINE)

SIMPLIFIED_IN_BIG5 = frozenset(
    "与万于几干云丑后儿体听据机气离种网胜荐适确麽裏"
)  # and variants that Taiwan does not write
ELSEWHERE = (  # words of other regions: what Taiwan writes
    *("軟件:軟體", "硬件:硬體", "默認:預設", "缺省:預設", "文件:檔案", "服務器:伺服器", "內存:記憶體", "顯存:記憶體"),
    *("程序:程式", "數據:資料", "信息:資訊", "網絡:網路", "用戶(?!端):使用者", "隊列:佇列", "線程:執行緒"),
    *("進程:行程", "緩存:快取", "帶寬:頻寬", "運行:執行", "(?<!演)算法:演算法、算式", "支持:支援", "字節:位元組"),
    *("字符:字元", "接口:介面", "代碼:程式碼", "打印:印出", "屏幕:螢幕", "文檔:說明", "鏈接:連結", "變量:變數"),
    *("數組:陣列", "對象:物件", "異步:非同步", "令牌:token", "批處理:批次處理", "吞吐量:吞吐"),
    *("質量:品質", "視頻:影片", "圖像:圖", "兼容:相容", "響應:回應", "單元格:格", "百分位值:百分位數"),
)
HAN = r"\u3400-\u9fff"
WIDE = r"\u3001\u3002\u300a-\u300d\uff01-\uff1f"  # full-width punctuation


def source(page: Path) -> str:
    """A page without the line that leads to its other language, and without the glossary."""
    return LANGUAGES.sub("", page.read_text(encoding="utf-8"), count=1).partition(GLOSSARY)[0]


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def sections(page: Path) -> list[list[Token]]:
    """The tokens of a page under each of its headings, the heading first; inline ones in their place."""
    found: list[list[Token]] = [[]]
    for token in parsed(source(page)):
        if token.type == "heading_open":
            found.append([])
        found[-1] += [token, *(token.children or [])]
    return found


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def target(page: Path, link: str, anchors: list[str]) -> tuple[str, int | None]:
    """Where a link leads: the file, in English, and the number of the section if it is one of the page's own."""
    name, _, section = unquote(link).partition("#")
    place = (page.parent / name if name else page).resolve().relative_to(Path.cwd())
    english = {chinese: page for page, chinese in PAIRS}.get(place, place)
    return english.as_posix(), anchors.index(section) if section and not name else None


def shown(page: Path) -> list[dict[str, object]]:
    """What a reader of each section gets besides sentences. Their order within the section is free, but for code."""
    parts = sections(page)
    anchors = [slug(part[1].content) for part in parts[1:]]
    return [
        {
            "code": [token.content for token in part if token.type in ("fence", "code_block")],
            "names": {token.content for token in part if token.type == "code_inline"},
            "links": sorted(target(page, str(token.attrs["href"]), anchors) for token in part if "href" in token.attrs),
            "pictures": [target(page, str(token.attrs["src"]), anchors) for token in part if "src" in token.attrs],
            "marks": sorted(mark for token in part for mark in re.findall(r"^<!-- .* -->", token.content)),
        }
        for part in parts
    ]


def prose(page: Path) -> str:
    """The sentences of a page, a line for each block: code left out as `x`, comments and other HTML left out."""
    kept: list[str] = []
    for token in parsed(page.read_text(encoding="utf-8")):
        if token.type == "inline":
            words = (
                {"code_inline": "x", "softbreak": "\n"}.get(child.type, "" if "html" in child.type else child.content)
                for child in token.children or []
            )
            kept.append("".join(words))
    return "\n".join(kept)


def places(pattern: str, text: str) -> list[str]:
    """Where a pattern is found, each with what stands around it."""
    return [text[max(0, found.start() - 8) : found.end() + 8] for found in re.finditer(pattern, text)]


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=str)
def test_the_blocks_of_a_page_are_those_of_its_english_one(english: Path, chinese: Path) -> None:
    """Headings, paragraphs, items of lists, rows and cells of tables: as many, in the same order."""
    of_each = [[(token.type, token.tag) for token in parsed(source(page))] for page in (english, chinese)]
    assert of_each[1] == of_each[0]


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=str)
def test_a_section_shows_the_code_names_links_pictures_and_figures_of_its_english_one(
    english: Path, chinese: Path
) -> None:
    headings = [part[1].content if part else "" for part in sections(chinese)]
    for heading, ours, theirs in zip(headings, shown(chinese), shown(english), strict=True):
        assert ours == theirs, heading


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:[,.]\d+)*", text)


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=str)
def test_a_row_of_a_table_has_the_numbers_of_its_english_one(english: Path, chinese: Path) -> None:
    ours, theirs = (
        [numbers(line) for line in source(page).splitlines() if line.startswith("|")] for page in (chinese, english)
    )
    assert ours == theirs
    assert any(theirs)


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=str)
def test_a_paragraph_has_the_numbers_of_its_english_one(english: Path, chinese: Path) -> None:
    """All that the English one has in digits: `34 schedulers`. What it has in words may be digits in Chinese."""
    ours, theirs = (
        [
            "".join(child.content for child in token.children or [] if child.type == "text")
            for token in parsed(source(page))
            if token.type == "inline"
        ]
        for page in (chinese, english)
    )
    missing = [set(numbers(there)) - set(numbers(here)) for here, there in zip(ours, theirs, strict=True)]
    assert [(lost, ours[place]) for place, lost in enumerate(missing) if lost] == []


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=str)
def test_a_page_and_its_translation_lead_to_each_other(english: Path, chinese: Path) -> None:
    for page, other in ((english, chinese), (chinese, english)):
        found = LANGUAGES.search(page.read_text(encoding="utf-8"))
        assert found is not None, page
        link = re.findall(r"\]\(([^)]+)\)", found[0])[0]
        assert (page.parent / link).resolve() == other.resolve()


@pytest.mark.parametrize("page", TRANSLATED, ids=str)
def test_characters_are_traditional(page: Path) -> None:
    """Big5 has all that Taiwan writes, and hardly any simplified character."""
    han = set(re.findall(rf"[{HAN}]", page.read_text(encoding="utf-8")))
    assert len(han) > 300
    assert sorted(char for char in han if char.encode("big5", "ignore") == b"") == []
    assert sorted(han & SIMPLIFIED_IN_BIG5) == []


@pytest.mark.parametrize("page", TRANSLATED, ids=str)
def test_words_are_those_of_taiwan(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [(word, found) for word in ELSEWHERE if (found := places(word.partition(":")[0], text))] == []


@pytest.mark.parametrize("page", TRANSLATED, ids=str)
def test_punctuation_is_full_width_and_latin_stands_apart(page: Path) -> None:
    text = prose(page)
    assert places(rf"[{HAN}] ?[,;:?!()]|[,;:?!()] ?[{HAN}]|[{HAN}]\.(?!\w)", text) == []
    assert places(rf"[{HAN}][A-Za-z0-9%]|[A-Za-z0-9%][{HAN}]", text) == [], "no space"
    assert places(rf"[{HAN}] +[{HAN}]|[{WIDE}] | [{WIDE}]", text) == [], "a space too many"


@pytest.mark.parametrize("page", TRANSLATED, ids=str)
def test_emphasis_is_emphasis_and_no_line_breaks_off_in_a_sentence(page: Path) -> None:
    """`**完。**接` stays as it stands, asterisks and all; and a line break in Chinese shows as a space."""
    text = prose(page)
    assert places(r"\*", text) == []
    inline = [token for token in parsed(page.read_text(encoding="utf-8")) if token.type == "inline"]
    assert [token.content for token in inline if "\n" in token.content] == []
    slanted = [
        now.content for token in inline for before, now in pairwise(token.children or []) if before.type == "em_open"
    ]
    assert [words for words in slanted if re.search(f"[{HAN}]", words)] == [], "Chinese has no italics"


def test_the_glossary_names_what_there_is_and_what_the_pages_say() -> None:
    page = PAIRS[1][1].read_text(encoding="utf-8")
    body, _, glossary = page.partition(GLOSSARY)
    pages = body + PAIRS[0][1].read_text(encoding="utf-8")
    reference = "".join(path.read_text(encoding="utf-8") for path in sorted(Path("docs/reference").glob("*.md")))
    rows = [line.strip("| ").split(" | ") for line in glossary.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 20
    for chinese, _english, names in rows:
        assert [term for term in re.split(r"[\u3001\uff1a]", chinese) if term not in pages] == []
        codes = re.findall(r"`(?:replay )?([^`]+)`", names)
        assert codes, names
        assert [code for code in codes if code.split(" = ")[-1].strip('"[]') not in reference] == []
    for (first, *_), (second, *_) in pairwise(sorted(rows)):
        assert first != second
