#include "tests/runtime/data_files.h"

#include <zlib.h>

#include "runtime/crc32.h"

namespace piper::test {
namespace {

std::string deflated(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string u16(std::uint64_t number) { return bytes_of(static_cast<std::uint16_t>(number)); }
std::string u32(std::uint64_t number) { return bytes_of(static_cast<std::uint32_t>(number)); }

}  // namespace

std::string npy(std::string_view descr, std::string_view shape, std::string_view data, int version,
                std::string_view order) {
  std::string header = "{'descr': '" + std::string(descr) +
                       "', 'fortran_order': " + std::string(order) +
                       ", 'shape': " + std::string(shape) + ", }";
  const std::size_t prefix = version == 1 ? 10 : 12;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';
  return "\x93NUMPY" + std::string(1, static_cast<char>(version)) + std::string(1, '\0') +
         (version == 1 ? u16(header.size()) : u32(header.size())) + header + std::string(data);
}

std::string zip(const std::vector<NamedFile>& files, bool wide) {
  std::string out, directory;
  for (const NamedFile& file : files) {
    const std::string packed = file.deflated ? deflated(file.content) : file.content;
    const std::string crc = u32(runtime::crc32_of(file.content.data(), file.content.size()));
    const std::string method = u16(file.deflated ? 8 : 0);
    const std::uint64_t offset = out.size();
    const std::string sizes =
        bytes_of<std::uint64_t>(file.content.size()) + bytes_of<std::uint64_t>(packed.size());
    // NumPy's local headers have the fields of ZIP64 always.
    out += "PK\x03\x04" + u16(45) + u16(0) + method + u32(0) + crc + u32(0xFFFFFFFF) +
           u32(0xFFFFFFFF) + u16(file.name.size()) + u16(20) + file.name + u16(1) + u16(16) +
           sizes + packed;
    const std::string extra =
        wide ? u16(1) + u16(24) + sizes + bytes_of<std::uint64_t>(offset) : std::string();
    directory += "PK\x01\x02" + u16(45) + u16(45) + u16(0) + method + u32(0) + crc +
                 u32(wide ? 0xFFFFFFFF : packed.size()) +
                 u32(wide ? 0xFFFFFFFF : file.content.size()) + u16(file.name.size()) +
                 u16(extra.size()) + u16(0) + u16(0) + u16(0) + u32(0) +
                 u32(wide ? 0xFFFFFFFF : offset) + file.name + extra;
  }
  const std::uint64_t begin = out.size();
  out += directory;
  if (wide) {
    const std::uint64_t record = out.size();
    out += "PK\x06\x06" + bytes_of<std::uint64_t>(44) + u16(45) + u16(45) + u32(0) + u32(0) +
           bytes_of<std::uint64_t>(files.size()) + bytes_of<std::uint64_t>(files.size()) +
           bytes_of<std::uint64_t>(directory.size()) + bytes_of(begin) + "PK\x06\x07" + u32(0) +
           bytes_of(record) + u32(1);
  }
  return out + "PK\x05\x06" + u16(0) + u16(0) + u16(wide ? 0xFFFF : files.size()) +
         u16(wide ? 0xFFFF : files.size()) + u32(wide ? 0xFFFFFFFF : directory.size()) +
         u32(wide ? 0xFFFFFFFF : begin) + u16(0);
}

std::string llm_c(std::uint32_t magic, std::uint32_t version, std::uint32_t count,
                  std::string_view data) {
  std::string header = u32(magic) + u32(version) + u32(count);
  header.resize(1024);
  return header + std::string(data);
}

std::string megatron_index(std::uint8_t code, const std::vector<std::int32_t>& lengths,
                           const std::vector<std::int64_t>& offsets,
                           const std::vector<std::int64_t>& documents, std::uint64_t version) {
  return std::string("MMIDIDX\0\0", 9) + bytes_of(version) + bytes_of(code) +
         bytes_of<std::uint64_t>(lengths.size()) + bytes_of<std::uint64_t>(documents.size()) +
         bytes_of_all(lengths) + bytes_of_all(offsets) + bytes_of_all(documents);
}

std::string safetensors(std::string_view header, std::string_view data) {
  return bytes_of<std::uint64_t>(header.size()) + std::string(header) + std::string(data);
}

}  // namespace piper::test
