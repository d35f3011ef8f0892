// Whatever etcd's address answers: it is read or refused, and a view of it stays whole.

#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "discovery/etcd_view.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice::discovery;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Time now(std::chrono::seconds(1));
    EtcdView view("/sluice/workers/", now);
    for (int i = 0; i < 2; ++i) {
        static_cast<void>(view.ask(now));
        static_cast<void>(view.on_answer(text, now));
        now = view.due();
    }
    if (const auto worker = parse_worker_json(text))
        SLUICE_ASSERT(parse_worker_json(to_json(*worker)) == *worker);
    static_cast<void>(parse_grant(text));
    static_cast<void>(parse_keep_alive(text));
    if (const auto bytes = from_base64(text)) static_cast<void>(to_base64(*bytes));
    return 0;
}
