"""Writes the C++ of piper_embed_files: embed_files.py NAME OUT ROOT FILE..."""

import pathlib
import sys

PIECE = 8000  # compilers limit the length of one literal; adjacent pieces concatenate


def literal(text):
    pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)] or [""]
    return "\n".join(f'R"__piper__({piece})__piper__"' for piece in pieces)


def main():
    name, out, root, *files = sys.argv[1:]
    header = f"""#pragma once
#include <span>
#include <string_view>

namespace piper::embedded {{

#ifndef PIPER_EMBEDDED_FILE
#define PIPER_EMBEDDED_FILE
struct File {{
    std::string_view path;
    std::string_view text;
}};
#endif

/// The files that the build put into the program, sorted by path.
std::span<const File> {name}();

}}  // namespace piper::embedded
"""
    rows = []
    for file in sorted(files):
        text = (pathlib.Path(root) / file).read_text(encoding="utf-8")
        rows.append(f'    {{"{file}", std::string_view({literal(text)}, {len(text.encode())})}},\n')
    source = f"""#include "embedded/{name}.h"

namespace piper::embedded {{

std::span<const File> {name}() {{
    static constexpr File kFiles[] = {{
{''.join(rows)}    }};
    return kFiles;
}}

}}  // namespace piper::embedded
"""
    base = pathlib.Path(out)
    base.parent.mkdir(parents=True, exist_ok=True)
    base.with_suffix(".h").write_text(header, encoding="utf-8")
    base.with_suffix(".cpp").write_text(source, encoding="utf-8")


main()
