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


def on_stage(r, m):
    return [(r, mb) for mb in range(m)]


def smallest_group(p, m):
    """Megatron wants groups of p <= g <= m, the last of at least p; fewer than p microbatches are one group."""
    return next((g for g in range(p, m + 1) if m % g == 0 or m % g >= p), m)


def interleaved(p, m, v=2, group=None):
    g = group or smallest_group(p, m)
    return [alternate(grouped(p, r, m, v, g), grouped(p, r, m, v, g, True), 2 * (p - 1 - r) + (v - 1) * g)
            for r in range(p)]


def interleaved_zb(p, m, v=2, group=None):
    g = group or smallest_group(p, m)
    return [alternate(grouped(p, r, m, v, g), grouped(p, r, m, v, g, True), p - 1 - r + (v - 1) * g, True, r)
            for r in range(p)]


def group_interleaved(p, m, v=2, group=None):
    """The block of a whole group, repeated; microbatches that do not exist are left out."""
    g = group or (p + 1) // 2
    rounded = -(-m // g) * g
    ranks = [alternate(grouped(p, r, rounded, v, g), grouped(p, r, rounded, v, g, True), p - 1 - r + (v - 1) * g)
             for r in range(p)]
    return [[step for step in rank if step[2] < m] for rank in ranks]


def looped_bfs(p, m, v=2):
    stages = [[chunk * p + r for chunk in range(v)] for r in range(p)]
    return [[("F", s, mb) for s in rank for mb in range(m)]
            + [("B", s, mb) for s in reversed(rank) for mb in reversed(range(m))] for rank in stages]


def zb_h2(p, m):
    return [alternate(on_stage(r, m), on_stage(r, m), 2 * (p - 1 - r), True, 2 * r) for r in range(p)]


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


# V schedules from building blocks (arXiv 2405.15362). A row has an operation or None per slot: 0 and 1 are F of the stage out
# and of the stage back, 2 and 3 the backward of the stage back and of the stage out, W a weight gradient of either. A whole backward
# takes two slots; the second is 4 or 5.
W = 4


def input_of(p, r, code):
    """The rank and code of the operation whose result `code` of rank r reads."""
    across = r - 1 if code % 2 == 0 else r + 1
    return (across, code) if 0 <= across < p else (r, code - 1)


def change(code):
    return 0 if code is None or code in (2, 3) else 1 if code < 2 else -1


def peak_with_weights(row):
    held, peak = 0, 0
    for code in row:
        held += change(code)
        peak = max(peak, held)
    return peak


def peak_without_weights(row):
    """Pending weight gradients run in free slots."""
    held, peak, pending = 0, 0, 0
    for code in row:
        if code is None:
            if pending:
                pending, held = pending - 1, held - 1
        elif code < 2:
            held += 1
        else:
            pending += 1
        peak = max(peak, held)
    return peak


def filled(row):
    """Weight gradients in free slots after their BI, and behind the last slot."""
    while row and row[-1] is None:
        row = row[:-1]
    pending, result = 0, []
    for code in row:
        if code in (2, 3):
            pending += 1
        elif code is None and pending:
            pending, code = pending - 1, W
        result.append(code)
    return result + [W] * pending


def without_weights(rows):
    return [[None if code == W else code for code in row] for row in rows]


def squeezed(rows):
    """The order of each rank, each operation in the first slot after its input."""
    p = len(rows)
    todo = [[code for code in row if code is not None] for row in rows]
    done = [[0] * 5 for _ in range(p)]
    result = [[] for _ in range(p)]
    while any(todo):
        before = [list(counts) for counts in done]
        for r in range(p):
            code = todo[r][0] if todo[r] else None
            if code is not None and code != W and not (code == 0 and r == 0):
                rank, needed = input_of(p, r, code)
                if before[rank][needed] <= before[r][code]:
                    code = None
            if code is not None:
                todo[r].pop(0)
                done[r][code] += 1
            result[r].append(code)
    return result


def positions(row, codes):
    return [slot for slot, code in enumerate(row) if code in codes]


def moved(rows, n, with_weights):
    """Moves operations outside of the steady phase to their first free slot, if no rank then holds more than the peak before. Without
    weight gradients only those after the steady phase move."""
    p = len(rows)
    peak_of = peak_with_weights if with_weights else peak_without_weights
    peak = max(peak_of(row) for row in rows)
    slots = max(len(row) for row in rows)
    rows = [row + [None] * (slots - len(row)) for row in rows]
    phase = "before"
    count = [[0] * 5 for _ in range(p)]
    for now in range(slots):
        for r in range(p):
            row = rows[r]
            code = row[now]
            if code is None:
                continue
            number = count[r][code]
            count[r][code] += 1
            if phase == "before" and (r, code) == (0, 3):
                phase = "steady"
            if phase == "steady":
                if (code, number) == (0, n - 1):
                    phase = "after"
                continue
            if phase == "before" and not with_weights:
                continue
            lowest = positions(row, [code])[number - 1] if number else -1
            if code == W:
                lowest = max(lowest, positions(row, [2, 3])[number])
            elif (r, code) != (0, 0):
                rank, needed = input_of(p, r, code)
                lowest = max(lowest, positions(rows[rank], [needed])[number])
            for slot in range(lowest + 1, now):
                if row[slot] is None:
                    trial = list(row)
                    trial[now], trial[slot] = None, code
                    if peak_of(trial) <= peak:
                        rows[r] = trial
                        break
    return rows


def block_rows(starts, n):
    slots = max(max(row) for row in starts) + 6 * n
    rows = [[None] * slots for _ in starts]
    for row, firsts in zip(rows, starts):
        for code, first in enumerate(firsts):
            for i in range(n):
                row[first + 6 * i] = code
    return rows


def numbered(rows, names):
    """Operations of codes: microbatches ascend for each code."""
    p = len(rows)
    ranks = []
    for r, row in enumerate(rows):
        count = {}
        rank = []
        for code in row:
            name, out = names[code]
            count[code] = count.get(code, 0) + 1
            rank.append((name, r if out else 2 * p - 1 - r, count[code] - 1))
        ranks.append(rank)
    return ranks


def v_blocks(starts, n):
    rows = [filled(row) for row in block_rows(starts, n)]
    rows = squeezed(moved(rows, n, True))
    rows = [filled(row) for row in moved(without_weights(rows), n, False)]
    orders = []
    for row in without_weights(squeezed(rows)):
        pending = {4: 0, 5: 0}
        order = []
        for code in row:
            if code is None:
                code = next((weights for weights in (4, 5) if pending[weights]), None)
                if code is None:
                    continue
                pending[code] -= 1
            elif code in (2, 3):
                pending[code + 2] += 1
            order.append(code)
        orders.append(order + [4] * pending[4] + [5] * pending[5])
    return numbered(orders, [("F", True), ("F", False), ("BI", False), ("BI", True), ("BW", False), ("BW", True)])


def v_min(p, m):
    d = 2 if p % 3 == 0 else 0
    return v_blocks([[r, 2 * p - 1 - r, 2 * p + d + r, 4 * p + d - 1 - r] for r in range(p)], m)


def v_half(p, m):
    d = 3 if p % 2 == 0 else 0
    return v_blocks([[2 * r, 3 * p - 2 - r, 3 * p + d + 2 * r - 1, 6 * p + d - 2 - r] for r in range(p)], m)


def v_1f1b(p, m):
    """Forwards start one slot after another, backwards two, with three slots more after every third; then everything moves to
    earlier slots."""
    starts = [[r, 2 * p - 1 - r] for r in range(p)]
    time = 2 * p + (3 if p % 3 == 0 else 0)
    third = (3 - (p + 2) % 3) % 3
    for r in [*range(p), *reversed(range(p))]:
        starts[r].append(time)
        third += 1
        time += 2
        if third == 3:
            third, time = 0, time + 3
    rows = [row + [None] for row in block_rows(starts, m)]
    for row in rows:
        for slot in positions(row, [2, 3]):
            row[slot + 1] = row[slot] + 2
    peak = max(peak_with_weights(row) for row in rows)
    count = [[0] * 6 for _ in range(p)]
    for now in range(len(rows[0])):
        for r in range(p):
            row = rows[r]
            code = row[now]
            if code is None:
                continue
            number = count[r][code]
            count[r][code] += 1
            lowest = positions(row, [code])[number - 1] if number else -1
            if code > 3:
                lowest = max(lowest, positions(row, [code - 2])[number])
            elif (r, code) != (0, 0):
                rank, needed = input_of(p, r, code)
                lowest = max(lowest, positions(rows[rank], [needed + 2 if needed > 1 else needed])[number])
            for slot in range(lowest + 1, now):
                if row[slot] is not None or code in (2, 3) and row[slot + 1] is not None:
                    continue
                trial = list(row)
                trial[now], trial[slot] = None, code
                if code > 1 or peak_with_weights(trial) <= peak:
                    rows[r] = trial
                    break
    orders = [[code for code in row if code is not None and code < 4] for row in rows]
    return numbered(orders, [("F", True), ("F", False), ("B", False), ("B", True)])
