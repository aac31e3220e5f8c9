#include "runtime/transport/ucx.h"

#include <ucp/api/ucp.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "runtime/shared_library.h"

namespace piper::runtime {

namespace {

constexpr const char* kLibrary = "libucp.so.0";
constexpr unsigned kNote = 1;  // the id of notes among active messages

struct UcxFunctions {
#define UCX_FUNCTION(symbol) decltype(::symbol)* symbol = nullptr;
#include "runtime/transport/ucx_functions.def"
#undef UCX_FUNCTION

  /// The name of a function that the library lacks, or null.
  const char* find(void* library) {
    LibraryFunctions of(library);
#define UCX_FUNCTION(symbol) of.get(symbol, #symbol);
#include "runtime/transport/ucx_functions.def"
#undef UCX_FUNCTION
    return of.missing();
  }
};

Failure no_ucx(std::string reason) {
  return {
      .code = kUcxMissing,
      .message = "UCX, which carries messages between processes on CPUs, is not here: " +
                 std::move(reason),
      .hint =
          "install it (Debian and Ubuntu: `apt-get install libucx0`), or start one process, whose threads run all ranks"};
}

class LibraryUcx final : public UcxWorker {
 public:
  explicit LibraryUcx(const UcxFunctions& functions) : ucx_(functions) {}
  ~LibraryUcx() override {
    if (address_of_worker_ != nullptr) ucx_.ucp_worker_release_address(worker_, address_of_worker_);
    if (worker_ != nullptr) ucx_.ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucx_.ucp_cleanup(context_);
  }

  /// The reason of a failure, or null.
  const char* open() {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    ucs_status_t status =
        ucx_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, nullptr, &context_);
    if (status == UCS_OK) status = open_worker();
    return status == UCS_OK ? nullptr : ucx_.ucs_status_string(status);
  }

  std::string name() const override { return std::string("UCX ") + ucx_.ucp_get_version_string(); }
  const std::string& address() const override { return address_; }
  void on_note(OnNote use) override { use_note_ = std::move(use); }

  const char* connect(std::uint32_t process, const std::string& address) override {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    const ucs_status_t status = ucx_.ucp_ep_create(worker_, &params, &endpoints_[process]);
    return status == UCS_OK ? nullptr : ucx_.ucs_status_string(status);
  }

  void send(std::uint32_t process, std::uint64_t tag, const void* from, std::size_t bytes,
            UcxRequest& request) override {
    const ucp_request_param_t none{};
    keep(ucx_.ucp_tag_send_nbx(endpoints_.at(process), from, bytes, tag, &none), request);
  }
  void receive(std::uint64_t tag, void* to, std::size_t bytes, UcxRequest& request) override {
    const ucp_request_param_t none{};
    keep(ucx_.ucp_tag_recv_nbx(worker_, to, bytes, tag, ~std::uint64_t{0}, &none), request);
  }
  void send_note(std::uint32_t process, std::string_view note, UcxRequest& request) override {
    ucp_request_param_t eager{};
    eager.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    eager.flags = UCP_AM_SEND_FLAG_EAGER;
    keep(ucx_.ucp_am_send_nbx(endpoints_.at(process), kNote, nullptr, 0, note.data(), note.size(),
                              &eager),
         request);
  }

  UcxState state(UcxRequest& request) override {
    if (request.handle == nullptr)
      return request.error == nullptr ? UcxState::done : UcxState::failed;
    const ucs_status_t status = ucx_.ucp_request_check_status(request.handle);
    if (status == UCS_INPROGRESS) return UcxState::pending;
    ucx_.ucp_request_free(std::exchange(request.handle, nullptr));
    if (status == UCS_OK) return UcxState::done;
    request.error = ucx_.ucs_status_string(status);
    return UcxState::failed;
  }
  void cancel(UcxRequest& request) override {
    if (request.handle == nullptr) return;
    ucx_.ucp_request_cancel(worker_, request.handle);
    ucx_.ucp_request_free(std::exchange(request.handle, nullptr));
  }

