#include <algorithm>
#include <limits>

#include "ir/dag/parse_parts.h"
#include "ir/directive/parse.h"

namespace piper::dag {

namespace {

constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();

class HeaderParser {
 public:
  HeaderParser(TextReader& reader, Dag& dag, NodeNames& names,
               std::vector<directive::Directive>* directives)
      : reader_(reader), dag_(dag), names_(names), directives_(directives) {}

  void parse() {
    reader_.expect("pir");
    const TextReader::Token version = reader_.peek();
    if (reader_.integer("a version") != 2) {
      return reader_.fail(Code::unsupported_dag_version, version,
                          "version `{}` of the text is not known; this is version `2`",
                          version.text);
    }
    const TextReader::Token where = reader_.peek();
    const std::string_view level = reader_.name("a level");
    std::size_t i = 0;
    while (i < 6 && level != level_name(static_cast<Level>(i))) ++i;
    if (i == 6)
      return reader_.fail(Code::unknown_dag_name, where, "`{}` is no level of the training DAG",
                          where.text);
    dag_.level = static_cast<Level>(i);
    dag_.forward_only = reader_.accept("forward_only");
    while (!reader_.failed() && !reader_.at("graph")) statement();
    check_stages();
    for (const auto& [token, chunk, pass] : chunk_bodies_) {
      const auto body = names_.bodies.find(token.text);
      if (body == names_.bodies.end())
        return reader_.fail(Code::unknown_dag_name, token, "`{}` is not a body of this text",
                            token.text);
      (pass == kRecomputed ? dag_.chunks[chunk].recomputed_forward
                           : dag_.chunks[chunk].bodies[pass]) = BodyId(body->second);
    }
  }

 private:
  /// A new name in `table`.
  Symbol declare(llvm::StringMap<std::uint32_t>& table, std::size_t index, std::string_view what) {
    const TextReader::Token where = declared_ = reader_.peek();
    const std::string name(reader_.name(what));
    if (!reader_.failed() && !table.try_emplace(name, static_cast<std::uint32_t>(index)).second) {
      reader_.fail(Code::repeated_dag_name, where, "`{}` was declared before", where.text);
    }
    return reader_.context().symbol(name);
  }

  void statement() {
    static constexpr std::pair<std::string_view, void (HeaderParser::*)()> kStatements[] = {
        {"train", &HeaderParser::train},           {"mesh", &HeaderParser::mesh},
        {"split", &HeaderParser::split},           {"param", &HeaderParser::param},
        {"input", &HeaderParser::input},           {"loss", &HeaderParser::loss},
        {"chunk", &HeaderParser::chunk},           {"body", &HeaderParser::body},
        {"bucket", &HeaderParser::bucket},         {"stages", &HeaderParser::stages},
        {"stream", &HeaderParser::stream},         {"claim", &HeaderParser::claim},
        {"directives", &HeaderParser::directives},
    };
    if (reader_.at("require")) return require();  // the word is a part of the directive
    const TextReader::Token where = reader_.peek();
    for (const auto& [word, read] : kStatements) {
      if (reader_.accept(word)) return (this->*read)();
    }
    if (reader_.at_end()) return reader_.expect("graph");
    reader_.fail(Code::malformed_dag_text, where, "`{}` begins no statement", where.text);
  }

  void train() {
    const TextReader::Token where = reader_.peek();
    if (has_train_) reader_.fail(Code::repeated_dag_name, where, "a text has one train");
    has_train_ = true;
    dag_.settings = directive::parse_settings(reader_);
  }

  void require() {
    dag_.requirements.push_back(std::get<directive::Require>(
        directive::parse_directive(reader_, dag_.mesh, dag_.device_sets)));
  }

  void mesh() {
    const TextReader::Token where = reader_.peek();
    if (dag_.mesh.name.valid())
      return reader_.fail(Code::repeated_dag_name, where, "a text has one mesh");
    dag_.mesh.name = reader_.symbol("a mesh");
    reader_.expect("(");
    std::int64_t devices = 1;
    while (!reader_.failed() && !reader_.at(")")) {
      const TextReader::Token axis_token = reader_.peek();
      MeshAxis axis;
      axis.name = reader_.symbol("an axis");
      reader_.expect(":");
      axis.size = static_cast<std::uint32_t>(reader_.integer("a number of devices", 1, kMax32));
      devices *= axis.size;
      if (dag_.mesh.find(axis.name) < dag_.mesh.axes.size()) {
        reader_.fail(Code::repeated_dag_name, axis_token, "axis `{}` occurs twice",
                     axis_token.text);
      }
      if (devices > kMax32 || dag_.mesh.axes.size() == kMaxAxes) {
        reader_.fail(Code::number_out_of_range, axis_token,
                     "a mesh has at most `{}` devices along at most `{}` axes", kMax32, kMaxAxes);
      }
      dag_.mesh.axes.push_back(axis);
      if (!reader_.at(")")) reader_.expect(",");
    }
    reader_.expect(")");
    dag_.mesh.loc = reader_.location();
  }

