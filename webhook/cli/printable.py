"""Text from elsewhere made fit to be shown: what would steer a terminal, or reorder a line, becomes a visible sign."""

_CONTROL = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
"""Control characters and the signs that Unicode has for them: ␛, ␊."""

_OTHERS = (
    *range(0x80, 0xA0),  # control characters too
    *(0x61C, 0x200E, 0x200F, 0x2028, 0x2029),  # marks of direction, separators of lines
    *range(0x202A, 0x202F),  # embeddings and overrides of direction
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),  # halves of characters
)

_SIGNS = _CONTROL | dict.fromkeys(_OTHERS, 0xFFFD)


def printable(text: str) -> str:
    """`text` on one line, a sign for each character that is none; it stays as long as it is."""
    return text if text.isprintable() else text.translate(_SIGNS)
