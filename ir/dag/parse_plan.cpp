#include "ir/dag/field_reader.h"
#include "ir/dag/text_names.h"
#include "ir/text/print_text.h"

namespace piper::dag {

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

class PlanParser {
 public:
  PlanParser(TextReader& reader, Dag& dag, NodeNames& names)
      : reader_(reader),
        dag_(dag),
        names_(names),
        fields_(reader, dag, names),
        plan_(*(dag.plan = std::make_unique<Plan>())),
        first_action_(dag.nodes.size(), kNone) {}

  void parse() {
    while (!reader_.failed() && reader_.accept("communicator")) communicator();
    const std::vector<std::string> expected = communicator_names(dag_, plan_);
    for (std::size_t i = 0; i < expected.size() && !reader_.failed(); ++i) {
      if (communicator_tokens_[i].text != expected[i]) {
        reader_.fail(Code::misnamed_dag_value, communicator_tokens_[i],
                     "the communicator called `{}` is `{}` by its fields",
                     communicator_tokens_[i].text, expected[i]);
      }
    }
    while (!reader_.failed() && reader_.accept("role")) role();
  }

 private:
  void communicator() {
    Communicator communicator;
    const TextReader::Token where = reader_.peek();
    communicator_tokens_.push_back(where);
    const std::string name(reader_.name("a communicator"));
    if (!communicators_.try_emplace(name, static_cast<std::uint32_t>(plan_.communicators.size()))
             .second) {
      reader_.fail(Code::repeated_dag_name, where, "communicator `{}` was declared before",
                   where.text);
    }
    communicator_fields(fields_, communicator);
    reader_.expect("{");
    while (!reader_.failed() && !reader_.at("}")) {
      const TextReader::Token token = reader_.peek();
      const NodeId node = names_.known_node(reader_);
      if (reader_.failed()) break;
      const CommId comm = dag_.nodes[node.index()].comm;
      if (!comm.valid())
        reader_.fail(Code::unknown_dag_name, token, "node `{}` is no communication", token.text);
      communicator.comms.push_back(comm);
    }
    reader_.expect("}");
    plan_.communicators.push_back(std::move(communicator));
  }

  void role() {
    Role role;
    const TextReader::Token where = reader_.peek();
    role.name = reader_.symbol("a role");
    reader_.expect("at");
    const DeviceSet devices = reader_.device_set(dag_.mesh);
    if (reader_.failed()) return;
    if (const std::string name = place_name(devices, dag_.mesh, reader_.context().symbols);
        reader_.context().text(role.name) != name) {
      return reader_.fail(Code::misnamed_dag_value, where,
                          "the role called `{}` is `{}` by its devices", where.text, name);
    }
    role.at = devices.at;
    role_fields(fields_, role);
    reader_.expect("{");
    buffers_.clear();
    while (!reader_.failed() && reader_.accept("buffer")) buffer(role);
    waits_.clear();
    count_.assign(dag_.streams.size(), 0);
    while (!reader_.failed() && !reader_.at("}")) action(role);
    reader_.expect("}");
    if (reader_.failed()) return;
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      const PendingWait& pending = waits_[i];
      if (!pending.node.valid()) continue;
      const std::uint32_t target = first_action_[pending.node.index()];
      if (target == kNone) {
        return reader_.fail(Code::unknown_dag_name, pending.where, "role `{}` has no action `{}`",
                            reader_.context().text(role.name), pending.where.text);
      }
      role.waits[i].stream = role.actions[target].stream;
      role.waits[i].position = role.actions[target].position;
    }
    for (const Action& action : role.actions) first_action_[action.node.index()] = kNone;
    plan_.roles.push_back(std::move(role));
  }

  /// `%F.stage0.mb0:0`, `%gradients.stage0.0`, `%workspace#2`: as written.
  struct BufferName {
    TextReader::Token token;
    TextReader::Token name;
    NodeId node;
    bool value = false;
    std::uint32_t index = 0;
  };
  BufferName buffer_name() {
    BufferName name;
    name.token = reader_.peek();
    reader_.expect("%");
    name.name = reader_.peek();
    name.node = names_.find_node(reader_.name("a buffer"));
    if (reader_.accept(":")) {
      name.value = true;
      name.index = static_cast<std::uint32_t>(reader_.integer("an output", 0, 1 << 20));
    }
    if (reader_.accept("#")) reader_.integer("a number", 1, kMax32);
    if (!reader_.failed()) {
      name.token.end = reader_.offset();
      name.token.text = reader_.text().substr(name.token.begin, name.token.end - name.token.begin);
    }
    return name;
  }

  void buffer(Role& role) {
    Buffer buffer;
    const BufferName name = buffer_name();
    reader_.expect("=");
    const TextReader::Token where = reader_.peek();
    const std::string_view cls = reader_.name("a class of buffers");
    if (reader_.failed()) return;
    std::size_t i = 0;
    while (i <= static_cast<std::size_t>(BufferClass::scalars) &&
           cls != buffer_class_name(static_cast<BufferClass>(i)))
      ++i;
    if (i > static_cast<std::size_t>(BufferClass::scalars)) {
      return reader_.fail(Code::unknown_dag_name, where, "`{}` is no class of buffers", where.text);
    }
    buffer.cls = static_cast<BufferClass>(i);
    std::string plain(buffer_class_name(buffer.cls));
    if (reader_.accept("bucket")) {
      buffer.bucket = BucketId(NodeNames::find(reader_, names_.buckets, "a bucket"));
      if (!reader_.failed())
        plain +=
            "." + std::string(reader_.context().text(dag_.buckets[buffer.bucket.index()].name));
    }
    if (name.value) {
      if (!name.node.valid())
        return reader_.fail(Code::unknown_dag_name, name.name, "`{}` is not a node of this text",
                            name.name.text);
      buffer.value = {name.node, name.index};
      if (name.index >= dag_.nodes[buffer.value.node.index()].num_outputs) {
        return reader_.fail(Code::unknown_dag_name, name.token, "node `{}` has no output `{}`",
                            name.name.text, name.index);
      }
    } else {
      const std::string expected = name_text(plain);
      if (name.name.text != expected) {
        return reader_.fail(Code::misnamed_dag_value, name.token,
                            "the buffer called `%{}` is `%{}` by its fields", name.name.text,
                            expected);
      }
    }
    buffer_fields(fields_, buffer);
    if (!buffers_.try_emplace(name.token.text, static_cast<std::uint32_t>(role.buffers.size()))
             .second) {
      reader_.fail(Code::repeated_dag_name, name.token, "buffer `{}` was declared before",
                   name.token.text);
    }
    role.buffers.push_back(buffer);
  }