  void stages() {
    stages_ = reader_.peek();
    if (dag_.stages.valid())
      reader_.fail(Code::repeated_dag_name, stages_, "a text names its stages once");
    dag_.stages = reader_.symbol("the name of the stages");
  }

  void check_stages() {
    const bool found = !dag_.stages.valid() ||
                       std::any_of(dag_.chunks.begin(), dag_.chunks.end(), [&](const Chunk& chunk) {
                         return chunk.region.valid() &&
                                dag_.regions.coordinate(chunk.region, dag_.stages).has_value();
                       });
    if (!found)
      reader_.fail(Code::unknown_dag_name, stages_, "no region of a chunk is a `{}`", stages_.text);
  }

  void split() {
    SplitDim dim;
    dim.of = reader_.symbol("a dimension");
    reader_.expect("into");
    const TextReader::Token name = reader_.peek();
    const directive::NamedExtent extent = directive::parse_extent(reader_);
    dim.name = extent.name;
    dim.extent = extent.extent;
    dim.loc = reader_.location();
    for (const SplitDim& other : dag_.dims) {
      if (other.name == dim.name)
        reader_.fail(Code::repeated_dag_name, name, "`{}` was declared before", name.text);
    }
    if (dag_.dims.size() == kMaxSplitDims) {
      reader_.fail(Code::number_out_of_range, name, "a DAG has at most `{}` split dimensions",
                   kMaxSplitDims);
    }
    dag_.dims.push_back(dim);
  }

  void param() {
    tensor::Param param;
    param.name = declare(names_.params, dag_.params.size(), "a parameter");
    reader_.expect(":");
    dag_.param_types.push_back(reader_.type());
    reader_.expect("=");
    const TextReader::Token where = reader_.peek();
    const std::string_view kind = reader_.name("how it starts");
    constexpr std::string_view kInits[] = {"normal", "uniform", "zeros", "ones", "constant"};
    std::size_t i = 0;
    while (i < 5 && kind != kInits[i]) ++i;
    if (i == 5) {
      reader_.fail(Code::unknown_dag_name, where, "`{}` is no way to start a parameter",
                   where.text);
      i = 0;
    }
    param.init.kind = static_cast<tensor::Init::Kind>(i);
    reader_.expect("(");
    param.init.scale = reader_.number("a scale");
    reader_.expect(")");
    param.frozen = reader_.accept("frozen");
    if (reader_.accept("rate")) param.rate = reader_.number("a factor of the learning rate");
    if (reader_.accept("decay")) param.decay = reader_.number("a factor of the weight decay");
    param.loc = reader_.location(declared_);
    dag_.params.push_back(param);
  }

  void input() {
    tensor::Input input;
    input.name = declare(names_.inputs, dag_.inputs.size(), "an input");
    reader_.expect(":");
    dag_.input_types.push_back(reader_.type());
    input.loc = reader_.location(declared_);
    dag_.inputs.push_back(input);
  }

  void loss() {
    tensor::Loss loss;
    loss.name = declare(names_.losses, dag_.losses.size(), "a loss");
    reader_.expect(":");
    loss.count =
        reader_.integer("a number of elements", 0, std::numeric_limits<std::int64_t>::max());
    if (reader_.accept("ignore")) {
      tensor::LossMask mask;
      mask.ignore = static_cast<std::int32_t>(
          reader_.integer("a class number", std::numeric_limits<std::int32_t>::min(), kMax32));
      reader_.expect("of");
      mask.targets = tensor::InputId(names_.find(reader_, names_.inputs, "an input"));
      loss.mask = mask;
    }
    loss.loc = reader_.location(declared_);
    dag_.losses.push_back(loss);
  }

  void chunk() {
    Chunk chunk;
    const TextReader::Token called = reader_.peek();
    chunk.name = declare(names_.chunks, dag_.chunks.size(), "a chunk");
    reader_.expect("of");
    if (!reader_.accept("model")) {
      do {
        const Symbol name = reader_.symbol("a region");
        reader_.expect("[");
        const auto index = static_cast<std::uint32_t>(reader_.integer("an index", 0, kMax32));
        reader_.expect("]");
        chunk.region = dag_.regions.child(chunk.region, name, index);
      } while (!reader_.failed() && reader_.accept("."));
    }
    if (reader_.accept("segment"))
      chunk.segment = static_cast<std::uint32_t>(reader_.integer("a number", 0, kMax32));
    const std::string name =
        chunk_name(dag_.regions, chunk.region, chunk.segment, reader_.context().symbols);
    if (!reader_.failed() && name != reader_.context().text(chunk.name)) {
      return reader_.fail(Code::misnamed_dag_value, called,
                          "the chunk is called `{}`, but its region makes it `{}`", called.text,
                          name);
    }
    while (!reader_.failed() && reader_.peek().kind == TextReader::Kind::name &&
           parse_pass(reader_.peek().text)) {
      const auto pass = static_cast<std::size_t>(*parse_pass(reader_.peek().text));
      reader_.next();
      reader_.expect("@");
      chunk_bodies_.push_back({reader_.peek(), dag_.chunks.size(), pass});
      reader_.name("a body");
    }
    if (reader_.accept("recomputed")) {
      reader_.expect("@");
      chunk_bodies_.push_back({reader_.peek(), dag_.chunks.size(), kRecomputed});
      reader_.name("a body");
    }
    chunk.loc = reader_.location(declared_);
    dag_.chunks.push_back(chunk);
  }

