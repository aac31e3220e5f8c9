"""Figures of a benchmark: a value, its unit, its goal, and a note on its origin."""

import dataclasses


@dataclasses.dataclass
class Figure:
    what: str
    value: float
    unit: str
    goal: float | None = None
    at_most: bool = False  # the goal is a maximum; otherwise a minimum
    note: str = ""

    @property
    def met(self):
        return None if self.goal is None else (self.value <= self.goal if self.at_most else self.value >= self.goal)

    def as_json(self):
        return {**dataclasses.asdict(self), "met": self.met}

    def value_text(self):
        return f"{in_words(self.value)} {self.unit}".strip()

    def goal_text(self):
        if self.goal is None:
            return ""
        return f"{'at most' if self.at_most else 'at least'} {in_words(self.goal)} {self.unit}".strip() + (": met" if self.met else ": not met")

    def line(self):
        return "  ".join(text for text in (f"{self.what}: {self.value_text()}", f"(goal {self.goal_text()})" if self.goal is not None else "", self.note) if text)


def in_words(value):
    """Three digits; large numbers in groups."""
    if value != 0 and abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}"


def rows(parts):
    for part in parts:
        for figure in part["figures"]:
            yield part["name"], figure
        if part["status"] != "measured":
            yield part["name"], f"{part['status']}: {part['reason']}"


def table(parts):
    """For a terminal."""
    lines = [("part", "what", "measured", "goal")]
    lines += [(name, each, "", "") if isinstance(each, str) else (name, each.what, each.value_text(), each.goal_text()) for name, each in rows(parts)]
    widths = [max(len(line[c]) for line in lines if not (c == 1 and line[2] == "")) for c in range(4)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines) + "\n"


def markdown(heading, parts):
    """A block for tests/gpu/README.md."""
    driver = f", driver for {heading['driver']}" if heading["driver"] else ""
    text = f"`{heading['command']}`, {heading['date']}, {heading['device']}{driver}{', tiny: the figures mean nothing' if heading['tiny'] else ''}.\n\n"
    text += "| Part | What | Measured | Goal |\n|---|---|---|---|\n"
    for name, each in rows(parts):
        if isinstance(each, str):
            text += f"| {name} | {each} | | |\n"
        else:
            text += f"| {name} | {each.what}{'; ' + each.note if each.note else ''} | {each.value_text()} | {each.goal_text()} |\n"
    return text
