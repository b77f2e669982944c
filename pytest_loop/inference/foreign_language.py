"""Recognize a task that is not written in English, because phrases are understood in English only."""

from __future__ import annotations

import re
import unicodedata

from pytest_loop.inference.tool_purposes import split_names

_ENGLISH = split_names(
    "the a an and or of to in on for with by from is are be it this that these those all until when if so not no make "
    "fix add write create update improve refactor run keep loop iterate please my our your we you what which every"
)
# Short words of Spanish, Portuguese, French, Italian, German, Dutch, Polish and Turkish that English does not have.
_OTHERS = split_names(
    "el los las del que una para con por hasta esta este todos todas y en se o os um uma com não nao até dos das as "
    "le les des une dans pour avec et sur tous toutes jusqu ce cette il lo gli che della dei delle per fino nel "
    "der die den dem und nicht bis alle mit für fur ein eine einen im zu auf ist sind het een niet voor met "
    "tot van w na nie wszystkie aż popraw bütün tüm için ve bir hata kadar testleri"
)


def is_foreign(text: str) -> bool:
    """Return whether a text is most likely not English: another script, or short words of another language."""
    letters = [character for character in text if character.isalpha()]
    if not letters:
        return False
    latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    if latin * 2 < len(letters):
        return True
    words = re.findall(r"[^\W\d_]+", text.lower())
    english = sum(word in _ENGLISH for word in words)
    return sum(word in _OTHERS for word in words) > english