  struct PendingWait {
    NodeId node;
    TextReader::Token where;
  };

  void action(Role& role) {
    Action action;
    const TextReader::Token where = reader_.peek();
    action.node = names_.known_node(reader_);
    reader_.expect("on");
    action.stream = StreamId(NodeNames::find(reader_, names_.streams, "a stream"));
    if (reader_.failed()) return;
    std::uint32_t& count = count_[action.stream.index()];
    action.position = count;
    if (reader_.accept("at"))
      action.position = static_cast<std::uint32_t>(reader_.integer("a position", 0, kMax32));
    count = action.position + 1;
    if (reader_.accept("via"))
      action.communicator =
          CommunicatorId(NodeNames::find(reader_, communicators_, "a communicator"));
    action.first_wait = static_cast<std::uint32_t>(role.waits.size());
    if (reader_.accept("after")) {
      do {
        wait(role);
      } while (!reader_.failed() && reader_.accept(","));
    }
    action.num_waits = static_cast<std::uint32_t>(role.waits.size()) - action.first_wait;
    action.first_operand = static_cast<std::uint32_t>(role.operands.size());
    const Node& node = dag_.nodes[action.node.index()];
    // The plan has one list of operands: input ports, output ports, workspace. A section begins at
    // the first port of its kind.
    std::size_t begin = role.operands.size();
    for (const auto& [verb, ports] :
         {std::pair<std::string_view, std::uint32_t>{"reads", input_ports(dag_, node)},
          {"writes", node.num_outputs},
          {"uses", 1}}) {
      const std::size_t first = role.operands.size();
      if (reader_.accept(verb)) operands(role);
      const std::size_t count = role.operands.size() - first;
      if (!reader_.failed() && count > 0 && (first != begin || count > ports)) {
        return reader_.fail(
            Code::misnamed_dag_value, where,
            "`{}` {} `{}` operands from number `{}` on; its node has `{}` such, from number `{}` on",
            where.text, verb, count, first - action.first_operand, ports,
            begin - action.first_operand);
      }
      begin += ports;
    }
    if (reader_.failed()) return;
    action.num_operands = static_cast<std::uint32_t>(role.operands.size()) - action.first_operand;
    std::uint32_t& first = first_action_[action.node.index()];
    if (first == kNone) first = static_cast<std::uint32_t>(role.actions.size());
    role.actions.push_back(action);
  }

  void wait(Role& role) {
    Wait wait;
    if (reader_.accept("previous")) {
      wait.distance = 1;
      if (reader_.peek().kind == TextReader::Kind::number)
        wait.distance = static_cast<std::uint8_t>(reader_.integer("a number of steps", 0, 255));
    }
    PendingWait pending;
    pending.where = reader_.peek();
    const TextReader::Token name = reader_.peek();
    if (name.kind == TextReader::Kind::name && names_.streams.count(name.text) != 0) {
      wait.stream = StreamId(NodeNames::find(reader_, names_.streams, "a stream"));
      reader_.expect("#");
      wait.position = static_cast<std::uint32_t>(reader_.integer("a position", 0, kMax32));
    } else {
      pending.node = names_.known_node(reader_);
    }
    role.waits.push_back(wait);
    waits_.push_back(pending);
  }

  void operands(Role& role) {
    reader_.expect("(");
    reader_.list(")", [&] { operand(role); });
  }

  void operand(Role& role) {
    Operand operand;
    operand.accumulate = reader_.accept("+");
    const BufferName name = buffer_name();
    if (reader_.failed()) return;
    const auto found = buffers_.find(name.token.text);
    if (found == buffers_.end())
      return reader_.fail(Code::unknown_dag_name, name.token, "role `{}` has no buffer `{}`",
                          reader_.context().text(role.name), name.token.text);
    operand.buffer = BufferId(found->second);
    if (reader_.accept("+")) operand.offset = reader_.integer("an offset", -kMaxBytes, kMaxBytes);
    role.operands.push_back(operand);
  }

  TextReader& reader_;
  Dag& dag_;
  NodeNames& names_;
  FieldReader fields_;
  Plan& plan_;
  llvm::StringMap<std::uint32_t> communicators_;
  std::vector<TextReader::Token> communicator_tokens_;
  llvm::StringMap<std::uint32_t> buffers_;
  std::vector<std::uint32_t> first_action_;  // per node: its first action in the role being read
  std::vector<std::uint32_t> count_;         // per stream: actions so far
  std::vector<PendingWait> waits_;
};

}  // namespace

void parse_plan(TextReader& reader, Dag& dag, NodeNames& names) {
  PlanParser(reader, dag, names).parse();
}

}  // namespace piper::dag
