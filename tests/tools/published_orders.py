"""Orders of published schedules, written from the rules of their papers and independent of stdlib/schedules.

A generator maps sizes to the operations of each rank. An operation is (pass, stage, microbatch); copies of a model have
microbatches of their own, those of copy 1 after those of copy 0.
"""


def alternate(forwards, backwards, warm, split=False, lag=0):
    """`warm` forwards, then one forward and one backward in turn; with split backwards, from number `lag` on the oldest
    pending weight gradient follows."""
    steps = [("F", *work) for work in forwards[:warm]]
    left = forwards[warm:]
    pending = []
    for number, work in enumerate(backwards):
        if left:
            steps.append(("F", *left[0]))
            left = left[1:]
        steps.append(("BI" if split else "B", *work))
        pending.append(work)
        if split and number >= lag:
            steps.append(("BW", *pending.pop(0)))
    if split:
        steps += [("BW", *work) for work in pending]
    return steps


def grouped(p, r, m, v, group, down=False):
    """Work of rank r in groups of microbatches, each on the v stages of the rank in turn."""
    chunks = range(v - 1, -1, -1) if down else range(v)
    return [(chunk * p + r, mb)
            for first in range(0, m, group)
            for chunk in chunks
            for mb in range(first, min(first + group, m))]


def own(r, m):
    return [(r, mb) for mb in range(m)]


def smallest_group(p, m):
    """Megatron wants groups of p <= g <= m, the last of at least p; fewer than p microbatches are one group."""
    return next((g for g in range(p, m + 1) if m % g == 0 or m % g >= p), m)


def interleaved(p, m, v=2, group=None):
    g = min(group or smallest_group(p, m), m)
    return [alternate(grouped(p, r, m, v, g), grouped(p, r, m, v, g, True), 2 * (p - 1 - r) + (v - 1) * g)
            for r in range(p)]


def interleaved_zb(p, m, v=2, group=None):
    g = min(group or smallest_group(p, m), m)
    return [alternate(grouped(p, r, m, v, g), grouped(p, r, m, v, g, True), p - 1 - r + (v - 1) * g, True, r)
            for r in range(p)]


def group_interleaved(p, m, v=2, group=None):
    """The block of a whole group, repeated; microbatches that do not exist are left out."""
    g = group or (p + 1) // 2
    whole = -(-m // g) * g
    ranks = [alternate(grouped(p, r, whole, v, g), grouped(p, r, whole, v, g, True), p - 1 - r + (v - 1) * g)
             for r in range(p)]
    return [[step for step in rank if step[2] < m] for rank in ranks]


def looped_bfs(p, m, v=2):
    stages = [[chunk * p + r for chunk in range(v)] for r in range(p)]
    return [[("F", s, mb) for s in rank for mb in range(m)]
            + [("B", s, mb) for s in reversed(rank) for mb in reversed(range(m))] for rank in stages]


def zb_h2(p, m):
    return [alternate(own(r, m), own(r, m), 2 * (p - 1 - r), True, 2 * r) for r in range(p)]


def chimera(p, m):
    """Operations by slots of the paper's figure: a unit of p microbatches begins every 2p slots."""
    ranks = [[] for _ in range(p)]
    for unit in range(m // p):
        for i in range(p // 2):
            for copy in range(2):
                mb = copy * (m // 2) + unit * (p // 2) + i
                for s in range(p):
                    rank = ranks[s if copy == 0 else p - 1 - s]
                    rank.append((2 * p * unit + 2 * i + s, "F", s, mb))
                    rank.append((2 * p * unit + 2 * i + p + p - 1 - s, "B", s, mb))
    for rank in ranks:
        assert len({step[0] for step in rank}) == len(rank), "two operations in one slot"
    return [[step[1:] for step in sorted(rank)] for rank in ranks]


def bit_pipe(p, m):
    u = p // 2
    ranks = []
    for r in range(p):
        near = 0 if r < u else 1
        a = u - r if r < u else r - u + 1
        x, y = (near, "out"), (1 - near, "out")
        turned = {"out": "back", "back": "out"}
        unit = a * [x] + (u - a) * [y, x] + a * [y, (1 - near, "back")]
        unit += (u - a) * [(near, "back"), (1 - near, "back")] + a * [(near, "back")]
        stage = {(0, "out"): r, (0, "back"): 2 * p - 1 - r, (1, "out"): p - 1 - r, (1, "back"): p + r}
        done = {}

        def take(name, number):
            chunk = unit[number % len(unit)]
            if name == "B":
                chunk = (chunk[0], turned[chunk[1]])
            mb = done.get((name, chunk), 0)
            done[name, chunk] = mb + 1
            return (name, stage[chunk], chunk[0] * (m // 2) + mb)

        warm = p + u + min(r, p - 1 - r)
        rem = 2 * p - warm
        program = "F" * warm
        for _ in range(m // p - 1):
            program += "FB" * rem + "B" * (warm - rem + 1) + "FB" * (rem - 1) + "F" * (warm - rem + 1)
        program += "FB" * rem + "B" * warm
        counts = {"F": 0, "B": 0}
        steps = []
        for name in program:
            steps.append(take(name, counts[name]))
            counts[name] += 1
        ranks.append(steps)
    return ranks


def gems(p, m):
    """At most one microbatch on a rank; the copies take turns."""
    ranks = []
    for r in range(p):
        rank = []
        for number in range(m):
            copy = number % 2
            work = (r if copy == 0 else p - 1 - r, copy * (m // 2) + number // 2)
            rank += [("F", *work), ("B", *work)]
        ranks.append(rank)
    return ranks


def hanayo(p, m, waves=2):
    """List scheduling on the waves without idle time: a ready backward first, then the lowest microbatch, then the deepest
    stage; a backward takes two slots."""
    stages = 2 * p * waves
    rank_of = [min(s % (2 * p), 2 * p - 1 - s % (2 * p)) for s in range(stages)]
    ends = {}
    ranks = [[] for _ in range(p)]
    free = [0] * p
    todo = [{(name, s, mb) for name in "FB" for mb in range(m) for s in range(stages) if rank_of[s] == r}
            for r in range(p)]
    time = 0
    while any(todo):
        for r in range(p):
            if free[r] > time:
                continue
            ready = []
            for name, s, mb in todo[r]:
                needs = [("F", s, mb)] if name == "B" else []
                if name == "F" and s > 0:
                    needs.append(("F", s - 1, mb))
                if name == "B" and s + 1 < stages:
                    needs.append(("B", s + 1, mb))
                if all(ends.get(need, time + 1) <= time for need in needs):
                    ready.append((name != "B", mb, -s, (name, s, mb)))
            if ready:
                step = min(ready)[-1]
                todo[r].remove(step)
                ranks[r].append(step)
                free[r] = time + (2 if step[0] == "B" else 1)
                ends[step] = free[r]
        time += 1
    return ranks
