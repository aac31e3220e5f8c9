"""The rule `terms`: what the field has a word for is called by it (docs/terms.md), and no declaration, member, function, type or test has a name that says nothing.

Names that are gone are refused in code everywhere. Vague names are refused in headers, for members and for tests; as locals of a .cpp they are counted per folder,
and a count may only fall: LOCALS has the present counts, and a change that lowers one writes the smaller number there.
"""

import re

FOLDERS = ("backend", "frontend", "ir", "passes", "runtime", "tests")
CODE = (".h", ".cpp", ".def")

# Old name -> its successor. Whole identifiers.
GONE = dict(pair.split(":") for pair in """
AxisShare:AxisLayout CallStretch:CallInterval FrozenInShares:FrozenAndSharded GpuQueue:GpuStream GradientsInShares:ShardedGradients
MeetingMember:CommMember MeetingPoint:Rendezvous OtherProcesses:PeerProcesses PIPER_ADDS:PIPER_ACCUMULATE PIPER_ATTEND_OWN:PIPER_ATTEND_BUILTIN
PIPER_CLEARS:PIPER_ZERO_FILL PIPER_GRADIENTS_IN_BLOCKS:PIPER_SHARDED_GRADIENTS PIPER_NO_STRETCH:PIPER_ALL_POSITIONS PIPER_OWN_BLOCK:PIPER_SHARD_ONLY
PIPER_STATE_IN_BLOCKS:PIPER_SHARDED_OPTIMIZER PIPER_VALUES_IN_BLOCKS:PIPER_SHARDED_PARAMETERS ParamPlace:BucketPosition
ParametersInShares:ShardedParameters PieceDevices:SegmentDevices PieceTexts:SegmentTexts PiperInBlocks:PiperSharded PiperPart:PiperMessagePart
PiperPlace:PiperSourceLocation PiperStretch:PiperInterval PlacedGather:GatherInterval ProgramStretch:ProgramInterval ResultShares:ResultLayouts
SourcePlace:SourceLocation StateShare:ShardedState TrafficShare:ShardedTraffic add_cut:add_sharded add_stretch:add_interval adds_blocks:adds_shards
adds_members:reduces_members any_cut:any_sharded append_piece:append_fragment begun_steps:num_started_steps bucket_cut:bucket_sharding
by_blocks:by_shards call_stretches:call_intervals check_cut:check_sharding check_homes:check_owners check_least_windows:check_min_windows
check_rounds:check_gather_intervals check_stretches:check_intervals count_pieces:count_segments cursors_told:cursors_reported cut_alike:sharded_alike
cut_along_samples:shard_along_samples cut_layout:sharded_layout cut_over:sharded_over cut_pieces:cut_segments cut_samples:shard_samples
cut_where_present:shard_where_present cuts_gradients:shards_gradients cuts_parameters:shards_parameters each_meeting:for_each_intersecting
enqueue_meeting:enqueue_comm evaluation_stretches:evaluation_intervals extract_lean:extract_recomputed find_hazards:find_data_races
find_homes:find_output_ports find_meeting_place:find_rendezvous find_meetings:match_communications first_stretch:first_interval
gathers_members:gathers_lists give_block:give_shard has_pieces_:has_segments_ home_of:owner_of homes_of:owners_of homes_overlap:owners_overlap
in_blocks:sharded in_one_piece:in_one_tile in_rounds:gathered_per_use join_pieces:join_segments kCallsUntold:kCallsUnsignalled kLean:kRecomputed
kMostPieces:kMaxInstances kMostSlots:kMaxStateSlots kUncountedPieces:kUncountedInstances keeps_block:keeps_shard kept_in_blocks:kept_sharded
kernel_stretches:kernel_intervals lean_output:recomputed_output least_window:min_window leaves_block:leaves_shard leaves_whole_sum:reduces_to_all
make_queues:make_streams make_rounds:insert_collectives measure_told:measure_reported meet_processes:join_processes most_begun:max_started
most_stretches_:max_intervals_ move_blocks:move_shards num_stretches:num_intervals of_lean:of_recomputed of_piece:of_segment of_stretch:of_interval
one_block:one_shard openmp_waits_as_told:openmp_waits_as_set own_attention:builtin_attention own_attention_:builtin_attention_ own_block:own_shard
param_places:bucket_positions per_home:per_owner piece_files_:fragment_files_ piece_for:segment_for piece_of:segment_of piece_of_:segment_of_
piece_of_group:segment_of_group piece_place:tile_place pieces_of_stage:segments_of_stage piper_block:piper_shard piper_piece:piper_tile
placed_gathers:gather_intervals placed_pieces:placed_segments plan_gather:plan_all_gather put_in_blocks:put_in_shards
race_with_read:data_race_with_read read_meeting_place:read_rendezvous report_standstill:report_deadlock rest_told_:rest_reported_ run_clock:asap_times
run_sharing_clock:fair_sharing_times sample_cut:sample_sharding scatters_members:reduces_to_shards standing_circle:deadlock_cycle
state_cut_differently:state_sharded_differently state_shares:sharded_state state_shares_text:sharded_state_text stream_of_call:cuda_stream_of_call
stretch_of:interval_of stretch_text:interval_text stretches_of:intervals_of sum_squares_of_blocks:sum_squares_of_shards
summed_in_blocks:summed_in_shards sums_block:sums_shard take_begun:take_started tell_comms:notify_comms tell_how_many_more:report_how_many_more
tell_outputs:notify_outputs tell_pipe:report_pipe tell_roles:notify_roles tell_small_devices:report_small_devices told_by_syntax:reported_by_syntax
told_stop:notified_of_stop told_with:signalled_with too_many_pieces:too_many_instances traffic_shares:sharded_traffic
traffic_shares_text:sharded_traffic_text unites_blocks:gathers_shards wider_told_:wider_reported_ window_below_least:window_below_minimum
with_parameters_cut:with_parameters_sharded worth_telling:worth_reporting
""".split())