  bool progress() override {
    bool moved = false;
    while (ucx_.ucp_worker_progress(worker_) != 0) moved = true;
    return moved;
  }
  bool flushed() override {
    if (!flushing_) {
      const ucp_request_param_t none{};
      flush_.error = nullptr;
      keep(ucx_.ucp_worker_flush_nbx(worker_, &none), flush_);
      flushing_ = true;
    }
    if (state(flush_) == UcxState::pending) return false;
    flushing_ = false;
    return true;
  }
  int descriptor() const override { return descriptor_; }
  bool arm() override { return ucx_.ucp_worker_arm(worker_) == UCS_OK; }

 private:
  ucs_status_t open_worker() {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    // Threads of a run use it one after the other.
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucs_status_t status = ucx_.ucp_worker_create(context_, &params, &worker_);
    if (status != UCS_OK) return status;
    std::size_t bytes = 0;
    status = ucx_.ucp_worker_get_address(worker_, &address_of_worker_, &bytes);
    if (status != UCS_OK) return status;
    address_.assign(reinterpret_cast<const char*>(address_of_worker_), bytes);
    ucp_am_handler_param_t notes{};
    notes.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    notes.id = kNote;
    notes.flags = UCP_AM_FLAG_WHOLE_MSG;
    notes.cb = take_note;
    notes.arg = this;
    status = ucx_.ucp_worker_set_am_recv_handler(worker_, &notes);
    if (status != UCS_OK) return status;
    return ucx_.ucp_worker_get_efd(worker_, &descriptor_);
  }

  static ucs_status_t take_note(void* self, const void*, std::size_t, void* data, std::size_t bytes,
                                const ucp_am_recv_param_t* param) {
    auto* const ucx = static_cast<LibraryUcx*>(self);
    // Processes of a run send notes eagerly; anything else comes from no process of a run.
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0 && ucx->use_note_)
      ucx->use_note_({static_cast<const char*>(data), bytes});
    return UCS_OK;
  }

  /// Keeps the result of a call that begins to move a message.
  void keep(ucs_status_ptr_t result, UcxRequest& request) {
    request = {};
    if (UCS_PTR_IS_ERR(result)) {
      request.error = ucx_.ucs_status_string(UCS_PTR_STATUS(result));
    } else {
      request.handle = result;  // null: it has ended at once
    }
  }

  const UcxFunctions ucx_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_address_t* address_of_worker_ = nullptr;
  std::string address_;
  int descriptor_ = -1;
  OnNote use_note_;
  std::map<std::uint32_t, ucp_ep_h> endpoints_;
  UcxRequest flush_;
  bool flushing_ = false;
};

}  // namespace

std::unique_ptr<UcxWorker> UcxWorker::open(Failure& failure) {
  // The library reads these when it is loaded: its signal handlers would hide a crash of ours, and
  // its messages about a peer that is gone would come before the reason.
  setenv("UCX_ERROR_SIGNALS", "", 0);
  setenv("UCX_LOG_LEVEL", "fatal", 0);
  std::string reason;
  void* const library = open_shared_library(kLibrary, RTLD_NOW | RTLD_LOCAL, reason);
  if (library == nullptr) {
    failure = no_ucx(std::move(reason));
    return nullptr;
  }
  UcxFunctions functions;
  if (const char* const lacking = functions.find(library)) {
    failure = no_ucx("`" + std::string(kLibrary) + "` lacks `" + lacking + "`");
    return nullptr;
  }
  auto worker = std::make_unique<LibraryUcx>(functions);
  if (const char* const error = worker->open()) {
    failure = {
        .code = kUcxFailed,
        .message = worker->name() + " cannot be used: " + error,
        .hint =
            "`UCX_TLS` and `UCX_NET_DEVICES` choose its transports; `UCX_LOG_LEVEL=info` shows its reasons"};
    return nullptr;
  }
  return worker;
}

}  // namespace piper::runtime