  void body() {
    TextReader::Token where = reader_.peek();
    const std::size_t before = dag_.bodies.size();
    parse_body(reader_, dag_, names_.globals);
    if (reader_.failed() || dag_.bodies.size() == before) return;
    // Bodies are looked up as they are written, quotes included.
    std::string written;
    llvm::raw_string_ostream os(written);
    directive::print_name(os, reader_.context().text(dag_.bodies.back().name));
    os.flush();
    if (!names_.bodies.try_emplace(written, static_cast<std::uint32_t>(before)).second) {
      reader_.fail(Code::repeated_dag_name, where, "body `{}` was declared before", written);
    }
  }

  void bucket() {
    Bucket bucket;
    bucket.name = declare(names_.buckets, dag_.buckets.size(), "a bucket");
    reader_.expect("(");
    while (!reader_.failed() && !reader_.at(")")) {
      bucket.params.push_back(tensor::ParamId(names_.find(reader_, names_.params, "a parameter")));
      if (!reader_.at(")")) reader_.expect(",");
    }
    reader_.expect(")");
    if (reader_.accept("on")) {
      do {
        bucket.owners.push_back(dag_.device_sets.intern(reader_.device_set(dag_.mesh)));
      } while (!reader_.failed() && reader_.accept(","));
    }
    layouts(bucket);
    bucket.state_on_host = reader_.accept("offloaded");
    bucket.loc = reader_.location(declared_);
    dag_.buckets.push_back(std::move(bucket));
  }

  /// `made <dp: +>`, `made <dp: +> state <dp: flat>`, `made <dp: +> state <dp: flat> gradients <dp:
  /// flat> parameters <dp: flat> by run prefetch 1`.
  void layouts(Bucket& bucket) {
    const auto layout = [&](std::string_view of) {
      return reader_.accept(of) ? reader_.layout(dag_.mesh, {}) : LayoutId();
    };
    bucket.unreduced = layout("unreduced");
    bucket.state = layout("state");
    bucket.gradients = layout("gradients");
    bucket.parameters = layout("parameters");
    if (bucket.gathered_per_use()) {
      reader_.expect("by");
      const TextReader::Token where = reader_.peek();
      const std::optional<directive::Reduce> reduced =
          directive::parse_reduce(reader_.name("when gradients are reduced"));
      if (!reduced || *reduced == directive::Reduce::step)
        return reader_.fail(Code::malformed_dag_text, where,
                            "sharded gradients are reduced by `each` or by `run`, not by `{}`",
                            where.text);
      bucket.reduced = *reduced;
    }
    if (reader_.accept("prefetch"))
      bucket.prefetch = static_cast<std::uint32_t>(reader_.integer("a number of runs", 0, kMax32));
  }

  void stream() {
    Stream stream;
    stream.name = declare(names_.streams, dag_.streams.size(), "a stream");
    stream.high_priority = reader_.accept("high_priority");
    if (reader_.accept("window"))
      stream.window = static_cast<std::uint32_t>(reader_.integer("a window", 0, kMax32));
    stream.loc = reader_.location(declared_);
    dag_.streams.push_back(stream);
  }

  void claim() {
    directive::RankSteps claim;
    claim.devices = dag_.device_sets.intern(reader_.device_set(dag_.mesh));
    claim.loc = reader_.location();
    dag_.claims.push_back(claim);
  }

  void directives() {
    reader_.expect("{");
    while (!reader_.failed() && !reader_.at("}")) {
      directive::Directive each = directive::parse_directive(reader_, dag_.mesh, dag_.device_sets);
      if (directives_ != nullptr) directives_->push_back(std::move(each));
    }
    reader_.expect("}");
  }

  struct ChunkBody {
    TextReader::Token token;
    std::size_t chunk;
    std::size_t pass;  // or kRecomputed
  };
  static constexpr std::size_t kRecomputed = kPasses;

  TextReader& reader_;
  Dag& dag_;
  NodeNames& names_;
  std::vector<directive::Directive>* directives_;
  std::vector<ChunkBody> chunk_bodies_;
  TextReader::Token declared_;  // the name that was declared last
  bool has_train_ = false;
  TextReader::Token stages_;  // where they are named
};

}  // namespace

void parse_header(TextReader& reader, Dag& dag, NodeNames& names,
                  std::vector<directive::Directive>* directives) {
  HeaderParser(reader, dag, names, directives).parse();
}

}  // namespace piper::dag