VAGUE = ("each", "most", "least", "told", "tell", "rest", "rests", "what", "who", "whole", "others", "own", "made", "kept")
VAGUE_START = re.compile(r"(What|Who|Of)[A-Z]")
TEST = re.compile(r"\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*\w+,\s*(\w+)\)")
TOKEN = re.compile(r"""//(?:\\\n|[^\n])*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
                   r"""|\.?[0-9](?:'?[0-9a-zA-Z_.]|[eEpP][+-])*|[A-Za-z_]\w*|->|::|[^\s\w]""", re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*$")
NO_TYPE = {"return", "and", "or", "not", "in", "else", "case", "throw", "co_return", "new", "delete", "goto", "typename", "sizeof"}

# Headers that have vague names yet: how many. Members of these, too, go one by one.
HEADERS = {
    "backend/cuda/prelude.h": 1,
    "backend/jit/check_chains.h": 1,
    "backend/jit/object_cache.h": 1,
    "backend/kernel/lower_kernel.h": 1,
    "backend/kernel/schedule_passes.cpp": 1,
    "frontend/ast/expr.h": 1,
    "frontend/lower/schedule/device_set_index.h": 2,
    "frontend/lsp/call_at.h": 1,
    "frontend/sema/analyser.h": 3,
    "frontend/sema/builtins.h": 1,
    "frontend/service/document.h": 2,
    "frontend/tools/cuda_job.h": 1,
    "frontend/views/node_classes.h": 1,
    "ir/dag/dag.h": 1,
    "ir/directive/directive.h": 4,
    "ir/directive/numbers.h": 1,
    "ir/verify/layouts.cpp": 1,
    "ir/verify/placement.cpp": 1,
    "ir/verify/plan_facts.h": 1,
    "passes/communicate/weigh_samples.cpp": 1,
    "passes/plan/memory_table.h": 1,
    "passes/plan/traffic_table.h": 1,
    "passes/selectors/select.h": 1,
    "passes/simulate/activations.h": 1,
    "passes/simulate/fair_sharing.h": 1,
    "passes/simulate/timeline.h": 1,
    "passes/transform/replicate.cpp": 2,
    "runtime/cuda/cublas_lt_functions.def": 1,
    "runtime/cuda/driver_functions.def": 1,
    "runtime/data/table.cpp": 1,
    "runtime/device/device.h": 1,
    "tests/backend/kernel_runs.h": 2,
    "tests/cuda/data_races.cpp": 1,
    "tests/cuda/data_races_test.cpp": 1,
    "tests/cuda/host_machine.h": 2,
    "tests/cuda/planned_laws.h": 2,
    "tests/cuda/recording_driver.h": 4,
    "tests/cuda/test_cublas_lt.h": 1,
    "tests/mutations/text_changes.h": 1,
    "tests/runtime/block_job.h": 1,
    "tests/runtime/several_processes_test.cpp": 1,
    "tests/runtime/state_test.cpp": 2,
    "tests/support/op_cases.h": 1,
}

# Locals of .cpp files by folder.
LOCALS = {
    "backend": 127,
    "frontend": 231,
    "ir": 98,
    "passes": 151,
    "runtime": 126,
    "tests": 488,
}


def code_tokens(text):
    """(token, line) of the code: no comments, strings or characters."""
    line, last = 1, 0
    for match in TOKEN.finditer(text):
        token = match[0]
        line += text.count("\n", last, match.start())
        last = match.start()
        if not token.startswith(("//", "/*", '"', "'", 'R"')):
            yield token, line


def declares(tokens, i):
    """Whether the name at `i` is declared there: a type stands before it, and what may follow a declarator behind it."""
    before = tokens[i - 1][0] if i else ""
    after = tokens[i + 1][0] if i + 1 < len(tokens) else ""
    typed = (NAME.match(before) and before not in NO_TYPE) or before in (">", "&", "*")
    return bool(typed) and after in (";", "=", "{", ",", ")", "(", "[", ":")


def is_vague(name):
    return name.rstrip("_") in VAGUE or VAGUE_START.match(name) is not None


def terms(root, files):
    locals_of = dict.fromkeys(FOLDERS, 0)
    for path, name in files(root, CODE):
        folder = name.split("/")[0]
        if folder not in FOLDERS or "/testdata/" in name:
            continue
        text = path.read_text(encoding="utf-8")
        tokens = list(code_tokens(text))
        vague = []
        for i, (token, line) in enumerate(tokens):
            if token in GONE:
                yield f"{name}:{line}: `{token}` is now called `{GONE[token]}` (docs/terms.md)"
            elif NAME.match(token) and is_vague(token) and declares(tokens, i):
                vague.append((token, line))
        if name.endswith(".cpp"):
            members = [(token, line) for token, line in vague if token.endswith("_")]
            locals_of[folder] += len(vague) - len(members)
            vague = members
        if len(vague) > HEADERS.get(name, 0):
            for token, line in vague:
                yield f"{name}:{line}: `{token}` says nothing: a value is called by a noun, a function by a verb"
        elif len(vague) < HEADERS.get(name, 0):
            yield f"{name}:1: {len(vague)} vague names where tests/tree/terms.py counts {HEADERS[name]}: write the smaller number there"
        for number, line in enumerate(text.splitlines(), 1):
            test = TEST.match(line)
            if test and VAGUE_START.match(test[1]):
                yield f"{name}:{number}: a test is called by what holds: `{test[1]}`"
    for folder, count in locals_of.items():
        if count != LOCALS.get(folder, 0):
            what = "more than" if count > LOCALS.get(folder, 0) else "fewer than"
            yield f"{folder}:1: {count} locals are called `each`, `most`, `what`, ...: {what} the {LOCALS.get(folder, 0)} of tests/tree/terms.py, which may only fall"
