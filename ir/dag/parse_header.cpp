#include <algorithm>

#include "ir/dag/field_reader.h"
#include "ir/directive/parse.h"
#include "ir/text/print_text.h"

namespace piper::dag {

namespace {

class HeaderParser {
 public:
  HeaderParser(TextReader& reader, Dag& dag, NodeNames& names,
               std::vector<directive::Directive>* directives)
      : reader_(reader),
        dag_(dag),
        names_(names),
        directives_(directives),
        fields_(reader, dag, names) {}

  void parse() {
    reader_.expect("pir");
    const TextReader::Token version = reader_.peek();
    if (reader_.integer("a version") != 2) {
      return reader_.fail(Code::unsupported_dag_version, version,
                          "version `{}` of the text is not known; this is version `2`",
                          version.text);
    }
    reader_.read_locations();
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
    if (reader_.at("locations")) return reader_.expect_end();
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
    reader_.list(")", [&] {
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
    });
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
    const TextReader::Token where = reader_.peek();
    SplitDim dim;
    split_fields(fields_, dim);
    for (const SplitDim& other : dag_.dims) {
      if (other.name == dim.name)
        reader_.fail(Code::repeated_dag_name, where, "`{}` was declared before",
                     reader_.context().text(dim.name));
    }
    if (dag_.dims.size() == kMaxSplitDims) {
      reader_.fail(Code::number_out_of_range, where, "a DAG has at most `{}` split dimensions",
                   kMaxSplitDims);
    }
    dag_.dims.push_back(dim);
  }

  void param() {
    param_fields(fields_, dag_.params.emplace_back(), dag_.param_types.emplace_back());
  }
  void input() {
    input_fields(fields_, dag_.inputs.emplace_back(), dag_.input_types.emplace_back());
  }
  void loss() { loss_fields(fields_, dag_.losses.emplace_back()); }
  void bucket() { bucket_fields(fields_, dag_.buckets.emplace_back()); }
  void stream() { stream_fields(fields_, dag_.streams.emplace_back()); }
  void claim() { claim_fields(fields_, dag_.claims.emplace_back()); }

  void chunk() {
    Chunk chunk;
    const TextReader::Token called = reader_.peek();
    fields_.declare(Table::chunks, chunk.name);
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
    fields_.declared_location(chunk.loc);
    dag_.chunks.push_back(chunk);
  }

  void body() {
    TextReader::Token where = reader_.peek();
    const std::size_t before = dag_.bodies.size();
    parse_body(reader_, dag_, names_);
    if (reader_.failed() || dag_.bodies.size() == before) return;
    // Bodies are looked up as they are written, quotes included.
    const std::string written = name_text(reader_.context().text(dag_.bodies.back().name));
    if (!names_.bodies.try_emplace(written, static_cast<std::uint32_t>(before)).second) {
      reader_.fail(Code::repeated_dag_name, where, "body `{}` was declared before", written);
    }
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
  FieldReader fields_;
  std::vector<ChunkBody> chunk_bodies_;
  bool has_train_ = false;
  TextReader::Token stages_;  // where they are named
};

}  // namespace

void parse_header(TextReader& reader, Dag& dag, NodeNames& names,
                  std::vector<directive::Directive>* directives) {
  HeaderParser(reader, dag, names, directives).parse();
}

}  // namespace piper::dag
